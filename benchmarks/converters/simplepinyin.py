"""Adapter for simplepinyin (PyPI), which converts syllables without tones by word weights in a window.

It omits syllables that it does not know. Its dictionary contains 83 % of the runs of three syllables of
AISHELL-1 dev with the right hanzi, and 26 % of those of THCHS-30: it has probably been trained on AISHELL-1,
whose error rates are then not a fair test.
"""

from collections.abc import Callable, Sequence

from benchmarks.converters.entry import SAMPLE, Entry, in_package

ENTRIES = (
    Entry(
        "simplepinyin",
        in_package("simplepinyin", ("simplepinyin==0.1.1",), "simplepinyin:build_simplepinyin"),
        limit=SAMPLE,
    ),
)


def build_simplepinyin() -> Callable[[Sequence[Sequence[str]]], list[str]]:
    """A converter with the package's only model."""
    import simplepinyin

    model = simplepinyin.Languagle_Model()
    return lambda sentences: [model.translate_p2c(list(sentence)) for sentence in sentences]
