"""simplepinyin (PyPI): syllables without tones in, hanzi out, by the product of word weights in a window.

It leaves syllables out that it doesn't know. Of AISHELL-1 dev's runs of three syllables its dictionary holds
83 % with the right hanzi, of THCHS-30's 26 %: it has probably seen AISHELL-1, whose
figures are then no test of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from benchmarks.converters.entry import SAMPLE, Entry
from benchmarks.converters.python_package import in_package

ENTRIES = (
    Entry("simplepinyin", "MIT", in_package("simplepinyin", "simplepinyin:build_simplepinyin"), most=SAMPLE),
)


def build_simplepinyin() -> Callable[[Sequence[Sequence[str]]], list[str]]:
    """Its only model."""
    import simplepinyin

    model = simplepinyin.Languagle_Model()
    return lambda sentences: [model.translate_p2c(list(sentence)) for sentence in sentences]
