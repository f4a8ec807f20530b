"""Speaks planned clips (a word in a voice) and writes them in a folder for each word, with lists of splits.

Each clip is spoken, placed in a room with noise and written. Its samples depend on its word, voice, number
and the seed alone: any number of workers gives the same bytes, and existing clips are not generated again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from data.keywords.folders import DEV_LIST, NOISE_FOLDER, TEST_LIST
from data.synthesis.acoustics import record, write_noises
from data.synthesis.speech import Words, make_babble, speak
from data.synthesis.synthesiser import Synthesiser, Unspoken, speak_all
from data.synthesis.voices import Voice
from utils.audio.properties import seconds_and_rate
from utils.audio.reading import SAMPLE_RATE
from utils.audio.samples import write_wav
from utils.files import write_text

_SPEEDS = (170, 240)  # words a minute: commands are spoken fast
_SILENCE_SECONDS = (0.05, 0.25)  # before a word, and after it
_NOISE_VOICES = 8  # voices that speak at a time in the recording of babble alone


@dataclass(frozen=True, slots=True)
class SpokenClip:
    """A clip to be spoken, or spoken.

    Attributes:
        label: name of the folder that the clip is in.
        syllables: the canonical syllables that the synthesiser speaks.
        voice: the speaker.
        number: distinguishes the clips of one voice and label.
        seconds: length of the clip; 0 before it is spoken.
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
        """Its path in the folder of all words, named as in Speech Commands."""
        return f"{self.label}/{self.voice.name}_nohash_{self.number}.wav"


def make_clips(
    clips: Sequence[SpokenClip],
    output: Path,
    seed: int = 0,
    workers: int = 2,
) -> tuple[list[SpokenClip], list[Unspoken[SpokenClip]]]:
    """Speak the clips that do not exist yet.

    Voices in the background of some clips speak words of the same clips: give one split at a time.

    Args:
        clips: the clips to be spoken.
        output: folder; gets ``LABEL/VOICE_nohash_NUMBER.wav``, 16 kHz.
        seed: seed of prosody and acoustics.
        workers: number of synthesisers that run at a time.

    Returns:
        The clips with their lengths, and those that could not be spoken, both sorted by path.

    Raises:
        CorpusError: the synthesiser fails.
    """
    make = partial(_make_clip, output=output, seed=seed, babble_clips=clips)
    made, unspoken = speak_all(make, clips, workers, output)
    return sorted(made, key=lambda clip: clip.path), sorted(unspoken, key=lambda failure: failure.item.path)


def make_splits(
    plan: Mapping[str, Sequence[Sequence[SpokenClip]]],
    root: Path,
    seed: int,
    workers: int,
) -> tuple[dict[str, list[SpokenClip]], list[Unspoken[SpokenClip]]]:
    """Speak the clips of all splits; writes the lists of dev and test, and ``unspoken.tsv``.

    Args:
        plan: groups of clips of each split; the voices in the background of a clip speak words of its group.
        root: folder of the clips.
        seed: as in :func:`make_clips`, like the following.
        workers: number of synthesisers.

    Returns:
        The clips by split, and those that could not be spoken.

    Raises:
        CorpusError: the synthesiser fails.
    """
    made: dict[str, list[SpokenClip]] = {split: [] for split in plan}
    unspoken: list[Unspoken[SpokenClip]] = []
    for split, groups in plan.items():
        for group in groups:
            spoken, failed = make_clips(group, root, seed, workers)
            made[split] += spoken
            unspoken += failed
    for split, name in (("dev", DEV_LIST), ("test", TEST_LIST)):
        write_text(root / name, "".join(f"{clip.path}\n" for clip in made[split]))
    lines = [f"{clip.path}\t{reason}\n" for clip, reason in unspoken]
    write_text(root / "unspoken.tsv", "".join(["clip\treason\n", *lines]))
    return made, unspoken


def write_background_noise(root: Path, babble_clips: Sequence[SpokenClip], seed: int) -> None:
    """Write recordings of noise; in one of them voices speak the words of ``babble_clips``."""
    with Synthesiser() as synthesiser:
        babble = make_babble(partial(_draw_words, babble_clips), synthesiser, _NOISE_VOICES, _SPEEDS)
        write_noises(root / NOISE_FOLDER, babble, seed)


def _make_clip(
    clip: SpokenClip, synthesiser: Synthesiser, output: Path, seed: int, babble_clips: Sequence[SpokenClip]
) -> SpokenClip:
    path = output / clip.path
    if not path.is_file():
        rng = np.random.default_rng([seed, *clip.path.encode(), *" ".join(clip.syllables).encode()])
        speech = speak(clip.syllables, clip.pauses, clip.voice, rng, synthesiser, _SPEEDS)
        babble = make_babble(partial(_draw_words, babble_clips), synthesiser, speeds=_SPEEDS)
        write_wav(path, record(speech, rng, babble, SAMPLE_RATE, _SILENCE_SECONDS))
    return replace(clip, seconds=seconds_and_rate(path)[0])


def _draw_words(babble_clips: Sequence[SpokenClip], rng: np.random.Generator) -> Words:
    """Draw the words of one clip and the voice of another."""
    clip, other = (babble_clips[int(rng.integers(len(babble_clips)))] for _ in range(2))
    return clip.syllables, clip.pauses, other.voice
