"""Computes the features of utterances once, in parallel processes, stores them on disk, and reads them by id.

``FOLDER/KIND-SETTINGSHASH/`` holds shards (``data/features/shards.py``), in which features are found by their
keys. A key is a hash of everything that an utterance's features depend on: settings, path, size and
modification time of the recording (of an object in a store, only its address); for augmented copies also
augmentation, seed, id and copy number. So what has changed is computed again. Shards are never changed.
Deleting the folder is always safe, and any number of processes may compute and read in it at the same time:
none computes what another has finished.
"""

import base64
import dataclasses
import hashlib
import json
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, Self

import numpy as np

from data.array_store import JOBS_PER_WORKER, first_failures, process_died, require_space, write_errors
from data.features.augment import AugmentConfig, augment_waveform, forget_recordings
from data.features.shards import (
    FRAME_TYPE,
    KEY,
    MISSING,
    find_rows,
    is_written,
    read_features,
    read_index,
    write_shard,
)
from data.manifest import Utterance
from utils.audio.folders import find_recordings
from utils.audio.reading import read_audio
from utils.errors import AudioError, CacheError, CorpusError, StoreError, UserError
from utils.features.settings import FeatureConfig, feature_bins, settings_hash
from utils.features.speech import extract_features
from utils.files import remove_leftovers, write_json, write_text
from utils.object_store import file_state
from utils.processes import bar_if_long, collect

# A worker holds the features of one shard in memory (80 bins, 5 s each: 80 MB).
SHARD_FEATURES = 1024
_AUGMENT_VERSION = 1  # increase it when the same settings give other copies than before
_KEY_BYTES = 15  # before base64: 20 characters, no padding


@dataclass(frozen=True)
class FeatureCache:
    """Features of a set of utterances, by id; a view of shards on disk.

    Attributes:
        ids: ids of the utterances in their order, each once.
        copies: augmented copies of each utterance; copy 0 is the recording itself.
        bins: values per frame.
        frame_counts: (ids, 1 + copies) int32, frames of each copy.
    """

    ids: tuple[str, ...]
    copies: int
    bins: int
    frame_counts: np.ndarray
    _shards: tuple[str, ...]
    _locations: np.ndarray  # (ids, 1 + copies) LOCATION
    _rows: Mapping[str, int] = field(repr=False)

    @classmethod
    def of_locations(
        cls, ids: Sequence[str], shards: Sequence[Path], locations: np.ndarray, bins: int
    ) -> Self:
        """The features of ``ids`` at (ids, 1 + copies) LOCATION in shards."""
        return cls(
            ids=tuple(ids),
            copies=locations.shape[1] - 1,
            bins=bins,
            frame_counts=np.ascontiguousarray(locations["frames"]),
            _shards=tuple(str(path) for path in shards),
            _locations=locations,
            _rows={name: row for row, name in enumerate(ids)},
        )

    def features(self, utterance: str, copy: int = 0) -> np.ndarray:
        """Features of one utterance, read from disk: (frames, bins) float16, read-only.

        Raises:
            KeyError: the cache was not made for this utterance.
            CacheError: the shard on disk is damaged or missing; it is named.
        """
        location = self._locations[self._rows[utterance], copy]
        return read_features(self._shards[location["shard"]], location, self.bins)

    def rows(self, ids: Sequence[str]) -> np.ndarray:
        """Rows of ``frame_counts`` for these utterances: (ids,) int64."""
        return np.fromiter((self._rows[name] for name in ids), np.int64, len(ids))


class Network(Protocol):
    """A trained network whose outputs are stored in place of the features; can be pickled."""

    @property
    def name(self) -> str:
        """Name of its folder; changes with the weights."""

    @property
    def values(self) -> int:
        """Values in a frame of the outputs."""

    @property
    def time_stride(self) -> int:
        """Feature frames for each frame of the outputs."""

    def __call__(self, features: np.ndarray) -> np.ndarray:
        """(frames, bins) → (frames of the outputs, values) float16."""


