"""Utterances → their features on disk, computed once in parallel, then read as they are needed.

``FOLDER/KIND-SETTINGSHASH/`` holds shards (see ``feature_shards.py``), their features by key (see
``feature_keys.py``): what changed has another key and is computed anew. Shards are never changed; rows with
old keys are never read again. Deleting the folder is always safe, and any number of processes may compute
and read in it at once: what one has finished, the others don't compute.
"""

from __future__ import annotations

import dataclasses
import math
import random
import shutil
from collections.abc import Mapping, Sequence
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from tqdm import tqdm

from data.features.augment import AugmentConfig, augment_waveform, forget_recordings
from data.features.keys import feature_keys
from data.features.shards import (
    MISSING,
    find_rows,
    is_written,
    read_features,
    read_index,
    remove_left_over,
    write_shard,
    writing,
)
from data.manifest import Utterance
from utils.audio.reading import read_audio
from utils.errors import AudioError, CorpusError, UserError
from utils.features.speech import FeatureConfig, extract_features, feature_bins, settings_hash
from utils.files import write_json, write_text
from utils.processes import in_processes

# A worker holds a shard's features in memory while it makes them (80 bins, 5 s each: 80 MB).
_SHARD_FEATURES = 1024
_JOBS_PER_WORKER = 16  # small corpora get smaller shards, so that the workers end together
_FAILURES_SHOWN = 5


@dataclass(frozen=True)
class FeatureCache:
    """Features of the utterances it was made for, by id; a view of shards on disk.

    Attributes:
        ids: in the order of the utterances given, each once.
        copies: altered copies of each utterance; copy 0 is the recording itself.
        bins: values a frame.
        frame_counts: (ids, 1 + copies) int32, frames of each copy.
    """

    ids: tuple[str, ...]
    copies: int
    bins: int
    frame_counts: np.ndarray
    _shards: tuple[str, ...]
    _places: np.ndarray  # (ids, 1 + copies) PLACE
    _rows: Mapping[str, int] = field(repr=False)

    def features(self, utterance: str, copy: int = 0) -> np.ndarray:
        """Features of one utterance, read from the disk: (frames, bins) float16, read-only.

        Raises:
            KeyError: the cache was not made for this utterance.
            AudioError: the shard on disk is damaged or gone; it is named.
        """
        place = self._places[self._rows[utterance], copy]
        shard = self._shards[place["shard"]]
        return read_features(shard, int(place["offset"]), int(place["frames"]), self.bins, int(place["sum"]))

    def frames(self, utterance: str, copy: int = 0) -> int:
        """Number of frames of one utterance."""
        return int(self.frame_counts[self._rows[utterance], copy])

    def rows(self, ids: Sequence[str]) -> np.ndarray:
        """Rows of ``frame_counts`` for these utterances: (ids,) int64."""
        return np.fromiter((self._rows[name] for name in ids), np.int64, len(ids))


def prepare_features(
    utterances: Sequence[Utterance],
    feature_config: FeatureConfig,
    folder: str | Path,
    augment: AugmentConfig | None = None,
    workers: int = 2,
    seed: int = 0,
) -> FeatureCache:
    """Compute the features that are not in ``folder`` yet, and open them all.

    An altered copy's chance depends on (seed, id, copy number) alone, not on order or workers.

    Args:
        utterances: an utterance may be there several times; it is computed once.
        feature_config: the feature settings.
        folder: of the cache; may be shared by all corpora, settings and runs.
        augment: how many altered copies are made, and how; None for none.
        workers: processes; 1 computes in this one.
        seed: of the altered copies.

    Raises:
        AudioError: some recordings are not usable (all of them are in ``failed.tsv`` in the cache's
            folder; the others stay computed), a worker process died, or the
            folder can't be written or is on a disk too small.
        CorpusError: two recordings have the same id.
    """
    folder = cache_folder(folder, feature_config)
    unique = _unique(utterances)
    augment = augment or AugmentConfig(copies=0)
    bins = feature_bins(feature_config)
    keys, failures = feature_keys(unique, feature_config, augment, seed)
    shards, places = read_index(folder, bins)
    rows = find_rows(places["key"], keys)  # (ids, 1 + copies)
    missing = (rows == MISSING) & (keys != b"")
    if missing.any():
        _prepare_folder(folder, feature_config, unique, missing)
        jobs = _jobs(unique, keys, missing, feature_config, augment, seed, folder, workers)
        failures += _run(jobs, int(missing.any(axis=1).sum()), workers)
        shards, places = read_index(folder, bins)
        rows = find_rows(places["key"], keys)
    if failures:
        raise _failure(failures, len(unique), folder)
    if (rows == MISSING).any():
        raise AudioError("shards vanished while features were computed", where=folder, hint="run it again")
    ids = tuple(utterance.id for utterance in unique)
    found = places[rows]
    return FeatureCache(
        ids=ids,
        copies=augment.copies,
        bins=bins,
        frame_counts=np.ascontiguousarray(found["frames"]),
        _shards=tuple(str(path) for path in shards),
        _places=found,
        _rows={name: row for row, name in enumerate(ids)},
    )


def cache_folder(folder: str | Path, features: FeatureConfig) -> Path:
    """Where in the cache ``folder`` the shards of these settings lie."""
    return Path(folder) / f"{features.kind}-{settings_hash(features)}"


