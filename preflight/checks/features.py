"""A recipe's feature settings → settings that leave part of each frame without any sound."""

from __future__ import annotations

from collections.abc import Iterator

from preflight.findings import WARNING, Finding
from utils.features.speech import FeatureConfig, empty_filters

_EMPTY_SHARE = 0.02  # the 80 filters that are usual at 16 kHz have one empty one with frames of 25 ms


def empty_filter(features: FeatureConfig) -> Iterator[Finding]:
    """Mel filters without an FFT bin: more than the frame length allows at this sample rate."""
    if features.kind != "filter_bank":
        return
    empty = empty_filters(features.base_bins, features.fft_size, features.sample_rate)
    if empty > _EMPTY_SHARE * features.base_bins:
        spacing = features.sample_rate / features.fft_size
        detail = f"{empty} of {features.base_bins}: the FFT's bins are {spacing:g} Hz apart"
        advice = "leave features.bins out (as many are then taken as fit), or take a longer features.frame_ms"
        yield Finding(WARNING, "features.bins", "", "mel filters that hold no FFT bin", advice, detail)


FEATURES = (empty_filter,)
"""What looks at a recipe's feature settings."""
