"""Analyses the output of one system or of several and collects all results of a report (:class:`Results`).

Utterances are aligned, errors counted by kind, cause and group; other systems are compared with the first.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from analysis.errors.align_all import AlignedToken, AlignedUtterance, align_all, all_tokens
from analysis.errors.attribution import ATTRIBUTIONS
from analysis.errors.confusions import NAMES, count_matrices, top_confusions
from analysis.errors.kinds import (
    HANZI_ERRORS,
    NOT_IN_LEXICON,
    OUT_OF_VOCABULARY,
    SYLLABLE_ERRORS,
)
from analysis.inputs.text_files import Problem
from analysis.inputs.training_texts import Training
from analysis.inputs.utterance_results import HANZI, SYLLABLES, SystemOutput, as_text
from analysis.intervals.comparison import compare
from analysis.results.breakdowns import find_breakdowns
from analysis.results.rates import (
    compute_rate,
    find_oracles,
    has_gold_pass,
    rates_of_levels,
)
from analysis.results.results import VERSION, Results, System, UtteranceRow

KINDS = {SYLLABLES: SYLLABLE_ERRORS, HANZI: HANZI_ERRORS}
CONFUSIONS_KEPT = 100  # of syllables, and as many of hanzi
GOLD_PASS, BY_SYLLABLE, NO_BASIS = "gold pass", "syllable", ""


def collect_results(
    systems: Sequence[SystemOutput],
    levels: Sequence[str],
    task: str,
    title: str,
    training: Mapping[str, Training] | None = None,
    settings: Mapping[str, object] | None = None,
    problems: Sequence[Problem] = (),
    breakdowns: bool = True,
) -> Results:
    """Analyse the output of one system, or of several on the same utterances.

    Args:
        systems: the others are compared with the first.
        levels: ``syllables``, ``hanzi`` or both.
        task, title, settings, problems: as in :class:`Results`.
        training: what is known of the training of the model that writes a level, by level.
        breakdowns: also compute the rates by speaker, length, noise …, which takes seconds for large tests.
    """
    training = training or {}
    aligned = [
        align_all(system.utterances, levels, training.get(HANZI), bool(system.automatic_pinyin))
        for system in systems
    ]
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
        speakers=len({utterance.speaker for utterance in utterances if utterance.speaker}),
        seconds=sum(utterance.seconds for utterance in utterances),
        systems=tuple(
            system_results(system, found, levels, training, breakdowns)
            for system, found in zip(systems, aligned, strict=True)
        ),
        comparisons=tuple(comparisons),
        problems=tuple(problems),
    )


def system_results(
    system: SystemOutput,
    aligned: Sequence[AlignedUtterance],
    levels: Sequence[str],
    training: Mapping[str, Training],
    breakdowns: bool,
) -> System:
    """All results of one system's aligned output; the arguments are those of :func:`collect_results`."""
    confusions = Counter(name for token in all_tokens(aligned, SYLLABLES) for name in token.confusions)
    tokens = {level: list(all_tokens(aligned, level)) for level in levels}
    basis = _attribution_basis(system) if HANZI in levels else NO_BASIS
    attributions = Counter(token.attribution for token in tokens.get(HANZI, ()))
    return System(
        name=system.name,
        automatic_pinyin=system.automatic_pinyin,
        rates=tuple(compute_rate(each, system.utterances) for each in rates_of_levels(levels)),
        kinds={level: count_kinds(tokens[level], level) for level in levels},
        unknown_kinds=_unknown_kinds(training.get(HANZI) or Training()) if HANZI in levels else (),
        named_confusions={name: confusions[name] for name in NAMES} if SYLLABLES in levels else {},
        top_confusions={
            level: tuple(top_confusions((token.pair for token in tokens[level]), CONFUSIONS_KEPT))
            for level in levels
        },
        matrices=tuple(count_matrices(token.pair for token in tokens.get(SYLLABLES, ()))),
        attribution={name: attributions[name] for name in ATTRIBUTIONS} if basis else {},
        attribution_basis=basis,
        breakdowns=tuple(
            breakdown
            for level in (levels if breakdowns else ())
            for breakdown in find_breakdowns(aligned, level, training.get(level))
        ),
        oracles=() if system.automatic_pinyin else tuple(find_oracles(aligned, levels)),
        utterances=tuple(map(_utterance_row, aligned)),
    )


def count_kinds(tokens: Sequence[AlignedToken], level: str) -> dict[str, int]:
    """The count of every kind of error of a level, also of those that do not occur."""
    counts = Counter(token.kind for token in tokens)
    return {kind: counts[kind] for kind in KINDS[level]}


def _unknown_kinds(training: Training) -> tuple[str, ...]:
    needs = {OUT_OF_VOCABULARY.name: training.hanzi, NOT_IN_LEXICON.name: training.candidates}
    return tuple(kind for kind, known in needs.items() if known is None)


def _attribution_basis(system: SystemOutput) -> str:
    if system.automatic_pinyin:
        return NO_BASIS
    return GOLD_PASS if has_gold_pass(system.utterances) else BY_SYLLABLE


def _utterance_row(aligned: AlignedUtterance) -> UtteranceRow:
    utterance = aligned.utterance
    syllables, hanzi = aligned.counts(SYLLABLES), aligned.counts(HANZI)
    tokens = aligned.hanzi or aligned.syllables
    wrong = any(token.kind or token.attribution for token in tokens)
    return UtteranceRow(
        id=utterance.id,
        speaker=utterance.speaker,
        seconds=utterance.seconds,
        audio=utterance.audio,
        snr=utterance.snr,
        pitch=utterance.pitch,
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
        alignment=tuple(map(_token_fields, tokens)) if wrong else (),
    )


def _token_fields(token: AlignedToken) -> tuple[str, ...]:
    return (
        token.pair.reference or "",
        token.pair.hypothesis or "",
        token.kind or "",
        token.reference_syllable,
        token.hypothesis_syllable,
        token.syllable_kind or "",
        token.attribution or "",
        ",".join(token.confusions),
    )
