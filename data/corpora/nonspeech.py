"""Generates non-speech sounds, and their manifest with empty transcripts, for training acoustic models.

An acoustic model that was trained on speech alone writes syllables for every sound. Trained on these as well,
it learns to output nothing. Generated are mains hum, tones and chords that play a tune, signals of telephones
and alarms, typing, knocks, coloured noise and wind; pieces of given recordings of noise are added.
"""

from utils.command.entry import run_command

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from scipy.signal import lfilter
from tqdm import tqdm

from data.features.waveform_effects import add_room, coloured_noise, generated_room, noise_segment
from data.manifest import Utterance, write_manifest
from utils.audio.folders import find_recordings
from utils.audio.reading import SAMPLE_RATE, read_audio
from utils.audio.samples import write_wav
from utils.command.arguments import not_negative, positive
from utils.command.parser import CommandParser

_SECONDS = (1.5, 12.0)  # range of the length of a sound
_LEVEL_DB = (-45.0, -12.0)  # range of the level of a sound: root mean square, relative to full scale
_PEAK = 0.97  # samples are scaled down if their peak is higher
_FLOOR_DB = (-50.0, -15.0)  # range of the level of the noise under a sound, relative to it
_FLOOR_PROBABILITY = 0.7  # fraction of the sounds with such noise; generated signals have none
_ROOM_PROBABILITY = 0.4  # fraction of the sounds that get reverberation
_ROOM_SECONDS = (0.1, 0.6)  # range of the reverberation time (RT60)
_SEMITONE = 2 ** (1 / 12)

Sound = Callable[[int, np.random.Generator], np.ndarray]
"""Length in samples at 16 kHz, random generator → samples (length,) float32 of any level."""


def hum(length: int, rng: np.random.Generator) -> np.ndarray:
    """Mains hum or a motor: harmonics of a low, slightly unsteady pitch."""
    pitch = rng.choice([50.0, 60.0, rng.uniform(25.0, 180.0)])
    wander = 1.0 + rng.uniform(0.0, 0.03) * np.sin(_phase(np.full(length, rng.uniform(0.1, 2.0))))
    phase = _phase(pitch * wander)
    levels = rng.uniform(0.0, 1.0, 12) / np.arange(1, 13)
    return sum(level * np.sin((n + 1) * phase) for n, level in enumerate(levels)).astype(np.float32)


def music(length: int, rng: np.random.Generator) -> np.ndarray:
    """Notes or chords with overtones, each struck or blown, in a random tempo."""
    samples = np.zeros(length, np.float32)
    note_seconds, overtones = rng.uniform(0.12, 0.8), 1.0 / np.arange(1, 9) ** rng.uniform(0.7, 2.0)
    decay, pitch = rng.choice([0.0, rng.uniform(1.0, 8.0)]), rng.uniform(110.0, 660.0)
    for start in range(0, length, int(note_seconds * SAMPLE_RATE)):
        time = np.arange(min(int(1.5 * note_seconds * SAMPLE_RATE), length - start)) / SAMPLE_RATE
        envelope = np.minimum(time / 0.02, 1.0) * np.exp(-decay * time)
        for step in rng.choice([0, 2, 4, 5, 7, 9, 12], rng.integers(1, 4), replace=False):
            tone = 2 * np.pi * pitch * _SEMITONE**step * time
            harmonics = sum(level * np.sin((n + 1) * tone) for n, level in enumerate(overtones))
            samples[start : start + len(time)] += (envelope * harmonics).astype(np.float32)
    return samples


def signals(length: int, rng: np.random.Generator) -> np.ndarray:
    """Ringing, busy, dial and fax tones, alarms: one or two frequencies, steady, interrupted or gliding."""
    on, off = rng.uniform(0.1, 3.0), rng.choice([0.0, rng.uniform(0.05, 4.0)])
    time = np.arange(length) / SAMPLE_RATE
    glide = 1.0 + rng.choice([0.0, rng.uniform(0.0, 0.5)]) * np.sin(2 * np.pi * rng.uniform(0.2, 4.0) * time)
    frequencies = rng.uniform(300.0, 2600.0) * np.array([1.0, rng.uniform(1.02, 1.6)])[: rng.integers(1, 3)]
    samples = sum(np.sin(_phase(frequency * glide)) for frequency in frequencies)
    return (samples * ((time + rng.uniform(0.0, on)) % (on + off) < on)).astype(np.float32)


def clicks(length: int, rng: np.random.Generator) -> np.ndarray:
    """Typing, steps or knocks: short decaying bursts at irregular times."""
    samples = np.zeros(length, np.float32)
    at = np.cumsum(rng.exponential(SAMPLE_RATE * rng.uniform(0.06, 0.6), 400)).astype(int)
    for start in at[at < length]:
        size = min(int(rng.uniform(0.004, 0.12) * SAMPLE_RATE), length - start)
        burst = coloured_noise(size, rng.uniform(0.0, 2.0), rng) * np.exp(-6.0 * np.arange(size) / size)
        samples[start : start + size] += rng.uniform(0.3, 1.0) * burst.astype(np.float32)
    return samples


