"""Runs a keyword model on the clips of a split or of manifests, for ``test.py keyword``.

Also measures the accuracy on clips that are shifted in time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from data.keywords.clip_cache import load_clips
from data.keywords.clips import (
    SILENCE,
    SPLITS,
    UNKNOWN,
    KeywordClip,
    KeywordDataConfig,
    read_keyword_clips,
    read_listed_clips,
)
from model_keyword.loading import (
    KeywordModel,
    accuracies_by_shift,
    load_keyword_model,
    refuse_other_lengths,
)
from utils.arrays import softmax
from utils.errors import CorpusError, require
from utils.vocabulary import first_few


@dataclass(frozen=True)
class RecognisedClips:
    """Clips with the outputs of a model.

    Attributes:
        model: the model with its labels.
        clips: the clips, in the order of the rows of ``probabilities``.
        probabilities: (clips, labels) float32.
        rejected: number of clips that cannot be used.
        accuracy_by_shift: shift in milliseconds → accuracy of the clips moved in time.
    """

    model: KeywordModel
    clips: Sequence[KeywordClip]
    probabilities: np.ndarray
    rejected: int
    accuracy_by_shift: Mapping[int, float]


def recognise_split(
    run: str | Path,
    data: KeywordDataConfig,
    split: str,
    weights: str = "best",
    manifests: Sequence[Path] = (),
    shifts_ms: Sequence[int] = (),
) -> RecognisedClips:
    """Recognise the clips of a split in the run's config, or of manifests.

    Args:
        run: a keyword run.
        data: its settings of the data, :func:`keywords.options.read_data_config`.
        split: ``train``, ``dev`` or ``test``.
        weights: ``best``, ``last`` or a path.
        manifests: recognise exactly the clips of these manifests, instead of the split.
        shifts_ms: also measure the accuracy of the clips moved by these numbers of milliseconds.

    Raises:
        ConfigError: the lengths of clip and context differ from those of the training.
        RunError, CorpusError, AudioError: see the message.
    """
    model = load_keyword_model(run, weights)
    rate = model.features.sample_rate
    refuse_other_lengths(model, data.clip_ms, data.context_ms, run)
    clips = _clips(data, split, manifests, model.labels)
    store = load_clips(clips, rate, model.clip_samples, data.cache, data.workers)
    references = np.array([model.labels.index(clip.label) for clip in store.clips])
    by_shift = accuracies_by_shift(model, store.samples, references, shifts_ms)
    probabilities = softmax(model.logits(store.samples))
    return RecognisedClips(model, store.clips, probabilities, len(store.rejected), by_shift)


def _clips(
    data: KeywordDataConfig, split: str, manifests: Sequence[Path], labels: Sequence[str]
) -> list[KeywordClip]:
    """The clips to recognise; words without a label become ``_unknown_`` if the model has that label.

    Manifests are used as they are; a split also has the silence and the unknown words that the run's config
    sets.
    """
    if manifests:
        found, where = read_listed_clips(manifests), ", ".join(map(str, manifests))
        hint = "list recordings in the manifest"
    else:
        found, where = read_keyword_clips(data)[split], f"data.{split}"
        hint = f"choose another split: {', '.join(name for name in SPLITS if name != split)}"
        if SILENCE not in labels:
            found = [clip for clip in found if clip.label != SILENCE]
    require(found, "there are no clips", where=where, hint=hint, error=CorpusError)
    unlabelled = sorted({clip.label for clip in found} - set(labels))
    if unlabelled and UNKNOWN not in labels:
        raise CorpusError(
            f"the model has no label for {first_few(unlabelled, 5)}",
            where=where,
            hint=f"it knows {', '.join(labels)}",
        )
    return [replace(clip, label=UNKNOWN) if clip.label in unlabelled else clip for clip in found]
