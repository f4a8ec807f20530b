"""Base class of the speech and language tasks: losses of a batch, loss and error rate of the dev set."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import starmap
from typing import Any, TypeVar

import keras
import numpy as np
from keras import ops

from training.backends.step import compiled
from training.history import Example
from utils.backend.prediction import pad_to_few_shapes, predict, prepare_prediction
from utils.metrics import ErrorCounts, count_errors

Item = TypeVar("Item")
_EXAMPLES = 3  # hypotheses that are shown at each evaluation
TRAIN_EVALUATED = 100
"""Training utterances whose error rate is measured too, to see how much the model overfits."""

TokenPairs = Iterable[tuple[Sequence[Any], Sequence[Any]]]
"""Reference and hypothesis of each sequence."""


def spaced(sequence: Sequence[Item], count: int) -> list[Item]:
    """At most ``count`` items, at equal distances."""
    count = min(count, len(sequence))
    return [sequence[index * len(sequence) // count] for index in range(count)]


class SequenceTask(ABC):
    """A task whose evaluation compares tokens with a reference, batch by batch.

    A derived task names the model's inputs among the arrays of a batch (``inputs``) and the key of the error
    rate (``metric``), and defines the training batches.
    """

    inputs: tuple[str, ...]
    metric: str
    accepts_padding = True

    def __init__(self, model: keras.Model):
        self.model = model
        self._examples: list[Example] = []
        prepare_prediction(model)
        self._dev_losses = compiled(partial(self.loss, training=False))

    @abstractmethod
    def arrays(self, batch: Any) -> dict[str, np.ndarray]:
        """Inputs and references of a batch."""

    @abstractmethod
    def dev_batches(self) -> Iterator[Any]:
        """The batches of the dev set."""

    def train_batches(self) -> Iterable[Any]:
        """Batches of some utterances of the training set, as they are evaluated; by default none."""
        return ()

    @abstractmethod
    def text(self, tokens: Sequence[Any]) -> str:
        """Tokens of :meth:`tokens` as text."""

    @abstractmethod
    def loss(self, arrays: dict[str, Any], logits: Any, training: bool) -> Any:
        """Loss of each sequence given the model's logits, in nats, (batch,) float32."""

    @abstractmethod
    def tokens(self, arrays: dict[str, np.ndarray], logits: np.ndarray) -> TokenPairs:
        """What is compared, for each sequence of a batch."""

    def losses(self, arrays: dict[str, Any], training: bool) -> Any:
        """Loss of each sequence, in nats, (batch,) float32."""
        logits = self.model({name: arrays[name] for name in self.inputs}, training=training)
        return self.loss(arrays, logits, training)

    def evaluate(self) -> dict[str, float]:
        """Mean loss and error rate of the dev set, and the error rate of some training utterances."""
        examples: list[Example] = []
        loss, sequences, counts = 0.0, 0, ErrorCounts()
        for batch in self.dev_batches():
            arrays, logits = self._predict(batch)
            loss += float(np.sum(ops.convert_to_numpy(self._dev_losses(arrays, logits))))
            sequences += len(batch.ids)
            pairs = list(self.tokens(arrays, logits))
            counts = sum(starmap(count_errors, pairs), counts)
            rows = spaced(range(len(batch.ids)), _EXAMPLES)
            examples += [Example(batch.ids[row], *map(self.text, pairs[row])) for row in rows]
        self._examples = spaced(examples, _EXAMPLES)
        metrics = {"dev_loss": loss / sequences, self.metric: counts.rate}
        found = ErrorCounts()
        for batch in self.train_batches():
            found = sum(starmap(count_errors, self.tokens(*self._predict(batch))), found)
        return metrics | {self.metric.replace("dev_", "train_"): found.rate} if found.reference else metrics

    def examples(self) -> list[Example]:
        """A few hypotheses of the last evaluation, always of the same utterances."""
        return self._examples

    def _predict(self, batch: Any) -> tuple[dict[str, np.ndarray], Any]:
        """The arrays of a batch and the logits."""
        arrays = pad_to_few_shapes(self.arrays(batch))
        return arrays, predict(self.model, {name: arrays[name] for name in self.inputs})