@dataclass(frozen=True)
class _Job:
    """What one worker computes into one shard: some utterances, and of each the copies that are missing."""

    folder: Path
    ids: tuple[str, ...]
    audio: tuple[Path, ...]
    keys: np.ndarray  # (ids, 1 + copies) KEY
    missing: np.ndarray  # (ids, 1 + copies) bool
    features: FeatureConfig
    augment: AugmentConfig
    seed: int


def _unique(utterances: Sequence[Utterance]) -> list[Utterance]:
    found: dict[str, Utterance] = {}
    for utterance in utterances:
        other = found.setdefault(utterance.id, utterance)
        if other is not utterance and other.audio != utterance.audio:
            raise CorpusError(
                f"two recordings have the id '{utterance.id}'",
                where=f"{other.audio} and {utterance.audio}",
                hint="ids must be unique over all manifests that are used together",
            )
    return list(found.values())


def _prepare_folder(
    folder: Path, features: FeatureConfig, utterances: Sequence[Utterance], missing: np.ndarray
) -> None:
    """Make the folder, tidy it, and see that what is ``missing`` (ids, 1 + copies) has room in it."""
    with writing(folder):
        write_json(folder / "settings.json", dataclasses.asdict(features))
        remove_left_over(folder)
        free = shutil.disk_usage(folder).free
    seconds = np.array([utterance.seconds for utterance in utterances]) @ missing.sum(axis=1)
    needed = seconds * 1000 / features.hop_ms * feature_bins(features) * np.float16().itemsize
    if needed > free:
        raise AudioError(
            f"the features need {needed / 1e9:.1f} GB, {free / 1e9:.1f} GB are free",
            where=folder,
            hint="free some space, keep the features in another folder, or make fewer augment.copies",
        )


def _jobs(
    utterances: Sequence[Utterance],
    keys: np.ndarray,
    missing: np.ndarray,
    features: FeatureConfig,
    augment: AugmentConfig,
    seed: int,
    folder: Path,
    workers: int,
) -> list[_Job]:
    """Cut the utterances with missing copies into jobs of one shard each.

    Their order is random: of two processes with the same work, each then does about half of it.
    """
    rows = np.flatnonzero(missing.any(axis=1))
    largest = max(1, _SHARD_FEATURES // (1 + augment.copies))
    size = min(largest, math.ceil(len(rows) / (max(workers, 1) * _JOBS_PER_WORKER)))
    jobs = [
        _Job(
            folder=folder,
            ids=tuple(utterances[row].id for row in chunk),
            audio=tuple(utterances[row].audio for row in chunk),
            keys=keys[chunk],
            missing=missing[chunk],
            features=features,
            augment=augment,
            seed=seed,
        )
        for chunk in np.split(rows, range(size, len(rows), size))
    ]
    return random.sample(jobs, len(jobs))


def _run(jobs: list[_Job], utterances: int, workers: int) -> list[tuple[str, str]]:
    """Do all jobs, show the progress, return the failures (id, reason)."""
    failures: list[tuple[str, str]] = []
    try:
        with tqdm(total=utterances, desc="features", unit="utt", disable=None) as progress:
            for done, failed in in_processes(_compute_shard, jobs, workers):
                failures += failed
                progress.update(done)
    except BrokenExecutor as error:
        raise AudioError(
            "a process that computes features died",
            where=jobs[0].folder,
            hint="out of memory, or a recording that crashes the decoder: run it again, done work is kept; "
            "with one worker it shows where it stops",
        ) from error
    return failures


def _compute_shard(job: _Job) -> tuple[int, list[tuple[str, str]]]:
    """Compute and write one shard: (utterances seen, failures as (id, reason))."""
    if is_written(job.folder, job.keys[job.missing].tolist()):
        return len(job.ids), []
    forget_recordings()
    features: list[np.ndarray] = []
    keys: list[bytes] = []
    failures: list[tuple[str, str]] = []
    for name, audio, row_keys, missing in zip(job.ids, job.audio, job.keys, job.missing, strict=True):
        copies = np.flatnonzero(missing).tolist()
        try:
            features += _copies(name, audio, copies, job)
            keys += row_keys[copies].tolist()
        except UserError as error:
            failures.append((name, str(error)))
        except Exception as error:
            error.add_note(f"while computing features of utterance '{name}', {audio}")
            raise
    if features:
        write_shard(job.folder, keys, features)
    return len(job.ids), failures


def _copies(name: str, audio: Path, copies: Sequence[int], job: _Job) -> list[np.ndarray]:
    """Features of some copies of one recording: (frames, bins) float16 each."""
    samples = read_audio(audio, job.features.sample_rate)
    made = []
    for copy in copies:
        altered = samples
        if copy:
            rng = np.random.default_rng([job.seed, copy, *name.encode()])
            altered = augment_waveform(samples, rng, job.augment, job.features.sample_rate)
        made.append(extract_features(altered, job.features).astype(np.float16))
    return made


def _failure(failures: list[tuple[str, str]], utterances: int, folder: Path) -> AudioError:
    """List the failures in a file, and make the error that sums them up."""
    path = folder / "failed.tsv"
    write_text(path, "".join(f"{name}\t{reason}\n" for name, reason in sorted(failures)))
    shown = "; ".join(f"{name}: {reason}" for name, reason in sorted(failures)[:_FAILURES_SHOWN])
    more = "; …" if len(failures) > _FAILURES_SHOWN else ""
    return AudioError(
        f"{len(failures)} of {utterances} recordings are not usable ({shown}{more})",
        where=path,
        hint="put them right, or take them out of the manifest; are files gone? prepare the corpus again",
    )
