"""Computes the features of acoustic models: log (mel) spectrogram, MFCC with deltas, or those of Whisper.

Like ``python_speech_features`` and other published systems, whose settings are the defaults, the first three
work on samples at 16-bit scale (±32768); those of Whisper are in `utils.features.whisper`. The Fourier
transform is computed in double precision, because in single precision a bin far below the peak of its frame
would be rounding error. What follows adds up powers and takes logarithms, for which single precision is
enough, and faster; but coefficients and deltas of MFCC are small differences of logarithms, which are
therefore computed in double precision.
"""

import dataclasses
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from utils.audio.levels import peak_without_clicks
from utils.audio.reading import HIGHEST_RATE, INT16_SCALE, SAMPLE_RATE
from utils.errors import require
from utils.features import whisper
from utils.features.running_normalisation import InitialMean, RunningNormalisation
from utils.features.spectra import Sound, cepstra_with_deltas, mel_filters, power_blocks
from utils.features.whisper import FRAME_SAMPLES, HOP_SAMPLES

DEFAULT_BINS = {"spectrogram": 200, "filter_bank": 80, "mfcc": 13, "whisper": 80}
# As in published systems; the frames of python_speech_features have no window function.
DEFAULT_WINDOW = {
    "spectrogram": "hamming",
    "filter_bank": "rectangular",
    "mfcc": "rectangular",
    "whisper": "hann",
}
WINDOWS = ("rectangular", "hamming")
RUNNING = ("running", "running_ltass")
NORMALISATIONS = ("none", "utterance", *RUNNING)

# Increase it when the same settings give ordinary speech other features: cached ones are computed again.
_VERSION = 2

# python_speech_features' constants
_PREEMPHASIS = 0.97
_LONGEST_FRAME_MS = 1000
_MFCC_FILTERS = 26
_SMALLEST = np.finfo(np.float64).eps  # replaces an energy of zero (in single precision) in a logarithm

# The lowest value of normalised features is 80 dB below the peak of the utterance (without clicks): digital
# silence is log(0), and the noise of a recording is rarely lower (0.4 % of the values of read 16-bit speech).
_FLOOR = 1e-8
# The peak of a stream is unknown: the floor is the noise of rounding to 16 bits, in a wide mel filter.
_ROUNDING_ENERGY = 1.0
_ACTIVE_ENERGY = 1e-3  # 30 dB below the loudest frame
_SMALLEST_DEVIATION = 1e-3  # an utterance with a lower deviation is silent: its features become zero


