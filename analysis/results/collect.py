"""Outcomes of one system or several in, all results of their report (:mod:`analysis.results.results`) out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from analysis.errors.align_all import AlignedToken, AlignedUtterance, align_all, all_tokens
from analysis.errors.attribution import ATTRIBUTIONS
from analysis.errors.confusions import NAMES, count_matrices, top_confusions
from analysis.errors.kinds import (
    HANZI_ERRORS,
    NOT_IN_LEXICON,
    SYLLABLE_ERRORS,
    UNKNOWN_HANZI,
    syllable_difference,
)
from analysis.errors.oracles import find_oracles
from analysis.inputs.text_files import Problem
from analysis.inputs.training_texts import Training
from analysis.inputs.utterance_results import (
    HANZI,
    SYLLABLES,
    SystemOutput,
    as_text,
    resampled_by,
    tokens_of,
)
from analysis.intervals.bootstrap import rate_interval
from analysis.intervals.comparison import compare
from analysis.results.breakdowns import find_breakdowns
from analysis.results.results import VERSION, Flow, Normalisation, Rate, Results, System, UtteranceRow
from utils.mandarin.syllable_distance import parts
from utils.metrics import ErrorCounts, count_errors, count_sentence_errors, total

KINDS = {SYLLABLES: SYLLABLE_ERRORS, HANZI: HANZI_ERRORS}
CONFUSIONS_KEPT = 100
RIGHT = "right"
GOLD_PASS, BY_SYLLABLE, NOT_TOLD = "gold pass", "syllable", ""


def collect_results(
    systems: Sequence[SystemOutput],
    levels: Sequence[str],
    task: str,
    title: str,
    training: Mapping[str, Training] | None = None,
    settings: Mapping[str, object] | None = None,
    problems: Sequence[Problem] = (),
    normalisation: Sequence[Normalisation] = (),
) -> Results:
    """Explain the output of one system, or of several on the same utterances.

    Args:
        systems: the first is what the others are compared with.
        levels: ``syllables``, ``hanzi`` or both.
        task, title, settings, problems, normalisation: as in :class:`Results`.
        training: by level, what is known of the training of the model that writes it.
    """
    training = training or {}
    aligned = [align_all(one.utterances, levels, training.get(HANZI), one.automatic) for one in systems]
    comparisons = [
        compare(aligned[0], other, level, (systems[0].name, system.name))
        for system, other in zip(systems[1:], aligned[1:], strict=True)
        for level in levels
    ]
    utterances = systems[0].utterances
    return Results(
        version=VERSION,
        task=task,
        title=title,
        settings=dict(settings or {}),
        levels=tuple(levels),
        utterances=len(utterances),
        speakers=len({one.speaker for one in utterances if one.speaker}),
        seconds=sum(one.seconds for one in utterances),
        systems=tuple(
            system_results(system, found, levels, training)
            for system, found in zip(systems, aligned, strict=True)
        ),
        comparisons=tuple(comparisons),
        problems=tuple(problems),
        normalisation=tuple(normalisation),
    )


def system_results(
    system: SystemOutput,
    aligned: Sequence[AlignedUtterance],
    levels: Sequence[str],
    training: Mapping[str, Training],
) -> System:
    """All results of one system's aligned output; the arguments are those of :func:`collect_results`."""
    tags = Counter(tag for place in all_tokens(aligned, SYLLABLES) for tag in place.tags)
    places = {level: list(all_tokens(aligned, level)) for level in levels}
    basis = _basis(aligned, system.automatic) if HANZI in levels else NOT_TOLD
    blame = Counter(place.attribution for place in places.get(HANZI, ()))
    return System(
        name=system.name,
        automatic_pinyin=system.automatic,
        rates=tuple(_rates(aligned, levels)),
        kinds={level: count_kinds(places[level], level) for level in levels},
        unknown_kinds=_not_told(levels, training.get(HANZI) or Training()),
        named_confusions={name: tags[name] for name in NAMES} if SYLLABLES in levels else {},
        top_confusions={
            level: tuple(top_confusions((place.pair for place in places[level]), CONFUSIONS_KEPT))
            for level in levels
        },
        matrices=tuple(count_matrices(place.pair for place in places.get(SYLLABLES, ()))),
        attribution={name: blame[name] for name in ATTRIBUTIONS} if basis else {},
        attribution_basis=basis,
        flow=tuple(_flow(places[HANZI])) if basis else (),
        cuts=tuple(cut for level in levels for cut in find_breakdowns(aligned, level, training.get(level))),
        oracles=() if system.automatic else tuple(find_oracles(aligned, levels)),
        utterances=tuple(map(_utterance, aligned)),
    )


