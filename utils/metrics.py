"""Counts the errors of a hypothesis against its reference by Levenshtein alignment: syllables, tones, hanzi.

Every error rate of the project is a ratio of sums of :class:`ErrorCounts`, one per utterance, so that totals,
intervals and tables are based on the same numbers. The edit distance is Levenshtein's ("Binary codes capable
of correcting deletions, insertions, and reversals", 1966), computed by RapidFuzz. Rates are not capped: with
insertions they can be above 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rapidfuzz.distance import Levenshtein

from utils.mandarin.pinyin import has_tone
from utils.mandarin.syllable_distance import parts


@dataclass(frozen=True)
class ErrorCounts:
    """Errors against a reference; counts can be added.

    Attributes:
        substitutions, insertions, deletions: edits that turn the reference into the hypothesis.
        reference: number of reference tokens, the denominator of the rate.
    """

    substitutions: int = 0
    insertions: int = 0
    deletions: int = 0
    reference: int = 0

    def __add__(self, other: ErrorCounts) -> ErrorCounts:
        return ErrorCounts(
            self.substitutions + other.substitutions,
            self.insertions + other.insertions,
            self.deletions + other.deletions,
            self.reference + other.reference,
        )

    @property
    def errors(self) -> int:
        """The sum of all edits."""
        return self.substitutions + self.insertions + self.deletions

    @property
    def rate(self) -> float:
        """Errors per reference token.

        As in jiwer, an empty reference counts as one token: the rate is the number of insertions. In a sum
        over utterances it contributes its insertions and no tokens.
        """
        return self.errors / max(self.reference, 1)


def total(counts: Iterable[ErrorCounts]) -> ErrorCounts:
    """The sum of counts; zero for an empty input."""
    return sum(counts, ErrorCounts())


def count_errors(reference: Sequence[str], hypothesis: Sequence[str]) -> ErrorCounts:
    """Edits between two token sequences: lists of syllables, or strings of hanzi.

    The number of edits is minimal. If several alignments are minimal, RapidFuzz's choice (also that of jiwer)
    determines the numbers of substitutions, insertions and deletions.
    """
    edits = [edit.tag for edit in Levenshtein.editops(reference, hypothesis)]
    return ErrorCounts(edits.count("replace"), edits.count("insert"), edits.count("delete"), len(reference))


def count_toneless_errors(reference: Sequence[str], hypothesis: Sequence[str]) -> ErrorCounts:
    """Edits between syllable sequences, ignoring tones."""
    return count_errors(_bases(reference), _bases(hypothesis))


def count_tone_errors(reference: Sequence[str], hypothesis: Sequence[str]) -> ErrorCounts:
    """Wrong tones among the syllables that are otherwise correct.

    The sequences are aligned without tones. ``reference`` counts the aligned pairs of equal toneless
    syllables, ``substitutions`` the pairs among them whose tones differ. The rate therefore does not decrease
    when more syllables are recognised wrongly. Syllables without a tone are left out.
    """
    wrong = same_base = 0
    for block in Levenshtein.opcodes(_bases(reference), _bases(hypothesis)):
        if block.tag == "equal":
            expected = reference[block.src_start : block.src_end]
            recognised = hypothesis[block.dest_start : block.dest_end]
            toned = [pair for pair in zip(expected, recognised, strict=True) if has_tone(pair[0])]
            wrong += sum(a != b for a, b in toned)
            same_base += len(toned)
    return ErrorCounts(substitutions=wrong, reference=same_base)


def count_sentence_errors(reference: Sequence[str], hypothesis: Sequence[str]) -> ErrorCounts:
    """One error if the sentence has any error, of one sentence."""
    return ErrorCounts(substitutions=int(tuple(reference) != tuple(hypothesis)), reference=1)


def real_time_factor(seconds_used: float, seconds_audio: float) -> float:
    """Seconds of computation per second of audio; below 1 is faster than real time."""
    return seconds_used / seconds_audio if seconds_audio else 0.0


def _bases(tokens: Sequence[str]) -> list[str]:
    """Canonical syllables without their tones; other tokens unchanged."""
    return [token[:-1] if has_tone(token) and parts(token) else token for token in tokens]
