"""A keyword run's folder → what its export begins with: the model, its labels, and clips to prove it on."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from bundle.check.clips import evenly
from bundle.export.source import Clips, ExportSource, data_section
from data.keywords.clip_cache import load_clips
from data.keywords.clips import UNKNOWN, KeywordClip, KeywordDataConfig, read_keyword_clips
from model_keyword.loading import KeywordModel, accuracies_by_shift, load_keyword_model
from streaming.keyword.detection import SMOOTHING_MS, DetectionConfig
from utils.config import build_config
from utils.errors import UserError
from utils.features.keyword import features_hash
from utils.run_folder.checksum_files import file_hash
from utils.run_folder.run import open_run

CALIBRATION_CLIPS = 200
GOLDEN_CLIPS = 24
SHIFTS_MS = (-200, -100, 0, 100, 200)
"""How test clips are moved in time for the table in ``export.md``."""
_LOUDNESS = 0.05  # of the noise that stands in for golden clips where there are no recordings


def keyword_source(
    run: str | Path,
    weights: str = "best",
    overrides: Sequence[str] = (),
    most_tests: int = 1000,
    smoothing_ms: float = SMOOTHING_MS,
) -> ExportSource:
    """Read a keyword run and its recordings.

    Without recordings the golden clips are noise, no accuracy is measured and there is nothing to calibrate
    int8 with; a note says so.

    Args:
        run: the folder that the training wrote.
        weights: ``best``, ``last`` or a path.
        overrides: ``data.folder=…`` and the like: where the recordings are now.
        most_tests: test clips that accuracies are measured on, spread evenly over the split.
        smoothing_ms: the stream's probabilities are averaged over so long a time; the refractory time
            follows from it and from the clip's length.

    Raises:
        RunError: a part of the run is missing or damaged.
        ConfigError: an override isn't about the data.
    """
    folder = open_run(run, "keyword")
    keyword = load_keyword_model(folder.path, weights)
    data = build_config(KeywordDataConfig, data_section(folder, overrides), where=str(folder.config_file))
    nothing = Clips(np.zeros((0, *keyword.model.inputs[0].shape[1:]), np.float32), np.zeros(0, np.int32))
    try:
        found = read_keyword_clips(data)
        samples, references = _recordings(keyword, data, found["test"] or found["dev"], most_tests)
        tests = Clips(keyword.inputs(samples), references)
        by_shift = accuracies_by_shift(keyword, samples, references, SHIFTS_MS)
        samples, references = _recordings(keyword, data, found["train"], CALIBRATION_CLIPS)
        calibration = Clips(keyword.inputs(samples), references)
        development = None
        if found["test"] and found["dev"]:  # else the dev clips are the tests
            samples, references = _recordings(keyword, data, found["dev"], most_tests)
            development = Clips(keyword.inputs(samples), references)
    except (UserError, OSError) as error:
        print(f"note: no accuracy and no int8, the recordings can't be read: {error}", file=sys.stderr)
        tests = calibration = nothing
        development = None
        by_shift = {}
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
        calibration=calibration,
        tests=tests,
        golden=tests.spread(GOLDEN_CLIPS) if len(tests) else _noise(keyword),
        development=development,
        accuracy_by_shift=by_shift,
    )


def _recordings(
    keyword: KeywordModel, data: KeywordDataConfig, clips: Sequence[KeywordClip], most: int
) -> tuple[np.ndarray, np.ndarray]:
    """At most so many clips of a split, (N, clip_samples) int16, and the indices of their labels, (N,) int32.

    The whole split is read, as training and test do, so that the store they made is found again.
    """
    known = set(keyword.labels)
    clips = [clip if clip.label in known else replace(clip, label=UNKNOWN) for clip in clips]
    clips = [clip for clip in clips if clip.label in known]
    rate = keyword.features.sample_rate
    store = load_clips(clips, rate, keyword.clip_samples, data.cache, data.workers)
    rows = evenly(len(store.clips), most)
    references = [keyword.labels.index(store.clips[row].label) for row in rows]
    return store.samples[rows], np.array(references, np.int32)


def _noise(keyword: KeywordModel) -> Clips:
    rng = np.random.default_rng(0)
    samples = rng.normal(0, _LOUDNESS, (GOLDEN_CLIPS, keyword.clip_samples)).astype(np.float32)
    return Clips(keyword.inputs(samples), np.zeros(GOLDEN_CLIPS, np.int32))
