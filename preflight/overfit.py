"""Trains a recipe's model on ten utterances until it has learnt them, as a test of the recipe.

A model that cannot learn ten utterances cannot learn ten thousand. A wrong learning rate, too small a model
or a fault in features, labels or loss shows within minutes.
"""

import dataclasses
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from keras import ops
from tqdm import tqdm

from data.batches.batching import BatchSource
from data.features.cache import prepare_features
from data.manifest import Utterance
from model_speech.ctc.loss import frames_needed, output_lengths
from model_speech.registry import MODELS
from preflight.findings import ERROR, WARNING, Finding
from preflight.listings import Line, canonical
from training.backends.step import make_train_step
from training.loop import prepare_backend
from training.optimiser import layers_of, make_optimizer
from training.tasks.speech import SpeechConfig, SpeechTask, encoded_labels
from utils.errors import CorpusError
from utils.features.settings import feature_bins
from utils.files import is_file
from utils.mandarin.output_units import tokens_of
from utils.vocabulary import Vocabulary, acoustic_vocabulary

UTTERANCES = 10  # to train on
LEARNT = 0.1  # error rate below which the utterances count as learnt
STEPS = 400  # at most
_EVALUATE_EVERY = 10  # steps
_MIN_SYLLABLES = 2  # in an utterance


@dataclass(frozen=True)
class Overfit:
    """The result of the overfitting test.

    Attributes:
        error_rate: lowest error rate on the training utterances.
        loss: mean CTC loss of the last step, in nats.
        steps: number of optimiser steps.
        seconds: duration of these steps.
    """

    error_rate: float
    loss: float
    steps: int
    seconds: float

    def __str__(self) -> str:
        return (
            f"{self.error_rate:.0%} error, loss {self.loss:.3g} "
            f"after {self.steps} steps, {self.seconds:.0f} s"
        )


def overfit_ten(result: Overfit, where: str) -> Iterator[Finding]:
    """With --overfit: the recipe's model cannot overfit on ten utterances."""
    if result.error_rate < LEARNT:
        return
    is_complete = result.steps >= STEPS or not np.isfinite(result.loss)
    severity = ERROR if is_complete else WARNING
    problem = "the model can't learn ten utterances" if is_complete else "ten utterances take too long"
    advice = "try a higher or lower optimiser.learning_rate; listen to the utterances and check their texts"
    yield Finding(severity, where, "", problem, advice, str(result))


def choose_utterances(lines: Sequence[Line], config: SpeechConfig) -> list[Utterance]:
    """Choose ten usable utterances, evenly spaced in the lists.

    Raises:
        CorpusError: no utterance is usable.
    """
    usable = [line for line in lines if _usable(line, config)]
    if not usable:
        raise CorpusError("no utterance can be trained on", hint="doctor.py without --overfit says why")
    indices = np.unique(np.linspace(0, len(usable) - 1, UTTERANCES).round().astype(int))
    return [usable[index].utterance() for index in indices]


def overfit(config: SpeechConfig, utterances: Sequence[Utterance], seconds: float) -> Overfit:
    """Train the recipe's model on a few utterances, without masks and dropout, until it has learnt them.

    Args:
        config: the recipe; its learning-rate schedule spans ``STEPS`` steps here.
        utterances: utterances for training and evaluation.
        seconds: time limit, without features and the first compilation.

    Raises:
        AudioError: a recording cannot be read.
    """
    prepare_backend(config.training, config.seed)
    units = config.vocabulary.units
    tokens = {token for each in utterances for token in tokens_of(units, each.pinyin, each.hanzi)}
    vocabulary = acoustic_vocabulary(tokens, units)
    changes = {"dropout": 0.0} if hasattr(config.model, "dropout") else {}
    model_config = dataclasses.replace(config.model, **changes)
    model = MODELS[model_config.name].build(model_config, feature_bins(config.features), len(vocabulary))
    with tempfile.TemporaryDirectory() as folder:
        source = _source(config, utterances, vocabulary, Path(folder))
        task = SpeechTask(model, vocabulary, model_config.time_stride, source, source)
        optimizer = make_optimizer(config.optimiser, STEPS, layers_of(model.trainable_variables))
        optimizer.build(model.trainable_variables)
        step = make_train_step(model, optimizer, task.losses, xla=config.training.xla)
        return _train(task, step, seconds)


def _train(task: SpeechTask, step: Callable[[dict[str, np.ndarray]], Any], seconds: float) -> Overfit:
    best, loss, steps, start = float("inf"), float("nan"), 0, 0.0
    batches = (batch for epoch in range(1, STEPS + 1) for batch in task.batches(epoch, 0))
    with tqdm(total=STEPS, desc="overfit", unit="step", disable=None) as bar:
        for batch in batches:
            losses, _ = step(task.arrays(batch))
            loss = float(np.mean(ops.convert_to_numpy(losses)))
            start = start or time.monotonic()  # the first step compiles
            steps += 1
            is_late = time.monotonic() - start > seconds
            if steps % _EVALUATE_EVERY == 0 or is_late:
                best = min(best, task.evaluate()[task.metric])
            bar.update()
            bar.set_postfix(loss=f"{loss:.3g}", error=f"{best:.0%}")
            if best < LEARNT or is_late or steps == STEPS or not np.isfinite(loss):
                break
    return Overfit(best, loss, steps, time.monotonic() - start)


def _source(
    config: SpeechConfig, utterances: Sequence[Utterance], vocabulary: Vocabulary, folder: Path
) -> BatchSource:
    return BatchSource(
        cache=prepare_features(utterances, config.features, folder, workers=1),
        utterances=utterances,
        labels=encoded_labels(vocabulary, utterances),
        batch_frames=config.data.batch_frames,
        max_batch=config.data.batch_utterances,
        seed=config.seed,
    )


def _usable(line: Line, config: SpeechConfig) -> bool:
    """Whether the text is complete, and short enough for the model's output frames."""
    is_complete = len(line.pinyin) == len(line.hanzi) >= _MIN_SYLLABLES and all(map(canonical, line.pinyin))
    if not (is_complete and line.has_length and is_file(line.audio)):
        return False
    available = int(output_lengths(line.frames(config.features), config.model.time_stride))
    tokens = tokens_of(config.vocabulary.units, line.pinyin, line.hanzi)
    return frames_needed(np.asarray(tokens)) <= available
