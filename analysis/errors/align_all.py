"""Outcomes of a test in; utterances aligned, every error with its kind, names and the stage to blame, out.

This is what all counts are made of: types, cuts, comparisons and pages add up :class:`Place` after place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tqdm import tqdm

from analysis.errors.alignment import Pair, align
from analysis.errors.attribution import Blame, attribute, blame_of
from analysis.errors.confusions import named_confusions
from analysis.errors.kinds import hanzi_error, syllable_difference, syllable_error
from analysis.errors.phonology import hanzi_distance
from analysis.inputs.training_texts import Training
from analysis.results.utterance_results import HANZI, SYLLABLES, Outcome, tokens_of
from utils.mandarin.syllable_distance import syllable_distance
from utils.metrics import ErrorCounts


@dataclass(frozen=True, slots=True)
class Place:
    """A place of an alignment.

    Attributes:
        pair: the tokens, and where they stand.
        kind: of the error (:mod:`analysis.errors.kinds`); None where the token is right.
        tags: the classic confusions in it, by name (:mod:`analysis.errors.confusions`).
        said, heard: on the level of hanzi, the syllables under the two hanzi; ``""`` if not known.
        syllable_kind: in what these differ; None if in nothing.
        attribution: on the level of hanzi, who is to blame; None if nobody, or if it can't be told.
    """

    pair: Pair
    kind: str | None
    tags: tuple[str, ...] = ()
    said: str = ""
    heard: str = ""
    syllable_kind: str | None = None
    attribution: str | None = None


@dataclass(frozen=True, slots=True)
class Examined:
    """An utterance with its alignments; a level that it doesn't have is empty."""

    outcome: Outcome
    syllables: tuple[Place, ...]
    hanzi: tuple[Place, ...]

    def places(self, level: str) -> tuple[Place, ...]:
        """The alignment of syllables or of hanzi."""
        return self.syllables if level == SYLLABLES else self.hanzi

    def counts(self, level: str) -> ErrorCounts:
        """Its errors; equal to those of a standard scorer."""
        return count_places(self.places(level))


def examine(
    outcomes: Iterable[Outcome],
    levels: Sequence[str],
    training: Training | None = None,
    automatic: bool = False,
) -> list[Examined]:
    """Align and explain a whole test set; some 4,000 utterances a second.

    Args:
        outcomes: of one system.
        levels: ``syllables``, ``hanzi`` or both.
        training: what is known of the models.
        automatic: the recognised syllables are pypinyin's reading of the recognised hanzi: they tell neither
            what was heard nor which stage is to blame.
    """
    shown = tqdm(outcomes, "errors", unit=" utt", disable=None, leave=False)
    return [_examine(one, levels, training, automatic) for one in shown]


def count_places(places: Iterable[Place]) -> ErrorCounts:
    """Edits and reference tokens of these places."""
    substitutions = insertions = deletions = reference = 0
    for place in places:
        pair = place.pair
        reference += pair.reference is not None
        if place.kind is None:
            continue
        if pair.reference is None:
            insertions += 1
        elif pair.hypothesis is None:
            deletions += 1
        else:
            substitutions += 1
    return ErrorCounts(substitutions, insertions, deletions, reference)


def flat(examined: Iterable[Examined], level: str) -> Iterator[Place]:
    """All places of all utterances."""
    return (place for one in examined for place in one.places(level))


def _examine(outcome: Outcome, levels: Sequence[str], training: Training | None, automatic: bool) -> Examined:
    syllables = _syllable_places(outcome) if SYLLABLES in levels else ()
    hanzi = _hanzi_places(outcome, training, automatic) if HANZI in levels else ()
    return Examined(outcome, syllables, hanzi)


def _syllable_places(outcome: Outcome) -> tuple[Place, ...]:
    reference, hypothesis = tokens_of(outcome, SYLLABLES)
    pairs = align(reference, hypothesis, syllable_distance)
    hanzi = outcome.reference_hanzi
    return tuple(
        Place(pair, None)
        if pair.right
        else Place(pair, syllable_error(pair), named_confusions(pair, reference, hanzi))
        for pair in pairs
    )


def _hanzi_places(outcome: Outcome, training: Training | None, automatic: bool) -> tuple[Place, ...]:
    reference, hypothesis = tokens_of(outcome, HANZI)
    pairs = align(reference, hypothesis, hanzi_distance)
    said = outcome.reference_pinyin if len(outcome.reference_pinyin) == len(reference) else ()
    heard = outcome.pinyin if len(outcome.pinyin) == len(hypothesis) else ()
    known = bool(said or not reference) and bool(heard or not hypothesis)
    blame = blame_of(outcome) if known and not automatic else None
    return tuple(_hanzi_place(pair, said, heard, training, blame) for pair in pairs)


def _hanzi_place(
    pair: Pair, said: Sequence[str], heard: Sequence[str], training: Training | None, blame: Blame | None
) -> Place:
    one = said[pair.reference_position] if said and pair.reference_position is not None else ""
    other = heard[pair.hypothesis_position] if heard and pair.hypothesis_position is not None else ""
    if pair.right and (one == other or blame is None):
        return Place(pair, None, (), one, other)
    tags, difference = (), None
    if one and other:
        syllables = Pair(one, other, pair.reference_position, pair.hypothesis_position)
        difference = syllable_difference(one, other)
        tags = named_confusions(syllables, said, blame.outcome.reference_hanzi if blame else ())
    return Place(
        pair=pair,
        kind=hanzi_error(pair, one, other if blame else "", training),
        tags=tags,
        said=one,
        heard=other,
        syllable_kind=difference,
        attribution=attribute(pair, blame) if blame else None,
    )
