"""References and hypotheses of a test set in; rates with intervals, error types and the worst utterances out.

Everything is given as plain nested values, ready for ``results.json``, and for the tables printed from it.
The rates' split into substitutions, insertions and deletions is that of a standard scorer; the error types
are aligned by sound, which can split the same number of edits in another way.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from analysis.bootstrap import rate_interval
from analysis.error_types import find_error_types
from utils.metrics import (
    ErrorCounts,
    count_errors,
    count_sentence_errors,
    count_tone_errors,
    count_toneless_errors,
    total,
)

SPEECH, LANGUAGE, PIPELINE = "speech", "language", "pipeline"
CONFIDENCE = 0.95
WORST = 10


@dataclass(frozen=True)
class Outcome:
    """One utterance's truth and what came out; what a task doesn't have is empty.

    Attributes:
        id, speaker, seconds: of the recording; ``""`` and 0.0 where there is none.
        reference_pinyin, pinyin: canonical syllables, spoken and recognised.
        reference_hanzi, hanzi: the text, true and recognised.
    """

    id: str
    speaker: str
    seconds: float
    reference_pinyin: tuple[str, ...]
    pinyin: tuple[str, ...]
    reference_hanzi: str
    hanzi: str


Count = Callable[[Outcome], ErrorCounts]

SYLLABLE_RATES: dict[str, Count] = {
    "syllable_error_rate": lambda one: count_errors(one.reference_pinyin, one.pinyin),
    "toneless_syllable_error_rate": lambda one: count_toneless_errors(one.reference_pinyin, one.pinyin),
    "tone_error_rate": lambda one: count_tone_errors(one.reference_pinyin, one.pinyin),
}
HANZI_RATES: dict[str, Count] = {
    "cer": lambda one: count_errors(one.reference_hanzi, one.hanzi),
    "sentence_error_rate": lambda one: count_sentence_errors(one.reference_hanzi, one.hanzi),
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


def score(outcomes: Sequence[Outcome], task: str) -> dict[str, object]:
    """All figures of a test set.

    Returns:
        ``utterances``, ``speakers``, each rate of the task under its name, ``intervals`` (low, high, by rate)
        with their ``interval_unit``, ``counts`` by rate, ``error_types`` and ``worst``.
    """
    counts = {name: [count(one) for one in outcomes] for name, count in RATES[task].items()}
    speakers = [one.speaker for one in outcomes]
    known = speakers if all(speakers) else []
    # Who reads a sentence makes no difference to a language model; that it is the same sentence does.
    groups = (
        ([one.reference_hanzi for one in outcomes], "sentence") if task == LANGUAGE else (known, "speaker")
    )
    intervals = {name: rate_interval(each, *groups, CONFIDENCE) for name, each in counts.items()}
    return {
        "utterances": len(outcomes),
        "speakers": len(set(known)),
        **{name: total(each).rate for name, each in counts.items()},
        "intervals": {name: [interval.low, interval.high] for name, interval in intervals.items()},
        "interval_unit": next(iter(intervals.values())).unit,
        "counts": {name: dataclasses.asdict(total(each)) for name, each in counts.items()},
        "error_types": _error_types(outcomes, task),
        "worst": _worst(outcomes, task),
    }


def score_distinct(outcomes: Sequence[Outcome]) -> dict[str, object]:
    """Hanzi rates over the distinct sentences: a sentence read by ten speakers counts once."""
    distinct = {(one.reference_pinyin, one.reference_hanzi): one for one in outcomes}.values()
    rates = {name: total(map(count, distinct)).rate for name, count in HANZI_RATES.items()}
    return {"utterances": len(distinct), **rates}


def hypotheses_tsv(outcomes: Sequence[Outcome]) -> str:
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
    for one in outcomes:
        fields = (
            one.id,
            " ".join(one.reference_pinyin),
            " ".join(one.pinyin),
            one.reference_hanzi,
            one.hanzi,
            str(count_errors(one.reference_pinyin, one.pinyin).errors),
            str(count_errors(one.reference_hanzi, one.hanzi).errors),
        )
        lines.append("\t".join(fields))
    return "\n".join(lines) + "\n"


def _error_types(outcomes: Sequence[Outcome], task: str) -> dict[str, object]:
    syllables = [(one.reference_pinyin, one.pinyin) for one in outcomes]
    hanzi = None if task == SPEECH else [(one.reference_hanzi, one.hanzi) for one in outcomes]
    types = dataclasses.asdict(find_error_types(syllables, hanzi))
    if task == LANGUAGE:  # the syllables were given: there is nothing to tell of them
        types = {name: value for name, value in types.items() if name.startswith("hanzi")}
    return types


def _worst(outcomes: Sequence[Outcome], task: str) -> list[dict[str, object]]:
    """The utterances with the most errors for their length, worst first; none twice, none without errors."""
    main = RATES[task]["syllable_error_rate" if task == SPEECH else "cer"]
    distinct = {(one.reference_pinyin, one.reference_hanzi, one.pinyin, one.hanzi): one for one in outcomes}
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