def prepare_features(
    utterances: Sequence[Utterance],
    feature_config: FeatureConfig,
    folder: str | Path,
    augment: AugmentConfig | None = None,
    workers: int = 2,
    seed: int = 0,
    network: Network | None = None,
) -> FeatureCache:
    """Compute the features that ``folder`` does not hold yet, and open all of them.

    The random choices of an augmented copy depend on (seed, id, copy number) only, not on order or workers.

    Args:
        utterances: an utterance may occur several times; it is computed once.
        feature_config: the feature settings.
        folder: folder of the cache; may be shared by all corpora, settings and runs.
        augment: number of augmented copies, and how they are made; None for no copies.
        workers: processes; 1 computes in this process.
        seed: seed of the augmented copies.
        network: computes from the features what is stored.

    Raises:
        AudioError: some recordings are not usable. All of them are listed in ``failed.tsv`` in the cache's
            folder; the features of the others are kept.
        CacheError: a worker process died, the folder can't be written, or its disk is too small.
        CorpusError: two recordings have the same id.
    """
    folder = cache_folder(folder, feature_config) if network is None else Path(folder) / network.name
    unique = unique_utterances(utterances)
    settings = ShardSettings(folder, feature_config, augment or AugmentConfig(copies=0), seed, network)
    bins = settings.bins
    keys, failures = feature_keys(unique, feature_config, settings.augment, seed)
    shards, locations = read_index(folder, bins)
    rows = find_rows(locations["key"], keys)  # (ids, 1 + copies)
    missing = (rows == MISSING) & (keys != b"")
    if missing.any():
        _prepare_folder(settings, unique, missing)
        jobs = _jobs(settings, unique, keys, missing, workers)
        items = sum(len(job.utterances) for job in jobs)
        died = process_died("features", folder)
        failures += collect(_compute_shard, jobs, workers, items=items, title="features", died=died)
        shards, locations = read_index(folder, bins)
        rows = find_rows(locations["key"], keys)
    if failures:
        raise unusable(failures, len(unique), folder)
    if (rows == MISSING).any():
        raise CacheError("shards vanished while features were computed", where=folder, hint="run it again")
    return FeatureCache.of_locations([utterance.id for utterance in unique], shards, locations[rows], bins)


def cache_folder(folder: str | Path, features: FeatureConfig) -> Path:
    """Subfolder of the cache ``folder`` for these settings."""
    return Path(folder) / f"{features.kind}-{settings_hash(features)}"


def feature_keys(
    utterances: Sequence[Utterance], features: FeatureConfig, augment: AugmentConfig, seed: int
) -> tuple[np.ndarray, list[tuple[str, str]]]:
    """Keys of all copies.

    Returns:
        (utterances, 1 + copies) KEY, empty where the file is missing; and the missing files as (id, reason).
    """
    copies = range(1, 1 + augment.copies)
    settings = settings_hash(features)
    augmentation = _augment_hash(augment, seed) if augment.copies else ""
    keys: list[bytes] = []
    failures: list[tuple[str, str]] = []
    for utterance in bar_if_long(utterances, "looking for features", " files"):
        try:
            source = _hash(f"{settings}\n{file_state(utterance.audio)}")
        except (OSError, ValueError):  # ValueError: a zero byte in the name
            failures.append((utterance.id, f"no such audio file, {utterance.audio}"))
            keys += [b""] * (1 + augment.copies)
            continue
        keys.append(_key(source))
        for copy in copies:
            altered = source.copy()
            altered.update(f"\n{augmentation}\n{utterance.id}\n{copy}".encode())
            keys.append(_key(altered))
    return np.array(keys, KEY).reshape(len(utterances), 1 + augment.copies), failures


def _augment_hash(augment: AugmentConfig, seed: int) -> str:
    """Hash of what an augmented copy depends on, beside its recording; the number of copies is left out."""
    values = dataclasses.asdict(augment)
    del values["copies"]
    for folder in (augment.noise_folder, augment.room_folder):
        for path in find_recordings(folder) if folder else ():
            state = path.stat()
            values[str(path)] = [state.st_size, state.st_mtime_ns]
    return _key(_hash(json.dumps([_AUGMENT_VERSION, seed, values], sort_keys=True))).decode()


def _hash(source: str) -> hashlib.blake2b:
    return hashlib.blake2b(source.encode("utf-8", "surrogateescape"), digest_size=_KEY_BYTES)


def _key(source: hashlib.blake2b) -> bytes:
    return base64.b64encode(source.digest())


@dataclass(frozen=True)
class ShardSettings:
    """What all shards of a call have in common."""

    folder: Path
    features: FeatureConfig
    augment: AugmentConfig
    seed: int
    network: Network | None = None

    @property
    def bins(self) -> int:
        """Values in a stored frame."""
        return self.network.values if self.network else feature_bins(self.features)

    def bytes_of(self, seconds: float) -> float:
        """Size of the stored frames of some seconds of audio."""
        stride = self.network.time_stride if self.network else 1
        return seconds / (self.features.hop_seconds * stride) * self.bins * FRAME_TYPE.itemsize


@dataclass(frozen=True)
class _Job:
    """One shard to compute: some utterances, and the copies of each that are missing."""

    settings: ShardSettings
    utterances: tuple[Utterance, ...]
    keys: np.ndarray  # (utterances, 1 + copies) KEY
    missing: np.ndarray  # (utterances, 1 + copies) bool


