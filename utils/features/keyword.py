"""Samples → frames for keyword models: MFCC, or the log mel of microcontrollers; whole clips or a stream.

A frame depends on its own samples alone (``micro``: and on those before), never on the clip as a whole: there
is no normalisation of utterances, so that a stream gives what the whole clip gives. ``raw`` leaves the
samples as they are: a model's first layers (``model_keyword/layers/front_end.py``) make the same MFCC in the
graph.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy.fft
import scipy.sparse
from numpy.lib.stride_tricks import sliding_window_view

from utils.audio.reading import SAMPLE_RATE
from utils.errors import AudioError, ConfigError
from utils.features.micro import MicroFrontEnd, micro_features

KINDS = ("raw", "mfcc", "micro")
# Added to each filter's energy before the logarithm. The error of rounding to 16 bits leaves 5e-8 to 5e-7 in
# a filter of a 40 ms window, so that digital silence and a silent microphone look alike, and single
# precision inside a graph stays close to the double precision used here.
ENERGY_FLOOR = 1e-6

_USUAL = {
    "mfcc": {"window_ms": 40.0, "mel_bins": 40, "coefficients": 20, "lowest_hz": 20.0, "highest_hz": 7600.0},
    # TensorFlow's microfrontend as keyword models for microcontrollers use it
    "micro": {"window_ms": 30.0, "mel_bins": 40, "coefficients": 0, "lowest_hz": 125.0, "highest_hz": 7500.0},
}
_FLOATS = ("window_ms", "stride_ms", "lowest_hz", "highest_hz")
_HIGHEST_SHARE = 0.475  # of the sample rate: the usual 7600 Hz at 16 kHz, and 3800 Hz at 8 kHz
_VERSION = 1  # raise it when the same settings give other numbers than before
_BLOCK_FRAMES = 256  # frames a time, which keeps them in the processor's cache


@dataclass(frozen=True)
class KeywordFeatureConfig:
    """Settings of a keyword model's front end; saved with every model.

    A setting left None takes the usual value of its kind, and holds it from then on.

    Attributes:
        kind: ``mfcc``, ``raw`` (the same MFCC, made inside the model) or ``micro`` (the fixed-point log mel
            of microcontrollers).
        sample_rate: Hz.
        window_ms: length of a frame in milliseconds; usual 40 (micro: 30).
        stride_ms: from one frame's start to the next one's, at most the window.
        mel_bins: filters, equally wide on the mel scale.
        coefficients: DCT coefficients kept; 0 = none, the logarithms of the filters themselves.
            Usual 20 (micro: 0, the only value it has).
        lowest_hz: where the first filter starts; usual 20 (micro: 125).
        highest_hz: where the last filter ends; usual 7600 (micro: 7500), less at rates below 16 kHz.

    Raises:
        ConfigError: a value is out of range; the field, the value and the range are named.
    """

    kind: str = "mfcc"
    sample_rate: int = SAMPLE_RATE
    window_ms: float | None = None
    stride_ms: float = 20.0
    mel_bins: int | None = None
    coefficients: int | None = None
    lowest_hz: float | None = None
    highest_hz: float | None = None

    def __post_init__(self):
        if self.kind not in KINDS:
            raise ConfigError(f"unknown features.kind '{self.kind}'", hint=f"one of: {', '.join(KINDS)}")
        for name, value in _USUAL["micro" if self.kind == "micro" else "mfcc"].items():
            if getattr(self, name) is None:
                if name == "highest_hz":
                    value = min(value, _HIGHEST_SHARE * self.sample_rate)
                object.__setattr__(self, name, value)  # the usual way past a frozen class's own guard
        for name in _FLOATS:  # 40 and 40.0 are one setting, with one hash
            object.__setattr__(self, name, float(getattr(self, name)))
        _check_times(self)
        _check_filters(self)

    @property
    def window_samples(self) -> int:
        """Samples a frame: 640 for 40 ms at 16 kHz."""
        return int(self.window_ms * self.sample_rate / 1000 + 0.5)

    @property
    def stride_samples(self) -> int:
        """Samples from one frame's start to the next one's: 320 for 20 ms at 16 kHz."""
        return int(self.stride_ms * self.sample_rate / 1000 + 0.5)

    @property
    def fft_size(self) -> int:
        """FFT length: the next power of two (1024 for 640 samples); frames are padded with zeros."""
        return 1 << (self.window_samples - 1).bit_length()


def feature_frames(samples: int, config: KeywordFeatureConfig) -> int:
    """Whole windows in ``samples`` samples: 49 for 16,000 with 40 / 20 ms; 0 when shorter than a window."""
    beyond = samples - config.window_samples
    return 0 if beyond < 0 else 1 + beyond // config.stride_samples


def feature_values(config: KeywordFeatureConfig) -> int:
    """Values a frame."""
    return config.coefficients or config.mel_bins


def keyword_features(samples: np.ndarray, config: KeywordFeatureConfig) -> np.ndarray:
    """Features of whole clips, each computed from its start.

    Args:
        samples: (clips, samples) or (samples,) floats in [-1, 1] at ``config.sample_rate``.
        config: the settings.

    Returns:
        (clips, frames, values) or (frames, values) float32; of kind ``raw`` the samples as float32.

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
            hint="take longer clips, or a smaller features.window_ms",
        )
    if config.kind == "raw":
        return samples.astype(np.float32)
    clips = np.atleast_2d(samples)
    if config.kind == "micro":
        features, _ = micro_features(clips, micro_front_end(config))
    else:
        features = _mfcc(clips, config)
    return features if samples.ndim == 2 else features[0]


