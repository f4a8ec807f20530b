"""References and hypotheses of a test set in; rates with intervals, error types and the worst utterances out.

Everything is given as plain nested values, ready for ``results.json``, and for the tables printed from it.
The rates' edits and the error types come from different alignments (the types' are by sound), but their
substitutions, insertions and deletions are the same: those of a standard scorer.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Sequence

from analysis.errors.align_all import align_all, all_tokens
from analysis.errors.attribution import ATTRIBUTIONS
from analysis.errors.confusions import NAMES, top_confusions
from analysis.errors.kinds import HANZI_ERRORS, SYLLABLE_ERRORS
from analysis.inputs.training_texts import Training
from analysis.inputs.utterance_results import (
    HANZI,
    LANGUAGE,
    PIPELINE,
    SPEECH,
    SYLLABLES,
    UtteranceResult,
    as_text,
    resampled_by,
    tokens_of,
)
from analysis.intervals.bootstrap import rate_interval
from utils.metrics import (
    ErrorCounts,
    count_errors,
    count_sentence_errors,
    count_tone_errors,
    count_toneless_errors,
    total,
)

TASK_LEVELS = {SPEECH: (SYLLABLES,), LANGUAGE: (HANZI,), PIPELINE: (SYLLABLES, HANZI)}
CONFIDENCE = 0.95
WORST = 10


Count = Callable[[UtteranceResult], ErrorCounts]

SYLLABLE_RATES: dict[str, Count] = {
    "syllable_error_rate": lambda one: count_errors(one.reference_pinyin, one.pinyin),
    "toneless_syllable_error_rate": lambda one: count_toneless_errors(one.reference_pinyin, one.pinyin),
    "tone_error_rate": lambda one: count_tone_errors(one.reference_pinyin, one.pinyin),
}
HANZI_RATES: dict[str, Count] = {
    "cer": lambda one: count_errors(*tokens_of(one, HANZI)),
    "sentence_error_rate": lambda one: count_sentence_errors(*tokens_of(one, HANZI)),
}
# A task's rates by name; the sentence error is that of its last stage's output.
RATES: dict[str, dict[str, Count]] = {
    SPEECH: {
        **SYLLABLE_RATES,
        "sentence_error_rate": lambda one: count_sentence_errors(one.reference_pinyin, one.pinyin),
    },
    LANGUAGE: HANZI_RATES,
    PIPELINE: {**SYLLABLE_RATES, **HANZI_RATES},
}


def score(
    utterances: Sequence[UtteranceResult], task: str, training: Training | None = None
) -> dict[str, object]:
    """All figures of a test set.

    Args:
        utterances: of every utterance.
        task: ``speech``, ``language`` or ``pipeline``.
        training: what the second stage can write, if known.

    Returns:
        ``utterances``, ``speakers``, each rate of the task under its name, ``intervals`` (low, high, by rate)
        with their ``interval_unit``, ``counts`` by rate, ``error_types`` and ``worst``.
    """
    counts = {name: [count(one) for one in utterances] for name, count in RATES[task].items()}
    group_of, unit = resampled_by(utterances)
    groups = list(map(group_of, utterances))
    intervals = {name: rate_interval(each, groups, unit, CONFIDENCE) for name, each in counts.items()}
    return {
        "utterances": len(utterances),
        "speakers": len({one.speaker for one in utterances if one.speaker}),
        **{name: total(each).rate for name, each in counts.items()},
        "intervals": {name: [interval.low, interval.high] for name, interval in intervals.items()},
        "interval_unit": next(iter(intervals.values())).unit,
        "counts": {name: dataclasses.asdict(total(each)) for name, each in counts.items()},
        "error_types": _error_types(utterances, task, training),
        "worst": _worst(utterances, task),
    }


def score_distinct(utterances: Sequence[UtteranceResult]) -> dict[str, object]:
    """Hanzi rates over the distinct sentences: a sentence read by ten speakers counts once."""
    distinct = {(one.reference_pinyin, one.reference_hanzi): one for one in utterances}.values()
    rates = {name: total(map(count, distinct)).rate for name, count in HANZI_RATES.items()}
    return {"utterances": len(distinct), **rates}


def hypotheses_tsv(utterances: Sequence[UtteranceResult]) -> str:
    """A table with a header: truth, output and number of errors of each utterance."""
    columns = (
        "id",
        "reference_pinyin",
        "pinyin",
        "reference_hanzi",
        "hanzi",
        "syllable_errors",
        "hanzi_errors",
    )
    lines = ["\t".join(columns)]
    for one in utterances:
        fields = (
            one.id,
            " ".join(one.reference_pinyin),
            " ".join(one.pinyin),
            as_text(one.reference_hanzi),
            as_text(one.hanzi),
            str(count_errors(one.reference_pinyin, one.pinyin).errors),
            str(count_errors(*tokens_of(one, HANZI)).errors),
        )
        lines.append("\t".join(fields))
    return "\n".join(lines) + "\n"


def _error_types(
    utterances: Sequence[UtteranceResult], task: str, training: Training | None
) -> dict[str, object]:
    """Counts of all kinds of errors on the task's levels, in their own order."""
    aligned = align_all(utterances, TASK_LEVELS[task], training)
    types: dict[str, object] = {}
    for level, kinds in ((SYLLABLES, SYLLABLE_ERRORS), (HANZI, HANZI_ERRORS)):
        if level not in TASK_LEVELS[task]:
            continue
        places = list(all_tokens(aligned, level))
        found = Counter(place.kind for place in places)
        types[level] = {kind: found[kind] for kind in kinds}
        types[f"{level.removesuffix('s')}_confusions"] = top_confusions(place.pair for place in places)
        if level == SYLLABLES:
            tags = Counter(tag for place in places for tag in place.tags)
            types["named_confusions"] = {name: tags[name] for name in NAMES}
        else:
            blame = Counter(place.attribution for place in places)
            types["attribution"] = {name: blame[name] for name in ATTRIBUTIONS}
    return types


def _worst(utterances: Sequence[UtteranceResult], task: str) -> list[dict[str, object]]:
    """The utterances with the most errors for their length, worst first; none twice, none without errors."""
    main = RATES[task]["syllable_error_rate" if task == SPEECH else "cer"]
    distinct = {(one.reference_pinyin, one.reference_hanzi, one.pinyin, one.hanzi): one for one in utterances}
    scored = [(main(one), one) for one in distinct.values()]
    wrong = [(counts, one) for counts, one in scored if counts.errors]
    wrong.sort(key=lambda pair: (-pair[0].rate, -pair[0].errors, pair[1].id))
    return [
        {
            "id": one.id,
            "errors": counts.errors,
            "reference": counts.reference,
            "reference_pinyin": " ".join(one.reference_pinyin),
            "pinyin": " ".join(one.pinyin),
            "reference_hanzi": one.reference_hanzi,
            "hanzi": one.hanzi,
        }
        for counts, one in wrong[:WORST]
    ]
