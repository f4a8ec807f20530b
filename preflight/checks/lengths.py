"""A manifest with feature settings and a model's time stride → targets that CTC can't align."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from model_speech.ctc.loss import frames_needed, output_lengths
from preflight.findings import ERROR, WARNING, Finding, line_finding
from preflight.listings import Line, Listing
from training.tasks.speech import MAX_SKIPPED_FRACTION
from utils.features.speech import FeatureConfig, frame_count


def target_too_long(
    listing: Listing, features: FeatureConfig, time_stride: int, speed: float
) -> Iterator[Finding]:
    """Texts with more syllables than the model has output frames.

    Args:
        listing: its lengths in seconds are believed.
        features: of the model.
        time_stride: feature frames an output frame.
        speed: of the fastest altered copy; 1 if there is none.
    """
    short = []
    for line in listing.lines:
        if not 0 < line.seconds < float("inf"):
            continue
        frames = int(output_lengths(_frames(line, features, speed), time_stride))
        # The exact count only where it can matter: it costs more than all the rest.
        if 2 * len(line.pinyin) > frames and (needed := frames_needed(np.asarray(line.pinyin))) > frames:
            short.append((line, f"{needed} output frames needed, {frames} available"))
    refused = listing.role == "train" and len(short) > MAX_SKIPPED_FRACTION * len(listing.lines)
    advice = "check the transcripts, or choose a model with a smaller time stride"
    for line, detail in short:
        severity = ERROR if refused else WARNING
        yield line_finding(severity, listing, line, "more syllables than CTC can align", advice, detail)


def _frames(line: Line, features: FeatureConfig, speed: float) -> int:
    return frame_count(round(line.seconds / speed * features.sample_rate), features)