@dataclass(frozen=True)
class FeatureConfig:
    """Feature settings; saved with every model.

    Attributes:
        kind: ``spectrogram`` (log magnitude), ``filter_bank`` (log mel), ``mfcc`` (+ deltas) or ``whisper``
            (log mel as Whisper computes it, which fixes rate, frame, hop and window).
        sample_rate: Hz; audio of another rate is resampled.
        frame_ms: frame length in milliseconds.
        hop_ms: time from the start of one frame to the next, in milliseconds.
        bins: values per frame; None = 200 / 80 / 13, or fewer at low sample rates (see :func:`default_bins`).
            For ``mfcc`` the coefficients without deltas (a frame has three times as many values).
        normalise: ``none``, ``utterance`` (see :func:`normalise_utterance`; for ``whisper`` the same highest
            value in each utterance, see `utils.features.whisper`), or by the frames so far, which
            also works for streams (``filter_bank`` only, see `utils.features.running_normalisation`):
            ``running`` begins with the same level in each bin, ``running_ltass`` with the long-term average
            spectrum of speech.
        window: ``hamming`` or ``rectangular``; None = the default of the kind. A Hamming window of 50 ms
            resolves the harmonics of a voice and therefore its pitch, which carries the tones.
    """

    kind: str = "filter_bank"
    sample_rate: int = SAMPLE_RATE
    frame_ms: float = 25.0
    hop_ms: float = 10.0
    bins: int | None = None
    normalise: str = "utterance"
    window: str | None = None

    def __post_init__(self):
        require(
            self.kind in DEFAULT_BINS,
            f"unknown features.kind '{self.kind}'",
            hint=f"one of: {', '.join(DEFAULT_BINS)}",
        )
        require(
            self.normalise in NORMALISATIONS,
            f"unknown features.normalise '{self.normalise}'",
            hint=f"one of: {', '.join(NORMALISATIONS)}",
        )
        require(
            self.normalise not in RUNNING or self.kind == "filter_bank",
            f"features.normalise '{self.normalise}' is for log mel energies, features.kind is '{self.kind}'",
            hint="use features.kind=filter_bank",
        )
        published = (SAMPLE_RATE, FRAME_SAMPLES, HOP_SAMPLES, None)
        require(
            self.kind != "whisper"
            or (self.sample_rate, self.frame_samples, self.hop_samples, self.window) == published,
            "features.kind 'whisper' has fixed settings of rate, frame, hop and window",
            hint="leave out features.sample_rate, frame_ms, hop_ms and window",
        )
        require(
            self.window in (None, *WINDOWS),
            f"unknown features.window '{self.window}'",
            hint=f"one of: {', '.join(WINDOWS)}",
        )
        require(
            min(self.sample_rate, self.frame_ms, self.hop_ms, self.hop_samples) > 0,
            "features.sample_rate, frame_ms and hop_ms must be above 0",
        )
        require(
            self.sample_rate <= HIGHEST_RATE and max(self.frame_ms, self.hop_ms) <= _LONGEST_FRAME_MS,
            f"features.sample_rate is {self.sample_rate}, frame_ms {self.frame_ms:g}, hop_ms {self.hop_ms:g}",
            hint=f"at most {HIGHEST_RATE:,} Hz and {_LONGEST_FRAME_MS:,} ms",
        )
        usual = default_bins(self.kind, self.frame_samples, self.fft_size, self.sample_rate)
        if self.bins is None and usual != DEFAULT_BINS[self.kind]:
            # Set here, so that the config of a run contains the number that its model was built for.
            object.__setattr__(self, "bins", usual)
        limits = {"spectrogram": self.frame_samples // 2, "mfcc": _MFCC_FILTERS}
        limit = limits.get(self.kind, self.fft_size // 2)
        require(
            1 <= self.base_bins <= limit,
            f"features.bins is {self.bins}",
            hint=f"{self.kind} has 1 to {limit} bins here",
        )

    @property
    def frame_samples(self) -> int:
        """Samples per frame: 400 for 25 ms at 16 kHz."""
        return int(self.frame_ms * self.sample_rate / 1000 + 0.5)

    @property
    def hop_samples(self) -> int:
        """Samples from one frame to the next: 160 for 10 ms at 16 kHz."""
        return int(self.hop_ms * self.sample_rate / 1000 + 0.5)

    @property
    def hop_seconds(self) -> float:
        """Seconds from one frame to the next: those of ``hop_samples``."""
        return self.hop_samples / self.sample_rate

    @property
    def fft_size(self) -> int:
        """FFT length: the frame itself for the spectrogram, else the next power of two (512)."""
        if self.kind in ("spectrogram", "whisper"):
            return self.frame_samples
        return 1 << (self.frame_samples - 1).bit_length()

    @property
    def base_bins(self) -> int:
        """Bins without deltas."""
        return DEFAULT_BINS[self.kind] if self.bins is None else self.bins


def default_bins(kind: str, frame_samples: int, fft_size: int, sample_rate: int) -> int:
    """The number of bins if none is given: at 16 kHz that of ``DEFAULT_BINS``.

    At other sample rates, a spectrogram has at most the bins up to half the rate (100 of 200 at 8 kHz), and a
    filter bank has the largest number of filters that all contain an FFT bin.
    """
    default = DEFAULT_BINS[kind]
    if kind == "spectrogram":
        return min(default, max(1, frame_samples // 2))
    if kind == "mfcc" or sample_rate == SAMPLE_RATE:
        return default
    counts = range(default, 1, -1)
    return next((count for count in counts if not empty_filters(count, fft_size, sample_rate)), 1)


def empty_filters(filters: int, fft_size: int, sample_rate: int) -> int:
    """The number of mel filters without an FFT bin, among ``filters``: their value is constant."""
    return filters - int(np.count_nonzero(mel_filters(filters, fft_size, sample_rate).sum(axis=0)))


def feature_bins(config: FeatureConfig) -> int:
    """Values in a frame, the last dimension of :func:`extract_features`."""
    return config.base_bins * (3 if config.kind == "mfcc" else 1)


def settings_hash(config: FeatureConfig) -> str:
    """16 hexadecimal digits that change with everything that determines the features."""
    resolved = {"bins": config.base_bins, "window": config.window or DEFAULT_WINDOW[config.kind]}
    values = {**dataclasses.asdict(config), **resolved, "version": _VERSION}
    return hashlib.blake2b(json.dumps(values, sort_keys=True).encode(), digest_size=8).hexdigest()


def frame_count(samples: int, config: FeatureConfig) -> int:
    """The number of frames of ``samples`` samples, at least 1.

    The spectrogram has whole frames only; filter bank and MFCC pad the last frame with zeros, as
    python_speech_features does; the frames of Whisper are centred.
    """
    if config.kind == "whisper":
        return whisper.frame_count(samples)
    beyond = max(0, samples - config.frame_samples)
    partial = config.kind != "spectrogram" and beyond % config.hop_samples > 0
    return 1 + beyond // config.hop_samples + partial


def first_frame_seconds(config: FeatureConfig) -> float:
    """Time of the middle of the first frame: frames of Whisper are centred, the others begin at the start."""
    return 0.0 if config.kind == "whisper" else config.frame_samples / config.sample_rate / 2


def extract_features(samples: np.ndarray, config: FeatureConfig) -> np.ndarray:
    """Features of one utterance.

    Args:
        samples: (samples,) floats in [-1, 1] at ``config.sample_rate``.
        config: the settings.

    Returns:
        (frames, bins) float32, finite for any finite samples; bins = ``feature_bins(config)``.

    Raises:
        ValueError: the samples are not one-dimensional, or the array is empty.
    """
    if samples.ndim != 1 or not len(samples):
        raise ValueError(f"expected mono samples, got an array of shape {samples.shape}")
    if config.kind == "whisper":
        return whisper.log_mel(samples, config.base_bins, config.normalise == "utterance")
    sound = sound_of(samples, config)
    if config.kind == "filter_bank":
        features, energies = log_filter_bank(sound, config)
    elif config.kind == "mfcc":
        features, energies = _mfcc_with_deltas(sound, config)
    else:
        features, energies = log_spectrogram(sound, config)
    return _normalised(features, energies, config)


def _normalised(features: np.ndarray, energies: np.ndarray, config: FeatureConfig) -> np.ndarray:
    if config.normalise == "utterance":
        features = normalise_utterance(features, energies, config)
    elif config.normalise in RUNNING:
        features = running_normalisation(config)(features)
    return features.astype(np.float32, copy=False)


def running_normalisation(config: FeatureConfig) -> RunningNormalisation:
    """At the start of a stream; ``config.normalise`` is one of ``RUNNING``."""
    if config.normalise == "running":
        initial = InitialMean.flat(config.base_bins)
    else:
        filters = mel_filters(config.base_bins, config.fft_size, config.sample_rate)
        initial = InitialMean.average_speech(filters, config.sample_rate, _window(config))
    return RunningNormalisation(initial, config.hop_seconds)


def normalise_utterance(features: np.ndarray, energies: np.ndarray, config: FeatureConfig) -> np.ndarray:
    """Subtract the mean of each bin and divide by one deviation for all bins.

    Mean and deviation are those of the active frames, which are at most 30 dB below the loudest frame. One
    second of silence before an utterance then changes its filter bank features by 0.02 deviations
    (spectrogram: 0.1), measured on read speech; with all frames it would be 0.5 to 0.8. Clicks, which would
    be the only active frames of a quiet recording, are left out. The mean of each bin removes the channel. A
    deviation for each bin would amplify bins without sound (band-limited audio, filters without an FFT bin).
    MFCC have one deviation for the coefficients and one for each kind of deltas.

    Args:
        features: (frames, bins) float.
        energies: (frames,) float, of each frame.
        config: the settings.

    Returns:
        (frames, bins) of the same type.
    """
    level = peak_without_clicks(energies, config.frame_ms, config.hop_ms)
    active = np.flatnonzero((energies >= _ACTIVE_ENERGY * level) & (energies <= level))
    mean = features.take(active, axis=0).mean(axis=0, dtype=np.float64)
    normalised = features - mean.astype(features.dtype)
    for part in range(0, features.shape[1], config.base_bins):
        columns = normalised[:, part : part + config.base_bins]
        deviation = np.sqrt(np.square(columns.take(active, axis=0)).mean())
        columns /= np.inf if deviation < _SMALLEST_DEVIATION else deviation
    return normalised


def sound_of(samples: np.ndarray, config: FeatureConfig, before: float = 0.0) -> Sound:
    """Samples (samples,) in [-1, 1], to be read at 16-bit scale, with pre-emphasis except for a spectrogram.

    ``before`` is the sample before the first.
    """
    return Sound(samples, INT16_SCALE, 0.0 if config.kind == "spectrogram" else _PREEMPHASIS, before)


def log_spectrogram(sound: Sound, config: FeatureConfig) -> tuple[np.ndarray, np.ndarray]:
    """log(|FFT| + 1) of windowed frames, the lowest bins (frames, bins), and their energy (frames,)."""
    frames = frame_count(len(sound.samples), config)
    spectrogram, totals = np.empty((frames, config.base_bins), np.float32), np.empty(frames, np.float32)
    for rows, power in _power_blocks(sound, config):
        lowest = power[:, : config.base_bins]
        totals[rows] = lowest.sum(axis=1)
        np.log1p(np.sqrt(lowest), out=spectrogram[rows])
    return spectrogram, totals


def log_filter_bank(sound: Sound, config: FeatureConfig) -> tuple[np.ndarray, np.ndarray]:
    """``python_speech_features.logfbank``, (frames, bins), and the energy of each frame (frames,)."""
    filters = mel_filters(config.base_bins, config.fft_size, config.sample_rate)
    energies = np.empty((frame_count(len(sound.samples), config), config.base_bins), np.float32)
    for rows, power in _power_blocks(sound, config):
        energies[rows] = power @ filters  # (block, fft / 2 + 1) @ (fft / 2 + 1, filters)
    energies = _raised(energies, _floor(energies, config))
    totals = energies.sum(axis=1)
    return np.log(energies, out=energies), totals


def _mfcc_with_deltas(sound: Sound, config: FeatureConfig) -> tuple[np.ndarray, np.ndarray]:
    """``python_speech_features.mfcc`` with first and second deltas, (frames, 3 × bins), and the energy."""
    filters = mel_filters(_MFCC_FILTERS, config.fft_size, config.sample_rate)
    frames = frame_count(len(sound.samples), config)
    energies, totals = np.empty((frames, _MFCC_FILTERS), np.float32), np.empty(frames, np.float32)
    for rows, power in _power_blocks(sound, config):
        energies[rows], totals[rows] = power @ filters, power.sum(axis=1) / config.fft_size
    floor = _floor(energies, config, totals)
    energies, totals = _raised(energies, floor), _raised(totals, floor)
    return cepstra_with_deltas(energies, totals, config.base_bins), totals


def _floor(energies: np.ndarray, config: FeatureConfig, totals: np.ndarray | None = None) -> float:
    """The lowest energy of a filter in (frames, bins); ``totals``: energies of frames, else the sums."""
    if config.normalise == "utterance":
        totals = energies.sum(axis=1) if totals is None else totals
        level = peak_without_clicks(totals, config.frame_ms, config.hop_ms)
        return _FLOOR * energies.max(axis=1)[totals <= level].max()
    return _ROUNDING_ENERGY if config.normalise in RUNNING else 0.0


def _raised(energies: np.ndarray, floor: float) -> np.ndarray:
    """Energies that are at least the floor, and above zero."""
    energies = np.maximum(energies, np.float32(floor))
    energies[energies == 0] = _SMALLEST
    return energies


def _power_blocks(sound: Sound, config: FeatureConfig) -> Iterator[tuple[slice, np.ndarray]]:
    """Power spectra of blocks of frames: (rows, (block, fft / 2 + 1) float32, for this step only)."""
    frames = frame_count(len(sound.samples), config)
    return power_blocks(sound, frames, config.hop_samples, _window(config), config.fft_size)


def _window(config: FeatureConfig) -> np.ndarray:
    hamming = (config.window or DEFAULT_WINDOW[config.kind]) == "hamming"
    return (_hamming if hamming else np.ones)(config.frame_samples)


@lru_cache(maxsize=8)
def _hamming(samples: int) -> np.ndarray:
    window = np.hamming(samples)
    window.setflags(write=False)
    return window
