"""A keyword run and a split, or lists → what its model says of each clip: for ``test.py keyword``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from data.keywords.clip_cache import load_clips
from data.keywords.clips import (
    SILENCE,
    SPLITS,
    UNKNOWN,
    KeywordClip,
    KeywordDataConfig,
    read_keyword_clips,
    read_listed_clips,
)
from model_keyword.loading import KeywordModel, accuracies_by_shift, load_keyword_model
from utils.config import build_config, with_overrides
from utils.errors import ConfigError, CorpusError
from utils.features.keyword import KeywordFeatureConfig
from utils.run_folder.run import RunFolder, open_run
from utils.softmax import softmax

_SECTIONS = ("features", "data")  # what a test may be asked to take from elsewhere


@dataclass(frozen=True)
class Heard:
    """Clips with what a model says of them.

    Attributes:
        model: with its labels.
        clips: in the order of the rows.
        probabilities: (clips, labels) float32.
        rejected: clips that can't be used.
        accuracy_by_shift: accuracy of the clips moved in time, by milliseconds.
    """

    model: KeywordModel
    clips: Sequence[KeywordClip]
    probabilities: np.ndarray
    rejected: int
    accuracy_by_shift: Mapping[int, float]


def hear_split(
    run: str | Path,
    split: str,
    weights: str = "best",
    overrides: Sequence[str] = (),
    manifests: Sequence[Path] = (),
    shifts_ms: Sequence[int] = (),
) -> Heard:
    """Recognise the clips of a split that the run's config names, or of these manifests.

    Args:
        run: a keyword run.
        split: ``train``, ``dev`` or ``test``.
        weights: ``best``, ``last`` or a path.
        overrides: ``data.folder=…`` and the like, where the recordings are now; ``features.…``, which must
            be as they were in the training.
        manifests: to be recognised instead of the split, every clip of them and no other.
        shifts_ms: the accuracy is measured again with the clips moved by so many milliseconds.

    Raises:
        ConfigError: the features differ from those of the training, or something else is asked for.
        RunError, CorpusError, AudioError: see the message.
    """
    folder = open_run(run, "keyword")
    for override in overrides:
        if override.partition(".")[0] not in _SECTIONS:
            hint = "a test may be given data.* (and features.*, as they were in the training)"
            raise ConfigError(f"'{override}' can't be changed after the training", hint=hint)
    model = load_keyword_model(folder.path, weights, _features(folder, overrides))
    data, rate = _data(folder, overrides), model.features.sample_rate
    clips = _clips(data, split, manifests, model.labels)
    store = load_clips(clips, rate, model.clip_samples, data.cache, data.workers)
    references = np.array([model.labels.index(clip.label) for clip in store.clips])
    by_shift = accuracies_by_shift(model, store.samples, references, shifts_ms)
    probabilities = softmax(model.logits(store.samples))
    return Heard(model, store.clips, probabilities, len(store.rejected), by_shift)


def _features(folder: RunFolder, overrides: Sequence[str]) -> KeywordFeatureConfig:
    """The settings asked for: the run's own, but for what the overrides say."""
    own = [override for override in overrides if override.startswith("features.")]
    trained = folder.config().get("features") or {}
    if any(override.startswith("features.kind=") for override in own):
        trained = {}  # another kind has other usual values
    values = with_overrides({"features": trained}, own)["features"]
    return build_config(KeywordFeatureConfig, values, where=f"{folder.config_file} with {' '.join(own)}")


def _data(folder: RunFolder, overrides: Sequence[str]) -> KeywordDataConfig:
    own = [override for override in overrides if override.startswith("data.")]
    values = with_overrides({"data": folder.config().get("data") or {}}, own)["data"]
    return build_config(KeywordDataConfig, values, where=f"{folder.config_file} with {' '.join(own)}")


def _clips(
    data: KeywordDataConfig, split: str, manifests: Sequence[Path], labels: Sequence[str]
) -> list[KeywordClip]:
    """The clips to recognise; a word without a label of its own is ``_unknown_`` if the model has that label.

    Manifests are taken as they are; a split also has the silence and the share of unknown words that the
    run's config asks for.
    """
    if manifests:
        found, where = read_listed_clips(manifests), ", ".join(map(str, manifests))
        hint = "list recordings in the manifest"
    else:
        found, where = read_keyword_clips(data)[split], f"data.{split}"
        hint = f"choose another split: {', '.join(name for name in SPLITS if name != split)}"
        if SILENCE not in labels:
            found = [clip for clip in found if clip.label != SILENCE]
    if not found:
        raise CorpusError("there are no clips", where=where, hint=hint)
    strange = sorted({clip.label for clip in found} - set(labels))
    if strange and UNKNOWN not in labels:
        what = f"the model has no label for {', '.join(strange[:5])}{' …' * (len(strange) > 5)}"
        raise CorpusError(what, where=where, hint=f"it knows {', '.join(labels)}")
    return [replace(clip, label=UNKNOWN) if clip.label in strange else clip for clip in found]
