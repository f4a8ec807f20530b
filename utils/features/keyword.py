"""The feature settings of keyword models: default values for each kind of features, and checks."""

import dataclasses
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any

import numpy as np
import scipy.fft
import scipy.sparse
from numpy.lib.stride_tricks import sliding_window_view

from utils.audio.reading import HIGHEST_RATE, SAMPLE_RATE
from utils.errors import AudioError, require
from utils.features.micro import MicroFrontEnd
from utils.limits import Count, Limited, NotNegative, Positive, Size, between, check_choice

KINDS = ("raw", "mfcc", "micro")
_DEFAULTS: dict[str, dict[str, Any]] = {
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
_OF_THE_KIND: Any = None  # replaced by the default value of the kind
_FLOATS = ("window_ms", "stride_ms", "lowest_hz", "highest_hz")
_HIGHEST_FRACTION = 0.475  # of the sample rate: 7600 Hz at 16 kHz, 3800 Hz at 8 kHz


@dataclass(frozen=True)
class KeywordFeatureConfig(Limited, section="features"):
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
    sample_rate: Annotated[int, between(1, HIGHEST_RATE)] = SAMPLE_RATE
    window_ms: Positive = _OF_THE_KIND
    stride_ms: Positive = _OF_THE_KIND
    mel_bins: Count = _OF_THE_KIND
    coefficients: Size = _OF_THE_KIND
    lowest_hz: NotNegative = _OF_THE_KIND
    highest_hz: Positive = _OF_THE_KIND

    def __post_init__(self):
        check_choice(self, "features", kind=KINDS)
        for name, value in _DEFAULTS["micro" if self.kind == "micro" else "mfcc"].items():
            if getattr(self, name) is None:
                if name == "highest_hz":
                    value = min(value, _HIGHEST_FRACTION * self.sample_rate)
                object.__setattr__(self, name, value)  # the class is frozen
        for name in _FLOATS:  # 40 and 40.0 must have the same hash
            object.__setattr__(self, name, float(getattr(self, name)))
        if self.kind == "micro":
            self._check_micro()
        super().__post_init__()
        self._check_ranges()

    def _check_micro(self) -> None:
        for name, value in {"sample_rate": SAMPLE_RATE, **_DEFAULTS["micro"]}.items():
            require(
                getattr(self, name) == value,
                f"features.{name} is {getattr(self, name)}",
                hint=f"{value} for the kind micro: its frames are those of microcontrollers",
            )

    def _check_ranges(self) -> None:
        """Check the values that limit one another."""
        require(
            self.stride_samples >= 1,
            f"features.stride_ms is {self.stride_ms:g}",
            hint=f"at least one sample, {1000 / self.sample_rate:g} ms",
        )
        require(
            self.window_ms >= self.stride_ms,
            f"features.window_ms is {self.window_ms:g}",
            hint=f"at least features.stride_ms, {self.stride_ms:g}: no sample may be skipped",
        )
        require(
            self.coefficients <= self.mel_bins,
            f"features.coefficients is {self.coefficients}",
            hint=f"0 (the log mel values) to features.mel_bins, {self.mel_bins}",
        )
        require(
            self.lowest_hz < self.highest_hz <= self.sample_rate / 2,
            f"features.lowest_hz is {self.lowest_hz:g}, features.highest_hz is {self.highest_hz:g}",
            hint=f"the lower one first; at most half the sample rate, {self.sample_rate / 2:g}",
        )
        require(
            mel_filters(self).any(axis=0).all(),
            f"features.mel_bins is {self.mel_bins}: some filters from {self.lowest_hz:g} Hz have no FFT bin "
            f"({self.sample_rate / self.fft_size:g} Hz apart)",
            hint="use fewer, a longer features.window_ms or a wider range of Hz",
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


# Added to the energy of each filter before the logarithm. Rounding to 16 bits gives 5e-8 to 5e-7 in a filter
# of a 40 ms window, so digital silence and a silent microphone have similar features, and single precision
# inside a model is close to the double precision here.
ENERGY_FLOOR = 1e-6

_VERSION = 1  # increase it when the same settings give other features than before
_BLOCK_FRAMES = 256  # computed together; they fit into the processor's cache


def feature_frames(samples: int, config: KeywordFeatureConfig) -> int:
    """Number of whole windows in ``samples`` samples: 49 for 16,000 with 40 / 20 ms; may be 0."""
    beyond = samples - config.window_samples
    return 0 if beyond < 0 else 1 + beyond // config.stride_samples


def feature_values(config: KeywordFeatureConfig) -> int:
    """Number of values in a frame."""
    return config.coefficients or config.mel_bins


def keyword_features(samples: np.ndarray, config: KeywordFeatureConfig) -> np.ndarray:
    """Features of whole clips.

    Args:
        samples: (clips, samples) or (samples,) floats in [-1, 1] at ``config.sample_rate``.
        config: the settings.

    Returns:
        (clips, frames, values) or (frames, values) float32; for kind ``raw`` the samples as float32.

    Raises:
        AudioError: a sample is NaN or infinite, or a clip is shorter than one window.
        ValueError: the samples aren't floats of one or two dimensions.
    """
    if samples.ndim not in (1, 2):
        raise ValueError(f"expected (clips, samples) or (samples,), got an array of shape {samples.shape}")
    _check_samples(samples)
    if samples.shape[-1] < config.window_samples:
        raise AudioError(
            f"a clip of {_length(samples.shape[-1], config)} is shorter than "
            f"one window of {_length(config.window_samples, config)}",
            hint="use longer clips, or a smaller features.window_ms",
        )
    if config.kind == "raw":
        return samples.astype(np.float32)
    clips = np.atleast_2d(samples)
    if config.kind == "micro":
        shape = (len(clips), feature_frames(clips.shape[1], config), feature_values(config))
        features = np.array([MicroFrontEnd().feed(clip) for clip in clips], np.float32).reshape(shape)
    else:
        features = _mfcc(clips, config)
    return features if samples.ndim == 2 else features[0]


class KeywordFeatureStream:
    """Features of an endless signal, equal to :func:`keyword_features` of the whole signal.

    Example:
        >>> stream = KeywordFeatureStream(KeywordFeatureConfig())
        >>> stream.feed(np.zeros(400, np.float32)).shape, stream.feed(np.zeros(560, np.float32)).shape
        ((0, 20), (2, 20))
    """

    def __init__(self, config: KeywordFeatureConfig):
        self.config = config
        self.reset()

    def reset(self) -> None:
        """Forget all samples and, for kind ``micro``, the noise estimate."""
        self._pending = np.zeros(0, np.float32)
        self._micro = MicroFrontEnd() if self.config.kind == "micro" else None

    def feed(self, samples: np.ndarray) -> np.ndarray:
        """Process the next samples and return the frames that they complete.

        Args:
            samples: (samples,) floats in [-1, 1].

        Returns:
            (frames, values) float32, often without any frame; for kind ``raw`` the samples.

        Raises:
            AudioError: a sample is NaN or infinite; the state of the stream is unchanged.
            ValueError: the samples aren't floats of one dimension.
        """
        if samples.ndim != 1:
            raise ValueError(f"expected (samples,), got an array of shape {samples.shape}")
        _check_samples(samples)
        samples = samples.astype(np.float32)
        if self.config.kind == "raw":
            return samples
        if self._micro:
            return self._micro.feed(samples)
        pending = np.concatenate([self._pending, samples])
        frames = feature_frames(len(pending), self.config)
        self._pending = pending[frames * self.config.stride_samples :]
        if not frames:
            return np.zeros((0, feature_values(self.config)), np.float32)
        return _mfcc(pending[None], self.config)[0]


def features_hash(config: KeywordFeatureConfig) -> str:
    """16 hexadecimal digits that change with everything that determines the features."""
    values = {**dataclasses.asdict(config), "version": _VERSION}
    return hashlib.blake2b(json.dumps(values, sort_keys=True).encode(), digest_size=8).hexdigest()


@lru_cache(maxsize=8)
def analysis_window(samples: int) -> np.ndarray:
    """Periodic Hann window: (samples,) float64, read-only."""
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(samples) / samples)
    window.setflags(write=False)
    return window


def mel_filters(config: KeywordFeatureConfig) -> np.ndarray:
    """Triangles of equal width and height 1 on HTK's mel scale: (fft_size / 2 + 1, mel_bins) float64.

    Their sides are linear in mel, not in Hz, as in ``tf.signal.linear_to_mel_weight_matrix``.
    """
    bins = mel(np.arange(config.fft_size // 2 + 1) * config.sample_rate / config.fft_size)
    lowest, highest = mel(config.lowest_hz), mel(config.highest_hz)
    step = (highest - lowest) / (config.mel_bins + 1)
    centres = lowest + step * np.arange(1, config.mel_bins + 1)
    return np.maximum(0.0, 1 - np.abs(bins[:, None] - centres) / step)


def cosine_basis(mel_bins: int, coefficients: int) -> np.ndarray:
    """The first coefficients of the orthonormal DCT-II: (mel_bins, coefficients) float64."""
    angles = (np.arange(mel_bins)[:, None] + 0.5) * np.arange(coefficients) * np.pi / mel_bins
    basis = np.sqrt(2 / mel_bins) * np.cos(angles)
    basis[:, :1] = np.sqrt(1 / mel_bins)
    return basis


def _mfcc(samples: np.ndarray, config: KeywordFeatureConfig) -> np.ndarray:
    """(clips, samples) → (clips, frames, values) float32."""
    filters, used = _sparse_filters(config)
    frames = feature_frames(samples.shape[1], config)
    features = np.empty((len(samples), frames, feature_values(config)), np.float32)
    framed = sliding_window_view(samples, config.window_samples, axis=1)[:, :: config.stride_samples]
    window = analysis_window(config.window_samples)
    basis = cosine_basis(config.mel_bins, config.coefficients) if config.coefficients else None
    for block in _frame_blocks(len(samples), frames):
        # (clips, frames, window) → (clips, frames, fft_size / 2 + 1) → (clips, frames, bins used by a filter)
        spectrum = scipy.fft.rfft(framed[block] * window, config.fft_size)[..., used]
        power = np.square(spectrum.real) + np.square(spectrum.imag)
        energies = power.reshape(-1, power.shape[-1]) @ filters  # (clips · frames, mel_bins)
        values = np.log(energies + ENERGY_FLOOR)
        if basis is not None:
            values = values @ basis
        features[block] = values.reshape(*power.shape[:2], -1)
    return features


def _frame_blocks(clips: int, frames: int) -> Iterator[tuple[slice, slice]]:
    """Divide (clips, frames) into blocks of about ``_BLOCK_FRAMES`` frames."""
    together = max(1, _BLOCK_FRAMES // frames)
    for clip in range(0, clips, together):
        for frame in range(0, frames, _BLOCK_FRAMES):
            yield slice(clip, clip + together), slice(frame, frame + _BLOCK_FRAMES)


@lru_cache(maxsize=8)
def _sparse_filters(config: KeywordFeatureConfig) -> tuple[scipy.sparse.csr_array, slice]:
    """The rows of :func:`mel_filters` that are not zero, and the slice of these rows.

    Sparse, because an FFT bin is in at most two filters, and a dense product would start all threads of the
    linear algebra library for a tiny task.
    """
    filters = mel_filters(config)
    rows = np.flatnonzero(filters.any(axis=1))
    used = slice(int(rows[0]), int(rows[-1]) + 1)
    return scipy.sparse.csr_array(filters[used]), used


def _check_samples(samples: np.ndarray) -> None:
    if not np.issubdtype(samples.dtype, np.floating):
        raise ValueError(
            f"expected float samples in [-1, 1], got {samples.dtype}: divide PCM by its full scale"
        )
    finite = np.isfinite(samples)
    if finite.all():
        return
    first = np.argwhere(~finite)[0]
    clip = f" of clip {first[0]}" if samples.ndim == 2 else ""
    raise AudioError(
        f"{np.count_nonzero(~finite)} of {samples.size} samples are NaN or infinite, the first is sample "
        f"{first[-1]}{clip}",
        hint="remove the recording, or repair it",
    )


def _length(samples: int, config: KeywordFeatureConfig) -> str:
    return f"{samples} samples ({1000 * samples / config.sample_rate:g} ms)"
