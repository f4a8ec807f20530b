"""Computes error rates by group: by speaker, utterance length, position, speaking rate, noise or pitch.

Each rate has a bootstrap confidence interval. A breakdown puts every token (a syllable or a hanzi) into one
group, so that the counts of its groups add up to those of the whole test. Utterances whose speaker, noise or
pitch is not known form a separate group; if it is known for no utterance, the breakdown is left out. An
insertion belongs to its utterance, to the position of the reference token before it (the first token, if
there is none), and to the frequency of the inserted syllable.
"""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from analysis.errors.align_all import AlignedToken, AlignedUtterance, count_edits
from analysis.inputs.training_texts import Training
from analysis.inputs.utterance_results import SYLLABLES, as_text, resampled_by, tokens_of
from analysis.intervals.bootstrap import rate_interval
from utils.metrics import ErrorCounts, total

UNKNOWN = "not known"
LENGTHS = (6, 11, 16, 21, 31)  # reference tokens from which a new group begins
SPEEDS = (2.0, 3.0, 4.0, 5.0, 6.0)  # syllables per second from which a new group begins
NOISES = (0.0, 5.0, 10.0, 15.0, 20.0, 30.0)  # dB
PITCHES = (120.0, 165.0, 210.0)  # Hz
FREQUENCIES = (1, 10, 100, 1_000, 10_000)  # occurrences in training
SEEN, UNSEEN = "seen in training", "not seen in training"
POSITIONS = ("first", "second and third", "middle", "third and second last", "last", "the only one")


@dataclass(frozen=True)
class Group:
    """One group of a breakdown.

    Attributes:
        name: what its tokens have in common.
        utterances: number of utterances that contain some of its tokens.
        counts: edits and reference tokens.
        rate: edits divided by reference tokens.
        low, high: 95 % confidence interval of the rate.
        unit: what was resampled for the interval.
        kinds: count of each kind of error that occurs.
    """

    name: str
    utterances: int
    counts: ErrorCounts
    rate: float
    low: float
    high: float
    unit: str
    kinds: dict[str, int]


@dataclass(frozen=True)
class Breakdown:
    """Error rates of the groups of one property (``name``) on one level (``syllables`` or ``hanzi``)."""

    name: str
    level: str
    groups: tuple[Group, ...]


# An aligned utterance → the tokens of each group that it contains.
Split = Callable[[AlignedUtterance], Mapping[str, Sequence[AlignedToken]]]


def find_breakdowns(
    aligned: Sequence[AlignedUtterance], level: str, training: Training | None = None
) -> list[Breakdown]:
    """All breakdowns whose property is known for some utterance, in a fixed order.

    Args:
        aligned: a whole test set.
        level: ``syllables`` or ``hanzi``.
        training: what is known of the training data.
    """
    training = training or Training()
    splits: dict[str, tuple[Split, Sequence[str]]] = {
        "speaker": (_by_utterance(level, lambda each: each.utterance.speaker), ()),
        "utterance length": (
            _by_utterance(
                level, lambda each: band(len(tokens_of(each.utterance, level)[0]), LENGTHS, "tokens")
            ),
            _bands(LENGTHS, "tokens"),
        ),
        "position in the sentence": (lambda each: _by_position(each.tokens(level)), POSITIONS),
    }
    if training.syllables is not None:
        counts = training.syllables
        splits["syllable frequency in training"] = (
            lambda each: _by_frequency(each.tokens(level), level, counts),
            _bands(FREQUENCIES, "times"),
        )
    if training.sentences is not None:
        sentences = training.sentences
        splits["sentence in training"] = (
            _by_utterance(level, lambda each: _seen_group(each, sentences)),
            (SEEN, UNSEEN),
        )
    splits["speaking rate"] = (_by_utterance(level, _speed_group), _bands(SPEEDS, "syllables/s"))
    splits["signal-to-noise ratio"] = (
        _by_utterance(
            level,
            lambda each: "" if each.utterance.snr is None else band(each.utterance.snr, NOISES, "dB"),
        ),
        _bands(NOISES, "dB"),
    )
    splits["pitch of the voice"] = (
        _by_utterance(
            level,
            lambda each: "" if each.utterance.pitch is None else band(each.utterance.pitch, PITCHES, "Hz"),
        ),
        _bands(PITCHES, "Hz"),
    )
    breakdowns = (
        Breakdown(name, level, _groups(aligned, split, order)) for name, (split, order) in splits.items()
    )
    return [each for each in breakdowns if {group.name for group in each.groups} - {UNKNOWN}]


