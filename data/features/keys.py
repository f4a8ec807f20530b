"""Computes the keys by which the features of utterances are found in the cache.

A key is a hash of everything that an utterance's features depend on: settings, path, size and modification
time of the recording (of an object in a store, only its address); for augmented copies also augmentation,
seed, id and copy number.
"""

import base64
import dataclasses
import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from data.features.augment import AugmentConfig
from data.features.shards import KEY
from data.manifest import Utterance
from utils.audio.folders import find_recordings
from utils.features.speech import FeatureConfig, settings_hash
from utils.object_store import address_of
from utils.processes import bar_if_long

_AUGMENT_VERSION = 1  # increase it when the same settings give other copies than before
_KEY_BYTES = 15  # before base64: 20 characters, no padding


def feature_keys(
    utterances: Sequence[Utterance], features: FeatureConfig, augment: AugmentConfig, seed: int
) -> tuple[np.ndarray, list[tuple[str, str]]]:
    """Keys of all copies.

    Returns:
        (utterances, 1 + copies) KEY, empty where the file is missing; and the missing files as (id, reason).
    """
    copies = range(1, 1 + augment.copies)
    settings, working_folder = settings_hash(features), Path.cwd()
    augmentation = _augment_hash(augment, seed) if augment.copies else ""
    keys: list[bytes] = []
    failures: list[tuple[str, str]] = []
    for utterance in bar_if_long(utterances, "looking for features", " files"):
        try:
            source = _hash(f"{settings}\n{_identity(working_folder, utterance.audio)}")
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


def _identity(folder: Path, audio: Path) -> str:
    """What a recording is known by; asking a store for more than the address would take too long."""
    if address := address_of(audio):
        return address
    # Path.absolute takes longer than everything else here, and every training starts with this.
    path = os.path.join(folder, audio)  # noqa: PTH118
    state = os.stat(path)  # noqa: PTH116
    return f"{path}\n{state.st_size}\n{state.st_mtime_ns}"


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
