"""Adds silence to a recording that begins or ends with speech, and shortens the pauses at its edges.

The recordings of corpora begin and end with a pause. An acoustic model that was trained on them recognises
the first and the last syllable of a recording without pauses worse; a short silence removes most of the
difference (``docs/what_helped.md`` has the figures).
"""

import numpy as np

from utils.audio.levels import peak_without_clicks

LEAST_SECONDS = 0.08
"""A shorter pause before the first or after the last sound is made longer."""
PAUSE_SECONDS = 0.12
"""Length of such a pause with the added silence."""
SOUND_DB = -25.0
"""Level of a sound, relative to the loudest 25 ms that are no click; anything below is a pause."""
_KEPT_SECONDS = 0.03  # beside the first and the last sound when pauses are shortened: weak consonants
_BLOCK_SECONDS = 0.005
_SMOOTHED_BLOCKS = 5  # 25 ms


def with_pauses(samples: np.ndarray, sample_rate: int, grid: int = 1) -> tuple[np.ndarray, float]:
    """Add silence before the first and after the last sound where there is hardly a pause.

    Args:
        samples: (n,) floating-point, mono.
        sample_rate: Hz.
        grid: as much more silence is added before them as moves the largest sample to a multiple of this.

    Returns:
        the samples, (n + added,), and the seconds that were added before them.
    """
    sound = _find_sound(samples, sample_rate)
    if sound is None:
        return samples, 0.0
    pauses = (sound.start, len(samples) - sound.stop)  # samples
    least, target = LEAST_SECONDS * sample_rate, round(PAUSE_SECONDS * sample_rate)
    before, after = (max(0, int(target - pause)) if pause < least else 0 for pause in pauses)
    before += -(int(np.abs(samples).argmax()) + before) % grid
    return np.pad(samples, (before, after)), before / sample_rate


def trim_pauses(samples: np.ndarray, sample_rate: int, rng: np.random.Generator) -> np.ndarray:
    """Shorten the pauses before the first and after the last sound to random parts of them, from 0.03 s on.

    Args:
        samples: (n,) floating-point, mono.
        sample_rate: Hz.
        rng: random generator.

    Returns:
        A part of the samples, a view; all of them where there is no sound.
    """
    sound = _find_sound(samples, sample_rate)
    if sound is None:
        return samples
    kept = round(_KEPT_SECONDS * sample_rate)
    start = int(rng.integers(max(0, sound.start - kept) + 1))
    stop = int(rng.integers(min(sound.stop + kept, len(samples)), len(samples) + 1))
    return samples[start:stop]


def _find_sound(samples: np.ndarray, sample_rate: int) -> slice | None:
    """From the first sound to the last; None if there is none."""
    size = round(_BLOCK_SECONDS * sample_rate)
    power = np.square(samples[: len(samples) // size * size]).reshape(-1, size).mean(axis=1)  # of each block
    if len(power) < _SMOOTHED_BLOCKS:
        return None
    level = np.convolve(power, np.ones(_SMOOTHED_BLOCKS), "same")
    block_ms = 1000.0 * _BLOCK_SECONDS
    peak = peak_without_clicks(level, _SMOOTHED_BLOCKS * block_ms, block_ms)
    sounds = np.flatnonzero(level > peak * 10.0 ** (SOUND_DB / 10.0))
    if not len(sounds):  # digital silence
        return None
    return slice(int(sounds[0]) * size, (int(sounds[-1]) + 1) * size)
