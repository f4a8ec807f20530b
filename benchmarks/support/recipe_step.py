"""The training step of a recipe, compiled as in ``train.py``, and random batches for it.

Import this in the measuring process only: it loads Keras.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import keras
import numpy as np

from benchmarks.support.training_step import FRAMES_A_SECOND, ctc_losses, random_batch
from model_language.networks.candidates import CandidateTables
from model_language.networks.gated_cnn import NAME as GATED_CNN
from model_language.networks.gated_cnn import build_gated_cnn
from model_language.registry import MODELS as LANGUAGE_MODELS
from model_language.vocabulary.symbols import Symbols
from model_speech.registry import MODELS as ACOUSTIC_MODELS
from training.backends.step import make_train_step
from training.loop import prepare_backend
from training.losses import CandidateLoss, pack_pairs
from training.optimiser import make_optimizer
from training.tasks.language_config import VARIANTS as LANGUAGE_VARIANTS
from training.tasks.language_config import LanguageConfig
from training.tasks.speech import VARIANTS as SPEECH_VARIANTS
from training.tasks.speech import SpeechConfig
from training.tasks.text_rows.gated import choice_losses
from utils.backend.model_cost import multiply_accumulates
from utils.config import load_config
from utils.features.speech import feature_bins
from utils.run_folder.run import PRETRAINED
from utils.vocabulary import acoustic_vocabulary

STEPS = 1000  # of the learning-rate schedule
Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class RecipeStep:
    """A compiled training step of a recipe.

    Attributes:
        run: arrays of a batch → losses; updates the weights.
        batch: (rows, length) → a random batch. The length is in seconds of audio or in syllables.
        parameters: number of weights.
        epochs: of the recipe.
        multiply_accumulates: length → multiply-accumulates of the forward pass of a row.
    """

    run: Callable[[Arrays], Any]
    batch: Callable[[int, int], Arrays]
    parameters: int
    epochs: int
    multiply_accumulates: Callable[[int], int]


def recipe_step(recipe: Path, overrides: Sequence[str] = ()) -> RecipeStep:
    """Build the model, optimiser and training step of a recipe in ``configs/speech`` or ``configs/language``.

    Raises:
        ConfigError: the recipe is not valid, or the backend does not support one of its settings.
    """
    return (_speech_step if recipe.parent.name == "speech" else _language_step)(recipe, overrides)


def _speech_step(recipe: Path, overrides: Sequence[str]) -> RecipeStep:
    config = load_config(SpeechConfig, recipe, ["task=speech", *overrides], SPEECH_VARIANTS)
    bins, classes = feature_bins(config.features), len(acoustic_vocabulary())
    build = ACOUSTIC_MODELS[config.model.name].build
    return _step(
        config,
        build=lambda: build(config.model, bins, classes),
        losses=lambda model: ctc_losses(model, config.model.time_stride, classes),
        batch=lambda rows, seconds: random_batch(rows, seconds, bins, classes),
        positions=FRAMES_A_SECOND,
    )


def _language_step(recipe: Path, overrides: Sequence[str]) -> RecipeStep:
    config = load_config(LanguageConfig, recipe, ["task=language", *overrides], LANGUAGE_VARIANTS)
    symbols = Symbols.load(PRETRAINED)  # any real vocabulary will do
    if config.model.name == GATED_CNN:
        return _gated_step(config, symbols)
    loss = CandidateLoss(symbols.candidates, config.model.label_smoothing)

    def losses(model: keras.Model) -> Callable[[dict[str, Any], bool], Any]:
        def of_batch(arrays: dict[str, Any], training: bool) -> Any:
            logits = model({"syllables": arrays["syllables"]}, training=training)
            return loss.call(pack_pairs(arrays["syllables"], arrays["targets"]), logits)

        return of_batch

    def batch(rows: int, length: int) -> Arrays:
        ids = _random_syllables(symbols, rows, length)
        return {"syllables": ids, "targets": symbols.candidates[ids, 0].astype(np.int32)}

    build = LANGUAGE_MODELS[config.model.name].build
    return _step(config, lambda: build(config.model, symbols, None), losses, batch)


def _gated_step(config: LanguageConfig, symbols: Symbols) -> RecipeStep:
    """The gated CNN, with the most frequent hanzi of each syllable as its candidates."""
    tables = _frequent_candidates(symbols, config.model.choices)

    def batch(rows: int, length: int) -> Arrays:
        ids = _random_syllables(symbols, rows, length)
        return {"syllables": ids, "choices": np.ones_like(ids)}

    return _step(
        config,
        build=lambda: build_gated_cnn(config.model, tables, len(symbols.hanzi)),
        losses=lambda model: partial(choice_losses, model),
        batch=batch,
    )


def _frequent_candidates(symbols: Symbols, choices: int) -> CandidateTables:
    candidates = np.zeros((len(symbols.candidates), choices), np.int32)
    columns = min(choices, symbols.candidates.shape[1])
    candidates[:, :columns] = symbols.candidates[:, :columns]
    tokens = np.arange(len(candidates), dtype=np.int32)
    return CandidateTables(
        candidates=candidates,
        priors=np.where(candidates > 0, 0.0, -np.inf).astype(np.float32),
        rare=np.zeros((len(candidates), 1), np.int32),
        bases=tokens,
        toneless=tokens,
        confusions=np.zeros((len(candidates), 1), np.int32),
    )


def _random_syllables(symbols: Symbols, rows: int, length: int) -> np.ndarray:
    """Ids of syllables with a hanzi, (rows, length) int32."""
    known = np.flatnonzero(symbols.candidates[:, 0])
    return np.random.default_rng(0).choice(known, (rows, length)).astype(np.int32)


def _step(
    config: SpeechConfig | LanguageConfig,
    build: Callable[[], keras.Model],
    losses: Callable[[keras.Model], Callable[[dict[str, Any], bool], Any]],
    batch: Callable[[int, int], Arrays],
    positions: int = 1,
) -> RecipeStep:
    """``positions``: input positions of the model for each unit of length."""
    prepare_backend(config.training, config.seed)
    model = build()
    optimizer = make_optimizer(config.optimiser, STEPS)
    optimizer.build(model.trainable_variables)
    return RecipeStep(
        run=make_train_step(model, optimizer, losses(model), xla=config.training.xla),
        batch=batch,
        parameters=model.count_params(),
        epochs=config.training.epochs,
        multiply_accumulates=lambda length: multiply_accumulates(model, length * positions),
    )
