"""Aligns reference and hypothesis of all utterances of a test; finds the kind of each error.

For wrong hanzi the responsible stage is found too, where the syllables are known. All counts of a report are
made from these alignments: kinds of errors, breakdowns, comparisons and pages.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tqdm import tqdm

from analysis.errors.alignment import Pair, align
from analysis.errors.attribution import UtteranceEvidence, attribute, token_at, utterance_evidence
from analysis.errors.confusions import named_confusions
from analysis.errors.kinds import hanzi_distance, hanzi_error, syllable_difference, syllable_error
from analysis.inputs.training_texts import Training
from analysis.inputs.utterance_results import HANZI, SYLLABLES, UtteranceResult, by_token, tokens_of
from utils.mandarin.syllable_distance import syllable_distance
from utils.metrics import ErrorCounts


@dataclass(frozen=True, slots=True)
class AlignedToken:
    """A pair of aligned tokens with the analysis of its error.

    Attributes:
        pair: the tokens and their positions.
        kind: kind of the error (:mod:`analysis.errors.kinds`); None for a correct token.
        confusions: names of the classic confusions in it (:mod:`analysis.errors.confusions`).
        reference_syllable, hypothesis_syllable: the syllables of two hanzi; ``""`` if not known.
        syllable_kind: kind of the difference between these syllables; None if they are equal or not known.
        attribution: cause of a wrong hanzi, or that a correct hanzi was recovered from a wrong syllable; None
            for other correct hanzi, for syllable tokens, and for automatic pinyin.
    """

    pair: Pair
    kind: str | None
    confusions: tuple[str, ...] = ()
    reference_syllable: str = ""
    hypothesis_syllable: str = ""
    syllable_kind: str | None = None
    attribution: str | None = None


@dataclass(frozen=True, slots=True)
class AlignedUtterance:
    """An utterance with its alignments; a level that was not tested has an empty alignment."""

    utterance: UtteranceResult
    syllables: tuple[AlignedToken, ...]
    hanzi: tuple[AlignedToken, ...]

    def tokens(self, level: str) -> tuple[AlignedToken, ...]:
        """The alignment of syllables or of hanzi."""
        return self.syllables if level == SYLLABLES else self.hanzi

    def counts(self, level: str) -> ErrorCounts:
        """The edits of the alignment; equal to those of a standard scorer."""
        return count_edits(self.tokens(level))


def align_all(
    utterances: Iterable[UtteranceResult],
    levels: Sequence[str],
    training: Training | None = None,
    automatic_pinyin: bool = False,
) -> list[AlignedUtterance]:
    """Align the utterances of a test set and analyse every error; about 4,000 utterances a second.

    Args:
        utterances: results of one system.
        levels: ``syllables``, ``hanzi`` or both.
        training: what is known of the models' training.
        automatic_pinyin: the syllables of the reference or of the output are pypinyin's reading of the hanzi,
            so they say nothing about the cause of an error.
    """
    progress = tqdm(utterances, "errors", unit=" utt", disable=None, leave=False)
    return [
        AlignedUtterance(
            utterance,
            _align_syllables(utterance) if SYLLABLES in levels else (),
            _align_hanzi(utterance, training, automatic_pinyin) if HANZI in levels else (),
        )
        for utterance in progress
    ]


def count_edits(tokens: Iterable[AlignedToken]) -> ErrorCounts:
    """Substitutions, insertions, deletions and reference tokens of an alignment, or of a part of one."""
    substitutions = insertions = deletions = reference = 0
    for token in tokens:
        pair = token.pair
        reference += pair.reference is not None
        if token.kind is None:
            continue
        if pair.reference is None:
            insertions += 1
        elif pair.hypothesis is None:
            deletions += 1
        else:
            substitutions += 1
    return ErrorCounts(substitutions, insertions, deletions, reference)


def all_tokens(aligned: Iterable[AlignedUtterance], level: str) -> Iterator[AlignedToken]:
    """The aligned tokens of all utterances, one after the other."""
    return (token for utterance in aligned for token in utterance.tokens(level))


def _align_syllables(utterance: UtteranceResult) -> tuple[AlignedToken, ...]:
    reference, hypothesis = tokens_of(utterance, SYLLABLES)
    hanzi = utterance.reference_hanzi
    return tuple(
        AlignedToken(pair, None)
        if pair.is_correct
        else AlignedToken(pair, syllable_error(pair), named_confusions(pair, reference, hanzi))
        for pair in align(reference, hypothesis, syllable_distance)
    )


def _align_hanzi(
    utterance: UtteranceResult, training: Training | None, automatic_pinyin: bool
) -> tuple[AlignedToken, ...]:
    utterance = by_token(utterance)
    pairs = align(utterance.reference_hanzi, utterance.hanzi, hanzi_distance)
    evidence = None if automatic_pinyin else utterance_evidence(utterance)
    return tuple(_hanzi_token(pair, utterance, training, evidence) for pair in pairs)


def _hanzi_token(
    pair: Pair, utterance: UtteranceResult, training: Training | None, evidence: UtteranceEvidence | None
) -> AlignedToken:
    true_syllable = token_at(utterance.reference_pinyin, pair.reference_position)
    syllable = token_at(utterance.pinyin, pair.hypothesis_position)
    if pair.is_correct and (true_syllable == syllable or evidence is None):
        return AlignedToken(pair, None, (), true_syllable, syllable)
    confusions, difference = (), None
    if true_syllable and syllable:
        syllables = Pair(true_syllable, syllable, pair.reference_position, pair.hypothesis_position)
        difference = syllable_difference(true_syllable, syllable)
        hanzi = utterance.reference_hanzi if evidence else ()
        confusions = named_confusions(syllables, utterance.reference_pinyin, hanzi)
    return AlignedToken(
        pair=pair,
        kind=hanzi_error(pair, true_syllable, syllable if evidence else "", training),
        confusions=confusions,
        reference_syllable=true_syllable,
        hypothesis_syllable=syllable,
        syllable_kind=difference,
        attribution=attribute(pair, evidence) if evidence else None,
    )
