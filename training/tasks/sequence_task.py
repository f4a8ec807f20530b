"""Base class of the speech and language tasks: losses of a batch, loss and error rate of the dev set.

The targets of a batch are packed into one array, which a Keras loss and a Keras metric compare with the
logits of the model.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
from keras import ops

from training.backends.step import compiled
from utils.backend.prediction import pad_to_few_shapes, predict, prepare_prediction


class SequenceTask(ABC):
    """A task whose evaluation compares logits with targets, batch by batch.

    A derived task names the model's inputs among the arrays of a batch (``inputs``) and the key of the error
    rate (``metric``), and defines the training batches.
    """

    inputs: tuple[str, ...]
    metric: str
    accepts_padding = True

    def __init__(
        self,
        model: keras.Model,
        loss: keras.losses.Loss,
        dev_loss: keras.losses.Loss,
        error_rate: keras.metrics.Metric,
    ):
        self.model = model
        prepare_prediction(model)
        self._loss, self._dev_loss, self._error_rate = loss, dev_loss, error_rate
        self._count = compiled(self._count_batch)

    @abstractmethod
    def arrays(self, batch: Any) -> dict[str, np.ndarray]:
        """Inputs and targets of a batch."""

    @abstractmethod
    def dev_batches(self) -> Iterator[Any]:
        """The batches of the dev set."""

    @abstractmethod
    def targets(self, arrays: dict[str, Any]) -> Any:
        """The targets of a batch, as loss and metric take them."""

    def losses(self, arrays: dict[str, Any], training: bool) -> Any:
        """Loss of each sequence, in nats, (batch,) float32."""
        logits = self.model({name: arrays[name] for name in self.inputs}, training=training)
        return (self._loss if training else self._dev_loss).call(self.targets(arrays), logits)

    def evaluate(self) -> dict[str, float]:
        """Mean loss of a sequence, and the error rate of the dev set."""
        total, sequences = 0.0, 0
        counts = self._error_rate.stateless_reset_state()
        for batch in self.dev_batches():
            arrays = pad_to_few_shapes(self.arrays(batch))
            logits = predict(self.model, {name: arrays[name] for name in self.inputs})
            losses, counts = self._count(counts, arrays, logits)
            total += float(np.sum(ops.convert_to_numpy(losses)))
            sequences += len(batch.ids)
        return {"dev_loss": total / sequences, self.metric: float(self._error_rate.stateless_result(counts))}

    def _count_batch(self, counts: list[Any], arrays: dict[str, Any], logits: Any) -> tuple[Any, list[Any]]:
        """Losses of a batch (batch,), and the ``counts`` of the error rate with this batch added."""
        targets = self.targets(arrays)
        counts = self._error_rate.stateless_update_state(counts, targets, logits)
        return self._dev_loss.call(targets, logits), counts
