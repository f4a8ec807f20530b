"""Error rates: reference and hypothesis token sequences in, counts of errors out.

Every rate of this house is a ratio of sums of :class:`ErrorCounts`, one for each utterance, so that totals,
intervals and tables come from the same numbers. Edit distance is the true Levenshtein distance ("Binary codes
capable of correcting deletions, insertions, and reversals", 1966), found by RapidFuzz. Rates are not capped:
insertions can bring them above 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rapidfuzz.distance import Levenshtein

from utils.mandarin.pinyin import without_tone


@dataclass(frozen=True)
class ErrorCounts:
    """Errors against a reference; counts of several utterances add up.

    Attributes:
        substitutions, insertions, deletions: edits that turn the reference into the hypothesis.
        reference: tokens of the reference, the denominator of the rate.
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
        """All edits together."""
        return self.substitutions + self.insertions + self.deletions

    @property
    def rate(self) -> float:
        """Errors for each reference token.

        An empty reference counts as one token here, as jiwer has it: 0.0 when nothing was recognised either,
        else the number of insertions. In a sum over utterances it adds its insertions and no tokens.
        """
        return self.errors / max(self.reference, 1)


def total(counts: Iterable[ErrorCounts]) -> ErrorCounts:
    """The sum of many counts; of none, zero."""
    return sum(counts, ErrorCounts())


def count_errors(reference: Sequence[str], hypothesis: Sequence[str]) -> ErrorCounts:
    """Edits between two token sequences: syllables in lists, or hanzi in strings.

    The number of edits is the smallest possible. Where several alignments need that many, RapidFuzz's choice
    (the one of jiwer too) says how it splits into substitutions, insertions and deletions.
    """
    edits = [edit.tag for edit in Levenshtein.editops(reference, hypothesis)]
    return ErrorCounts(edits.count("replace"), edits.count("insert"), edits.count("delete"), len(reference))


def count_toneless_errors(reference: Sequence[str], hypothesis: Sequence[str]) -> ErrorCounts:
    """Edits between syllable sequences whose tones are left aside."""
    return count_errors(_bases(reference), _bases(hypothesis))


def count_tone_errors(reference: Sequence[str], hypothesis: Sequence[str]) -> ErrorCounts:
    """Wrong tones among the syllables that are right but for the tone.

    The sequences are aligned without their tones; ``reference`` counts the aligned pairs of equal base
    syllables, ``substitutions`` those of them whose tones differ. So the rate says how often the tone is
    wrong where the rest is right, and doesn't fall when more syllables are missed altogether.
    """
    wrong = same_base = 0
    for block in Levenshtein.opcodes(_bases(reference), _bases(hypothesis)):
        if block.tag == "equal":
            spoken = reference[block.src_start : block.src_end]
            heard = hypothesis[block.dest_start : block.dest_end]
            wrong += sum(one != other for one, other in zip(spoken, heard, strict=True))
            same_base += len(spoken)
    return ErrorCounts(substitutions=wrong, reference=same_base)


def count_sentence_errors(reference: Sequence[str], hypothesis: Sequence[str]) -> ErrorCounts:
    """One error when anything at all is wrong in the sentence, of one."""
    return ErrorCounts(substitutions=int(tuple(reference) != tuple(hypothesis)), reference=1)


def real_time_factor(seconds_used: float, seconds_audio: float) -> float:
    """Seconds of computing for each second of audio; below 1 is faster than real time."""
    return seconds_used / seconds_audio if seconds_audio else 0.0


def _bases(syllables: Sequence[str]) -> list[str]:
    return [without_tone(syllable) for syllable in syllables]
