"""Utterances → their features on disk, computed once in parallel, then read memory-mapped.

``FOLDER/KIND-SETTINGSHASH/`` holds shards (see ``feature_shards.py``). A key is a hash of all that
determines an utterance's features (settings, audio path, size and time; for altered copies also
augmentation, seed, id and copy number): what changed has another key and is computed anew. Shards are
never changed; rows with old keys are never read again. Deleting the folder is always safe.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from tqdm import tqdm

from data.augment import AugmentConfig, augment_waveform, forget_recordings
from data.feature_shards import KEY, MISSING, find_rows, open_shard, read_index, write_shard, writing
from data.manifest import Utterance
from utils.audio import read_audio, recordings_in
from utils.errors import AudioError, CorpusError, UserError
from utils.features import FeatureConfig, extract_features, feature_bins, settings_hash
from utils.files import write_json, write_text
from utils.processes import in_processes

# A worker holds a shard's features in memory while it makes them (80 bins, 5 s each: 80 MB).
_SHARD_FEATURES = 1024
_JOBS_PER_WORKER = 16  # small corpora get smaller shards, so that the workers end together
_FAILURES_SHOWN = 5
_AUGMENT_VERSION = 1  # raise it when the same settings give other copies than before


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
    _shard_of: np.ndarray  # (ids, 1 + copies) int32, index into _shards
    _starts: np.ndarray  # (ids, 1 + copies) int64, first frame in the shard
    _rows: Mapping[str, int] = field(repr=False)

    def features(self, utterance: str, copy: int = 0) -> np.ndarray:
        """Features of one utterance: (frames, bins) float16, memory-mapped, read-only.

        Raises:
            KeyError: the cache was not made for this utterance.
            AudioError: the shard on disk is damaged or gone.
        """
        row = self._rows[utterance]
        start = self._starts[row, copy]
        shard = open_shard(self._shards[self._shard_of[row, copy]], self.bins)
        return shard[start : start + self.frame_counts[row, copy]]

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
            folder can't be written.
        CorpusError: two recordings have the same id.
    """
    folder = Path(folder) / f"{feature_config.kind}-{settings_hash(feature_config)}"
    unique = _unique(utterances)
    augment = augment or AugmentConfig(copies=0)
    with writing(folder):
        write_json(folder / "settings.json", dataclasses.asdict(feature_config))
    keys, failures = _keys(unique, feature_config, augment, seed)
    shards, index, shard_of = read_index(folder, feature_bins(feature_config))
    missing = (find_rows(index["key"], keys) == MISSING) & (keys != b"")
    if missing.any():
        jobs = _jobs(unique, keys, missing, feature_config, augment, seed, folder, workers)
        failures += _run(jobs, int(missing.any(axis=1).sum()), workers)
        shards, index, shard_of = read_index(folder, feature_bins(feature_config))
    if failures:
        raise _failure(failures, len(unique), folder)
    rows = find_rows(index["key"], keys)  # (ids, 1 + copies)
    ids = tuple(utterance.id for utterance in unique)
    return FeatureCache(
        ids=ids,
        copies=augment.copies,
        bins=feature_bins(feature_config),
        frame_counts=index["frames"][rows],
        _shards=tuple(str(path) for path in shards),
        _shard_of=shard_of[rows],
        _starts=index["start"][rows],
        _rows={name: row for row, name in enumerate(ids)},
    )


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
        if other.audio != utterance.audio:
            raise CorpusError(
                f"two recordings have the id '{utterance.id}'",
                where=f"{other.audio} and {utterance.audio}",
                hint="ids must be unique over all manifests that are used together",
            )
    return list(found.values())


def _keys(
    utterances: Sequence[Utterance], features: FeatureConfig, augment: AugmentConfig, seed: int
) -> tuple[np.ndarray, list[tuple[str, str]]]:
    """Keys of all copies, (ids, 1 + copies) KEY; empty where the file is missing, and those failures."""
    keys = np.zeros((len(utterances), 1 + augment.copies), KEY)
    failures: list[tuple[str, str]] = []
    settings = settings_hash(features)
    chance = _augment_hash(augment, seed) if augment.copies else ""
    for row, utterance in enumerate(utterances):
        path = Path(utterance.audio).absolute()
        try:
            state = path.stat()
        except OSError:
            failures.append((utterance.id, f"no such audio file, {path}"))
            continue
        source = f"{settings}\n{path}\n{state.st_size}\n{state.st_mtime_ns}"
        keys[row, 0] = _key(source)
        for copy in range(1, augment.copies + 1):
            keys[row, copy] = _key(f"{source}\n{chance}\n{utterance.id}\n{copy}")
    return keys, failures


def _augment_hash(augment: AugmentConfig, seed: int) -> str:
    """Of all that shapes an altered copy, the noise and room recordings included; not of how many copies."""
    values = dataclasses.asdict(augment)
    del values["copies"]
    for folder in (augment.noise_folder, augment.room_folder):
        for path in recordings_in(folder) if folder else ():
            state = path.stat()
            values[str(path)] = [state.st_size, state.st_mtime_ns]
    return _key(json.dumps([_AUGMENT_VERSION, seed, values], sort_keys=True)).decode()


def _key(source: str) -> bytes:
    return base64.b64encode(hashlib.blake2b(source.encode(), digest_size=15).digest())


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
    """Cut the utterances with missing copies into jobs of one shard each."""
    rows = np.flatnonzero(missing.any(axis=1))
    largest = max(1, _SHARD_FEATURES // (1 + augment.copies))
    size = min(largest, math.ceil(len(rows) / (max(workers, 1) * _JOBS_PER_WORKER)))
    return [
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
        hint="put them right, or take them out of the manifest",
    )
