"""Reports utterances that CTC can't align (more labels than output frames), and utterances that changed."""

import hashlib
import logging
from collections.abc import Mapping, Sequence

import numpy as np

from data.features.cache import FeatureCache
from data.manifest import Utterance
from model_speech.ctc.loss import frames_needed, output_lengths
from training.tasks.recipe import changed_data
from utils.errors import TrainingError
from utils.files import write_text
from utils.run_folder.run import RunFolder

log = logging.getLogger("train")

MAX_SKIPPED_FRACTION = 0.05  # of the training utterances; more is an error


def too_short(
    cache: FeatureCache, utterances: list[Utterance], labels: list[np.ndarray], stride: int
) -> dict[int, str]:
    """Find the utterances whose shortest copy has too few frames for its labels.

    Args:
        cache: the features.
        utterances: all utterances.
        labels: (L,) int, ids of the tokens of each.
        stride: feature frames for each output frame.

    Returns:
        Index of the utterance → both numbers of frames as text.
    """
    counts = cache.frame_counts[cache.rows([utterance.id for utterance in utterances])]  # (U, 1 + copies)
    available = output_lengths(counts.min(axis=1), stride).tolist()
    short = {}
    for index, (target, frames) in enumerate(zip(labels, available, strict=True)):
        # Two frames for each label are always enough, so the exact number is rarely needed.
        if frames < 2 * len(target) and (needed := frames_needed(target)) > frames:
            short[index] = f"{needed} output frames needed, {frames} available"
    return short


def report_skipped(short: dict[int, str], utterances: list[Utterance], run: RunFolder) -> None:
    """Write the training utterances that are too short to ``skipped.tsv``.

    Raises:
        TrainingError: they are more than :data:`MAX_SKIPPED_FRACTION` of all.
    """
    if short:
        path = run.skipped
        lines = [f"{utterances[index].id}\t{reason}\n" for index, reason in short.items()]
        write_text(path, "".join(dict.fromkeys(lines)))
        log.warning("%d utterances are too short for their labels and skipped: %s", len(short), path)
    if len(short) > MAX_SKIPPED_FRACTION * len(utterances):
        raise TrainingError(
            f"{len(short)} of {len(utterances)} utterances have more labels than output frames",
            where=run.skipped,
            hint="check the transcripts, or choose a model with a smaller time stride",
        )


def warn_of_changed_utterances(run: RunFolder, lists: Mapping[str, Sequence[Utterance]]) -> None:
    """Log a warning if utterances of a resumed run are not those before; they are given by setting."""
    hashes = {}
    for name, utterances in lists.items():
        lines = (f"{utterance.id}\t{' '.join(utterance.pinyin)}\n" for utterance in utterances)
        hashes[name] = hashlib.sha256("".join(lines).encode()).hexdigest()
    if changed := changed_data(run, hashes):
        log.warning(
            "%s: other utterances or syllables than when this run began: this epoch may repeat and skip "
            "utterances, and its figures may not be comparable with those before",
            " and ".join(changed),
        )
