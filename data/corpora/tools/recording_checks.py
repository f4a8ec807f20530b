"""Checks level, clipping and length of a recording of a known sentence; says what to do about a problem."""

import numpy as np

from utils.audio.levels import clipped_fraction, frame_levels, speech_level

_CLIPPED = 0.002  # a recording is refused if a larger fraction of its samples is clipped
# A recording is silent or too quiet if its loud frames are below these levels in dB; read speech: -35 to -15.
_SILENT, _QUIET = -60.0, -45.0
_CONTRAST = 10.0  # least difference in dB between the loud frames and the softest ones
_SOFTEST_PERCENTILE = 5  # of the frame levels
_SPEECH_RANGE = 30.0  # dB below the loud frames; softer frames at both ends count as pauses
_SLOWEST, _FASTEST = 1.2, 9.0  # accepted syllables a second; read sentences have 3 to 6
_MARGIN_SECONDS = 0.4  # tolerance of the length, because that of a single syllable varies more


def find_problem(samples: np.ndarray, rate: int, syllables: int) -> str | None:
    """Check level, clipping and length of a recording.

    Args:
        samples: (samples,) float32 in [-1, 1].
        rate: Hz.
        syllables: number of syllables in the sentence.

    Returns:
        What is wrong and what to do, or None.
    """
    if not len(samples):
        return "nothing was recorded"
    level = speech_level(samples, rate)
    if level < _SILENT:
        return f"silence ({level:.0f} dB): is this the right microphone, and is it switched on?"
    if level < _QUIET:
        return f"too quiet ({level:.0f} dB): move closer, or raise the input level"
    if (clipped := clipped_fraction(samples)) > _CLIPPED:
        return f"clipped ({clipped:.1%} of the samples): move away, or lower the input level"
    levels = frame_levels(samples, rate)
    if level - np.percentile(levels, _SOFTEST_PERCENTILE) < _CONTRAST:
        return "no speech that is louder than the background: find a quieter place, or move closer"
    loud = np.flatnonzero(levels > level - _SPEECH_RANGE)
    seconds = (loud[-1] - loud[0] + 1) * len(samples) / rate / len(levels)
    if seconds + _MARGIN_SECONDS < syllables / _FASTEST:
        return f"{seconds:.1f} s of speech are too short for {syllables} syllables: was the end cut off?"
    if seconds > syllables / _SLOWEST + _MARGIN_SECONDS:
        return f"{seconds:.1f} s of speech are too long for {syllables} syllables: were there other words?"
    return None
