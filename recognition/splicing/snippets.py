"""Cuts recordings with known texts into syllables: forced alignment, then the quietest moment between two.

A CTC model emits a syllable where it begins, to within an output frame.
"""

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from data.manifest import Utterance
from model_speech.ctc.alignment import align
from recognition.recognizer import AcousticLogits
from utils.audio.levels import speech_level
from utils.audio.reading import SAMPLE_RATE, read_audio
from utils.features.speech import extract_features
from utils.softmax import log_softmax

_LEAST_POSTERIOR = 0.2  # of a syllable where it is emitted; below, text or alignment are wrong
_SECONDS = (0.07, 0.6)  # range of the length of a snippet
_ONSET_SECONDS = 0.02  # from the emission of a syllable to its beginning, measured on the dev speakers
_REACH_SECONDS = 0.08  # around the beginning, in which the quietest moment is searched
_LEAD_SECONDS = 0.15  # as far before the first syllable
_LAST_SECONDS = (0.18, 0.45)  # range of the length of the last syllable
_LEVEL_SECONDS = 0.01  # window in which the level is measured
_QUIET_SECONDS = 0.15
_RECORDINGS_IN_MEMORY = 300  # recordings of a speaker


@dataclass(frozen=True, slots=True)
class Snippet:
    """A syllable of a recording.

    Attributes:
        recording: index of the recording.
        position: number of the syllable in the recording; of its transcript.
        start: first sample at 16 kHz; ``end`` is the one after the last.
    """

    recording: int
    position: int
    start: int
    end: int


def cut_recordings(acoustic: AcousticLogits, utterances: Iterable[Utterance]) -> Iterator[list[Snippet]]:
    """The usable syllables of each utterance; none where the text can't be aligned.

    Args:
        acoustic: model at 16 kHz that recognises most of the syllables.
        utterances: recordings with their syllables; the index of each is ``Snippet.recording``.
    """
    for number, utterance in enumerate(utterances):
        samples = read_recording(utterance.audio)
        logits, lengths = acoustic.logits([extract_features(samples, acoustic.features)])
        if not utterance.pinyin or not all(syllable in acoustic.vocabulary for syllable in utterance.pinyin):
            yield []
            continue
        log_probabilities = log_softmax(logits)
        tokens = acoustic.vocabulary.encode(utterance.pinyin)
        blank = acoustic.vocabulary.blank_index
        try:
            (peaks,) = align(log_probabilities, lengths, np.zeros(1, int), [tokens], blank)
        except ValueError:  # more syllables than frames
            yield []
            continue
        certain = log_probabilities[0, list(peaks), tokens] > np.log(_LEAST_POSTERIOR)
        times = (np.array(peaks) + 0.5) * acoustic.frame_seconds
        cuts = itertools.pairwise(find_cuts(samples, times).tolist())
        snippets = [Snippet(number, position, *bounds) for position, bounds in enumerate(cuts)]
        yield [snippet for snippet in snippets if certain[snippet.position] and _is_plausible(snippet)]


def find_cuts(samples: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Where a recording is cut: before, between and after its syllables.

    Args:
        samples: (samples,) at 16 kHz.
        times: (syllables,) seconds at which each syllable is emitted, ascending.

    Returns:
        (syllables + 1,) int64 samples: the quietest moments near the emissions, and one after the last.
    """
    size = int(_LEVEL_SECONDS * SAMPLE_RATE)
    power = np.convolve(np.square(samples, dtype=np.float64), np.ones(size), "same")
    onsets = times + _ONSET_SECONDS
    half = np.minimum(np.r_[np.inf, np.diff(times), np.inf] / 3, _REACH_SECONDS)
    earliest, latest = onsets - half[:-1], onsets + half[:-1]
    earliest[0] = onsets[0] - _LEAD_SECONDS
    cuts = []
    for first, last in zip(
        [*earliest, onsets[-1] + _LAST_SECONDS[0]], [*latest, onsets[-1] + _LAST_SECONDS[1]], strict=True
    ):
        begin = min(max(0, int(first * SAMPLE_RATE)), len(samples) - 1)
        end = max(begin + 1, min(len(samples), int(last * SAMPLE_RATE)))
        cuts.append(begin + int(power[begin:end].argmin()))
    return np.array(cuts)


def _is_plausible(snippet: Snippet) -> bool:
    return _SECONDS[0] <= (snippet.end - snippet.start) / SAMPLE_RATE <= _SECONDS[1]


@lru_cache(maxsize=_RECORDINGS_IN_MEMORY)
def read_recording(path: Path) -> np.ndarray:
    """Samples (samples,) at 16 kHz; the recordings of a speaker stay in memory."""
    return read_audio(path, SAMPLE_RATE)


@lru_cache(maxsize=_RECORDINGS_IN_MEMORY)
def quietest_part(path: Path) -> np.ndarray:
    """The quietest 0.15 s of a recording, (samples,) at 16 kHz: its background."""
    samples, size = read_recording(path), int(_QUIET_SECONDS * SAMPLE_RATE)
    energy = np.cumsum(np.square(samples, dtype=np.float64))
    start = int((energy[size:] - energy[:-size]).argmin()) if len(samples) > size else 0
    return samples[start : start + size]


@lru_cache(maxsize=_RECORDINGS_IN_MEMORY)
def recording_level(path: Path) -> float:
    """Level of the speech in a recording, in dB."""
    return speech_level(read_recording(path), SAMPLE_RATE)
