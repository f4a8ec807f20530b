"""Cuts recordings at pauses into pieces with features, in windows and batches for the acoustic model.

A recording is read block by block. A window collects pieces of several recordings, and the pieces of similar
length in it form a batch.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

from model_speech.acoustic_logits import AcousticLogits
from recognition.voice_activity import speech_stretches
from utils.audio.padding import with_pauses
from utils.audio.reading import audio_blocks
from utils.errors import AudioError
from utils.features.speech import extract_features
from utils.hypotheses.recognition import Ending

WINDOW_SECONDS = 300.0  # audio whose features are in memory at the same time
BATCH_FRAMES = 6_000  # feature frames in a batch, padding included


@dataclass(frozen=True)
class Channel:
    """One channel of a file, counted from 0."""

    path: str | Path
    number: int


# A file or a channel of it, mono samples in [-1, 1] at the model's sample rate, or blocks of such samples.
Audio = str | Path | Channel | np.ndarray | Iterator[np.ndarray]
Source = tuple[str, Audio]
"""The name of a recording, and its audio."""


@dataclass(frozen=True)
class Piece:
    """A part of a recording, ready for the acoustic model.

    Attributes:
        start: seconds from the start of the recording.
        seconds: length of the part.
        features: (frames, bins) float32.
        padding: seconds of silence before the part that the features have in addition.
    """

    start: float
    seconds: float
    features: np.ndarray
    padding: float = 0.0

    @classmethod
    def of_samples(cls, start: float, samples: np.ndarray, acoustic: AcousticLogits) -> Self:
        """The piece of samples (n,), mono in [-1, 1] at the sample rate of the model's features.

        Silence is added where it begins or ends with speech, and so that the frames of the acoustic model
        fall on the same samples wherever the piece was cut (:func:`utils.audio.padding.with_pauses`).

        Args:
            start: seconds from the start of the recording.
            samples: the sound.
            acoustic: the model.
        """
        features, rate = acoustic.features, acoustic.features.sample_rate
        output_frame = round(acoustic.frame_seconds * rate)
        padded, padding = with_pauses(samples, rate, output_frame)
        found = extract_features(padded, features)
        return cls(start, len(samples) / rate, found, padding)


Part = tuple[int, str, Piece | Ending]
"""The number and name of a recording, and a piece of it or its end."""


def windows(
    sources: Iterable[Source], sample_rate: int, piece: Callable[[float, np.ndarray], Piece]
) -> Iterator[list[Part]]:
    """The pieces of all recordings in order, each recording followed by its ending, in groups.

    A group has about :data:`WINDOW_SECONDS`: enough for batches of similar length, few enough for memory.
    Of blocks, which may be live audio, each piece comes alone and at once.

    Args:
        sources: the recordings.
        sample_rate: Hz, of the samples of a piece.
        piece: makes a piece of its start in seconds and its samples.
    """
    window: list[Part] = []
    seconds = 0.0
    for number, (name, audio) in enumerate(sources):
        longest = WINDOW_SECONDS if isinstance(audio, str | Path | Channel | np.ndarray) else 0.0
        for part in _parts_of(name, audio, sample_rate, piece):
            window.append((number, name, part))
            seconds += part.seconds if isinstance(part, Piece) else 0.0
            if seconds >= longest:
                yield window
                window, seconds = [], 0.0
    if window:
        yield window


def _parts_of(
    name: str, audio: Audio, rate: int, piece: Callable[[float, np.ndarray], Piece]
) -> Iterator[Piece | Ending]:
    length = 0

    def counted() -> Iterator[np.ndarray]:
        nonlocal length
        for block in _blocks(audio, rate):
            if not np.isfinite(block).all():
                raise AudioError("samples are NaN or infinite", where=name, hint="make the recording again")
            length += len(block)
            yield block

    error = None
    try:
        for stretch in speech_stretches(counted(), rate):
            yield piece(stretch.start / rate, stretch.samples)
        if not length:
            error = AudioError("there are no samples", where=name)
    except AudioError as caught:
        error = caught
    yield Ending(length / rate, error)


def _blocks(audio: Audio, rate: int) -> Iterable[np.ndarray]:
    if isinstance(audio, np.ndarray):
        return [audio]
    if isinstance(audio, Channel):
        return audio_blocks(audio.path, rate, audio.number)
    return audio_blocks(audio, rate) if isinstance(audio, str | Path) else audio


def batches_of(frames: Sequence[int]) -> Iterator[list[int]]:
    """Indices by ascending length; as many in a batch as fit with their padding, at least one."""
    batch: list[int] = []
    for i in sorted(range(len(frames)), key=frames.__getitem__):
        if batch and (len(batch) + 1) * frames[i] > BATCH_FRAMES:
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch
