"""Base class of the speech and language tasks: losses of a batch, loss and error rate of the dev set."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import starmap
from typing import Any

import keras
import numpy as np
from keras import ops

from training.backends.step import compiled
from utils.backend.prediction import pad_to_few_shapes, predict, prepare_prediction
from utils.metrics import ErrorCounts, count_errors

TokenPairs = Iterable[tuple[Sequence[int], Sequence[int]]]
"""Reference and hypothesis of each sequence."""


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
        prepare_prediction(model)
        self._dev_losses = compiled(partial(self.loss, training=False))

    @abstractmethod
    def arrays(self, batch: Any) -> dict[str, np.ndarray]:
        """Inputs and references of a batch."""

    @abstractmethod
    def dev_batches(self) -> Iterator[Any]:
        """The batches of the dev set."""

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
        """Mean loss of a sequence, and the error rate of the dev set."""
        loss, sequences, counts = 0.0, 0, ErrorCounts()
        for batch in self.dev_batches():
            arrays = pad_to_few_shapes(self.arrays(batch))
            logits = predict(self.model, {name: arrays[name] for name in self.inputs})
            loss += float(np.sum(ops.convert_to_numpy(self._dev_losses(arrays, logits))))
            sequences += len(batch.ids)
            counts = sum(starmap(count_errors, self.tokens(arrays, logits)), counts)
        return {"dev_loss": loss / sequences, self.metric: counts.rate}