class FeatureStream:
    """Features of an endless signal, frame by frame: the same as :func:`keyword_features` of the whole.

    Example:
        >>> stream = FeatureStream(KeywordFeatureConfig())
        >>> stream.feed(np.zeros(400, np.float32)).shape, stream.feed(np.zeros(560, np.float32)).shape
        ((0, 20), (2, 20))
    """

    def __init__(self, config: KeywordFeatureConfig):
        self.config = config
        self.reset()

    def reset(self) -> None:
        """Forget all samples and, of kind ``micro``, the estimate of the noise."""
        self._pending = np.zeros(0, np.float32)
        self._noise: np.ndarray | None = None

    def feed(self, samples: np.ndarray) -> np.ndarray:
        """Take the next samples, any number of them; give the frames that they complete.

        Args:
            samples: (samples,) floats in [-1, 1].

        Returns:
            (frames, values) float32, often no frame at all; of kind ``raw`` the samples themselves.

        Raises:
            AudioError: a sample is NaN or infinite; the stream is left as it was.
            ValueError: the samples aren't floats of one dimension.
        """
        if samples.ndim != 1:
            raise ValueError(f"expected (samples,), got an array of shape {samples.shape}")
        _check_samples(samples)
        samples = samples.astype(np.float32)
        if self.config.kind == "raw":
            return samples
        pending = np.concatenate([self._pending, samples])
        frames = feature_frames(len(pending), self.config)
        self._pending = pending[frames * self.config.stride_samples :]
        if not frames:
            return np.zeros((0, feature_values(self.config)), np.float32)
        if self.config.kind == "micro":
            features, self._noise = micro_features(
                pending[None], micro_front_end(self.config), noise=self._noise
            )
        else:
            features = _mfcc(pending[None], self.config)
        return features[0]


def features_hash(config: KeywordFeatureConfig) -> str:
    """A short name for everything that determines the features of given samples (16 hex digits)."""
    values = {**dataclasses.asdict(config), "version": _VERSION}
    return hashlib.blake2b(json.dumps(values, sort_keys=True).encode(), digest_size=8).hexdigest()


