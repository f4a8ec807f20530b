"""Words as syllables, and voices, in; short recordings of them out: a folder for each word, as of a corpus.

Each clip is spoken, put into a room with noise and written. What a clip sounds like depends on its word,
voice, number and the seed alone: any number of workers gives the same bytes, and what is there already is
not made again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from tqdm import tqdm

from data.synthesis.acoustics import record
from data.synthesis.plan import SPLITS, VOICES, cast_voices
from data.synthesis.speech import speak_text
from data.synthesis.synthesiser import COMMAND, Synthesiser, SynthesiserError, in_parallel, to_text
from data.synthesis.voices import made_voice
from utils.audio.reading import SAMPLE_RATE, seconds_and_rate, write_wav
from utils.errors import CorpusError

OWN_VOICES = 71  # of the synthesiser, that differ enough; more are made
_DEV_SHARE, _TEST_SHARE = 1 / 12, 1 / 6  # of the made voices
_MADE_KEY, _CAST_KEY = 5, 6  # purposes of random generators
_SPEEDS = (170, 240)  # words a minute: commands are said briskly
_SILENCE_SECONDS = (0.05, 0.25)  # before a word, and after it
_BABBLE_VOICES = 3
_MOST_FAILURES = 20  # few pairs of voice and word can't be said; many mean that nothing can


@dataclass(frozen=True, slots=True)
class Voice:
    """Who speaks.

    Attributes:
        name: short, the beginning of the names of the files.
        variant: of the synthesiser; ``"made"`` with a definition.
        definition: lines of a variant file, for a made-up voice.
    """

    name: str
    variant: str
    definition: str = ""


@dataclass(frozen=True, slots=True)
class SpokenClip:
    """A clip to be made, or made.

    Attributes:
        label: the folder that it lies in.
        syllables: what is said, canonical.
        voice: who says it.
        number: of the clips of this voice and label.
        seconds: its length; 0 before it is made.
        pauses: numbers of syllables after which the speaker pauses.
    """

    label: str
    syllables: tuple[str, ...]
    voice: Voice
    number: int
    seconds: float = 0.0
    pauses: tuple[int, ...] = ()

    @property
    def path(self) -> str:
        """Where it lies below the folder of all words, as Speech Commands names its files."""
        return f"{self.label}/{self.voice.name}_nohash_{self.number}.wav"


@dataclass(frozen=True, slots=True)
class Unspoken:
    """A clip that the synthesiser couldn't say, and why."""

    clip: SpokenClip
    reason: str


