"""Tests of splicing: the parts of two utterances stay with their labels and their teacher's targets."""

import numpy as np
import pytest

from data.batches.batching import Example
from training.splicing import Splicer

BLANK, STRIDE = 99, 4
SPLICER = Splicer(0.5, STRIDE, BLANK)


def utterance(labels: list[int], probability: float = 0.9, spacing: int = 3) -> Example:
    """An utterance whose label k peaks in logit frame ``spacing`` · k + 1; features number the frames."""
    count = spacing * len(labels) + 1
    classes = np.tile(np.array([BLANK, 0], np.int32), (count, 1))
    probabilities = np.tile(np.array([0.8, 0.0], np.float32), (count, 1))
    for index, label in enumerate(labels):
        classes[spacing * index + 1, 1] = label
        probabilities[spacing * index + 1] = (1 - probability, probability)
    frames = np.arange(STRIDE * count - 2)  # the last logit frame is not whole
    return Example(np.stack([frames, frames], axis=1), np.array(labels, np.int32), classes, probabilities)


def splices(first: Example, second: Example, frames: int = 1000, labels: int = 100) -> list[Example]:
    seeds = range(30)
    return [SPLICER.splice(first, second, frames, labels, np.random.default_rng(seed)) for seed in seeds]


def test_labels_features_and_targets_are_cut_at_the_same_syllable():
    first, second = utterance([1, 2, 3, 4]), utterance([11, 12, 13], spacing=4)
    found = splices(first, second)
    assert {tuple(each.labels) for each in found} == {(1, 12, 13), (1, 2, 12, 13), (1, 2, 3, 12, 13)}
    for each in found:
        best = each.classes[np.arange(len(each.classes)), each.probabilities.argmax(axis=1)]
        assert best[best != BLANK].tolist() == each.labels.tolist()
        assert len(each.features) == STRIDE * len(each.classes) - 2
        begin = len(each.features) - len(second.features) + STRIDE * 3  # of the end, cut in frame 3 of second
        assert each.features[:begin, 0].tolist() == list(range(begin))
        assert each.features[begin:, 0].tolist() == list(range(STRIDE * 3, len(second.features)))


def test_the_longest_end_that_fits_is_taken():
    first, second = utterance([1, 2]), utterance([11, 12, 13, 14, 15])
    frames = len(first.features)
    assert all(len(each.features) <= frames for each in splices(first, second, frames))
    assert tuple(splices(first, second, frames)[0].labels) == (1, 15)
    assert tuple(splices(first, second, labels=3)[0].labels) == (1, 14, 15)
    assert splices(first, second, labels=1)[0] is first


def test_equal_syllables_do_not_meet():
    assert {tuple(each.labels) for each in splices(utterance([1, 2]), utterance([5, 1, 3]))} == {(1, 3)}


@pytest.mark.parametrize(
    "example",
    [utterance([]), utterance([7]), utterance([5, 6], probability=0.1), utterance([5] * 9, spacing=1)],
    ids=["without speech", "one syllable", "the teacher is not sure", "fewer frames than its labels need"],
)
def test_what_can_not_be_cut_stays(example):
    other = utterance([1, 2, 3])
    assert all(each is other for each in splices(other, example))
    assert all(each is example for each in splices(example, other))
