"""Trains the model of a wake word on its clips, with a recipe of ``train.py keyword``.

``keywords.wake_word`` imports this module when a model is made, because it loads Keras.
"""

from collections.abc import Sequence
from pathlib import Path

import keras
import numpy as np

from model_keyword.loading import samples_of
from model_keyword.registry import build_keyword_model
from streaming.conversion.plan import require_streamable
from training.run import train_from_config
from training.tasks.keyword import VARIANTS, KeywordConfig
from utils.config import load_config
from utils.errors import CorpusError, RunError
from utils.run_folder.run import RunFolder

_CLIP_MS = (1000, 2500)  # shortest and longest clip
_CLIP_QUANTILE = 0.95  # fraction of the word's recordings that fit into a clip
_LABELS = 3  # silence, other words, the wake word


def check_recipe(recipe: Path, overrides: Sequence[str]) -> None:
    """Check, before the clips are made, that the model of a recipe can be built and can stream.

    Raises:
        ConfigError: it can't, or the recipe is wrong.
    """
    config = load_config(KeywordConfig, recipe, [*overrides, "task=keyword"], VARIANTS)
    clip, context = (
        samples_of(ms, config.features.sample_rate) for ms in (_CLIP_MS[1], config.data.context_ms)
    )
    require_streamable(build_keyword_model(config.model, config.features, clip, _LABELS, context))
    keras.utils.clear_session()  # the layers of the trained model are numbered from the start


def train_word(recipe: Path, overrides: Sequence[str], seconds: Sequence[float], run: RunFolder) -> None:
    """Train a run, or continue it; a finished one is left unchanged.

    Args:
        recipe: the config file.
        overrides: values that replace those of the recipe.
        seconds: lengths of the recordings of the word, of which the length of a clip follows.
        run: the run's folder.

    Raises:
        CorpusError: there is no recording of the word.
        RunError: the run was made with another recipe.
        UserError: see :func:`training.run.train_from_config`.
    """
    if not seconds:
        raise CorpusError("the synthesiser can't pronounce this word", where=run.path.parent / "clips")
    try:
        train_from_config("keyword", recipe, [f"data.clip_ms={clip_ms(seconds)}", *overrides], run.path)
    except RunError as error:  # the folder is given by another option here
        hint = error.hint and error.hint.replace("--run", "--output")
        raise RunError(error.message, where=error.where, hint=hint) from error


def clip_ms(seconds: Sequence[float]) -> int:
    """Length of a clip, a multiple of 100 ms, that nearly all recordings of the word fit into."""
    length = 100 * int(np.ceil(10 * np.quantile(seconds, _CLIP_QUANTILE)))
    return min(max(length, _CLIP_MS[0]), _CLIP_MS[1])
