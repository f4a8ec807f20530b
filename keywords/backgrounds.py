"""Recordings in; what a streamed keyword model makes of them, kept in two halves that share no sound, out.

A threshold that was chosen on some sound says too little of false alarms on that very sound: one half is to
choose it on, the other to count on. Long recordings are cut in the middle, short ones take turns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tqdm import tqdm

from keywords.listening import Listener, probabilities_of
from streaming.keyword.detection import Detection
from utils.audio.reading import audio_blocks, audio_seconds, find_recordings
from utils.errors import AudioError

_CUT_SECONDS = 60.0  # shorter recordings stay whole


@dataclass(frozen=True)
class Sound:
    """What a model made of some recordings, one after the other.

    Attributes:
        probabilities: (calls, labels) float32.
        seconds: of sound.
    """

    probabilities: np.ndarray
    seconds: float

    @property
    def hours(self) -> float:
        """Of sound."""
        return self.seconds / 3600

    def detections(self, listener: Listener, threshold: float) -> list[Detection]:
        """What is heard at a threshold."""
        return listener.detector(threshold).feed(self.probabilities)


def recordings_of(places: Sequence[Path]) -> list[Path]:
    """All recordings in these folders, and files; each one's header is looked at.

    Raises:
        AudioError: no such folder or file, no recordings in it, or one that can't be read.
    """
    found: list[Path] = []
    for place in places:
        if not place.exists():
            hint = "give a folder of recordings, or a recording"
            raise AudioError("no such folder of background recordings", where=place, hint=hint)
        found += find_recordings(place) if place.is_dir() else [place]
    for path in found:
        audio_seconds(path)
    return found


def hear(listener: Listener, recordings: Sequence[Path]) -> Sound:
    """Let a model listen to recordings as to one stream: in short ones too it is deaf at the start only."""
    return _heard(listener, [(path, np.inf) for path in recordings], half=0)


def hear_halves(listener: Listener, recordings: Sequence[Path]) -> tuple[Sound, Sound]:
    """Let a model listen to two halves of the sound; recordings of a minute and more are cut in the middle.

    Raises:
        AudioError: a recording can't be read.
    """
    cuts: list[tuple[Path, float]] = []
    short = 0
    for path in recordings:
        seconds = audio_seconds(path)
        if seconds >= _CUT_SECONDS:
            cuts.append((path, seconds / 2))
        else:
            cuts.append((path, 0.0 if short % 2 else np.inf))
            short += 1
    return _heard(listener, cuts, half=0), _heard(listener, cuts, half=1)


def _heard(listener: Listener, cuts: Sequence[tuple[Path, float]], half: int) -> Sound:
    """What is before each recording's cut (in seconds), or what is after it."""
    rate, samples = listener.sample_rate, 0
    parts = [np.zeros((0, len(listener.labels)), np.float32)]
    listener.stream.reset()
    with tqdm(desc="listening", unit="s", disable=None) as bar:
        for path, cut in cuts:
            for block in _half_of(path, rate, cut * rate, half):
                samples += len(block)
                parts += [one.astype(np.float32) for one in probabilities_of(listener, [block])]
                bar.update(round(len(block) / rate, 3))
    return Sound(np.concatenate(parts), samples / rate)


def _half_of(path: Path, rate: int, cut: float, half: int) -> Iterator[np.ndarray]:
    """Blocks of a recording before sample ``cut`` (half 0), or after it (half 1)."""
    if cut == (np.inf if half else 0.0):
        return  # nothing of it: it needn't be decoded
    place = 0
    for block in audio_blocks(path, rate):
        before = int(min(max(cut - place, 0), len(block)))
        place += len(block)
        part = block[before:] if half else block[:before]
        if len(part):
            yield part
