"""Checks of a recipe's feature settings: mel filters that are always empty."""

from collections.abc import Iterator

from preflight.findings import WARNING, Finding
from utils.features.speech import FeatureConfig, empty_filters

_EMPTY_FRACTION = 0.02  # with frames of 25 ms at 16 kHz, one of 80 filters is empty


def empty_filter(features: FeatureConfig) -> Iterator[Finding]:
    """Mel filters without an FFT bin: too many filters for the frame length and sample rate."""
    if features.kind != "filter_bank":
        return
    empty = empty_filters(features.base_bins, features.fft_size, features.sample_rate)
    if empty > _EMPTY_FRACTION * features.base_bins:
        spacing = features.sample_rate / features.fft_size
        detail = f"{empty} of {features.base_bins}: the FFT's bins are {spacing:g} Hz apart"
        advice = "leave features.bins out (it is then chosen to fit), or set a longer features.frame_ms"
        yield Finding(WARNING, "features.bins", "", "mel filters without an FFT bin", advice, detail)


FEATURES = (empty_filter,)
"""The checks of feature settings."""
