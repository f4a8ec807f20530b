"""Packs the corpora of manifests: shards of features with their transcripts, in random order, and a list.

A packed corpus is for training on more utterances than fit into memory: nothing here or in the reader
(``data/batches/packed_source.py``) grows with the corpus but 24 bytes an utterance while it is made, and a
line of ``shards.tsv`` a shard. A folder holds

- ``NAME.npy`` and ``NAME.index.npy``, a feature shard (``data/features/shards.py``), its utterances drawn at
  random from the whole corpus, and ``NAME.tsv``, their manifest, in the same order;
- ``shards.tsv``: name, utterances and frames of each shard, and the CRC-32 of its manifest;
- ``packed.json``: the settings, the totals, and syllables that are not in the inventory of Mandarin;
- ``packed.sha256``, written last: the checksums of these two.

The same command goes on where a killed one stopped, and takes over corrected transcripts. With ``--cluster``
the nodes of a Ray cluster work.
"""

import dataclasses
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from data.array_store import process_died, require_space, write_errors
from data.features.augment import AugmentConfig
from data.features.cache import SHARD_FEATURES, ShardSettings, compute_copies, feature_keys, unusable
from data.features.shards import is_written, shard_paths, write_shard
from data.manifest import Utterance, find_lines, read_ids, read_lines, write_manifest
from utils.errors import CorpusError
from utils.features.settings import FeatureConfig
from utils.files import remove_leftovers, write_json, write_text
from utils.mandarin.pinyin import full_inventory
from utils.processes import collect
from utils.run_folder.checksum_files import record

LIST, SETTINGS, CHECKSUMS = "shards.tsv", "packed.json", "packed.sha256"
MAX_UNUSABLE = 0.05  # of the utterances; more are an error
_SAMPLED = 200  # utterances whose mean length gives an estimate of the corpus's size


@dataclass(frozen=True)
class _Job:
    """One shard to write: where its utterances are in each manifest."""

    settings: ShardSettings
    number: int
    manifests: tuple[str, ...]
    starts: tuple[np.ndarray, ...]


@dataclass(frozen=True)
class _Shard:
    """A written shard."""

    name: str
    utterances: int
    frames: int
    crc: int  # of its manifest
    syllables: frozenset[str]  # beside the inventory of Mandarin