def voices_of_splits(count: int, seed: int) -> dict[str, list[Voice]]:
    """So many voices for train, dev and test together, none in two: the synthesiser's own, the rest made up.

    At most half of them are its own, which differ less from each other than people do.

    Raises:
        CorpusError: too few for three splits.
    """
    if count < 6:
        raise CorpusError(f"{count} voices", hint="at least 6: two for each split")
    own = cast_voices(min(OWN_VOICES, count // 2), np.random.default_rng([seed, _CAST_KEY]))
    made = [
        Voice(f"M{number + 1:03d}", "made", made_voice(np.random.default_rng([seed, _MADE_KEY, number])))
        for number in range(count - sum(map(len, own.values())))
    ]
    dev, test = (max(1, round(len(made) * share)) for share in (_DEV_SHARE, _TEST_SHARE))
    parts = {"dev": made[:dev], "test": made[dev : dev + test], "train": made[dev + test :]}
    return {
        split: [Voice(f"S{VOICES.index(name) + 1:03d}", name) for name in own[split]] + parts[split]
        for split in SPLITS
    }


def synthesise_clips(
    texts: Sequence[tuple[str, Sequence[str]]],
    voices: Sequence[Voice],
    output: str | Path,
    takes: int = 1,
    seed: int = 0,
    workers: int = 2,
    command: Sequence[str] = COMMAND,
) -> tuple[list[SpokenClip], list[Unspoken]]:
    """Let every voice say every text so many times, each time in another way.

    Args:
        texts: label (a folder's name) and canonical syllables; a label may come several times.
        voices: from :func:`voices_of_splits`, for one.
        output: folder; gets ``LABEL/VOICE_nohash_NUMBER.wav``, 16 kHz.
        takes: clips of each text in each voice.
        seed: of prosody and acoustics.
        workers: synthesisers that run at a time.
        command: another synthesiser (tests).

    Returns:
        The clips, and what couldn't be said.

    Raises:
        CorpusError: nothing can be said.
    """
    clips = []
    seen: dict[str, int] = {}
    for label, syllables in texts:
        first = seen.get(label, 0)
        seen[label] = first + takes
        for voice in voices:
            clips += [
                SpokenClip(label, tuple(syllables), voice, number) for number in range(first, first + takes)
            ]
    return make_clips(clips, Path(output), seed, workers, command)


def make_clips(
    clips: Sequence[SpokenClip],
    output: Path,
    seed: int = 0,
    workers: int = 2,
    command: Sequence[str] = COMMAND,
) -> tuple[list[SpokenClip], list[Unspoken]]:
    """As :func:`synthesise_clips`, for clips that are planned one by one; those that are there stay.

    The voices in the background of some are others of the same clips: give one split at a time.
    """
    make = partial(_make_clip, output=output, seed=seed, cast=clips)
    made: list[SpokenClip] = []
    unspoken: list[Unspoken] = []
    results = in_parallel(make, clips, workers, command)
    for result in tqdm(results, "speaking", len(clips), disable=None, unit=" clips"):
        if isinstance(result, SpokenClip):
            made.append(result)
            continue
        unspoken.append(result)
        if len(unspoken) > max(_MOST_FAILURES, len(made) // 4):
            what = f"the synthesiser fails: {result.reason}"
            raise CorpusError(what, where=output, hint="see requirements/demo.txt")
    return sorted(made, key=_path), sorted(unspoken, key=lambda failure: failure.clip.path)


def background_babble(
    cast: Sequence[SpokenClip], synthesiser: Synthesiser, voices: int = _BABBLE_VOICES
) -> Callable[[np.random.Generator, int], np.ndarray]:
    """A function that gives (length,) float32 of several voices, who say words of ``cast`` over and over."""

    def babble(rng: np.random.Generator, length: int) -> np.ndarray:
        total = np.zeros(length, np.float32)
        for _ in range(voices):
            said, voice = cast[rng.integers(len(cast))], cast[rng.integers(len(cast))].voice
            try:
                speech = _speak(said, voice, rng, synthesiser)
            except SynthesiserError:
                continue  # one voice less in the background
            total += np.take(speech, np.arange(length) + rng.integers(len(speech)), mode="wrap")
        return total

    return babble


def _make_clip(
    clip: SpokenClip, synthesiser: Synthesiser, output: Path, seed: int, cast: Sequence[SpokenClip]
) -> SpokenClip | Unspoken:
    path = output / clip.path
    if not path.is_file():
        rng = np.random.default_rng([seed, *clip.path.encode(), *" ".join(clip.syllables).encode()])
        try:
            speech = _speak(clip, clip.voice, rng, synthesiser)
            babble = background_babble(cast, synthesiser)
            samples = record(speech, rng, babble, SAMPLE_RATE, _SILENCE_SECONDS)
        except SynthesiserError as error:
            return Unspoken(clip, error.what)
        write_wav(path, samples)
    return replace(clip, seconds=seconds_and_rate(path)[0])


def _speak(clip: SpokenClip, voice: Voice, rng: np.random.Generator, synthesiser: Synthesiser) -> np.ndarray:
    return speak_text(
        to_text(clip.syllables, clip.pauses), voice.variant, rng, synthesiser, voice.definition, _SPEEDS
    )


def _path(clip: SpokenClip) -> str:
    return clip.path
