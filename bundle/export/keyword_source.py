"""Reads a keyword run folder for an export: model, labels, clips to calibrate, tune and check artefacts."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from bundle.check.scoring import evenly
from bundle.export.source import Clips, ExportSource, read_splits
from data.keywords.clip_cache import load_clips
from data.keywords.clips import UNKNOWN, KeywordClip, KeywordDataConfig, read_keyword_clips
from model_keyword.loading import (
    KeywordModel,
    load_keyword_model,
    refuse_other_lengths,
)
from streaming.keyword import SMOOTHING_MS, DetectionConfig
from utils.config import build_config
from utils.features.keyword import features_hash
from utils.run_folder.checksum_files import file_hash
from utils.run_folder.run import open_run

CALIBRATION_CLIPS = 200  # of the training split, for int8
GOLDEN_CLIPS = 24  # on which every artefact is compared with the model
_LOUDNESS = 0.05  # of the noise that replaces golden clips if there are no recordings


def keyword_source(
    run: str | Path,
    weights: str = "best",
    overrides: Sequence[str] = (),
    max_tests: int = 1000,
    smoothing_ms: float = SMOOTHING_MS,
    samples: bool = False,
) -> ExportSource:
    """Read a keyword run and its recordings.

    Without recordings the golden clips are noise, no accuracy is measured and int8 can't be calibrated; a
    note says so.

    Args:
        run: run folder.
        weights: ``best``, ``last`` or a path.
        overrides: such as ``data.folder=…``, for recordings that were moved.
        max_tests: maximum number of test clips, and of dev clips, evenly spaced.
        smoothing_ms: time over which the stream's probabilities are averaged; the refractory time of the
            exported settings is derived from it and from the clip's length.
        samples: whether the exported model takes samples and computes the features itself.

    Raises:
        RunError: a file of the run is missing or damaged.
        ConfigError: an override concerns another section, or changes the lengths of clip and context; or the
            features can't be computed inside a model.
    """
    folder = open_run(run, "keyword")
    keyword = load_keyword_model(folder.path, weights, samples)
    data = build_config(KeywordDataConfig, folder.data_section(overrides), where=str(folder.config_file))
    refuse_other_lengths(keyword, data.clip_ms, data.context_ms, folder.path)

    def read(clips: Sequence[KeywordClip], count: int) -> Clips:
        sounds, references = _recordings(keyword, data, clips, count)
        return Clips(keyword.inputs(sounds), references)

    empty = Clips(np.zeros((0, *keyword.model.inputs[0].shape[1:]), np.float32), np.zeros(0, np.int32))
    counts = {"test": max_tests, "dev": max_tests, "train": CALIBRATION_CLIPS}
    splits = read_splits(lambda: read_keyword_clips(data), read, counts, empty)
    features = keyword.features
    clip_ms = 1000 * keyword.clip_samples / features.sample_rate
    return ExportSource(
        kind="keyword",
        model=keyword.model,
        features=asdict(features),
        features_hash=features_hash(features),
        labels=keyword.labels,
        decoding=asdict(DetectionConfig.for_clip(clip_ms, smoothing_ms)),
        config_hash=file_hash(folder.config_file),
        frame_seconds=features.stride_samples / features.sample_rate,
        **splits,
        golden=splits["tests"].spread(GOLDEN_CLIPS) or _noise(keyword),
        weights_hash=file_hash(folder.weights(weights)),
    )


def _recordings(
    keyword: KeywordModel, data: KeywordDataConfig, clips: Sequence[KeywordClip], count: int
) -> tuple[np.ndarray, np.ndarray]:
    """At most ``count`` clips of a split, (N, clip_samples) int16, and their label indices, (N,) int32.

    The whole split is read, as in training and test, so that their cached clips are used.
    """
    known = set(keyword.labels)
    clips = [clip if clip.label in known else replace(clip, label=UNKNOWN) for clip in clips]
    clips = [clip for clip in clips if clip.label in known]
    rate = keyword.features.sample_rate
    store = load_clips(clips, rate, keyword.clip_samples, data.cache, data.workers)
    rows = evenly(len(store.clips), count)
    references = [keyword.labels.index(store.clips[row].label) for row in rows]
    return store.samples[rows], np.array(references, np.int32)


def _noise(keyword: KeywordModel) -> Clips:
    rng = np.random.default_rng(0)
    samples = rng.normal(0, _LOUDNESS, (GOLDEN_CLIPS, keyword.clip_samples)).astype(np.float32)
    return Clips(keyword.inputs(samples), np.zeros(GOLDEN_CLIPS, np.int32))
