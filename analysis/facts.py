"""Examined outcomes of one system or several in; everything that a report shows, as one plain structure, out.

:class:`Facts` is what pages, tables and files are made of: JSON-serialisable (``analysis.facts_files``), the
same for our own runs and for files of other systems. What is not known is empty, never made up. A change of
meaning raises :data:`VERSION`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from analysis.attribution import ATTRIBUTIONS
from analysis.bootstrap import rate_interval
from analysis.comparison import Comparison, compare
from analysis.confusions import NAMES, Matrix, count_matrices, top_confusions
from analysis.cuts import Cut, find_cuts
from analysis.error_types import (
    HANZI_ERRORS,
    NOT_IN_LEXICON,
    SYLLABLE_ERRORS,
    UNKNOWN_HANZI,
    syllable_difference,
)
from analysis.examination import Examined, Place, examine, flat
from analysis.oracles import Oracle, find_oracles
from analysis.outcomes import HANZI, SYLLABLES, Outcome, Training, as_text, resampled_by, tokens_of
from analysis.phonology import parts
from analysis.text_files import Problem
from utils.metrics import ErrorCounts, count_errors, count_sentence_errors, total

VERSION = 1
KINDS = {SYLLABLES: SYLLABLE_ERRORS, HANZI: HANZI_ERRORS}
CONFUSIONS_KEPT = 100
RIGHT = "right"
GOLD_PASS, BY_SYLLABLE, NOT_TOLD = "gold pass", "syllable", ""


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
class UtteranceFacts:
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
        kinds_not_told: kinds that could not be told, because what they need isn't known.
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
    kinds_not_told: tuple[str, ...]
    named_confusions: dict[str, int]
    top_confusions: dict[str, tuple[tuple[str, str, int], ...]]
    matrices: tuple[Matrix, ...]
    attribution: dict[str, int]
    attribution_basis: str
    flow: tuple[Flow, ...]
    cuts: tuple[Cut, ...]
    oracles: tuple[Oracle, ...]
    utterances: tuple[UtteranceFacts, ...]


@dataclass(frozen=True)
class Normalisation:
    """What a rule of normalisation would change.

    Attributes:
        rule: its name.
        applied: whether it was.
        lines: by file, in how many lines there is something for it to do.
        errors_otherwise: hanzi errors of each system, had it been the other way; None where it can't be told.
    """

    rule: str
    applied: bool
    lines: dict[str, int]
    errors_otherwise: dict[str, int | None]


@dataclass(frozen=True)
class Facts:
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


@dataclass(frozen=True)
class SystemOutput:
    """A system's output, to be explained.

    Attributes:
        name: of the system.
        outcomes: of every utterance.
        automatic: its syllables are pypinyin's reading of its hanzi.
    """

    name: str
    outcomes: Sequence[Outcome]
    automatic: bool = False


def gather_facts(
    systems: Sequence[SystemOutput],
    levels: Sequence[str],
    task: str,
    title: str,
    training: Mapping[str, Training] | None = None,
    settings: Mapping[str, object] | None = None,
    problems: Sequence[Problem] = (),
    normalisation: Sequence[Normalisation] = (),
) -> Facts:
    """Explain the output of one system, or of several on the same utterances.

    Args:
        systems: the first is what the others are compared with.
        levels: ``syllables``, ``hanzi`` or both.
        task, title, settings, problems, normalisation: as in :class:`Facts`.
        training: by level, what is known of the training of the model that writes it.
    """
    training = training or {}
    examined = [examine(one.outcomes, levels, training.get(HANZI), one.automatic) for one in systems]
    comparisons = [
        compare(examined[0], other, level, (systems[0].name, system.name))
        for system, other in zip(systems[1:], examined[1:], strict=True)
        for level in levels
    ]
    outcomes = systems[0].outcomes
    return Facts(
        version=VERSION,
        task=task,
        title=title,
        settings=dict(settings or {}),
        levels=tuple(levels),
        utterances=len(outcomes),
        speakers=len({one.speaker for one in outcomes if one.speaker}),
        seconds=sum(one.seconds for one in outcomes),
        systems=tuple(
            system_facts(system, found, levels, training)
            for system, found in zip(systems, examined, strict=True)
        ),
        comparisons=tuple(comparisons),
        problems=tuple(problems),
        normalisation=tuple(normalisation),
    )


def system_facts(
    system: SystemOutput,
    examined: Sequence[Examined],
    levels: Sequence[str],
    training: Mapping[str, Training],
) -> System:
    """All facts of one system's examined output; the arguments are those of :func:`gather_facts`."""
    tags = Counter(tag for place in flat(examined, SYLLABLES) for tag in place.tags)
    places = {level: list(flat(examined, level)) for level in levels}
    basis = _basis(examined, system.automatic) if HANZI in levels else NOT_TOLD
    blame = Counter(place.attribution for place in places.get(HANZI, ()))
    return System(
        name=system.name,
        automatic_pinyin=system.automatic,
        rates=tuple(_rates(examined, levels)),
        kinds={level: count_kinds(places[level], level) for level in levels},
        kinds_not_told=_not_told(levels, training.get(HANZI) or Training()),
        named_confusions={name: tags[name] for name in NAMES} if SYLLABLES in levels else {},
        top_confusions={
            level: tuple(top_confusions((place.pair for place in places[level]), CONFUSIONS_KEPT))
            for level in levels
        },
        matrices=tuple(count_matrices(place.pair for place in places.get(SYLLABLES, ()))),
        attribution={name: blame[name] for name in ATTRIBUTIONS} if basis else {},
        attribution_basis=basis,
        flow=tuple(_flow(places[HANZI])) if basis else (),
        cuts=tuple(cut for level in levels for cut in find_cuts(examined, level, training.get(level))),
        oracles=() if system.automatic else tuple(find_oracles(examined, levels)),
        utterances=tuple(map(_utterance, examined)),
    )


