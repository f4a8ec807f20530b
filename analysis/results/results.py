"""Data classes of all results of a report: :class:`Results`, its systems and their utterances.

``analysis.results.collect`` makes them from a test of this project or from files of any system. Pages, tables
and files are views of them; ``analysis.results.result_files`` writes all of them as ``report.json``. What is
not known is empty, 0 or None; see each attribute. When the meaning of a field changes, :data:`VERSION` is
increased.
"""

from dataclasses import dataclass

from analysis.errors.confusions import Matrix
from analysis.inputs.text_files import Problem
from analysis.intervals.comparison import Comparison
from analysis.results.breakdowns import Breakdown
from analysis.results.rates import Oracle, Rate

VERSION = 3  # of the structure, in report.json


@dataclass(frozen=True, slots=True)
class UtteranceRow:
    """One utterance as it is shown and written; syllables are separated by spaces.

    Attributes:
        id, speaker, seconds, audio: fields of the recording; ``""`` and 0 if not known.
        snr, pitch: dB and Hz; None if not known.
        reference_pinyin, pinyin, reference_hanzi, hanzi: reference and output.
        gold_hanzi: output of the second stage for the reference syllables; ``""`` without this gold pass.
        syllable_errors, syllable_tokens, hanzi_errors, hanzi_tokens: edits and reference tokens.
        n_best: (pinyin, hanzi, score) of each alternative, the best first; empty if only one was computed.
        times: (start, end) in seconds of each recognised syllable.
        alignment: of hanzi if there are hanzi, else of syllables; empty for an utterance without errors.
            Each token is [reference, output, kind, reference syllable, recognised syllable, syllable kind,
            attribution, names of confusions separated by commas], with ``""`` for what does not exist.
    """

    id: str
    speaker: str
    seconds: float
    audio: str
    snr: float | None
    pitch: float | None
    reference_pinyin: str
    pinyin: str
    reference_hanzi: str
    hanzi: str
    gold_hanzi: str
    syllable_errors: int
    syllable_tokens: int
    hanzi_errors: int
    hanzi_tokens: int
    n_best: tuple[tuple[str, str, float], ...]
    times: tuple[tuple[float, float], ...]
    alignment: tuple[tuple[str, ...], ...]

    def errors(self, level: str) -> tuple[int, int]:
        """(edits, reference tokens) on the level of syllables or of hanzi."""
        if level == "syllables":
            return self.syllable_errors, self.syllable_tokens
        return self.hanzi_errors, self.hanzi_tokens


@dataclass(frozen=True)
class System:
    """Results of one system.

    Attributes:
        name: name of the system.
        automatic_pinyin: ``reference``, ``output`` or both, whose syllables are pypinyin's reading of their
            hanzi.
        rates: error rates.
        kinds: by level, the count of every kind of error, also of those that do not occur; they add up to the
            edits.
        unknown_kinds: kinds that could not be recognised, because the model's vocabulary is not known.
        named_confusions: the count of every classic confusion among the syllables.
        top_confusions: by level, (reference, output, count), the most frequent first.
        matrices: confusion matrices of initials, finals and tones.
        attribution: count of every attribution; ``repaired`` counts correct hanzi, the others add up to the
            errors.
        attribution_basis: ``gold pass``, ``syllable`` (without a gold pass), or ``""`` without attribution.
        breakdowns, oracles: see :class:`Breakdown` and :class:`Oracle`.
        utterances: all of them, in the order of the list.
    """

    name: str
    automatic_pinyin: tuple[str, ...]
    rates: tuple[Rate, ...]
    kinds: dict[str, dict[str, int]]
    unknown_kinds: tuple[str, ...]
    named_confusions: dict[str, int]
    top_confusions: dict[str, tuple[tuple[str, str, int], ...]]
    matrices: tuple[Matrix, ...]
    attribution: dict[str, int]
    attribution_basis: str
    breakdowns: tuple[Breakdown, ...]
    oracles: tuple[Oracle, ...]
    utterances: tuple[UtteranceRow, ...]


@dataclass(frozen=True)
class Results:
    """All results of a test or of a comparison.

    Attributes:
        version: version of this structure.
        task: ``speech``, ``language``, ``pipeline`` (tests of this project) or ``files``.
        title: title of the report.
        settings: settings of the test: runs, lists, search options, computing time.
        levels: ``syllables``, ``hanzi`` or both.
        utterances, speakers, seconds: size of the test set.
        systems: one or more; the others are compared with the first.
        comparisons: comparison of each other system with the first, on each level.
        problems: problems of the files.
    """

    version: int
    task: str
    title: str
    settings: dict[str, object]
    levels: tuple[str, ...]
    utterances: int
    speakers: int
    seconds: float
    systems: tuple[System, ...]
    comparisons: tuple[Comparison, ...] = ()
    problems: tuple[Problem, ...] = ()
