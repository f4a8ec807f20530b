"""Length, sample rate and channels of recordings, as they are stored: before mixing and resampling."""

import contextlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from utils.audio.decoding import open_sound
from utils.audio.reading import checked
from utils.errors import AudioError

_RATES_CHECKED = 50  # recordings whose sample rates are read before a training


def audio_seconds(path: str | Path) -> float:
    """Length of a recording in seconds: of uncompressed files from the header, of others by decoding.

    Raises:
        AudioError: the file is missing, empty, not audio, or its header shows that it is cut off.
    """
    return seconds_and_rate(path)[0]


def seconds_and_rate(path: str | Path) -> tuple[float, int]:
    """As :func:`audio_seconds`, and the sample rate in Hz."""
    with open_sound(path) as sound:
        frames = sum(map(len, sound.blocks)) if sound.frames is None else sound.frames
        return frames / sound.rate, sound.rate


def sample_rates_of(paths: Sequence[str | Path]) -> Counter[int]:
    """Count the sample rates (Hz) of up to 50 evenly chosen recordings; unreadable ones are ignored.

    Little more than headers is read, which is fast enough before each training.
    """
    rates: Counter[int] = Counter()
    for path in paths[:: -(-len(paths) // _RATES_CHECKED) or 1]:
        with contextlib.suppress(AudioError), open_sound(path) as sound:
            rates[sound.rate] += 1
    return rates


def channel_count(path: str | Path) -> int:
    """Channels of a recording; of one that can't be read, 1: reading it says why."""
    with contextlib.suppress(AudioError), open_sound(path) as sound:
        return next(sound.blocks).shape[1]
    return 1


def read_channels(path: str | Path) -> tuple[np.ndarray, int]:
    """Read a recording unchanged: (samples, channels) float32, and its sample rate in Hz.

    Raises:
        AudioError: the file is missing, empty, not audio, cut off, or holds NaN or unscaled samples.
    """
    with open_sound(path) as sound:
        blocks = [checked(block, path) for block in sound.blocks]
        return blocks[0] if len(blocks) == 1 else np.concatenate(blocks), sound.rate
