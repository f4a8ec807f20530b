"""Trains the layers behind a pre-trained encoder on its stored outputs, before the rest of the model.

The encoder computes its outputs once, so that an epoch of the head takes a small part of the time of an epoch
of the whole model. A head that has learnt nothing yet would send the encoder gradients that destroy what it
knows.
"""

import logging
from dataclasses import dataclass, replace
from functools import partial

import keras
import numpy as np
from tqdm import tqdm

from data.batches.batching import BatchSource
from model_speech.ctc.loss import ctc_loss, output_lengths
from utils.errors import require
from utils.limits import Count, Limited, Positive

log = logging.getLogger("train")


@dataclass(frozen=True)
class HeadConfig(Limited, section="head"):
    """Training of the head alone, in a new run.

    Attributes:
        after: name of the encoder's last layer, as in model_summary.txt; empty: all is trained at once.
        epochs: passes over the stored outputs.
        batches: training batches whose outputs are stored, in memory; 500 batches of 8000 frames of Whisper
            base (11 hours) take 2 GB.
        learning_rate: highest rate of AdamW; after a warm-up it decays to 0 along a cosine.
    """

    after: str = ""
    epochs: Count = 6
    batches: Count = 500
    learning_rate: Positive = 1e-3


def train_head(
    model: keras.Model, config: HeadConfig, source: BatchSource, time_stride: int, blank: int, seed: int
) -> None:
    """Train the layers of ``model`` behind ``config.after``, on unmasked batches.

    Args:
        model: its layers behind ``config.after`` form a chain.
        config: duration and rate.
        source: the training batches.
        time_stride: feature frames per output frame, of the encoder as of the model.
        blank: class of the blank.
        seed: of the order of the batches.

    Raises:
        ConfigError: ``config.after`` is not a layer of the model, or is the last one.
    """
    names = [layer.name for layer in model.layers]
    require(
        config.after in names[:-1],
        f"head.after is '{config.after}', which is no layer in front of others",
        hint="the last layer of the encoder, such as frame_pairs of whisper; see model_summary.txt",
    )
    first = names.index(config.after) + 1
    encoder = keras.Model(model.inputs, model.layers[first - 1].output)
    stored = _encode(encoder, config, source, time_stride)
    inputs = outputs = keras.Input((None, encoder.output.shape[-1]))
    for layer in model.layers[first:]:
        outputs = layer(outputs)
    head = keras.Model(inputs, outputs)
    steps = config.epochs * len(stored)
    rate = keras.optimizers.schedules.CosineDecay(
        0.0, steps, warmup_target=config.learning_rate, warmup_steps=min(100, steps // 10)
    )
    head.compile(
        keras.optimizers.AdamW(rate, weight_decay=0.01, beta_2=0.98), partial(_ctc_loss, blank=blank)
    )
    rng = np.random.default_rng(seed)
    for epoch in range(1, config.epochs + 1):
        title = f"head {epoch}/{config.epochs}"
        order = tqdm(rng.permutation(len(stored)), title, unit="batch", disable=None)
        head.reset_metrics()
        for index in order:
            mean = head.train_on_batch(*stored[index])
        log.info("head, epoch %d/%d  train_loss %.4f", epoch, config.epochs, mean)


def _ctc_loss(targets, logits, blank: int):
    """CTC loss of each utterance; targets (B, 2 + L): frames of the output, number of labels, labels."""
    return ctc_loss(targets[:, 2:], logits, targets[:, 1], targets[:, 0], blank)


def _encode(
    encoder: keras.Model, config: HeadConfig, source: BatchSource, time_stride: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Outputs (B, T, channels) float16, and targets of `_ctc_loss`, of the first batches."""
    source = replace(source, spec_augment=None, teacher=None)
    count = min(config.batches, source.steps(1))
    stored = []
    for batch, _ in zip(
        source.batches(1), tqdm(range(count), "encoder", unit="batch", disable=None), strict=False
    ):
        inputs = {"features": batch.features, "lengths": batch.feature_lengths}
        frames = output_lengths(batch.feature_lengths, time_stride)
        targets = np.column_stack([frames, batch.label_lengths, batch.labels])
        stored.append((np.asarray(encoder.predict_on_batch(inputs), np.float16), targets))
    return stored
