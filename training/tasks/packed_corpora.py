"""Opens the packed corpora of a recipe of an acoustic model, and makes their training batches."""

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any

from data.batches.packed_source import PackedCorpus, PackedSource, is_packed
from utils.errors import require
from utils.vocabulary import Vocabulary

TooShort = Callable[..., Collection[int]]


def open_packed(config: Any) -> list[PackedCorpus]:
    """The packed corpora of the training set; empty if it is a set of manifests.

    Raises:
        ConfigError: there are manifests beside them, or settings that need a manifest or other features.
        CacheError: a corpus is not whole.
    """
    data = config.data
    packed = [is_packed(path) for path in data.train]
    if not any(packed):
        return []
    require(
        all(packed) and data.dev and not data.limit and not config.distillation.teacher,
        "data.train has a packed corpus",
        hint="then all of it must be packed, data.dev names a manifest, data.limit is 0, and there is no "
        "distillation.teacher, whose outputs are not in it",
    )
    corpora = [PackedCorpus.open(path) for path in data.train]
    for corpus in corpora:
        corpus.check_settings(config.features, config.augment)
    return corpora


def packed_source(
    config: Any, vocabulary: Vocabulary, packed: Sequence[PackedCorpus], too_short: TooShort
) -> PackedSource:
    """Training batches of packed corpora, without the utterances that are too short for the time stride.

    Args:
        config: a ``SpeechConfig``.
        vocabulary: of the labels.
        packed: the corpora.
        too_short: features, utterances, labels, ``stride`` → the indices of those to leave out.

    Raises:
        ConfigError: an epoch would have no shard of a corpus.
    """
    weights = config.data.weights or [1.0] * len(packed)
    for corpus, weight in zip(packed, weights, strict=True):
        shards = len(corpus.names)
        require(
            shards * weight >= 1,
            f"data.weights: {weight:g} of {shards} shard{'s' * (shards > 1)} is less than a shard an epoch",
            where=corpus.folder,
            hint=f"a weight of at least {1 / shards:.3g}, or the manifest instead of the packed corpus",
        )
    return PackedSource(
        packed,
        weights,
        encode=lambda utterance: vocabulary.encode(utterance.pinyin, utterance.id, utterance.audio),
        too_short=partial(too_short, stride=config.model.time_stride),
        batch_frames=config.data.batch_frames,
        max_batch=config.data.batch_utterances,
        seed=config.seed,
        spec_augment=config.spec_augment,
    )