def pack_corpus(
    manifests: Sequence[str | Path],
    folder: Path,
    features: FeatureConfig,
    augment: AugmentConfig,
    workers: int = 2,
    seed: int = 0,
) -> dict[str, Any]:
    """Write a packed corpus; returns what ``packed.json`` holds.

    Recordings that can't be used are left out and listed in ``failed.tsv``.

    Args:
        manifests: of the corpus; their ids must differ.
        folder: of the packed corpus.
        features: the feature settings.
        augment: augmented copies of each utterance, see :func:`data.features.cache.prepare_features`.
        workers: processes.
        seed: of the order and of the augmented copies.

    Raises:
        CorpusError: a manifest is wrong, two utterances have the same id, or all manifests are empty.
        AudioError: more than :data:`MAX_UNUSABLE` of the recordings can't be used.
        CacheError: the folder can't be written, or its disk is too small.
    """
    paths = tuple(map(str, manifests))
    lines = [find_lines(path) for path in paths]
    total = sum(map(len, lines))
    if not total:
        raise CorpusError("there is no utterance to pack", where=", ".join(paths))
    _require_distinct_ids(paths)
    settings = ShardSettings(folder, features, augment, seed)
    _prepare_folder(settings, paths, lines)
    order = np.random.default_rng(seed).permutation(total)
    size = max(1, SHARD_FEATURES // (1 + augment.copies))
    jobs = [
        _Job(settings, start // size, paths, _starts(np.sort(order[start : start + size]), lines))
        for start in range(0, total, size)
    ]
    died = process_died("packed features", folder)
    found = collect(_write_packed, jobs, workers, items=total, title="packed features", died=died)
    failures = sorted(chain.from_iterable(failed for _, failed in found))
    write_text(folder / "failed.tsv", "".join(f"{name}\t{reason}\n" for name, reason in failures))
    if len(failures) > MAX_UNUSABLE * total:
        raise unusable(failures, total, folder)
    shards = sorted((shard for shard, _ in found if shard), key=lambda shard: shard.name)
    rows = [f"{shard.name}\t{shard.utterances}\t{shard.frames}\t{shard.crc}\n" for shard in shards]
    write_text(folder / LIST, "".join(rows))
    summary = {
        "features": dataclasses.asdict(features),
        "augment": dataclasses.asdict(augment),
        "utterances": sum(shard.utterances for shard in shards),
        "left_out": len(failures),
        "syllables": sorted(frozenset().union(*(shard.syllables for shard in shards))),
    }
    write_json(folder / SETTINGS, summary)
    record(folder / CHECKSUMS, [folder / LIST, folder / SETTINGS])
    return summary


def _require_distinct_ids(paths: Sequence[str]) -> None:
    """Raise a CorpusError if two utterances have the same id; needs 8 bytes an utterance."""
    hashes = np.fromiter((hash(name) for path in paths for name in read_ids(path)), np.int64)
    hashes.sort()
    repeated = set(hashes[1:][hashes[1:] == hashes[:-1]].tolist())
    if not repeated:
        return
    found: dict[str, str] = {}
    for path in paths:
        for name in read_ids(path):
            if hash(name) in repeated and name in found:  # two different ids may have the same hash
                raise CorpusError(
                    f"two utterances have the id '{name}'",
                    where=path if found[name] == path else f"{found[name]} and {path}",
                    hint="ids must be unique over all manifests that are packed together",
                )
            if hash(name) in repeated:
                found[name] = path


def _prepare_folder(settings: ShardSettings, paths: Sequence[str], lines: Sequence[np.ndarray]) -> None:
    """Create the folder, clean it up, and check that there is space for what it lacks."""
    folder = settings.folder
    with write_errors(folder, "packed features"):
        folder.mkdir(parents=True, exist_ok=True)
        remove_leftovers(folder)
        (folder / CHECKSUMS).unlink(missing_ok=True)
    seconds = 0.0
    for path, starts in zip(paths, lines, strict=True):
        sampled = read_lines(path, starts[:: -(-len(starts) // _SAMPLED) or 1])
        seconds += sum(utterance.seconds for utterance in sampled) / max(len(sampled), 1) * len(starts)
    size = settings.bytes_of(seconds * (1 + settings.augment.copies))
    written = sum(path.stat().st_size for path in folder.glob("*.npy"))
    require_space(folder, max(0.0, size - written), "packed features", "free some space")


def _starts(numbers: np.ndarray, lines: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
    """Numbers of utterances in all manifests together, ascending → where their lines begin in each."""
    ends = np.cumsum([len(starts) for starts in lines])
    parts = np.split(numbers, np.searchsorted(numbers, ends[:-1]))
    return tuple(
        starts[part - (end - len(starts))] for starts, part, end in zip(lines, parts, ends, strict=True)
    )


def _write_packed(job: _Job) -> tuple[int, list[tuple[_Shard | None, list[tuple[str, str]]]]]:
    """Write a shard, or of one that is there only the transcripts.

    Returns:
        Number of utterances, and the shard with its failures.
    """
    settings = job.settings
    pairs = zip(job.manifests, job.starts, strict=True)
    utterances = [utterance for path, starts in pairs for utterance in read_lines(path, starts)]
    order = np.random.default_rng([settings.seed, job.number]).permutation(len(utterances))
    utterances = [utterances[index] for index in order]
    keys, _ = feature_keys(utterances, settings.features, settings.augment, settings.seed)
    if is_written(settings.folder, keys.ravel().tolist()):
        return len(utterances), [(_with_transcripts(settings.folder, keys, utterances), [])]
    kept, features, failures = compute_copies(utterances, np.full(keys.shape, True), settings)
    if not kept:
        return len(utterances), [(None, failures)]
    write_shard(settings.folder, keys[kept].ravel().tolist(), features)
    usable = [utterances[row] for row in kept]
    return len(utterances), [(_with_transcripts(settings.folder, keys[kept], usable), failures)]


def _with_transcripts(folder: Path, keys: np.ndarray, utterances: Sequence[Utterance]) -> _Shard:
    """The shard of (utterances, 1 + copies) keys; its manifest is written, also where the shard was there.

    The keys do not depend on the transcripts, which may have been corrected since the shard was written.
    """
    transcripts = shard_paths(folder, keys.ravel().tolist())[0].with_suffix(".tsv")
    with write_errors(folder, "packed features"):
        write_manifest(transcripts, utterances)
    frames = int(np.load(transcripts.with_suffix(".index.npy"))["frames"].sum())
    syllables = frozenset(syllable for utterance in utterances for syllable in utterance.pinyin)
    syllables -= frozenset(full_inventory())  # a vocabulary has these anyway
    crc = zlib.crc32(transcripts.read_bytes())
    return _Shard(transcripts.stem, len(utterances), frames, crc, syllables)