def unique_utterances(utterances: Sequence[Utterance]) -> list[Utterance]:
    """Each utterance once.

    Raises:
        CorpusError: two recordings have the same id.
    """
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


def _prepare_folder(settings: ShardSettings, utterances: Sequence[Utterance], missing: np.ndarray) -> None:
    """Create the folder, clean it up, and check that there is space for what is ``missing``."""
    folder = settings.folder
    with write_errors(folder, "features"):
        write_json(folder / "settings.json", dataclasses.asdict(settings.features))
        remove_leftovers(folder)
    seconds = np.array([utterance.seconds for utterance in utterances]) @ missing.sum(axis=1)
    require_space(
        folder,
        size=settings.bytes_of(seconds),
        content="features",
        hint="free some space, set data.cache to another folder, or make fewer augment.copies",
    )


def _jobs(
    settings: ShardSettings,
    utterances: Sequence[Utterance],
    keys: np.ndarray,
    missing: np.ndarray,
    workers: int,
) -> list[_Job]:
    """Divide the utterances with missing copies into jobs of one shard each.

    The order is random: two processes with the same work then compute about half of it each.
    """
    rows = np.flatnonzero(missing.any(axis=1))
    largest = max(1, SHARD_FEATURES // (1 + settings.augment.copies))
    size = min(largest, math.ceil(len(rows) / (max(workers, 1) * JOBS_PER_WORKER)))
    jobs = [
        _Job(settings, tuple(utterances[row] for row in chunk), keys[chunk], missing[chunk])
        for chunk in np.split(rows, range(size, len(rows), size))
    ]
    return random.sample(jobs, len(jobs))


def _compute_shard(job: _Job) -> tuple[int, list[tuple[str, str]]]:
    """Compute and write one shard: (number of utterances, failures as (id, reason))."""
    settings = job.settings
    if is_written(settings.folder, job.keys[job.missing].tolist()):
        return len(job.utterances), []
    kept, features, failures = compute_copies(job.utterances, job.missing, settings)
    if features:
        write_shard(settings.folder, job.keys[kept][job.missing[kept]].tolist(), features)
    return len(job.utterances), failures


def compute_copies(
    utterances: Sequence[Utterance], wanted: np.ndarray, settings: ShardSettings
) -> tuple[list[int], list[np.ndarray], list[tuple[str, str]]]:
    """Compute features of recordings and of their augmented copies.

    Args:
        utterances: the recordings.
        wanted: (utterances, 1 + copies) bool, which copies.
        settings: feature settings, augmentation and seed.

    Returns:
        Indices of the utterances that can be used, their features in the order of ``wanted``, (frames, bins)
        float16 each, and (id, reason) of the others.
    """
    forget_recordings()
    kept: list[int] = []
    features: list[np.ndarray] = []
    failures: list[tuple[str, str]] = []
    for index, (utterance, copies) in enumerate(zip(utterances, wanted, strict=True)):
        try:
            features += _copies(utterance, np.flatnonzero(copies).tolist(), settings)
            kept.append(index)
        except StoreError:  # another attempt may succeed: the recording is not to blame
            raise
        except UserError as error:
            failures.append((utterance.id, str(error)))
        except Exception as error:
            error.add_note(f"while computing features of utterance '{utterance.id}', {utterance.audio}")
            raise
    return kept, features, failures


def _copies(utterance: Utterance, copies: Sequence[int], settings: ShardSettings) -> list[np.ndarray]:
    """Features of some copies of one recording: (frames, bins) float16 each."""
    sample_rate = settings.features.sample_rate
    samples = read_audio(utterance.audio, sample_rate)
    features = []
    for copy in copies:
        altered = samples
        if copy:
            altered = augment_waveform(
                samples,
                rng=np.random.default_rng([settings.seed, copy, *utterance.id.encode()]),
                config=settings.augment,
                sample_rate=sample_rate,
            )
        frames = extract_features(altered, settings.features)
        features.append(settings.network(frames) if settings.network else frames.astype(FRAME_TYPE))
    return features


def unusable(failures: list[tuple[str, str]], utterances: int, folder: Path) -> AudioError:
    """List the failures in a file; the error that summarises them."""
    path = folder / "failed.tsv"
    failures = sorted(failures)
    write_text(path, "".join(f"{name}\t{reason}\n" for name, reason in failures))
    return AudioError(
        f"{len(failures)} of {utterances} recordings are not usable ({first_failures(failures)})",
        where=path,
        hint="correct them, or remove them from the manifest; if files are missing, prepare the corpus again",
    )