def count_kinds(places: Sequence[AlignedToken], level: str) -> dict[str, int]:
    """Count of every kind of error of a level, those that don't occur too."""
    counts = Counter(place.kind for place in places)
    return {kind: counts[kind] for kind in KINDS[level]}


def _rates(aligned: Sequence[AlignedUtterance], levels: Sequence[str]) -> list[Rate]:
    rates = []
    if SYLLABLES in levels:
        rates.append(_rate("syllable error", SYLLABLES, aligned, [one.counts(SYLLABLES) for one in aligned]))
        bases = [[_bases(tokens) for tokens in tokens_of(one.utterance, SYLLABLES)] for one in aligned]
        rates.append(
            _rate("toneless syllable error", SYLLABLES, aligned, [count_errors(*two) for two in bases])
        )
    if HANZI in levels:
        rates.append(_rate("hanzi error", HANZI, aligned, [one.counts(HANZI) for one in aligned]))
    last = levels[-1]
    sentences = [count_sentence_errors(*tokens_of(one.utterance, last)) for one in aligned]
    return [*rates, _rate("sentence error", last, aligned, sentences)]


def _rate(name: str, level: str, aligned: Sequence[AlignedUtterance], counts: Sequence[ErrorCounts]) -> Rate:
    utterances = [one.utterance for one in aligned]
    group, unit = resampled_by(utterances)
    interval = rate_interval(counts, list(map(group, utterances)), unit)
    summed = total(counts)
    return Rate(name, level, summed, summed.rate, interval.low, interval.high, interval.unit)


def _bases(tokens: Sequence[str]) -> list[str]:
    """Syllables without their tones; other tokens as they are."""
    return [token[:-1] if parts(token) else token for token in tokens]


def _not_told(levels: Sequence[str], training: Training) -> tuple[str, ...]:
    needs = {UNKNOWN_HANZI: training.hanzi, NOT_IN_LEXICON: training.candidates}
    return tuple(kind for kind, known in needs.items() if known is None) if HANZI in levels else ()


def _basis(aligned: Sequence[AlignedUtterance], automatic: bool) -> str:
    if automatic:
        return NOT_TOLD
    gold = all(one.utterance.gold_hanzi or not one.utterance.reference_hanzi for one in aligned)
    return GOLD_PASS if gold else BY_SYLLABLE


def _flow(places: Sequence[AlignedToken]) -> list[Flow]:
    """The most frequent fate first."""
    counts = Counter(
        (_syllable_fate(place), place.kind or RIGHT, place.attribution or "") for place in places
    )
    return [
        Flow(*fate, count) for fate, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    ]


def _syllable_fate(place: AlignedToken) -> str:
    if place.pair.right or place.pair.substituted:
        return syllable_difference(place.said, place.heard) or RIGHT
    return place.kind or RIGHT


def _utterance(one: AlignedUtterance) -> UtteranceRow:
    utterance = one.utterance
    syllables, hanzi = one.counts(SYLLABLES), one.counts(HANZI)
    places = one.hanzi or one.syllables
    wrong = any(place.kind or place.attribution for place in places)
    return UtteranceRow(
        id=utterance.id,
        speaker=utterance.speaker,
        seconds=utterance.seconds,
        audio=utterance.audio,
        snr=utterance.snr,
        reference_pinyin=" ".join(utterance.reference_pinyin),
        pinyin=" ".join(utterance.pinyin),
        reference_hanzi=as_text(utterance.reference_hanzi),
        hanzi=as_text(utterance.hanzi),
        gold_hanzi=as_text(utterance.gold_hanzi),
        syllable_errors=syllables.errors,
        syllable_tokens=syllables.reference,
        hanzi_errors=hanzi.errors,
        hanzi_tokens=hanzi.reference,
        n_best=tuple((" ".join(each.pinyin), each.hanzi, each.score) for each in utterance.n_best),
        times=tuple((round(start, 3), round(end, 3)) for start, end in utterance.times),
        places=tuple(map(_shown, places)) if wrong else (),
    )


def _shown(place: AlignedToken) -> tuple[str, ...]:
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
