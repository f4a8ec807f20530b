"""The feature settings of keyword models: default values for each kind of features, and checks."""

from dataclasses import dataclass

import numpy as np

from utils.audio.reading import HIGHEST_RATE, SAMPLE_RATE
from utils.errors import ConfigError, require

KINDS = ("raw", "mfcc", "micro")
_DEFAULTS = {
    "mfcc": {
        "window_ms": 40.0, "stride_ms": 20.0, "mel_bins": 40, "coefficients": 20, "lowest_hz": 20.0,
        "highest_hz": 7600.0,
    },
    # TensorFlow's microfrontend as keyword models for microcontrollers use it
    "micro": {
        "window_ms": 30.0, "stride_ms": 10.0, "mel_bins": 40, "coefficients": 0, "lowest_hz": 125.0,
        "highest_hz": 7500.0,
    },
}  # fmt: skip
_FLOATS = ("window_ms", "stride_ms", "lowest_hz", "highest_hz")
_HIGHEST_FRACTION = 0.475  # of the sample rate: 7600 Hz at 16 kHz, 3800 Hz at 8 kHz


@dataclass(frozen=True)
class KeywordFeatureConfig:
    """Settings of a keyword model's front end; saved with every model.

    None is replaced by the default value of the kind.

    Attributes:
        kind: ``mfcc``, ``raw`` (the same MFCC, computed inside the model) or ``micro`` (the fixed-point log
            mel of microcontrollers, at 16 kHz and with the default values below only).
        sample_rate: Hz.
        window_ms: length of a frame in milliseconds; default 40 (micro: 30).
        stride_ms: time from the start of one frame to the next, in milliseconds; at most the window. Default
            20 (micro: 10).
        mel_bins: filters, equally wide on the mel scale.
        coefficients: DCT coefficients; 0: the logarithms of the filters, without a DCT. Default 20 (micro:
            0).
        lowest_hz: start of the first filter; default 20 (micro: 125).
        highest_hz: end of the last filter; default 7600 (micro: 7500), lower at sample rates below 16 kHz.

    Raises:
        ConfigError: a value is out of range; the field, the value and the range are named.
    """

    kind: str = "mfcc"
    sample_rate: int = SAMPLE_RATE
    window_ms: float | None = None
    stride_ms: float | None = None
    mel_bins: int | None = None
    coefficients: int | None = None
    lowest_hz: float | None = None
    highest_hz: float | None = None

    def __post_init__(self):
        require(
            self.kind in KINDS, f"unknown features.kind '{self.kind}'", hint=f"one of: {', '.join(KINDS)}"
        )
        for name, value in _DEFAULTS["micro" if self.kind == "micro" else "mfcc"].items():
            if getattr(self, name) is None:
                if name == "highest_hz":
                    value = min(value, _HIGHEST_FRACTION * self.sample_rate)
                object.__setattr__(self, name, value)  # the class is frozen
        for name in _FLOATS:  # 40 and 40.0 must have the same hash
            object.__setattr__(self, name, float(getattr(self, name)))
        if self.kind == "micro":
            self._check_micro()
        _check_times(self)
        _check_filters(self)

    def _check_micro(self) -> None:
        for name, value in {"sample_rate": SAMPLE_RATE, **_DEFAULTS["micro"]}.items():
            require(
                getattr(self, name) == value,
                f"features.{name} is {getattr(self, name)}",
                hint=f"{value} for the kind micro: its frames are those of microcontrollers",
            )

    @property
    def window_samples(self) -> int:
        """Samples per frame: 640 for 40 ms at 16 kHz."""
        return int(self.window_ms * self.sample_rate / 1000 + 0.5)

    @property
    def stride_samples(self) -> int:
        """Samples from the start of one frame to the next: 320 for 20 ms at 16 kHz."""
        return int(self.stride_ms * self.sample_rate / 1000 + 0.5)

    @property
    def fft_size(self) -> int:
        """FFT length: the next power of two (1024 for 640 samples); frames are padded with zeros."""
        return 1 << (self.window_samples - 1).bit_length()


def mel(hertz: float | np.ndarray) -> np.ndarray:
    """The mel scale of the HTK Book, eq. 5.13: 1127 ln(1 + Hz / 700), float64."""
    return 1127.0 * np.log1p(np.asarray(hertz, np.float64) / 700.0)


def _check_times(config: KeywordFeatureConfig) -> None:
    for name in _FLOATS:
        require(
            np.isfinite(getattr(config, name)),
            f"features.{name} is {getattr(config, name)}",
            hint="a finite number",
        )
    require(
        1 <= config.sample_rate <= HIGHEST_RATE,
        f"features.sample_rate is {config.sample_rate}",
        hint=f"above 0 and at most {HIGHEST_RATE:,} Hz",
    )
    require(
        config.stride_samples >= 1,
        f"features.stride_ms is {config.stride_ms:g}",
        hint=f"at least one sample, {1000 / config.sample_rate:g} ms",
    )
    require(
        config.window_ms >= config.stride_ms,
        f"features.window_ms is {config.window_ms:g}",
        hint=f"at least features.stride_ms, {config.stride_ms:g}: no sample may be skipped",
    )


def _check_filters(config: KeywordFeatureConfig) -> None:
    require(config.mel_bins >= 1, f"features.mel_bins is {config.mel_bins}", hint="at least 1")
    require(
        0 <= config.coefficients <= config.mel_bins,
        f"features.coefficients is {config.coefficients}",
        hint=f"0 (the log mel values) to features.mel_bins, {config.mel_bins}",
    )
    half = config.sample_rate / 2
    require(
        0 <= config.lowest_hz < half,
        f"features.lowest_hz is {config.lowest_hz:g}",
        hint=f"at least 0 and below half the sample rate, {half:g}",
    )
    require(
        config.lowest_hz < config.highest_hz <= half,
        f"features.highest_hz is {config.highest_hz:g}",
        hint=f"above features.lowest_hz, {config.lowest_hz:g}, and at most half the sample rate, {half:g}",
    )
    empty = _empty_filters(config.mel_bins, config)
    if empty:
        largest = next((n for n in range(config.mel_bins - 1, 0, -1) if not _empty_filters(n, config)), None)
        fewer = f"at most {largest} with these settings, or" if largest else "use"
        raise ConfigError(
            f"features.mel_bins is {config.mel_bins}: {empty} of the filters, the lowest from "
            f"{config.lowest_hz:g} Hz, have no FFT bin ({config.sample_rate / config.fft_size:g} Hz apart)",
            hint=f"{fewer} a longer features.window_ms or a wider range of Hz",
        )


def _empty_filters(mel_bins: int, config: KeywordFeatureConfig) -> int:
    """The number of filters without an FFT bin, for ``mel_bins`` filters."""
    bins = mel(np.arange(config.fft_size // 2 + 1) * config.sample_rate / config.fft_size)
    corners = np.linspace(mel(config.lowest_hz), mel(config.highest_hz), mel_bins + 2)
    after_start = np.searchsorted(bins, corners[:-2], side="right")
    before_end = np.searchsorted(bins, corners[2:], side="left")
    return int(np.count_nonzero(after_start >= before_end))
