"""Checks a recipe's model: mel filters that are always empty, texts that are too long for CTC."""

from collections.abc import Iterator

import numpy as np

from model_speech.ctc.loss import frames_needed, output_lengths
from preflight.findings import ERROR, WARNING, Finding, line_finding
from preflight.listings import Listing
from training.utterance_checks import MAX_SKIPPED_FRACTION
from utils.features.speech import FeatureConfig, empty_filters

# More empty filters are reported. With frames of 25 ms at 16 kHz, one of 80 filters is empty.
_EMPTY_FRACTION = 0.02


def empty_filter(features: FeatureConfig) -> Iterator[Finding]:
    """Mel filters without an FFT bin: too many filters for the frame length and sample rate."""
    if features.kind != "filter_bank":
        return
    empty = empty_filters(features.base_bins, features.fft_size, features.sample_rate)
    if empty > _EMPTY_FRACTION * features.base_bins:
        spacing = features.sample_rate / features.fft_size
        yield Finding(
            WARNING,
            "features.bins",
            "",
            problem="mel filters without an FFT bin",
            advice="leave features.bins out (it is then chosen to fit), or set a longer features.frame_ms",
            detail=f"{empty} of {features.base_bins}: the FFT's bins are {spacing:g} Hz apart",
        )


def target_too_long(
    listing: Listing, features: FeatureConfig, time_stride: int, speed: float
) -> Iterator[Finding]:
    """Texts with more syllables than the model has output frames.

    Args:
        listing: a manifest; its lengths in seconds are assumed to be right.
        features: feature settings of the model.
        time_stride: feature frames for each output frame.
        speed: speed of the fastest augmented copy; 1 if there is none.
    """
    short = []
    for line in listing.lines:
        if not line.has_length:
            continue
        frames = int(output_lengths(line.frames(features, speed), time_stride))
        # The exact number is expensive, and needed for long texts only.
        if 2 * len(line.pinyin) > frames and (needed := frames_needed(np.asarray(line.pinyin))) > frames:
            short.append((line, f"{needed} output frames needed, {frames} available"))
    is_refused = listing.role == "train" and len(short) > MAX_SKIPPED_FRACTION * len(listing.lines)
    advice = "check the transcripts, or choose a model with a smaller time stride"
    for line, detail in short:
        yield line_finding(
            ERROR if is_refused else WARNING,
            listing,
            line,
            problem="more syllables than CTC can align",
            advice=advice,
            detail=detail,
        )
