"""Splices two training utterances of a speaker: the beginning of one and the end of another.

A few hours of speech hold a few thousand sentences, which a network learns by heart; spliced ones have other
neighbours in each epoch. The cuts are halfway between two syllables, where the teacher finds them.
"""

from dataclasses import dataclass

import numpy as np

from data.batches.batching import Example
from model_speech.ctc.alignment import align

_FLOOR = 1e-4  # probability of a class that is not among the most probable ones of a frame
_SURE = 0.3  # probability of a syllable beside a cut, in its frame


@dataclass(frozen=True)
class Splicer:
    """Splices some of the utterances of a training.

    Attributes:
        fraction: of the utterances.
        time_stride: feature frames for each logit frame.
        blank: class of the blank.
    """

    fraction: float
    time_stride: int
    blank: int

    def splice(
        self, first: Example, second: Example, frames: int, labels: int, rng: np.random.Generator
    ) -> Example:
        """The beginning of ``first``, to a random cut, and as much of the end of ``second`` as fits.

        Args:
            first, second: with targets.
            frames, labels: the most that the result may have.
            rng: chooses the cut.

        Returns:
            ``first`` itself where the teacher is not sure of two neighbouring syllables of both, or where
            nothing fits.
        """
        (kept, heads), (begins, tails) = self._cuts(first), self._cuts(second)
        if not len(kept) or not len(begins):
            return first
        choice = rng.integers(len(kept))
        count, head = kept[choice], heads[choice]
        fits = (
            ((head - tails) * self.time_stride + len(second.features) <= frames)
            & (count + len(second.labels) - begins <= labels)
            & (second.labels[begins] != first.labels[count - 1])  # two equal ones need a blank in between
        )
        if not fits.any():
            return first
        begin, tail = begins[fits.argmax()], tails[fits.argmax()]
        ends = slice(head * self.time_stride), slice(tail * self.time_stride, None)
        return Example(
            np.concatenate([first.features[ends[0]], second.features[ends[1]]]),
            np.concatenate([first.labels[:count], second.labels[begin:]]),
            np.concatenate([first.classes[:head], second.classes[tail:]]),
            np.concatenate([first.probabilities[:head], second.probabilities[tail:]]),
        )

    def _cuts(self, example: Example) -> tuple[np.ndarray, np.ndarray]:
        """Where an utterance can be cut: (cuts,) labels before each, and (cuts,) its logit frame."""
        none = np.zeros(0, np.int64)
        if len(example.labels) < 2:
            return none, none
        known, columns = np.unique(example.labels, return_inverse=True)
        wanted = np.concatenate([[self.blank], known])
        found = example.classes[:, :, None] == wanted  # (frames, classes, 1 + different labels)
        probabilities = np.where(found, example.probabilities[:, :, None], 0.0).sum(axis=1)
        log_probabilities = np.log(np.maximum(probabilities, _FLOOR))
        try:
            (peaks,) = align(
                log_probabilities[None],
                np.array([len(found)]),
                np.zeros(1, int),
                [(columns + 1).tolist()],
                blank=0,
            )
        except ValueError:  # too few frames
            return none, none
        sure = probabilities[peaks, columns + 1] > _SURE
        kept = 1 + np.flatnonzero(sure[:-1] & sure[1:])
        frames = np.array(peaks)
        return kept, (frames[kept - 1] + frames[kept] + 1) // 2
