"""Joins clips of keywords and other words to one long recording, and lists the times of the keywords in it.

A keyword spotter may be accurate on clips and still raise a false alarm every minute. False alarms are
therefore counted on hours of audio that mostly hold no keyword. Between the keywords of a split there are its
other words, recordings that the user names, pauses and noise. The times of the keywords are known exactly,
because the recording is composed here.
"""

from utils.command.entry import run_command

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import numpy as np
import soundfile
from tqdm import tqdm

from data.features.waveform_effects import mean_power, noise_segment
from data.keywords.clips import (
    SILENCE,
    UNKNOWN,
    KeywordClip,
    KeywordDataConfig,
    noise_recordings,
    read_keyword_clips,
    read_listed_clips,
)
from utils.audio.folders import find_recordings
from utils.audio.reading import SAMPLE_RATE, audio_blocks, read_audio
from utils.command.arguments import fraction, not_negative, positive_number
from utils.command.parser import CommandParser
from utils.errors import CorpusError
from utils.files import replacing, write_text

Item = TypeVar("Item")
EXAMPLES = """\
examples:
  python -m data.keywords.long_recordings --folder datasets/commands --hours 1 --output datasets/stream
  python -m data.keywords.long_recordings --folder MY_WORDS --background MY_RECORDINGS --hours 3 --output long

OUTPUT/stream.flac is the recording, OUTPUT/spoken.tsv lists start and end (seconds) of each keyword:
  python test.py keyword RUN --recording OUTPUT/stream.flac --spoken OUTPUT/spoken.tsv --report report
"""
_PAUSE_SECONDS = (0.5, 4.0)  # after a word
_NOISE_DB = (-60.0, -35.0)  # relative to full scale; drawn for each segment
_BACKGROUND_SECONDS = (5.0, 20.0)  # length of a segment of the user's recordings
_SEGMENTS_HELD = 100  # of the user's recordings, in memory: some 80 MB
_EDGE_DB = -40.0  # a word begins and ends where its level reaches this, relative to its peak
_SMALLEST_RMS = 1e-9  # avoids a division by zero


@dataclass(frozen=True)
class Material:
    """What a long recording is made of.

    Attributes:
        keywords: clips that are to be detected.
        others: clips of other words.
        noises: recordings of noise, mixed with everything; none: generated white noise.
        backgrounds: recordings without keywords, of which segments are used.
    """

    keywords: Sequence[KeywordClip]
    others: Sequence[KeywordClip]
    noises: Sequence[Path] = ()
    backgrounds: Sequence[Path] = ()


@dataclass(frozen=True)
class RecordingPart:
    """A part of the recording.

    Attributes:
        samples: (n,) float32.
        keyword: spoken in it; empty for none.
        start: first sample of the keyword.
        end: sample after the keyword.
    """

    samples: np.ndarray
    keyword: str = ""
    start: int = 0
    end: int = 0


