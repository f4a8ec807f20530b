"""A recipe and ten of its utterances → whether its model can learn them by heart, before hours are spent.

What cannot learn ten utterances cannot learn ten thousand: a wrong learning rate, a model that is too small
or a fault in features, labels or loss shows within minutes.
"""

from __future__ import annotations

import dataclasses
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

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
from training.optimiser import make_optimizer
from training.tasks.speech import SpeechConfig, SpeechTask
from utils.errors import CorpusError
from utils.features.speech import feature_bins, frame_count
from utils.files import is_file
from utils.vocabulary import acoustic_vocabulary

UTTERANCES = 10
LEARNT = 0.1  # tonal syllable error rate
STEPS = 400
_LOOK_EVERY = 10  # steps
_SYLLABLES = 2  # at least, in an utterance worth learning


@dataclass(frozen=True)
class Overfit:
    """How far the model came.

    Attributes:
        error_rate: tonal syllable errors on the very utterances it learnt, at best.
        loss: mean CTC loss of the last step, in nats.
        steps: optimiser steps taken.
        seconds: time they took.
    """

    error_rate: float
    loss: float
    steps: int
    seconds: float

    def __str__(self) -> str:
        return (
            f"{self.error_rate:.0%} tonal syllable error, loss {self.loss:.3g} "
            f"after {self.steps} steps, {self.seconds:.0f} s"
        )


def overfit_ten(result: Overfit, where: str) -> Iterator[Finding]:
    """On request (--overfit): the recipe's model can't learn ten utterances by heart."""
    if result.error_rate < LEARNT:
        return
    in_time = result.steps >= STEPS or not np.isfinite(result.loss)
    what = "the model can't learn ten utterances" if in_time else "ten utterances are not learnt in this time"
    advice = "try a higher or lower optimiser.learning_rate; listen to the utterances: is that their text?"
    yield Finding(ERROR if in_time else WARNING, where, "", what, advice, str(result))


def choose_utterances(lines: Sequence[Line], config: SpeechConfig) -> list[Utterance]:
    """Ten usable utterances from all over the lists.

    Raises:
        CorpusError: none is usable.
    """
    usable = [line for line in lines if _usable(line, config)]
    if not usable:
        raise CorpusError("no utterance can be trained on", hint="doctor.py without --overfit says why")
    places = np.unique(np.linspace(0, len(usable) - 1, UTTERANCES).round().astype(int))
    return [_utterance(usable[place]) for place in places]


def learn_by_heart(config: SpeechConfig, utterances: Sequence[Utterance], seconds: float) -> Overfit:
    """Train the recipe's model on a few utterances, unmasked and without dropout, until it knows them.

    Args:
        config: the recipe; its learning-rate schedule spans ``STEPS`` steps here.
        utterances: to learn, and to be asked for.
        seconds: when to give up; features and the first compilation are not counted.

    Raises:
        AudioError: a recording can't be read.
    """
    prepare_backend(config.training, config.seed)
    vocabulary = acoustic_vocabulary({syllable for one in utterances for syllable in one.pinyin})
    kept = {"dropout": 0.0} if hasattr(config.model, "dropout") else {}
    model_config = dataclasses.replace(config.model, **kept)
    model = MODELS[model_config.name].build(model_config, feature_bins(config.features), len(vocabulary))
    with tempfile.TemporaryDirectory() as folder:
        source = _source(config, utterances, vocabulary.encode, Path(folder))
        task = SpeechTask(model, vocabulary, model_config.time_stride, source, source)
        optimizer = make_optimizer(config.optimiser, STEPS)
        optimizer.build(model.trainable_variables)
        step = make_train_step(model, optimizer, task.losses, xla=config.training.xla)
        return _train(task, step, seconds)


def _train(task: SpeechTask, step, seconds: float) -> Overfit:
    best, loss, taken, began = float("inf"), float("nan"), 0, None
    batches = (batch for epoch in range(1, STEPS + 1) for batch in task.batches(epoch, 0))
    with tqdm(total=STEPS, desc="overfit", unit="step", disable=None) as bar:
        for batch in batches:
            loss = float(np.mean(ops.convert_to_numpy(step(task.arrays(batch)))))
            began = began or time.monotonic()  # the first step compiles
            taken += 1
            late = time.monotonic() - began > seconds
            if taken % _LOOK_EVERY == 0 or late:
                best = min(best, task.evaluate()[task.metric])
            bar.update()
            bar.set_postfix(loss=f"{loss:.3g}", error=f"{best:.0%}")
            if best < LEARNT or late or taken == STEPS or not np.isfinite(loss):
                break
    return Overfit(best, loss, taken, time.monotonic() - began)


def _source(config: SpeechConfig, utterances: Sequence[Utterance], encode, folder: Path) -> BatchSource:
    cache = prepare_features(utterances, config.features, folder, workers=1)
    return BatchSource(
        cache,
        utterances,
        [encode(one.pinyin, one.id, one.audio) for one in utterances],
        batch_frames=config.data.batch_frames,
        max_batch=config.data.batch_utterances,
        seed=config.seed,
    )


def _usable(line: Line, config: SpeechConfig) -> bool:
    """Whether the text is whole, and short enough for the model's output frames."""
    whole = len(line.pinyin) == len(line.hanzi) >= _SYLLABLES and all(map(canonical, line.pinyin))
    if not (whole and 0 < line.seconds < float("inf") and is_file(line.audio)):
        return False
    frames = frame_count(round(line.seconds * config.features.sample_rate), config.features)
    room = int(output_lengths(frames, config.model.time_stride))
    return frames_needed(np.asarray(line.pinyin)) <= room


def _utterance(line: Line) -> Utterance:
    return Utterance(line.id, Path(line.audio), line.seconds, line.speaker, line.pinyin, line.hanzi)
