"""Aligned pairs of syllables and of hanzi in, kinds of errors with their counts out.

Every pair that is not right has exactly one kind, so that the kinds add up to the edits of the alignment.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from analysis.alignment import Pair, align, hanzi_distance, readings, syllable_distance
from utils.pinyin import split_syllable, without_tone

# Which of a syllable's (initial, final, tone) are wrong in a substitution.
SUBSTITUTIONS = {
    (False, False, True): "tone only",
    (True, False, False): "initial only",
    (False, True, False): "final only",
    (True, False, True): "initial and tone",
    (False, True, True): "final and tone",
    (True, True, False): "initial and final",
    (True, True, True): "everything",
}
SYLLABLE_ERRORS = (*SUBSTITUTIONS.values(), "insertion", "deletion")
HANZI_ERRORS = ("homophone", "homophone but for the tone", "other hanzi", "insertion", "deletion")
ACOUSTIC, LANGUAGE = "acoustic", "language"
CONFUSIONS_KEPT = 20


@dataclass(frozen=True)
class ErrorTypes:
    """What went wrong in a set of utterances.

    Attributes:
        syllables: count of each of :data:`SYLLABLE_ERRORS`.
        hanzi: count of each of :data:`HANZI_ERRORS`; empty without hanzi.
        attribution: wrong hanzi that come from a wrong syllable (``acoustic``) and wrong hanzi for a right
            syllable (``language``); empty without hanzi.
        syllable_confusions, hanzi_confusions: the most frequent (reference, hypothesis, count).
    """

    syllables: dict[str, int]
    hanzi: dict[str, int]
    attribution: dict[str, int]
    syllable_confusions: list[tuple[str, str, int]]
    hanzi_confusions: list[tuple[str, str, int]]


def syllable_error(pair: Pair) -> str | None:
    """The kind of a syllable pair's error, one of :data:`SYLLABLE_ERRORS`; None for a right pair."""
    if pair.right or pair.reference is None or pair.hypothesis is None:
        return _right_or_alone(pair)
    spoken, heard = split_syllable(pair.reference), split_syllable(pair.hypothesis)
    wrong = (spoken.initial != heard.initial, spoken.final != heard.final, spoken.tone != heard.tone)
    return SUBSTITUTIONS[wrong]


def hanzi_error(pair: Pair) -> str | None:
    """The kind of a hanzi pair's error, one of :data:`HANZI_ERRORS`; None for a right pair.

    Two hanzi are homophones when they share a reading, whatever it is in the sentence at hand.
    """
    if pair.right or pair.reference is None or pair.hypothesis is None:
        return _right_or_alone(pair)
    spoken, heard = readings(pair.reference), readings(pair.hypothesis)
    if set(spoken) & set(heard):
        return "homophone"
    same_but_tone = {without_tone(one) for one in spoken} & {without_tone(one) for one in heard}
    return "homophone but for the tone" if same_but_tone else "other hanzi"


def attribute(syllable_pairs: Sequence[Pair], hanzi_pairs: Sequence[Pair]) -> Counter[str]:
    """Which stage made each wrong hanzi: a first answer, from the syllables at its place.

    A wrong hanzi whose own syllable was recognised rightly is the language model's, all others are the
    acoustic model's: insertions and deletions too, as stage two gives exactly one hanzi a syllable.

    Args:
        syllable_pairs, hanzi_pairs: alignments of the same utterance, one syllable a hanzi.
    """
    heard_right = {pair.reference_position for pair in syllable_pairs if pair.right}
    wrong = (pair for pair in hanzi_pairs if not pair.right)
    return Counter(
        LANGUAGE if pair.hypothesis is not None and pair.reference_position in heard_right else ACOUSTIC
        for pair in wrong
    )


def find_error_types(
    syllables: Iterable[tuple[Sequence[str], Sequence[str]]],
    hanzi: Iterable[tuple[str, str]] | None = None,
) -> ErrorTypes:
    """Align and count a whole set.

    Args:
        syllables: (reference, hypothesis) of each utterance.
        hanzi: the same utterances' (reference, hypothesis), or None where there is no second stage.
    """
    syllable_pairs = [align(*pair, syllable_distance) for pair in syllables]
    hanzi_pairs = [align(*pair, hanzi_distance) for pair in hanzi] if hanzi is not None else []
    attribution: Counter[str] = Counter()
    for one, other in zip(syllable_pairs, hanzi_pairs, strict=hanzi is not None):
        attribution += attribute(one, other)
    return ErrorTypes(
        syllables=_counts(SYLLABLE_ERRORS, map(syllable_error, _flat(syllable_pairs))),
        hanzi=_counts(HANZI_ERRORS, map(hanzi_error, _flat(hanzi_pairs))) if hanzi_pairs else {},
        attribution={stage: attribution[stage] for stage in (ACOUSTIC, LANGUAGE)} if hanzi_pairs else {},
        syllable_confusions=top_confusions(_flat(syllable_pairs)),
        hanzi_confusions=top_confusions(_flat(hanzi_pairs)),
    )


def top_confusions(pairs: Iterable[Pair], most: int = CONFUSIONS_KEPT) -> list[tuple[str, str, int]]:
    """The most frequent substitutions: (reference, hypothesis, count), ties in order of the tokens."""
    counts = Counter(
        (pair.reference, pair.hypothesis)
        for pair in pairs
        if not pair.right and pair.reference is not None and pair.hypothesis is not None
    )
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [(reference, hypothesis, count) for (reference, hypothesis), count in ranked[:most]]


def _right_or_alone(pair: Pair) -> str | None:
    if pair.right:
        return None
    return "insertion" if pair.reference is None else "deletion"


def _counts(kinds: Sequence[str], found: Iterable[str | None]) -> dict[str, int]:
    counts = Counter(found)
    return {kind: counts[kind] for kind in kinds}


def _flat(utterances: Iterable[Sequence[Pair]]) -> Iterable[Pair]:
    return (pair for pairs in utterances for pair in pairs)
