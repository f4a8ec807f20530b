"""Adapter for Pinyin2Hanzi (PyPI), which converts syllables without tones by two methods.

A hidden Markov model of hanzi (``hmm``), and words of a dictionary weighted by frequency (``dag``). It does
not use tones. Of the hidden Markov model only the best path is searched: six would take six times as long.
"""

import itertools
from collections.abc import Callable, Sequence

from benchmarks.converters.entry import SMALL_SAMPLE, Entry, in_package

PACKAGE = "Pinyin2Hanzi", ("Pinyin2Hanzi==0.1.1",)
UNKNOWN = "□"

ENTRIES = (
    Entry("Pinyin2Hanzi DAG", in_package(*PACKAGE, "pinyin2hanzi:build_dag")),
    # Half a second to two for each sentence.
    Entry("Pinyin2Hanzi HMM", in_package(*PACKAGE, "pinyin2hanzi:build_hmm"), limit=SMALL_SAMPLE),
)


def build_dag() -> Callable[[Sequence[Sequence[str]]], list[str]]:
    """Words by frequency."""
    import Pinyin2Hanzi

    parameters = Pinyin2Hanzi.DefaultDagParams()
    return _by_stretches(lambda syllables: Pinyin2Hanzi.dag(parameters, syllables, path_num=6, log=True))


def build_hmm() -> Callable[[Sequence[Sequence[str]]], list[str]]:
    """The hidden Markov model."""
    import Pinyin2Hanzi

    parameters = Pinyin2Hanzi.DefaultHmmParams()
    return _by_stretches(lambda syllables: Pinyin2Hanzi.viterbi(parameters, syllables, path_num=1, log=True))


def _by_stretches(best: Callable[[list[str]], list]) -> Callable[[Sequence[Sequence[str]]], list[str]]:
    """A converter that passes only known syllables to the library, which otherwise gives no result."""
    from Pinyin2Hanzi import is_pinyin, simplify_pinyin

    def convert(sentence: Sequence[str]) -> str:
        text = ""
        spelled = [simplify_pinyin(syllable) for syllable in sentence]
        for known, group in itertools.groupby(spelled, key=is_pinyin):
            stretch = list(group)
            paths = best(stretch) if known else []
            text += "".join(paths[0].path) if paths else UNKNOWN * len(stretch)
        return text

    return lambda sentences: [convert(sentence) for sentence in sentences]
