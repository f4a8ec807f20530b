"""Speaks syllables in a voice with random speed, pitch and head size; mixes several voices to babble."""

from collections.abc import Callable, Sequence

import numpy as np

from data.synthesis.synthesiser import SAMPLE_RATE as VOICE_RATE
from data.synthesis.synthesiser import Speech, Synthesiser, SynthesiserError, to_text
from data.synthesis.voices import Voice
from utils.audio.reading import INT16_SCALE, SAMPLE_RATE, resample

# Ranges of espeak-ng's settings, of which one value is drawn for each utterance.
_SPEED = (150, 210)  # words a minute, about 3.2 to 4.6 syllables a second
_PITCH = (30, 70)
_RANGE = (65, 100)  # the usual 50 moves the pitch by two semitones, less than any speaker of Mandarin
# Each voice gets smaller and larger heads: formants and pitch move together, as between people. Few of the
# voices are high, and without this, unseen high voices have four times as many errors as low ones.
_HEAD_SCALE = (0.87, 1.17)
_SPEECH_RMS = 0.1  # all clean speech is scaled to it, because voices differ much in loudness
_BABBLE_VOICES = 3

Babble = Callable[[np.random.Generator, int], np.ndarray]
Words = tuple[Sequence[str], Sequence[int], Voice]  # syllables, numbers of those before a pause, speaker


def speak(
    syllables: Sequence[str],
    pauses: Sequence[int],
    voice: Voice,
    rng: np.random.Generator,
    synthesiser: Synthesiser,
    speeds: tuple[int, int] = _SPEED,
) -> np.ndarray:
    """Speak syllables in a voice: (samples,) float32 at 16 kHz, RMS 0.1.

    Args:
        syllables: canonical, as the synthesiser needs them (``reading.spoken_input``).
        pauses: the numbers of syllables after which the speaker pauses.
        voice: the speaker.
        rng: the source of randomness.
        synthesiser: the synthesiser.
        speeds: range, in words a minute.

    Raises:
        SynthesiserError: this voice can't speak it.
    """
    speed, pitch, pitch_range = (int(rng.integers(low, high + 1)) for low, high in (speeds, _PITCH, _RANGE))
    scale = rng.uniform(*_HEAD_SCALE)
    # The samples are played faster by the scale afterwards, so the speech must be slower by as much.
    speech = Speech(
        voice.variant,
        text=to_text(syllables, pauses),
        speed=round(speed / scale),
        pitch=pitch,
        range=pitch_range,
        definition=voice.definition,
    )
    spoken = synthesiser.synthesise(speech).astype(np.float32) / INT16_SCALE
    samples = resample(spoken, VOICE_RATE * scale, SAMPLE_RATE)
    return samples * np.float32(_SPEECH_RMS / np.sqrt(np.mean(np.square(samples))))


def make_babble(
    draw: Callable[[np.random.Generator], Words],
    synthesiser: Synthesiser,
    voices: int = _BABBLE_VOICES,
    speeds: tuple[int, int] = _SPEED,
) -> Babble:
    """Return a function that generates background babble: several voices, each repeating its words.

    Args:
        draw: draws the words of one voice, as arguments of :func:`speak`.
        synthesiser: the synthesiser.
        voices: number of voices at a time.
        speeds: range, in words a minute.

    Returns:
        ``(rng, length)`` → (length,) float32.
    """

    def babble(rng: np.random.Generator, length: int) -> np.ndarray:
        total = np.zeros(length, np.float32)
        for _ in range(voices):
            try:
                speech = speak(*draw(rng), rng, synthesiser, speeds)
            except SynthesiserError:
                continue  # one voice fewer in the background
            total += np.take(speech, np.arange(length) + rng.integers(len(speech)), mode="wrap")
        return total

    return babble