def describe_mismatch(trained: KeywordFeatureConfig, asked: KeywordFeatureConfig) -> str:
    """Every setting that differs, with both values; empty when none does.

    Example:
        >>> describe_mismatch(KeywordFeatureConfig(), KeywordFeatureConfig(coefficients=10))
        'features.coefficients: 20 in training, 10 asked for'
    """
    fields = dataclasses.fields(trained)
    both = [(field.name, getattr(trained, field.name), getattr(asked, field.name)) for field in fields]
    return "; ".join(
        f"features.{name}: {trained_value} in training, {asked_value} asked for"
        for name, trained_value, asked_value in both
        if trained_value != asked_value
    )


@lru_cache(maxsize=8)
def analysis_window(samples: int) -> np.ndarray:
    """Periodic Hann window: (samples,) float64, read-only."""
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(samples) / samples)
    window.setflags(write=False)
    return window


def mel_filters(config: KeywordFeatureConfig) -> np.ndarray:
    """Triangles of equal width and height 1 on HTK's mel scale: (fft_size / 2 + 1, mel_bins) float64.

    Linear in mel, not in Hz, as in ``tf.signal.linear_to_mel_weight_matrix``. The mel scale is that of
    the HTK Book, eq. 5.13: 1127 ln(1 + Hz / 700).
    """
    bins = _mel(np.arange(config.fft_size // 2 + 1) * config.sample_rate / config.fft_size)
    lowest, highest = _mel(config.lowest_hz), _mel(config.highest_hz)
    step = (highest - lowest) / (config.mel_bins + 1)
    centres = lowest + step * np.arange(1, config.mel_bins + 1)
    return np.maximum(0.0, 1 - np.abs(bins[:, None] - centres) / step)


def cosine_basis(mel_bins: int, coefficients: int) -> np.ndarray:
    """The first coefficients of the orthonormal DCT-II: (mel_bins, coefficients) float64."""
    places = (np.arange(mel_bins)[:, None] + 0.5) * np.arange(coefficients) * np.pi / mel_bins
    basis = np.sqrt(2 / mel_bins) * np.cos(places)
    basis[:, :1] = np.sqrt(1 / mel_bins)
    return basis


def micro_front_end(config: KeywordFeatureConfig) -> MicroFrontEnd:
    """The settings of kind ``micro`` in the units of ``utils/features/micro.py``."""
    return MicroFrontEnd(
        sample_rate=config.sample_rate,
        window=config.window_samples,
        stride=config.stride_samples,
        channels=config.mel_bins,
        lowest_hz=config.lowest_hz,
        highest_hz=config.highest_hz,
    )


def _mfcc(samples: np.ndarray, config: KeywordFeatureConfig) -> np.ndarray:
    """(clips, samples) → (clips, frames, values) float32."""
    filters, used = _sparse_filters(config)
    frames = feature_frames(samples.shape[1], config)
    features = np.empty((len(samples), frames, feature_values(config)), np.float32)
    framed = sliding_window_view(samples, config.window_samples, axis=1)[:, :: config.stride_samples]
    window = analysis_window(config.window_samples)
    basis = cosine_basis(config.mel_bins, config.coefficients) if config.coefficients else None
    for block in _blocks(len(samples), frames):
        # (clips, frames, window) → (clips, frames, fft_size / 2 + 1) → only the bins that a filter uses
        spectrum = scipy.fft.rfft(framed[block] * window, config.fft_size)[..., used]
        power = np.square(spectrum.real) + np.square(spectrum.imag)
        energies = power.reshape(-1, power.shape[-1]) @ filters  # (clips · frames, mel_bins)
        values = np.log(energies + ENERGY_FLOOR)
        if basis is not None:
            values = values @ basis
        features[block] = values.reshape(*power.shape[:2], -1)
    return features


def _blocks(clips: int, frames: int) -> Iterator[tuple[slice, slice]]:
    """Cut (clips, frames) into parts of about ``_BLOCK_FRAMES`` frames."""
    together = max(1, _BLOCK_FRAMES // frames)
    for clip in range(0, clips, together):
        for frame in range(0, frames, _BLOCK_FRAMES):
            yield slice(clip, clip + together), slice(frame, frame + _BLOCK_FRAMES)


@lru_cache(maxsize=8)
def _sparse_filters(config: KeywordFeatureConfig) -> tuple[scipy.sparse.csr_array, slice]:
    """The rows of :func:`mel_filters` that aren't all zero, and which they are.

    Sparse: an FFT bin is in two filters at most, and a dense product would wake all of the linear algebra
    library's threads for a tiny task.
    """
    filters = mel_filters(config)
    rows = np.flatnonzero(filters.any(axis=1))
    used = slice(int(rows[0]), int(rows[-1]) + 1)
    return scipy.sparse.csr_array(filters[used]), used


def _mel(hertz):
    return 1127.0 * np.log1p(np.asarray(hertz, np.float64) / 700.0)


def _check_times(config: KeywordFeatureConfig) -> None:
    for name in _FLOATS:
        if not np.isfinite(getattr(config, name)):
            raise ConfigError(f"features.{name} is {getattr(config, name)}", hint="a finite number")
    if config.sample_rate < 1:
        raise ConfigError(f"features.sample_rate is {config.sample_rate}", hint="above 0 Hz")
    if config.stride_samples < 1:
        hint = f"at least one sample, {1000 / config.sample_rate:g} ms"
        raise ConfigError(f"features.stride_ms is {config.stride_ms:g}", hint=hint)
    if not config.window_ms >= config.stride_ms:
        hint = f"at least features.stride_ms, {config.stride_ms:g}: no sample may be skipped"
        raise ConfigError(f"features.window_ms is {config.window_ms:g}", hint=hint)


def _check_filters(config: KeywordFeatureConfig) -> None:
    if config.mel_bins < 1:
        raise ConfigError(f"features.mel_bins is {config.mel_bins}", hint="at least 1")
    if config.kind == "micro" and config.coefficients:
        what = f"features.coefficients is {config.coefficients}"
        raise ConfigError(what, hint="0 for the kind micro: it has no DCT")
    if not 0 <= config.coefficients <= config.mel_bins:
        hint = f"0 (the log mel values) to features.mel_bins, {config.mel_bins}"
        raise ConfigError(f"features.coefficients is {config.coefficients}", hint=hint)
    half = config.sample_rate / 2
    if not 0 <= config.lowest_hz < half:
        what = f"features.lowest_hz is {config.lowest_hz:g}"
        raise ConfigError(what, hint=f"at least 0 and below half the sample rate, {half:g}")
    if not config.lowest_hz < config.highest_hz <= half:
        what = f"features.highest_hz is {config.highest_hz:g}"
        hint = f"above features.lowest_hz, {config.lowest_hz:g}, and at most half the sample rate, {half:g}"
        raise ConfigError(what, hint=hint)
    empty = _empty_filters(config.mel_bins, config)
    if empty:
        most = next((n for n in range(config.mel_bins - 1, 0, -1) if not _empty_filters(n, config)), None)
        fewer = f"at most {most} with these settings, or" if most else "take"
        raise ConfigError(
            f"features.mel_bins is {config.mel_bins}: {empty} of the filters, the lowest from "
            f"{config.lowest_hz:g} Hz, hold no FFT bin ({config.sample_rate / config.fft_size:g} Hz apart)",
            hint=f"{fewer} a longer features.window_ms or a wider range of Hz",
        )


def _empty_filters(mel_bins: int, config: KeywordFeatureConfig) -> int:
    """Filters without an FFT bin, if there were ``mel_bins`` of them."""
    bins = _mel(np.arange(config.fft_size // 2 + 1) * config.sample_rate / config.fft_size)
    corners = np.linspace(_mel(config.lowest_hz), _mel(config.highest_hz), mel_bins + 2)
    after_start = np.searchsorted(bins, corners[:-2], side="right")
    before_end = np.searchsorted(bins, corners[2:], side="left")
    return int(np.count_nonzero(after_start >= before_end))


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
        hint="leave the recording out, or repair it",
    )


def _length(samples: int, config: KeywordFeatureConfig) -> str:
    return f"{samples} samples ({1000 * samples / config.sample_rate:g} ms)"