def write_long_recording(
    output: Path, material: Material, seconds: float, keyword_share: float = 0.15, seed: int = 0
) -> int:
    """Write ``stream.flac`` and ``spoken.tsv``; the same arguments give the same files.

    Args:
        output: folder.
        material: what the recording is made of.
        seconds: length; the last segment may go beyond it.
        keyword_share: fraction of the segments that hold a keyword; the others hold other words, or
            backgrounds.
        seed: seed of the order, the pauses and the levels.

    Returns:
        The number of keywords in the recording.

    Raises:
        CorpusError: there are no keywords, or nothing else.
        AudioError: a recording can't be read.
    """
    if not material.keywords or not (material.others or material.backgrounds):
        raise CorpusError(
            "no keywords, or nothing that isn't one",
            where=output,
            hint="a folder with _unknown_ words, or --background RECORDINGS",
        )
    output.mkdir(parents=True, exist_ok=True)
    lines, written = ["start\tend\tkeyword"], 0
    segments = _segments(material, keyword_share, np.random.default_rng(seed))
    with (
        replacing(output / "stream.flac") as temporary,
        soundfile.SoundFile(temporary, "w", SAMPLE_RATE, 1, "PCM_16", format="FLAC") as file,
        tqdm(total=round(seconds), desc="stream", unit="s", disable=None) as bar,
    ):
        while written < seconds * SAMPLE_RATE:
            segment = next(segments)
            file.write(np.clip(segment.samples, -1.0, 1.0))
            if segment.keyword:
                start, end = (written + segment.start) / SAMPLE_RATE, (written + segment.end) / SAMPLE_RATE
                lines.append(f"{start:.3f}\t{end:.3f}\t{segment.keyword}")
            bar.update(len(segment.samples) // SAMPLE_RATE)
            written += len(segment.samples)
    write_text(output / "spoken.tsv", "\n".join(lines) + "\n")
    return len(lines) - 1


def edges(samples: np.ndarray) -> tuple[int, int]:
    """Start and end of the sound in (samples,): of those at most 40 dB below the peak."""
    loud = np.flatnonzero(np.abs(samples) >= 10 ** (_EDGE_DB / 20) * np.abs(samples).max())
    return int(loud[0]), int(loud[-1]) + 1


def _segments(material: Material, keyword_share: float, rng: np.random.Generator) -> Iterator[RecordingPart]:
    """Endless: a word or a part of a background, then a pause, with noise under both."""
    keywords, others = _shuffled(material.keywords, rng), _shuffled(material.others, rng)
    backgrounds = _background_segments(material.backgrounds, rng)
    noises = [_at_full_level(read_audio(path)) for path in material.noises]
    while True:
        pause = int(rng.uniform(*_PAUSE_SECONDS) * SAMPLE_RATE)
        keyword, start, end = "", 0, 0
        if rng.random() < keyword_share:
            clip = next(keywords)
            samples, keyword = _read_word(clip), clip.label
            start, end = edges(samples)
        elif material.backgrounds and (not material.others or rng.random() < 0.5):
            samples = next(backgrounds)
        else:
            samples = _read_word(next(others))
        level = np.float32(10 ** (rng.uniform(*_NOISE_DB) / 20))
        padded = np.pad(samples, (0, pause))
        yield RecordingPart(padded + level * _random_noise(noises, len(padded), rng), keyword, start, end)


def _shuffled(items: Sequence[Item], rng: np.random.Generator) -> Iterator[Item]:
    """All items in a random order, then in another one, endlessly."""
    while len(items):
        for index in rng.permutation(len(items)):
            yield items[index]


def _read_word(clip: KeywordClip) -> np.ndarray:
    assert clip.audio  # not a generated noise
    samples = read_audio(clip.audio)
    if not np.abs(samples).max(initial=0.0):
        raise CorpusError("a word that is silent", where=clip.audio, hint="remove the recording")
    return samples


def _background_segments(paths: Sequence[Path], rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Endless: some seconds of each recording in turn; each decoding gives the segments of several turns."""
    count = max(1, _SEGMENTS_HELD // max(1, len(paths)))
    ready: dict[Path, list[np.ndarray]] = {}
    for path in _shuffled(paths, rng):
        if not ready.get(path):
            ready[path] = _random_segments(path, count, rng)
        yield ready[path].pop()


def _random_segments(path: Path, count: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Segments of a recording; for each, one of its blocks of about a minute is drawn first."""
    lengths = [int(seconds * SAMPLE_RATE) for seconds in rng.uniform(*_BACKGROUND_SECONDS, count)]
    segments = [np.zeros(0, np.float32)] * count
    for number, block in enumerate(audio_blocks(path), start=1):
        # Every block is equally likely, and one at a time is in memory.
        for index in np.flatnonzero(rng.integers(number, size=count) == 0):
            start = int(rng.integers(max(len(block) - lengths[index], 0) + 1))
            segments[index] = block[start : start + lengths[index]].copy()
    return segments


def _at_full_level(samples: np.ndarray) -> np.ndarray:
    """Samples scaled to a power of 1."""
    return samples / np.float32(max(np.sqrt(mean_power(samples)), _SMALLEST_RMS))


def _random_noise(noises: Sequence[np.ndarray], length: int, rng: np.random.Generator) -> np.ndarray:
    """A random segment of a random noise, or white noise if there are none: (length,) float32."""
    if not noises:
        return rng.standard_normal(length, np.float32)
    noise = noises[int(rng.integers(len(noises)))]
    return noise_segment(noise, int(rng.integers(len(noise))), length)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command ``python -m data.keywords.long_recordings``."""
    options = _parser().parse_args(arguments)
    clips, noises = _split_of_folder(options) if options.folder else (_listed(options), [])
    count = write_long_recording(
        options.output,
        material=Material(
            [clip for clip in clips if clip.label not in (SILENCE, UNKNOWN)],
            [clip for clip in clips if clip.label == UNKNOWN],
            noises,
            [path for folder in options.background for path in find_recordings(folder)],
        ),
        seconds=options.hours * 3600,
        keyword_share=options.keyword_share,
        seed=options.seed,
    )
    print(f"{options.output / 'stream.flac'}: {options.hours:g} h, {count} keywords")
    return 0


def _split_of_folder(options: argparse.Namespace) -> tuple[list[KeywordClip], list[Path]]:
    """The clips of a split of a folder of words, all other words being unknown ones, and its noise."""
    config = KeywordDataConfig(
        folder=str(options.folder),
        words=tuple(options.words or ()),
        silence_share=0,
        unknown_share=1e6,  # all other words
    )
    return read_keyword_clips(config)[options.split], noise_recordings(config)


def _listed(options: argparse.Namespace) -> list[KeywordClip]:
    """All clips of manifests; what isn't a keyword is an unknown word.

    Raises:
        CorpusError: a manifest can't be read, or a keyword isn't in it.
    """
    clips = read_listed_clips(options.manifest)
    words = set(options.words or (clip.label for clip in clips))
    if missing := sorted(words - {clip.label for clip in clips}):
        raise CorpusError(
            f"no recordings of the word '{missing[0]}'",
            where=", ".join(map(str, options.manifest)),
            hint="check --words",
        )
    return [clip if clip.label in words else replace(clip, label=UNKNOWN) for clip in clips]


def _parser() -> CommandParser:
    parser = CommandParser(description=__doc__, epilog=EXAMPLES)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--folder", type=Path, help="a folder for each word")
    source.add_argument("--manifest", type=Path, action="append", default=[], help="a list of recorded words")
    parser.add_argument("--words", nargs="+", help="the keywords (default: all words)")
    parser.add_argument("--background", type=Path, nargs="+", default=[], help="folders of other recordings")
    parser.add_argument("--split", choices=("train", "dev", "test"), default="test", help="split of a folder")
    parser.add_argument("--hours", type=positive_number, default=1.0, help="length (default: 1)")
    parser.add_argument(
        "--keyword-share", type=fraction, default=0.15, help="fraction of keywords (default: 0.15)"
    )
    parser.add_argument("--seed", type=not_negative, default=0, help="default: 0")
    parser.add_argument("--output", type=Path, required=True, help="folder for stream.flac and spoken.tsv")
    return parser


if __name__ == "__main__":
    run_command(main)
