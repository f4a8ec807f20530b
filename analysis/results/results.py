"""Everything that a report shows, as one plain structure: :class:`Results`.

Made by ``analysis.results.collect`` from a test of ours or from files of any system; read by pages, tables
and files (``analysis.results.files`` writes it as JSON). What is not known is empty, never made up. A change
of meaning raises :data:`VERSION`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from analysis.errors.confusions import Matrix
from analysis.errors.oracles import Oracle
from analysis.inputs.hypothesis_files import Normalisation
from analysis.inputs.text_files import Problem
from analysis.intervals.comparison import Comparison
from analysis.results.breakdowns import Breakdown
from utils.metrics import ErrorCounts

VERSION = 1
# What of results.json a report says of the test beside its own figures.
REPORTED = (
    "split",
    "manifests",
    "speech_run",
    "language_run",
    "beam",
    "syllables_run",
    "fusion_weight",
    "insertion_bonus",
    "joint",
    "language_weight",
    "joint_bonus",
    "words",
    "audio_seconds",
    "seconds",
    "real_time_factor",
    "seen_in_training",
)


@dataclass(frozen=True)
class Rate:
    """An error rate.

    Attributes:
        name: ``syllable``, ``toneless syllable``, ``hanzi`` or ``sentence`` error.
        level: ``syllables`` or ``hanzi``.
        counts: edits and reference tokens.
        rate: their ratio.
        low, high, unit: 95 % confidence interval, and what was resampled.
    """

    name: str
    level: str
    counts: ErrorCounts
    rate: float
    low: float
    high: float
    unit: str


@dataclass(frozen=True)
class Flow:
    """Hanzi of one fate: what happened to their syllable, what became of them, who is to blame, how many.

    ``syllable`` is ``right`` or a syllable error, ``hanzi`` is ``right`` or a hanzi error; ``attribution`` is
    empty where both are right.
    """

    syllable: str
    hanzi: str
    attribution: str
    count: int


@dataclass(frozen=True, slots=True)
class UtteranceRow:
    """One utterance, ready to be shown; texts as written, syllables separated by spaces.

    Attributes:
        id, speaker, seconds, audio: of the recording; ``""`` and 0 if not known.
        snr: dB; None if not known.
        reference_pinyin, pinyin, reference_hanzi, hanzi: truth and output.
        gold_hanzi: output of the second stage for the true syllables; ``""`` without that pass.
        syllable_errors, syllable_tokens, hanzi_errors, hanzi_tokens: edits and reference tokens.
        n_best: (pinyin, hanzi, score) of each reading, the best first; empty if only one was asked for.
        times: (start, end) in seconds of each recognised syllable.
        places: the alignment (of hanzi where there are hanzi, else of syllables), if anything is wrong;
            each is [reference, output, kind, reference syllable, recognised syllable, syllable kind,
            attribution, names of confusions separated by commas], ``""`` for what isn't there.
    """

    id: str
    speaker: str
    seconds: float
    audio: str
    snr: float | None
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
    places: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class System:
    """What one system did.

    Attributes:
        name: of the system.
        automatic_pinyin: its syllables are pypinyin's reading of its hanzi.
        rates: headline figures.
        kinds: by level the count of every kind of error, none left out; they add up to the edits.
        unknown_kinds: kinds that could not be told, because what they need isn't known.
        named_confusions: the count of every classic confusion among the syllables.
        top_confusions: by level (reference, output, count), the most frequent first.
        matrices: initials, finals and tones.
        attribution: count of every attribution; ``repaired`` counts right hanzi, all others are the errors.
        attribution_basis: ``gold pass``, ``syllable`` (without the second pass), or empty.
        flow: hanzi by what happened to syllable and hanzi.
        cuts, oracles: see there.
        utterances: all of them, in the order of the list.
    """

    name: str
    automatic_pinyin: bool
    rates: tuple[Rate, ...]
    kinds: dict[str, dict[str, int]]
    unknown_kinds: tuple[str, ...]
    named_confusions: dict[str, int]
    top_confusions: dict[str, tuple[tuple[str, str, int], ...]]
    matrices: tuple[Matrix, ...]
    attribution: dict[str, int]
    attribution_basis: str
    flow: tuple[Flow, ...]
    cuts: tuple[Breakdown, ...]
    oracles: tuple[Oracle, ...]
    utterances: tuple[UtteranceRow, ...]


@dataclass(frozen=True)
class Results:
    """Everything that a report shows.

    Attributes:
        version: of this structure.
        task: ``speech``, ``language``, ``pipeline`` (tests of ours) or ``files``.
        title: of the report.
        settings: whatever else is worth knowing of the test: runs, lists, beam, seconds.
        levels: ``syllables``, ``hanzi`` or both.
        utterances, speakers, seconds: how much was tested.
        systems: one or more; the first is what the others are compared with.
        comparisons: of each other system with the first, on each level.
        problems: of the files.
        normalisation: what was made alike before counting.
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
    problems: tuple[Problem, ...] = field(default=())
    normalisation: tuple[Normalisation, ...] = field(default=())
