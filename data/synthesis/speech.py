"""A text and a voice in, clean speech out: speed, pitch and the speaker's head drawn by chance."""

from __future__ import annotations

import numpy as np

from data.synthesis.synthesiser import SAMPLE_RATE as VOICE_RATE
from data.synthesis.synthesiser import Speech, Synthesiser
from utils.audio.reading import INT16_SCALE, SAMPLE_RATE, resample

_SPEED = (150, 210)  # words a minute, about 3.2 to 4.6 syllables a second
_PITCH = (30, 70)
_RANGE = (65, 100)  # espeak's usual 50 moves the pitch by two semitones, less than any speaker of Mandarin
# A voice comes out of smaller and larger heads: formants and pitch move together, as between people. Few of
# the voices are high, and without this those never heard go wrong four times as often as the low ones.
_HEAD_SCALE = (0.87, 1.17)
_SPEECH_RMS = 0.1  # before the recording; voices differ much in loudness


def speak_text(
    text: str,
    voice: str,
    rng: np.random.Generator,
    synthesiser: Synthesiser,
    definition: str = "",
    speeds: tuple[int, int] = _SPEED,
) -> np.ndarray:
    """A text in a voice: (samples,) float32 at 16 kHz, RMS 0.1.

    Args:
        text: in the synthesiser's notation (``synthesiser.to_text``).
        voice: name of a variant; of a made-up one if there is a ``definition``.
        rng: where all chance comes from.
        synthesiser: who speaks.
        definition: lines of a variant file.
        speeds: range, in words a minute.

    Raises:
        SynthesiserError: this voice can't say it.
    """
    speed, pitch, pitch_range = (int(rng.integers(low, high + 1)) for low, high in (speeds, _PITCH, _RANGE))
    scale = rng.uniform(*_HEAD_SCALE)
    # Played faster by the scale afterwards: spoken slower by as much, the speed stays what it was to be.
    said = synthesiser.say(Speech(voice, text, round(speed / scale), pitch, pitch_range, definition))
    samples = resample(said.astype(np.float32) / INT16_SCALE, VOICE_RATE * scale, SAMPLE_RATE)
    return samples * np.float32(_SPEECH_RMS / np.sqrt(np.mean(np.square(samples))))
