"""Checks a feature cache: damaged shards, outdated features, too little disk space."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from data.array_store import free_bytes
from data.features.augment import AugmentConfig
from data.features.cache import cache_folder
from data.features.keys import feature_keys
from data.features.shards import (
    FRAME_TYPE,
    KEY,
    MISSING,
    find_rows,
    indexed_shards,
    read_features,
    read_locations,
)
from preflight.findings import ERROR, WARNING, Finding
from preflight.listings import Line
from utils.errors import CacheError
from utils.features.speech import FeatureConfig, feature_bins

_NEARLY_FULL = 0.9  # fraction of the free disk space; features that need more are reported


@dataclass(frozen=True)
class CacheState:
    """The state of a feature cache for the recordings of a recipe.

    Attributes:
        folder: folder of these feature settings.
        damaged: shards that cannot be used, with the reason.
        cached: number of utterances with all copies.
        missing: number of utterances without a copy.
        bytes_needed: size of the missing features.
        bytes_free: free space on the disk of the folder.
    """

    folder: Path
    damaged: tuple[tuple[str, str], ...]
    cached: int
    missing: int
    bytes_needed: int
    bytes_free: int


def cache_state(
    lines: Sequence[tuple[Line, AugmentConfig | None]],
    features: FeatureConfig,
    folder: str | Path,
    seed: int,
    thorough: bool = False,
) -> CacheState:
    """Read the state of a cache without changing it.

    Args:
        lines: lines of the manifests, each with the augmentation of its list.
        features: the settings.
        folder: folder of the cache, as in the recipe.
        seed: seed of the recipe.
        thorough: read all features and compare checksums.
    """
    features_folder = cache_folder(folder, features)
    bins = feature_bins(features)
    known, damaged = _known_keys(features_folder, bins, thorough)
    cached = missing = needed = 0
    for augment in {augment for _, augment in lines}:
        own = list({line.id: line for line, used in lines if used == augment}.values())
        keys, _ = feature_keys([line.utterance() for line in own], features, augment or AugmentConfig(), seed)
        absent = (find_rows(known, keys) == MISSING) & (keys != b"")  # (lines, 1 + copies)
        cached += int((~absent.any(axis=1) & (keys[:, 0] != b"")).sum())
        missing += int(absent.any(axis=1).sum())
        for line, copies in zip(own, absent.sum(axis=1).tolist(), strict=True):
            if copies and line.has_length:
                needed += copies * line.frames(features) * bins * FRAME_TYPE.itemsize
    return CacheState(features_folder, tuple(damaged), cached, missing, needed, free_bytes(features_folder))


def needs_room(features: FeatureConfig, hours: float, folder: str | Path) -> bool:
    """Whether the features of a number of hours, none of them cached, could fill the disk."""
    frames = hours * 3600 * features.sample_rate / features.hop_samples
    return frames * feature_bins(features) * FRAME_TYPE.itemsize > _NEARLY_FULL * free_bytes(Path(folder))


def damaged_shard(state: CacheState) -> Iterator[Finding]:
    """Feature shards that are truncated or cannot be read."""
    for name, reason in state.damaged:
        yield Finding(
            WARNING,
            str(state.folder),
            name,
            problem="a damaged shard of features",
            advice="delete it: its features are computed again",
            detail=reason,
        )


def outdated_features(state: CacheState) -> Iterator[Finding]:
    """Recordings without features in a cache with features of others: new or changed recordings."""
    if state.cached and state.missing:
        yield Finding(
            WARNING,
            str(state.folder),
            "",
            problem="recordings that are new or have changed since the features were made",
            advice="no action needed: their features are computed when the training starts",
            detail=f"{state.missing:,} of {state.cached + state.missing:,}",
        )


def disk_space(state: CacheState) -> Iterator[Finding]:
    """Features that do not fit on the disk."""
    if state.bytes_needed > _NEARLY_FULL * state.bytes_free:
        yield Finding(
            ERROR if state.bytes_needed > state.bytes_free else WARNING,
            str(state.folder),
            "",
            problem="not enough disk space for the features",
            advice="free some space, or put data.cache on another disk",
            detail=f"{state.bytes_needed / 2**30:.1f} GiB needed, {state.bytes_free / 2**30:.1f} GiB free",
        )


def _known_keys(folder: Path, bins: int, thorough: bool) -> tuple[np.ndarray, list[tuple[str, str]]]:
    """Keys of all intact shards, (rows,) KEY, and the damaged shards as (name, reason)."""
    keys, damaged = [np.empty(0, KEY)], []
    for index, shard in indexed_shards(folder):
        try:
            locations = read_locations(index, shard, bins, 0)
            for location in locations if thorough else ():
                read_features(str(shard), location, bins)
        except CacheError as error:
            damaged.append((shard.name, error.message))
        except (OSError, ValueError, EOFError) as error:
            damaged.append((shard.name, " ".join(str(error).split())))
        else:
            keys.append(locations["key"])
    return np.concatenate(keys), damaged


CACHE = (damaged_shard, outdated_features, disk_space)
"""The checks of a feature cache."""