def noise(length: int, rng: np.random.Generator) -> np.ndarray:
    """Steady coloured noise."""
    return coloured_noise(length, rng.uniform(0.0, 2.5), rng)


def wind(length: int, rng: np.random.Generator) -> np.ndarray:
    """Noise through a resonance whose loudness rises and falls: wind, water, traffic, applause."""
    frequency, radius = rng.uniform(100.0, 3000.0), rng.uniform(0.8, 0.995)
    poles = [1.0, -2.0 * radius * np.cos(2 * np.pi * frequency / SAMPLE_RATE), radius**2]
    swell = 1.0 + rng.uniform(0.0, 1.0) * np.sin(_phase(np.full(length, rng.uniform(0.05, 3.0))))
    return (lfilter([1.0], poles, coloured_noise(length, 1.0, rng)) * swell).astype(np.float32)


SOUNDS: dict[str, Sound] = {
    "hum": hum,
    "music": music,
    "signals": signals,
    "clicks": clicks,
    "noise": noise,
    "wind": wind,
}


def make_sound(sound: Sound, rng: np.random.Generator, seconds: tuple[float, float] = _SECONDS) -> np.ndarray:
    """A sound as it is recorded: over some noise, perhaps in a room, at a random level.

    Args:
        sound: one of :data:`SOUNDS`, or pieces of a recording.
        rng: random generator; equal ones give equal samples.
        seconds: range of the length.

    Returns:
        (samples,) float32 within ±0.97, at 16 kHz.
    """
    length = int(rng.uniform(*seconds) * SAMPLE_RATE)
    samples = _at_level(sound(length, rng), 0.0)
    if rng.random() < _ROOM_PROBABILITY:
        room = generated_room(rng.uniform(*_ROOM_SECONDS), rng.uniform(0.0, 12.0), rng, SAMPLE_RATE)
        samples = add_room(samples, room)
    if rng.random() < _FLOOR_PROBABILITY:
        samples = samples + _at_level(noise(length, rng), rng.uniform(*_FLOOR_DB))
    samples = _at_level(samples, rng.uniform(*_LEVEL_DB))
    return samples * np.float32(min(1.0, _PEAK / np.abs(samples).max()))


def generate(
    folder: Path, count: int, seed: int, recordings: Sequence[Path] = (), name: str = "train"
) -> Path:
    """Write sounds and their manifest ``NAME.tsv``; returns its path.

    Args:
        folder: where the files go.
        count: number of sounds; a third are pieces of the recordings, if there are any.
        seed: seed of all random choices.
        recordings: recordings of noise without speech.
        name: name of the manifest, and the beginning of the ids.

    Raises:
        AudioError: a recording can't be read.
        OSError: the files can't be written.
    """
    pieces = [pieces_of(read_audio(path)) for path in recordings]
    utterances = []
    for number in tqdm(range(count), "non-speech sounds", disable=None):
        rng = np.random.default_rng([seed, number])
        kind, sound = list(SOUNDS.items())[(number - number // 3) % len(SOUNDS)]  # a third are recorded
        if pieces and number % 3 == 2:
            kind, sound = "recorded", pieces[rng.integers(len(pieces))]
        audio = folder / name / f"{name}_{kind}_{number:05}.wav"
        samples = make_sound(sound, rng)
        write_wav(audio, samples)
        utterances.append(Utterance(audio.stem, audio.absolute(), len(samples) / SAMPLE_RATE, "", (), ""))
    manifest = folder / f"{name}.tsv"
    write_manifest(manifest, utterances)
    return manifest


def pieces_of(recording: np.ndarray) -> Sound:
    """A sound that is a random piece of a recording, (samples,) float32 at 16 kHz."""

    def piece(length: int, rng: np.random.Generator) -> np.ndarray:
        return noise_segment(recording, int(rng.integers(len(recording))), length)

    return piece


def _phase(hertz: np.ndarray) -> np.ndarray:
    """(samples,) phase in radians of an oscillation of these frequencies."""
    return 2 * np.pi * np.cumsum(hertz) / SAMPLE_RATE


def _at_level(samples: np.ndarray, level_db: float) -> np.ndarray:
    """The samples with this root mean square, in decibels below 1."""
    root_mean_square = float(np.sqrt(np.mean(np.square(samples)))) or 1.0
    return samples * np.float32(10.0 ** (level_db / 20.0) / root_mean_square)


def main(argv: list[str] | None = None) -> int:
    """The command ``python -m data.corpora.nonspeech``."""
    options = _parser().parse_args(argv)
    recordings = find_recordings(options.noise) if options.noise else []
    print(f"written: {generate(options.folder, options.count, options.seed, recordings)}")
    return 0


def _parser() -> CommandParser:
    parser = CommandParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where the sounds and train.tsv are written")
    parser.add_argument("--count", type=positive, default=600, help="number of sounds (default: 600)")
    parser.add_argument("--seed", type=not_negative, default=0, help="default: 0")
    parser.add_argument("--noise", type=Path, metavar="FOLDER", help="recordings of noise without speech")
    return parser


if __name__ == "__main__":
    run_command(main)
