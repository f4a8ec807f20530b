"""Cuts recordings with known texts into syllables: forced alignment, then the quietest moment between two.

The moment in a syllable at which a model emits it is measured: :func:`recognition.calibrate.measure_lead`.
"""

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from data.manifest import Utterance
from model_speech.acoustic_logits import AcousticLogits
from model_speech.ctc.alignment import align_text
from utils.audio.levels import moving_power, speech_level
from utils.audio.reading import SAMPLE_RATE, read_audio
from utils.features.speech import extract_features

_LEAST_POSTERIOR = 0.2  # of a syllable where it is emitted; below, text or alignment are wrong
_SECONDS = (0.07, 0.6)  # range of the length of a snippet
_HALF_SYLLABLE = 0.11  # seconds from the beginning of a syllable to its middle, on average
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


def successive_runs(snippets: Iterable[Snippet]) -> list[tuple[Snippet, ...]]:
    """Group snippets that follow each other in one recording without a gap, in the order given."""
    runs: list[list[Snippet]] = []
    for snippet in snippets:
        if runs and runs[-1][-1].recording == snippet.recording and runs[-1][-1].end == snippet.start:
            runs[-1].append(snippet)
        else:
            runs.append([snippet])
    return [tuple(run) for run in runs]


def cut_recordings(
    acoustic: AcousticLogits, utterances: Iterable[Utterance], lead_seconds: float
) -> Iterator[list[Snippet]]:
    """The usable syllables of each utterance; none where the text can't be aligned.

    Args:
        acoustic: model at 16 kHz that recognises most of the syllables.
        utterances: recordings with their syllables; the index of each is ``Snippet.recording``.
        lead_seconds: time from the emission of a syllable to its middle.
    """
    for number, utterance in enumerate(utterances):
        samples = read_recording(utterance.audio)
        logits, lengths = acoustic.logits([extract_features(samples, acoustic.features)])
        aligned = align_text(logits[0, : lengths[0]], utterance.pinyin, acoustic.vocabulary)
        if aligned is None:
            yield []
            continue
        frames, log_probabilities = aligned
        certain = log_probabilities > np.log(_LEAST_POSTERIOR)
        onsets = (frames + 0.5) * acoustic.frame_seconds + lead_seconds - _HALF_SYLLABLE
        cuts = itertools.pairwise(find_cuts(samples, onsets).tolist())
        snippets = [Snippet(number, position, *bounds) for position, bounds in enumerate(cuts)]
        yield [snippet for snippet in snippets if certain[snippet.position] and _is_plausible(snippet)]


def find_cuts(samples: np.ndarray, onsets: np.ndarray) -> np.ndarray:
    """Where a recording is cut: before, between and after its syllables.

    Args:
        samples: (samples,) at 16 kHz.
        onsets: (syllables,) seconds at which each syllable probably begins, ascending.

    Returns:
        (syllables + 1,) int64 samples: the quietest moments near the onsets, and one after the last syllable.
    """
    power = moving_power(samples, SAMPLE_RATE, _LEVEL_SECONDS)
    half = np.minimum(np.r_[np.inf, np.diff(onsets), np.inf] / 3, _REACH_SECONDS)
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