def band(value: float, edges: tuple[float, ...], unit: str) -> str:
    """The name of the group that a value falls into; each edge is the first value of a new group.

    >>> band(4, (1, 10), "times"), band(0, (1, 10), "times"), band(10, (1, 10), "times")
    ('1 – 9 times', '0 times', '10 times or more')
    """
    return _bands(edges, unit)[bisect_right(edges, value)]


@cache
def _bands(edges: tuple[float, ...], unit: str) -> list[str]:
    whole = all(isinstance(edge, int) for edge in edges)
    lowest = f"0 {unit}" if whole and edges[0] == 1 else f"below {edges[0]:g} {unit}"
    between = [
        f"{low:,} – {high - 1:,} {unit}" if whole else f"{low:g} – {high:g} {unit}"
        for low, high in pairwise(edges)
    ]
    return [lowest, *between, f"{edges[-1]:,} {unit} or more" if whole else f"{edges[-1]:g} {unit} or more"]


def _groups(aligned: Sequence[AlignedUtterance], split: Split, order: Sequence[str]) -> tuple[Group, ...]:
    """The groups of a split in their order (by name, if ``order`` is empty), the unknown ones last."""
    resampling_group, unit = resampled_by([each.utterance for each in aligned])
    counts: dict[str, list[ErrorCounts]] = defaultdict(list)
    resampled: dict[str, list[str]] = defaultdict(list)
    kinds: dict[str, Counter[str]] = defaultdict(Counter)
    for each in aligned:
        for name, tokens in split(each).items():
            counts[name].append(count_edits(tokens))
            resampled[name].append(resampling_group(each.utterance))
            kinds[name].update(token.kind for token in tokens if token.kind)
    known = [name for name in (order or sorted(counts)) if name in counts and name != UNKNOWN]
    groups = []
    for name in [*known, *([UNKNOWN] if UNKNOWN in counts else [])]:
        interval = rate_interval(counts[name], resampled[name], unit)
        groups.append(
            Group(
                name=name,
                utterances=len(counts[name]),
                counts=total(counts[name]),
                rate=total(counts[name]).rate,
                low=interval.low,
                high=interval.high,
                unit=interval.unit,
                kinds=dict(kinds[name].most_common()),
            )
        )
    return tuple(groups)


def _by_utterance(level: str, group_of: Callable[[AlignedUtterance], str]) -> Split:
    """A split that puts each utterance into one group; ``""`` means that the group is not known."""
    return lambda each: {group_of(each) or UNKNOWN: each.tokens(level)}


def _seen_group(aligned: AlignedUtterance, sentences: Collection[str]) -> str:
    text = as_text(aligned.utterance.reference_hanzi)
    return (SEEN if text in sentences else UNSEEN) if text else ""


def _speed_group(aligned: AlignedUtterance) -> str:
    """By the syllables of the reference per second of the recording, including its silences."""
    utterance = aligned.utterance
    tokens = len(utterance.reference_pinyin) or len(utterance.reference_hanzi)
    return band(tokens / utterance.seconds, SPEEDS, "syllables/s") if utterance.seconds and tokens else ""


def _grouped(named: Iterable[tuple[str, AlignedToken]]) -> dict[str, list[AlignedToken]]:
    groups: dict[str, list[AlignedToken]] = defaultdict(list)
    for name, token in named:
        groups[name].append(token)
    return groups


def _by_position(tokens: Sequence[AlignedToken]) -> dict[str, list[AlignedToken]]:
    length = sum(token.pair.reference is not None for token in tokens)
    positions, position = [], 0
    for token in tokens:
        if token.pair.reference_position is not None:
            position = token.pair.reference_position
        positions.append(_position_name(position, length))
    return _grouped(zip(positions, tokens, strict=True))


def _position_name(position: int, length: int) -> str:
    if length <= 1:
        return POSITIONS[5]
    if position == 0:
        return POSITIONS[0]
    if position == length - 1:
        return POSITIONS[4]
    if position <= 2:
        return POSITIONS[1]
    return POSITIONS[3] if position >= length - 3 else POSITIONS[2]


def _by_frequency(
    tokens: Sequence[AlignedToken], level: str, counts: Mapping[str, int]
) -> dict[str, list[AlignedToken]]:
    def group_of(token: AlignedToken) -> str:
        inserted = token.pair.reference is None
        if level == SYLLABLES:
            syllable = token.pair.hypothesis if inserted else token.pair.reference
        else:
            syllable = token.hypothesis_syllable if inserted else token.reference_syllable
        return band(counts.get(syllable, 0), FREQUENCIES, "times") if syllable else UNKNOWN

    return _grouped((group_of(token), token) for token in tokens)
