"""Streaming feature extraction: each frame of a stream as soon as its samples are complete.

All frames together equal those of :func:`utils.features.speech.extract_features` for the whole recording.
"""

import numpy as np

from utils.errors import require
from utils.features.log_spectra import log_filter_bank, log_spectrogram, running_normalisation, sound_of
from utils.features.settings import RUNNING, FeatureConfig, feature_bins, frame_count


class FeatureStream:
    """Features of a stream; the frames of all calls and of `flush` equal `extract_features` of all samples.

    Args:
        config: the settings; ``normalise`` must not be ``utterance``.

    Raises:
        ConfigError: the features need later frames: normalisation by utterance, or the deltas of MFCC.
    """

    def __init__(self, config: FeatureConfig):
        _check(config)
        self._config = config
        self.reset()

    def reset(self) -> None:
        """Forget all samples: the next one is the first of a recording."""
        config = self._config
        self._samples = 0  # received so far
        self._frames = 0  # returned so far
        self._pending = np.zeros(0)  # the samples from the next frame on
        self._before = 0.0  # the sample before these
        self._normalise = running_normalisation(config) if config.normalise == RUNNING else None

    def feed(self, samples: np.ndarray) -> np.ndarray:
        """Process the next samples (n,) in [-1, 1]; return the frames that they complete, (m, F) float32."""
        self._samples += len(samples)
        self._pending = np.concatenate([self._pending, samples])
        beyond = len(self._pending) - self._config.frame_samples
        whole = 0 if beyond < 0 else 1 + beyond // self._config.hop_samples
        end = (whole - 1) * self._config.hop_samples + self._config.frame_samples
        frames = self._features(self._pending[: end if whole else 0])
        done = whole * self._config.hop_samples
        if done:
            self._before, self._pending = self._pending[done - 1], self._pending[done:]
        return frames

    def flush(self) -> np.ndarray:
        """The last, partial frame (1, F), or none (0, F); then `reset`."""
        missing = self._samples > 0 and frame_count(self._samples, self._config) > self._frames
        frames = self._features(self._pending if missing else self._pending[:0])
        self.reset()
        return frames

    def _features(self, samples: np.ndarray) -> np.ndarray:
        if not len(samples):
            return np.zeros((0, feature_bins(self._config)), np.float32)
        compute = log_filter_bank if self._config.kind == "filter_bank" else log_spectrogram
        frames, _ = compute(sound_of(samples, self._config, self._before), self._config)  # (m, F)
        self._frames += len(frames)
        return (self._normalise(frames) if self._normalise else frames).astype(np.float32)


def _check(config: FeatureConfig) -> None:
    """Refuse features that a stream can't compute; the hint says what to use instead."""
    require(
        config.normalise != "utterance",
        "features.normalise is 'utterance', which needs the whole utterance before its first frame",
        hint="train a model on features.normalise=running_ltass: see configs/speech/compact_streaming.yaml",
    )
    require(
        config.kind != "mfcc",
        "features.kind is 'mfcc': its deltas need later frames",
        hint="train a model on features.kind=filter_bank",
    )
    require(
        config.hop_samples <= config.frame_samples,
        "features.hop_ms is longer than frame_ms: a stream can't skip samples",
        hint="train a model with a shorter hop",
    )
