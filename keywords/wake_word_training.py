"""Trains the model of a wake word on its clips, with the recipe of the request; checks the recipe beforehand.

``keywords.wake_word`` imports this module when a training may be needed, because it loads Keras.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np

from data.synthesis.clips import SpokenClip
from keywords.wake_word_request import Request
from model_keyword.loading import samples_of
from model_keyword.registry import build_keyword_model
from streaming.conversion.plan import require_streamable
from training.run import train_from_config
from training.tasks.keyword import VARIANTS, KeywordConfig
from utils.config import load_config, save_yaml, to_plain
from utils.errors import CorpusError, RunError, require
from utils.run_folder.run import HERE_ONLY, RunFolder, config_differences, describe_differences, open_run

_CLIP_MS = (1000, 2500)  # shortest and longest clip
_CLIP_QUANTILE = 0.95  # fraction of the word's recordings that fit into a clip
_LABELS = 3  # silence, other words, the wake word
_HERE_ONLY = ("data.folder", *HERE_ONLY)  # may differ when a run is continued
_START_AGAIN = "choose another --output, or delete this folder to train a new model on the same clips"


def check_recipe(request: Request) -> None:
    """Check the recipe with its overrides, and that its model can be built and can stream.

    Raises:
        ConfigError: it is wrong, sets what the command itself sets, or its model can't stream.
        RunError: the run folder has a model of another recipe, or ``initialise_from`` is no keyword run.
    """
    config = _config(request, _CLIP_MS[1])
    own = {
        "task": "keyword",
        "data.folder": str(request.clips),
        "data.train": (),
        "data.dev": (),
        "data.test": (),
        "data.words": (),
    }
    found = {"task": config.task, **{f"data.{name}": value for name, value in vars(config.data).items()}}
    for name, value in own.items():
        require(
            found[name] == value,
            f"the recipe sets {name} to {found[name]}, which the command sets itself",
            where=request.config,
            hint=f"leave out {name}: the model is trained on the clips of the word",
        )
    if config.initialise_from:
        open_run(config.initialise_from, "keyword")
    rate = config.features.sample_rate
    lengths = (samples_of(ms, rate) for ms in (config.data.clip_ms, config.data.context_ms))
    model = build_keyword_model(config.model, config.features, next(lengths), _LABELS, next(lengths))
    require_streamable(model)
    keras.utils.clear_session()  # the layers of the trained model are numbered from the start


def train_word(request: Request, clips: Mapping[str, Sequence[SpokenClip]]) -> None:
    """Train the run in ``request.output``, or continue it; a finished one is left unchanged.

    Args:
        request: the word, the folder and the recipe.
        clips: the clips of each split, with their lengths.

    Raises:
        CorpusError: no clip of the word exists.
        RunError: the run is of another recipe or of another word.
        UserError: see :func:`training.run.train_from_config`.
    """
    seconds = [clip.seconds for clip in clips["train"] if clip.label == request.word.hanzi]
    if not seconds:
        raise CorpusError("the synthesiser can't pronounce this word", where=request.clips / "unspoken.tsv")
    length, run = clip_ms(seconds), RunFolder(request.output / "run")
    if run.config_file.is_file():
        _continue(run, request, to_plain(_config(request, length)))
    train_from_config("keyword", request.config, _overrides(request, length), run.path)


def clip_ms(seconds: Sequence[float]) -> int:
    """Length of a clip, a multiple of 100 ms, that nearly all recordings of the word fit into."""
    length = 100 * int(np.ceil(10 * np.quantile(seconds, _CLIP_QUANTILE)))
    return min(max(length, _CLIP_MS[0]), _CLIP_MS[1])


def _config(request: Request, length: int) -> KeywordConfig:
    overrides = ["task=keyword", *_overrides(request, length)]
    return load_config(KeywordConfig, request.config, overrides, VARIANTS)


def _overrides(request: Request, length: int) -> list[str]:
    """The settings of the command, with clips of ``length`` milliseconds, then those of the user."""
    return [
        f"data.folder={_quoted(request.clips)}",
        f"data.cache={_quoted(request.output / 'clip_store')}",
        f"data.clip_ms={length}",
        f"data.workers={request.workers}",
        *request.overrides,
    ]


def _quoted(path: object) -> str:
    """A path as a YAML string: without quotes, `` #`` or ``: `` in it would have a meaning."""
    return json.dumps(str(path), ensure_ascii=False)


def _continue(run: RunFolder, request: Request, config: Mapping[str, Any]) -> None:
    """Prepare a run that an earlier call has begun, perhaps elsewhere or with other workers.

    Raises:
        RunError: it has another recipe, or is a model of another word.
    """
    trained = run.config()
    differing = config_differences(trained, config)
    if other := [difference for difference in differing if difference[0] not in _HERE_ONLY]:
        raise RunError(
            f"the model was trained with another recipe ({describe_differences(other)})",
            where=run.path,
            hint=_START_AGAIN,
        )
    word = request.word.hanzi
    if run.labels.is_file() and word not in run.labels.read_text(encoding="utf-8").split():
        raise RunError(f"the model in this folder does not know '{word}'", where=run.path, hint=_START_AGAIN)
    if differing:
        save_yaml(run.config_file, {**trained, "data": config["data"]})
