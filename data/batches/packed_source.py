"""Reads padded batches from packed corpora; start-up, memory and shuffling do not grow with the corpora.

A packed corpus (``data/features/packing.py``) has its utterances in random order. An epoch reads its shards
in another random order, a group at a time: the utterances of a group are shuffled and batched as those of a
whole corpus are (``data/batches/batching.py``). Everything depends on (seed, epoch) only. To enter an epoch
at a later step, the groups before it are planned again, without reading their features.
"""

import json
import logging
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

from data.batches.batching import PREFETCHED, Batch, BatchSource
from data.batches.mixture import WeightedCorpus, epoch_indices
from data.features.augment import AugmentConfig
from data.features.cache import FeatureCache, unique_utterances
from data.features.packing import CHECKSUMS, LIST, SETTINGS
from data.features.shards import read_locations
from data.features.spec_augment import SpecAugmentConfig
from data.manifest import Utterance, read_manifest
from utils.addresses import address_of
from utils.config import build_config
from utils.errors import CacheError, require
from utils.features.settings import FeatureConfig, feature_bins
from utils.files import is_folder
from utils.object_store import read_part
from utils.processes import prefetch
from utils.run_folder.checksum_files import check

log = logging.getLogger("train")

_READERS = 16  # threads that read features from an object store
GROUP = 8  # shards whose utterances are shuffled together: 8,192 feature arrays
_PADDING = 1.03  # padded frames for each frame, of a corpus whose batches have similar lengths
_ORDER = 4  # purpose of a random generator, beside those of batching.py and mixture.py


@dataclass(frozen=True)
class PackedCorpus:
    """The list of a packed corpus.

    Attributes:
        folder: where its shards are.
        features, augment: the settings with which it was packed.
        syllables: of its transcripts, without those of the inventory of Mandarin.
        names: (shards,) of the shards.
        utterances: (shards,) int64.
        frames: (shards,) int64, of all copies together.
        crcs: (shards,) int64, CRC-32 of the manifests.
    """

    folder: Path
    features: FeatureConfig
    augment: AugmentConfig
    syllables: frozenset[str]
    names: tuple[str, ...]
    utterances: np.ndarray
    frames: np.ndarray
    crcs: np.ndarray

    @classmethod
    def open(cls, folder: str | Path) -> Self:
        """Read the list of a folder, or of its address in a store.

        Raises:
            CacheError: the folder is not a packed corpus, not a whole one, or damaged.
            StoreError: it is in a store that does not answer.
        """
        folder = Path(folder)
        try:
            check(folder / CHECKSUMS, [folder / LIST, folder / SETTINGS])
            settings = json.loads(read_part(folder / SETTINGS))
            lines = read_part(folder / LIST).decode("utf-8").splitlines()
            names, *counts = zip(*(line.split("\t") for line in lines), strict=True)
            return cls(
                folder,
                build_config(FeatureConfig, settings["features"]),
                build_config(AugmentConfig, settings["augment"]),
                frozenset(settings["syllables"]),
                names,
                *(np.array(column, np.int64) for column in counts),
            )
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CacheError(
                f"not a whole packed corpus ({error})",
                where=folder,
                hint="pack it again: the same command goes on where it stopped; other folders are no entries "
                "of data.train",
            ) from error

    def check_settings(self, features: FeatureConfig, augment: AugmentConfig) -> None:
        """Check that a recipe asks for what was packed.

        Raises:
            ConfigError: it does not.
        """
        for name, packed, expected in (
            ("features", self.features, features),
            ("augment", self.augment, augment),
        ):
            require(
                packed == expected,
                f"the recipe's {name} differ from those of a packed corpus: {expected} and {packed}",
                where=self.folder,
                hint="pack the manifests again into another folder, or change the recipe",
            )


def is_packed(path: str | Path) -> bool:
    """Whether an entry of ``data.train`` is a packed corpus: a folder, or an address that is no ``.tsv``.

    Packing need not have finished: :meth:`PackedCorpus.open` checks that.
    """
    return Path(path).suffix != ".tsv" and is_folder(path)


