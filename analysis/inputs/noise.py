"""Estimates the signal-to-noise ratio of a recording from the power of its quietest frames."""

import numpy as np

FRAME_SECONDS = 0.02  # length of a frame; frames do not overlap
# The noise is measured in the quietest tenth of the frames. Even read speech has that many pauses between
# words, and the power of steady noise hardly differs between frames of 20 ms.
QUIETEST = 0.1  # fraction of the frames
SPEECH_ABOVE_NOISE = 2.0  # ratio of powers; frames below it do not count as speech
MIN_FRAMES = 10  # shorter recordings have no estimate
MIN_DB, MAX_DB = -10.0, 60.0  # the estimate is clipped to this range


def signal_to_noise(samples: np.ndarray, sample_rate: int) -> float | None:
    """The ratio of the mean power of speech to that of the noise in dB, from -10 to 60.

    The estimate assumes steady noise and pauses in the speech; for music or babble it is too high. For a
    recording with digital silence it is 60 dB.

    Args:
        samples: (samples,) float, mono, of any scale.
        sample_rate: Hz.

    Returns:
        None for less than 0.2 s, or if all samples are zero.
    """
    size = int(sample_rate * FRAME_SECONDS)
    frames = samples[: len(samples) // size * size].reshape(-1, size).astype(np.float64)  # (frames, size)
    frames = frames - frames.mean(
        axis=1, keepdims=True
    )  # removes offset and low hum, which are not noise here
    power = np.sort(np.square(frames).mean(axis=1))  # (frames,)
    if len(power) < MIN_FRAMES or power[-1] == 0:
        return None
    quietest = power[: max(MIN_FRAMES // 2, round(QUIETEST * len(power)))]
    noise = float(quietest.mean())
    spoken = power[power > SPEECH_ABOVE_NOISE * noise]
    if noise == 0:
        return MAX_DB
    if not len(spoken):
        return MIN_DB
    return float(np.clip(10.0 * np.log10((spoken.mean() - noise) / noise), MIN_DB, MAX_DB))