def count_kinds(places: Sequence[Place], level: str) -> dict[str, int]:
    """Count of every kind of error of a level, those that don't occur too."""
    counts = Counter(place.kind for place in places)
    return {kind: counts[kind] for kind in KINDS[level]}


def _rates(examined: Sequence[Examined], levels: Sequence[str]) -> list[Rate]:
    rates = []
    if SYLLABLES in levels:
        rates.append(
            _rate("syllable error", SYLLABLES, examined, [one.counts(SYLLABLES) for one in examined])
        )
        bases = [[_bases(tokens) for tokens in tokens_of(one.outcome, SYLLABLES)] for one in examined]
        rates.append(
            _rate("toneless syllable error", SYLLABLES, examined, [count_errors(*two) for two in bases])
        )
    if HANZI in levels:
        rates.append(_rate("hanzi error", HANZI, examined, [one.counts(HANZI) for one in examined]))
    last = levels[-1]
    sentences = [count_sentence_errors(*tokens_of(one.outcome, last)) for one in examined]
    return [*rates, _rate("sentence error", last, examined, sentences)]


def _rate(name: str, level: str, examined: Sequence[Examined], counts: Sequence[ErrorCounts]) -> Rate:
    outcomes = [one.outcome for one in examined]
    group, unit = resampled_by(outcomes)
    interval = rate_interval(counts, list(map(group, outcomes)), unit)
    summed = total(counts)
    return Rate(name, level, summed, summed.rate, interval.low, interval.high, interval.unit)


def _bases(tokens: Sequence[str]) -> list[str]:
    """Syllables without their tones; other tokens as they are."""
    return [token[:-1] if parts(token) else token for token in tokens]


def _not_told(levels: Sequence[str], training: Training) -> tuple[str, ...]:
    needs = {UNKNOWN_HANZI: training.hanzi, NOT_IN_LEXICON: training.candidates}
    return tuple(kind for kind, known in needs.items() if known is None) if HANZI in levels else ()


def _basis(examined: Sequence[Examined], automatic: bool) -> str:
    if automatic:
        return NOT_TOLD
    gold = all(one.outcome.gold_hanzi or not one.outcome.reference_hanzi for one in examined)
    return GOLD_PASS if gold else BY_SYLLABLE


def _flow(places: Sequence[Place]) -> list[Flow]:
    """The most frequent fate first."""
    counts = Counter(
        (_syllable_fate(place), place.kind or RIGHT, place.attribution or "") for place in places
    )
    return [
        Flow(*fate, count) for fate, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    ]


def _syllable_fate(place: Place) -> str:
    if place.pair.right or place.pair.substituted:
        return syllable_difference(place.said, place.heard) or RIGHT
    return place.kind or RIGHT


def _utterance(one: Examined) -> UtteranceFacts:
    outcome = one.outcome
    syllables, hanzi = one.counts(SYLLABLES), one.counts(HANZI)
    places = one.hanzi or one.syllables
    wrong = any(place.kind or place.attribution for place in places)
    return UtteranceFacts(
        id=outcome.id,
        speaker=outcome.speaker,
        seconds=outcome.seconds,
        audio=outcome.audio,
        snr=outcome.snr,
        reference_pinyin=" ".join(outcome.reference_pinyin),
        pinyin=" ".join(outcome.pinyin),
        reference_hanzi=as_text(outcome.reference_hanzi),
        hanzi=as_text(outcome.hanzi),
        gold_hanzi=as_text(outcome.gold_hanzi),
        syllable_errors=syllables.errors,
        syllable_tokens=syllables.reference,
        hanzi_errors=hanzi.errors,
        hanzi_tokens=hanzi.reference,
        n_best=tuple((" ".join(each.pinyin), each.hanzi, each.score) for each in outcome.n_best),
        times=tuple((round(start, 3), round(end, 3)) for start, end in outcome.times),
        places=tuple(map(_shown, places)) if wrong else (),
    )


def _shown(place: Place) -> tuple[str, ...]:
    return (
        place.pair.reference or "",
        place.pair.hypothesis or "",
        place.kind or "",
        place.said,
        place.heard,
        place.syllable_kind or "",
        place.attribution or "",
        ",".join(place.tags),
    )