@dataclass(frozen=True)
class PackedSource:
    """Batches of packed corpora, epoch by epoch, as those of :class:`~data.batches.batching.BatchSource`.

    Attributes:
        corpora: with the same settings.
        weights: passes over each corpus in an epoch.
        encode: the labels of an utterance, (labels,) int32.
        too_short: features, utterances and labels → the indices of those with too few frames for their
            labels, which are left out.
        batch_frames, max_batch, seed, spec_augment: as in ``BatchSource``.
    """

    corpora: Sequence[PackedCorpus]
    weights: Sequence[float]
    encode: Callable[[Utterance], np.ndarray]
    too_short: Callable[[FeatureCache, list[Utterance], list[np.ndarray]], Collection[int]]
    batch_frames: int
    max_batch: int
    seed: int = 0
    spec_augment: SpecAugmentConfig | None = None

    @property
    def utterance_count(self) -> int:
        """Utterances of all corpora."""
        return int(sum(corpus.utterances.sum() for corpus in self.corpora))

    def steps(self, epoch: int) -> int:
        """About the number of batches in an epoch: within some per cent, without planning them."""
        shards = self._shards(epoch)
        utterances = sum(corpus.utterances[number] for corpus, number in shards)
        frames = sum(corpus.frames[number] / (1 + corpus.augment.copies) for corpus, number in shards)
        return max(1, round(max(frames * _PADDING / self.batch_frames, utterances / self.max_batch)))

    def batches(self, epoch: int, first_step: int = 0, shard: tuple[int, int] = (0, 1)) -> Iterator[Batch]:
        """An epoch's batches from ``first_step`` on, as ``BatchSource.batches`` gives them."""
        index, count = shard
        return prefetch(self._batches(epoch, first_step, slice(index, None, count)), PREFETCHED)

    def _batches(self, epoch: int, first_step: int, shard: slice) -> Iterator[Batch]:
        shards = self._shards(epoch)
        for start in range(0, len(shards), GROUP):
            group = self._open(shards[start : start + GROUP], start)
            steps = group.steps(epoch) if first_step else 0
            if first_step <= steps:
                yield from group.epoch_batches(epoch, first_step, shard)
            first_step = max(0, first_step - steps)

    def _shards(self, epoch: int) -> list[tuple[PackedCorpus, int]]:
        """The shards of an epoch in their order, each with its corpus."""
        known = [(corpus, number) for corpus in self.corpora for number in range(len(corpus.names))]
        mixture = [
            WeightedCorpus(len(corpus.names), weight)
            for corpus, weight in zip(self.corpora, self.weights, strict=True)
        ]
        chosen = epoch_indices(mixture, self.seed, epoch)
        order = np.random.default_rng([self.seed, epoch, _ORDER]).permutation(len(chosen))
        return [known[index] for index in chosen[order]]

    def _open(self, shards: Sequence[tuple[PackedCorpus, int]], group: int) -> BatchSource:
        """The utterances of some shards."""
        parts, paths, utterances = [], [], []
        bins = feature_bins(self.corpora[0].features)
        for number, (corpus, index) in enumerate(shards):
            shard = corpus.folder / f"{corpus.names[index]}.npy"
            try:
                rows = read_locations(shard.with_suffix(".index.npy"), shard, bins, number)
                transcripts = shard.with_suffix(".tsv")
                if zlib.crc32(read_part(transcripts)) != corpus.crcs[index]:
                    raise ValueError(f"the checksum of {transcripts.name} differs")
            except (OSError, ValueError, EOFError) as error:
                raise CacheError(
                    f"a packed shard is damaged ({error})",
                    where=shard,
                    hint="delete the shard's three files, and pack the corpus again",
                ) from error
            paths.append(shard)
            parts.append(rows.reshape(-1, 1 + corpus.augment.copies))
            utterances += read_manifest(transcripts)
        unique_utterances(utterances)  # raises an error for two recordings with one id
        ids = [utterance.id for utterance in utterances]
        cache = FeatureCache.of_locations(ids, paths, np.concatenate(parts), bins)
        labels = [self.encode(utterance) for utterance in utterances]
        short = self.too_short(cache, utterances, labels)
        if short:
            log.warning(
                "%d utterances have too few frames and are left out: %s …", len(short), ids[min(short)]
            )
        kept = [row for row in range(len(ids)) if row not in short]
        return BatchSource(
            cache,
            [utterances[row] for row in kept],
            [labels[row] for row in kept],
            batch_frames=self.batch_frames,
            max_batch=self.max_batch,
            seed=int(np.random.SeedSequence([self.seed, group]).generate_state(1)[0]),
            shuffle=True,
            spec_augment=self.spec_augment,
            readers=_READERS if any(map(address_of, paths)) else 1,
        )
