"""Aligned utterances in; error rates by speaker, length, position, speed, noise …, with intervals, out.

A cut splits all tokens into groups, so that the counts of its groups add up to those of the whole set; what
is not known of an utterance (its speaker, its noise) is a group too, and a cut of which nothing is known is
left out. An insertion belongs where it was written: to its utterance, to the position of the reference token
before it (the first, if there is none), and to the frequency of the syllable that was inserted.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
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
SPEEDS = (2.0, 3.0, 4.0, 5.0, 6.0)  # syllables a second
NOISES = (0.0, 5.0, 10.0, 15.0, 20.0, 30.0)  # dB
FREQUENCIES = (1, 10, 100, 1_000, 10_000)  # occurrences in training
SEEN, UNSEEN = "seen in training", "not seen in training"
POSITIONS = ("first", "second and third", "middle", "third and second last", "last", "the only one")


@dataclass(frozen=True)
class Group:
    """The tokens that a cut puts together.

    Attributes:
        name: what they have in common.
        utterances: in which some of them are.
        counts: edits and reference tokens.
        rate: their ratio.
        low, high: 95 % confidence interval of the rate.
        unit: what was resampled to find it.
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
    """One way to split the test set: what by, on which level (``syllables``, ``hanzi``), and its groups."""

    name: str
    level: str
    groups: tuple[Group, ...]


Split = Callable[
    [AlignedUtterance, str], Iterable[tuple[str, Sequence[AlignedToken]]]
]  # of an utterance, on a level


def find_breakdowns(
    aligned: Sequence[AlignedUtterance], level: str, training: Training | None = None, samples: int = 1000
) -> list[Breakdown]:
    """All cuts of which something is known, in a fixed order.

    Args:
        aligned: a whole test set.
        level: ``syllables`` or ``hanzi``.
        training: what is known of the training data.
        samples: resampled sets of each interval.
    """
    training = training or Training()
    splits: dict[str, tuple[Split, Sequence[str]]] = {
        "speaker": (_whole(lambda one: one.utterance.speaker), ()),
        "utterance length": (_whole(lambda one: _length(one, level)), _bands(LENGTHS, "tokens")),
        "position in the sentence": (_by_position, POSITIONS),
    }
    if training.syllables is not None:
        counts = training.syllables
        splits["syllable frequency in training"] = (
            lambda one, level: _by_frequency(one, level, counts),
            _bands(FREQUENCIES, "times"),
        )
    if training.sentences is not None:
        seen = training.sentences
        splits["sentence in training"] = (
            _whole(lambda one: _seen(as_text(one.utterance.reference_hanzi), seen)),
            (SEEN, UNSEEN),
        )
    splits["speaking rate"] = (_whole(_speed), _bands(SPEEDS, "syllables/s"))
    splits["signal-to-noise ratio"] = (_whole(_noise), _bands(NOISES, "dB"))
    cuts = (_cut(name, level, aligned, *split, samples) for name, split in splits.items())
    return [cut for cut in cuts if {group.name for group in cut.groups} - {UNKNOWN}]


def band(value: float, edges: tuple[float, ...], unit: str) -> str:
    """The name of the group that a value falls into; each edge is the first value of a new one.

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


def _whole(name: Callable[[AlignedUtterance], str]) -> Split:
    """A split that puts each utterance into one group."""

    def split(one: AlignedUtterance, level: str) -> Iterable[tuple[str, Sequence[AlignedToken]]]:
        return [(name(one) or UNKNOWN, one.tokens(level))]

    return split


def _cut(
    name: str,
    level: str,
    aligned: Sequence[AlignedUtterance],
    split: Split,
    order: Sequence[str],
    samples: int,
) -> Breakdown:
    counts: dict[str, list[ErrorCounts]] = defaultdict(list)
    group_of, unit = resampled_by([one.utterance for one in aligned])
    resampled: dict[str, list[str]] = defaultdict(list)
    kinds: dict[str, Counter[str]] = defaultdict(Counter)
    for one in aligned:
        for group, places in split(one, level):
            counts[group].append(count_edits(places))
            resampled[group].append(group_of(one.utterance))
            kinds[group].update(place.kind for place in places if place.kind)
    known = [group for group in (order or sorted(counts)) if group in counts and group != UNKNOWN]
    groups = []
    for group in [*known, *([UNKNOWN] if UNKNOWN in counts else [])]:
        each = counts[group]
        interval = rate_interval(each, resampled[group], unit, samples=samples)
        groups.append(
            Group(
                name=group,
                utterances=len(each),
                counts=total(each),
                rate=total(each).rate,
                low=interval.low,
                high=interval.high,
                unit=interval.unit,
                kinds=dict(kinds[group].most_common()),
            )
        )
    return Breakdown(name, level, tuple(groups))


def _length(one: AlignedUtterance, level: str) -> str:
    return band(len(tokens_of(one.utterance, level)[0]), LENGTHS, "tokens")


def _seen(text: str, sentences: Collection[str]) -> str:
    return (SEEN if text in sentences else UNSEEN) if text else ""


def _speed(one: AlignedUtterance) -> str:
    """Syllables of the reference for each second of the recording, its silences included."""
    utterance = one.utterance
    tokens = len(utterance.reference_pinyin) or len(utterance.reference_hanzi)
    return band(tokens / utterance.seconds, SPEEDS, "syllables/s") if utterance.seconds and tokens else ""


def _noise(one: AlignedUtterance) -> str:
    return "" if one.utterance.snr is None else band(one.utterance.snr, NOISES, "dB")


def _by_position(one: AlignedUtterance, level: str) -> Iterator[tuple[str, Sequence[AlignedToken]]]:
    places = one.tokens(level)
    length = sum(place.pair.reference is not None for place in places)
    groups: dict[str, list[AlignedToken]] = defaultdict(list)
    position = 0
    for place in places:
        if place.pair.reference_position is not None:
            position = place.pair.reference_position
        groups[_position(position, length)].append(place)
    yield from groups.items()


def _position(position: int, length: int) -> str:
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
    one: AlignedUtterance, level: str, counts: Mapping[str, int]
) -> Iterator[tuple[str, Sequence[AlignedToken]]]:
    groups: dict[str, list[AlignedToken]] = defaultdict(list)
    for place in one.tokens(level):
        if level == SYLLABLES:
            syllable = place.pair.hypothesis if place.pair.reference is None else place.pair.reference
        else:
            syllable = place.heard if place.pair.reference is None else place.said
        name = band(counts.get(syllable, 0), FREQUENCIES, "times") if syllable else UNKNOWN
        groups[name].append(place)
    yield from groups.items()
