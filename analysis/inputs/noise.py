"""A recording's samples in, an estimate of its signal-to-noise ratio out."""

from __future__ import annotations

import numpy as np

FRAME_SECONDS = 0.02
# The noise is what is left where nobody speaks: in the quietest tenth of the frames. Read speech pauses that
# much even between words, and one window of 20 ms of steady noise hardly differs from the next.
QUIETEST = 0.1
SPEECH_ABOVE_NOISE = 2.0  # power; a frame below it says nothing of the speech
FEWEST_FRAMES = 10
LOWEST_DB, HIGHEST_DB = -10.0, 60.0


def signal_to_noise(samples: np.ndarray, sample_rate: int) -> float | None:
    """Mean power of speech over that of the noise beneath it, in dB, from -10 to 60.

    Assumes that the noise is steady within the recording, and that there are pauses: for music or babble the
    estimate is too high. Silence put in by a computer makes it 60 dB.

    Args:
        samples: (samples,) float, mono, of any scale.
        sample_rate: Hz.

    Returns:
        None if there are less than 0.2 s, or nothing but zeros.
    """
    size = int(sample_rate * FRAME_SECONDS)
    frames = samples[: len(samples) // size * size].reshape(-1, size).astype(np.float64)  # (frames, size)
    frames = frames - frames.mean(axis=1, keepdims=True)  # neither an offset nor hum of some Hz is noise here
    power = np.sort(np.square(frames).mean(axis=1))  # (frames,)
    if len(power) < FEWEST_FRAMES or power[-1] == 0:
        return None
    quietest = power[: max(FEWEST_FRAMES // 2, round(QUIETEST * len(power)))]
    noise = float(quietest.mean())
    spoken = power[power > SPEECH_ABOVE_NOISE * noise]
    if noise == 0:
        return HIGHEST_DB
    if not len(spoken):
        return LOWEST_DB
    decibels = 10.0 * np.log10((spoken.mean() - noise) / noise)
    return float(np.clip(decibels, LOWEST_DB, HIGHEST_DB))
