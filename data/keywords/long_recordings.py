"""Clips of keywords and of everything else in; one long recording with a list of what was said when, out.

A spotter that is right on clips may still cry wolf once a minute: false alarms are counted on hours of sound
that hold no keyword most of the time. Between the keywords of a split lie its other words, recordings that
the user names, pauses and noise; where each keyword begins and ends is known to the sample.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import soundfile
from tqdm import tqdm

from data.keywords.clips import (
    SILENCE,
    UNKNOWN,
    KeywordClip,
    KeywordDataConfig,
    noise_recordings,
    read_keyword_clips,
)
from utils.audio.reading import SAMPLE_RATE, audio_blocks, read_audio, recordings_in
from utils.errors import CorpusError, run_command
from utils.files import replacing, write_text

EXAMPLES = """\
examples:
  python -m data.keywords.long_recordings --folder datasets/commands --hours 1 --output datasets/stream
  python -m data.keywords.long_recordings --folder MY_WORDS --background MY_RECORDINGS --hours 3 --output long

OUTPUT/stream.flac is the recording, OUTPUT/said.tsv says which keyword begins and ends when (seconds):
  python test.py keyword RUN --recording OUTPUT/stream.flac --said OUTPUT/said.tsv --report report
"""
_PAUSE_SECONDS = (0.5, 4.0)  # after a word
_NOISE_DB = (-60.0, -35.0)  # of full scale; drawn anew for each stretch between two words
_BACKGROUND_SECONDS = (5.0, 20.0)  # a stretch of the user's recordings
_EDGE_DB = -40.0  # a word begins where its clip comes so close to its peak, and ends likewise


@dataclass(frozen=True)
class Material:
    """What a long recording is made of.

    Attributes:
        keywords: clips that must be heard.
        others: clips of other words.
        noises: recordings of noise, under everything; none: generated hiss.
        backgrounds: recordings without keywords, a stretch at a time.
    """

    keywords: Sequence[KeywordClip]
    others: Sequence[KeywordClip]
    noises: Sequence[Path] = ()
    backgrounds: Sequence[Path] = ()


@dataclass(frozen=True)
class Piece:
    """A stretch of the recording.

    Attributes:
        samples: (n,) float32.
        keyword: what is said in it; empty for none.
        start: sample at which the keyword begins; ``end`` likewise, where it ends.
    """

    samples: np.ndarray
    keyword: str = ""
    start: int = 0
    end: int = 0


def write_stream(
    output: Path, material: Material, seconds: float, keyword_share: float = 0.15, seed: int = 0
) -> int:
    """Write ``stream.flac`` and ``said.tsv``; the same arguments give the same files.

    Args:
        output: folder.
        material: what it is made of.
        seconds: length; the last piece may go beyond.
        keyword_share: of the pieces that hold a keyword; the others hold other words, or backgrounds.
        seed: of the order, the pauses and the levels.

    Returns:
        How many keywords were said.

    Raises:
        CorpusError: there is nothing to be said.
        AudioError: a recording can't be read.
    """
    if not material.keywords or not (material.others or material.backgrounds):
        hint = "a folder with _unknown_ words, or --background RECORDINGS"
        raise CorpusError("no keywords, or nothing that isn't one", where=output, hint=hint)
    output.mkdir(parents=True, exist_ok=True)
    lines, written = ["start\tend\tkeyword"], 0
    pieces = _pieces(material, keyword_share, np.random.default_rng(seed))
    with (
        replacing(output / "stream.flac") as temporary,
        soundfile.SoundFile(temporary, "w", SAMPLE_RATE, 1, "PCM_16", format="FLAC") as file,
        tqdm(total=round(seconds), desc="stream", unit="s", disable=None) as bar,
    ):
        while written < seconds * SAMPLE_RATE:
            piece = next(pieces)
            file.write(np.clip(piece.samples, -1.0, 1.0))
            if piece.keyword:
                times = [(written + at) / SAMPLE_RATE for at in (piece.start, piece.end)]
                lines.append(f"{times[0]:.3f}\t{times[1]:.3f}\t{piece.keyword}")
            bar.update(len(piece.samples) // SAMPLE_RATE)
            written += len(piece.samples)
    write_text(output / "said.tsv", "\n".join(lines) + "\n")
    return len(lines) - 1


def edges(samples: np.ndarray) -> tuple[int, int]:
    """First and last sample that matter: those at most 40 dB below the peak."""
    loud = np.flatnonzero(np.abs(samples) >= 10 ** (_EDGE_DB / 20) * np.abs(samples).max())
    return int(loud[0]), int(loud[-1]) + 1


def _pieces(material: Material, keyword_share: float, rng: np.random.Generator) -> Iterator[Piece]:
    """Endless: a word or a stretch of background, and a pause, with noise under both."""
    keywords, others = _shuffled(material.keywords, rng), _shuffled(material.others, rng)
    backgrounds, noises = _shuffled(material.backgrounds, rng), _noise_of(material.noises, rng)
    while True:
        pause = int(rng.uniform(*_PAUSE_SECONDS) * SAMPLE_RATE)
        keyword, start, end = "", 0, 0
        if rng.random() < keyword_share:
            clip = next(keywords)
            samples, keyword = _samples(clip), clip.label
            start, end = edges(samples)
        elif material.backgrounds and (not material.others or rng.random() < 0.5):
            samples = _stretch(next(backgrounds), rng)
        else:
            samples = _samples(next(others))
        level = np.float32(10 ** (rng.uniform(*_NOISE_DB) / 20))
        padded = np.pad(samples, (0, pause))
        yield Piece(padded + level * noises(len(padded)), keyword, start, end)


def _shuffled(items: Sequence, rng: np.random.Generator) -> Iterator:
    """All items in some order, then in another, endlessly."""
    while len(items):
        for index in rng.permutation(len(items)):
            yield items[index]


def _samples(clip: KeywordClip) -> np.ndarray:
    """A clip as it is, at the length of its recording."""
    samples = read_audio(clip.audio)
    if not np.abs(samples).max(initial=0.0):
        raise CorpusError("a word that is silent", where=clip.audio, hint="leave the recording out")
    return samples


def _stretch(path: Path, rng: np.random.Generator) -> np.ndarray:
    """Some seconds of a recording; of a long one, a block of about a minute is drawn first."""
    wanted = int(rng.uniform(*_BACKGROUND_SECONDS) * SAMPLE_RATE)
    chosen = np.zeros(0, np.float32)
    for count, block in enumerate(audio_blocks(path), start=1):
        if rng.integers(count) == 0:  # each block is as likely, and one is in memory at a time
            chosen = block
    start = int(rng.integers(max(len(chosen) - wanted, 0) + 1))
    return chosen[start : start + wanted]


def _noise_of(recordings: Sequence[Path], rng: np.random.Generator) -> Callable[[int], np.ndarray]:
    """What gives noise of a length, of power 1 on average: (length,) float32."""
    loaded = [samples / max(_power(samples), 1e-9) for samples in map(read_audio, recordings)]

    def noise(length: int) -> np.ndarray:
        if not loaded:
            return rng.standard_normal(length, np.float32)
        samples = loaded[rng.integers(len(loaded))]
        start = int(rng.integers(len(samples)))
        return np.take(samples, np.arange(start, start + length), mode="wrap")

    return noise


def _power(samples: np.ndarray) -> np.float32:
    return np.sqrt(np.mean(np.square(samples)))


def main(arguments: Sequence[str] | None = None) -> int:
    """The command ``python -m data.keywords.long_recordings``."""
    options = _parser().parse_args(arguments)
    config = KeywordDataConfig(
        folder=str(options.folder or ""),
        train=tuple(map(str, options.manifest)),
        dev=tuple(map(str, options.manifest)),
        test=tuple(map(str, options.manifest)),
        words=tuple(options.words or ()),
        silence_share=0,
        unknown_share=1e6,  # all of them
    )
    clips = read_keyword_clips(config)[options.split]
    material = Material(
        [clip for clip in clips if clip.label not in (SILENCE, UNKNOWN)],
        [clip for clip in clips if clip.label == UNKNOWN],
        noise_recordings(config),
        [path for folder in options.background for path in recordings_in(folder)],
    )
    said = write_stream(options.output, material, options.hours * 3600, options.keyword_share, options.seed)
    print(f"{options.output / 'stream.flac'}: {options.hours:g} h, {said} keywords")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m data.keywords.long_recordings",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--folder", type=Path, help="a folder for each word")
    source.add_argument("--manifest", type=Path, action="append", default=[], help="a list of recorded words")
    parser.add_argument("--words", nargs="+", help="the keywords (default: all words)")
    parser.add_argument("--background", type=Path, nargs="+", default=[], help="folders of other recordings")
    parser.add_argument("--split", choices=("train", "dev", "test"), default="test", help="whose clips")
    parser.add_argument("--hours", type=float, default=1.0, help="length (default: 1)")
    parser.add_argument("--keyword-share", type=float, default=0.15, help="of all pieces (default: 0.15)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, required=True, help="folder for stream.flac and said.tsv")
    return parser


if __name__ == "__main__":
    run_command(main)
