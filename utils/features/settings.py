"""The settings of the features of acoustic models, and what follows from them: bins, frames, a hash."""

import dataclasses
import hashlib
import json
from dataclasses import dataclass

import numpy as np

from utils.audio.reading import HIGHEST_RATE, SAMPLE_RATE
from utils.errors import require
from utils.features import whisper
from utils.features.spectra import mel_filters
from utils.features.whisper import FRAME_SAMPLES, HOP_SAMPLES
from utils.limits import check_choice

DEFAULT_BINS = {"spectrogram": 200, "filter_bank": 80, "mfcc": 13, "whisper": 80}
# As in published systems; the frames of python_speech_features have no window function.
DEFAULT_WINDOW = {
    "spectrogram": "hamming",
    "filter_bank": "rectangular",
    "mfcc": "rectangular",
    "whisper": "hann",
}
WINDOWS = ("rectangular", "hamming")
RUNNING = "running_ltass"
NORMALISATIONS = ("none", "utterance", RUNNING)

# Increase it when the same settings give ordinary speech other features: cached ones are computed again.
_VERSION = 2

MFCC_FILTERS = 26  # as in python_speech_features
_LONGEST_FRAME_MS = 1000


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
        normalise: ``none``, ``utterance`` (see `utils.features.log_spectra`; for ``whisper`` the same highest
            value in each utterance, see `utils.features.whisper`), or ``running_ltass`` by the frames so
            far, beginning with the long-term average spectrum of speech, which also works for streams
            (``filter_bank`` only, see `utils.features.running_normalisation`).
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
        check_choice(self, "features", kind=DEFAULT_BINS, normalise=NORMALISATIONS, window=(None, *WINDOWS))
        require(
            self.normalise != RUNNING or self.kind == "filter_bank",
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
        limits = {"spectrogram": self.frame_samples // 2, "mfcc": MFCC_FILTERS}
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
