"""Base class of the speech and language tasks: loss and error rate of the dev set."""

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
    rate (``metric``), and defines the training batches and their losses.

    Args:
        model: gets the ``inputs`` of a batch.
    """

    inputs: tuple[str, ...]
    metric: str
    accepts_padding = True

    def __init__(self, model: keras.Model):
        self.model = model
        prepare_prediction(model)
        self._count = compiled(self.dev_counts)

    @abstractmethod
    def arrays(self, batch: Any) -> dict[str, np.ndarray]:
        """Inputs and targets of a batch."""

    @abstractmethod
    def dev_batches(self) -> Iterator[Any]:
        """The batches of the dev set."""

    @abstractmethod
    def dev_counts(self, arrays: dict[str, Any], logits: Any) -> tuple[Any, Any, Any]:
        """Loss in nats, errors and number of reference tokens of each sequence, (batch,) each."""

    def evaluate(self) -> dict[str, float]:
        """Mean loss of a sequence, and the error rate of the dev set."""
        sums, sequences = np.zeros(3), 0
        for batch in self.dev_batches():
            arrays = pad_to_few_shapes(self.arrays(batch))
            logits = predict(self.model, {name: arrays[name] for name in self.inputs})
            counts = self._count(arrays, logits)
            sums += [float(np.sum(ops.convert_to_numpy(each), dtype=np.float64)) for each in counts]
            sequences += len(batch.ids)
        loss, errors, reference = sums
        return {"dev_loss": float(loss / sequences), self.metric: float(errors / max(reference, 1.0))}
