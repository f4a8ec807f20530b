"""Measures keyword spotting in an hour of audio by listen.py: hits, misses, false alarms, delay, memory.

    python -m benchmarks.keywords.keyword_stream --model runs/commands/export
    python -m benchmarks.keywords.keyword_stream --model runs/commands/export runs/spoken_words/export \
        --words datasets/commands ../shared/data/audio/dspspeech20/test.tsv --hours 3

For each model: makes a recording from the test split of a folder of words or of a manifest (default: the
embedded spoken commands), runs listen.py on it in a separate process, and prints its memory, real-time factor
and the delay of the detections. A table has hits, misses and false alarms at several thresholds.
"""

from utils.command.entry import run_command

import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from analysis.keyword.detections import (
    SpokenKeyword,
    late_seconds_of,
    match,
    read_spoken_keywords,
)
from benchmarks.support.commands import measured, run
from keywords.backgrounds import StreamOutputs, stream_recordings
from keywords.listening import Listener, open_listener
from streaming.keyword import BACKGROUND
from utils.audio.properties import audio_seconds
from utils.command.parser import CommandParser
from utils.text_table import print_table

THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9)
COLUMNS = ("threshold", "hits", "missed", "false alarms")
COMMANDS = Path("datasets/commands")


@dataclass(frozen=True)
class PrintedDetection:
    """A detection that listen.py printed."""

    seconds: float
    keyword: str
    score: float


def main() -> None:
    """Make a recording for each model, run listen.py on it, print the figures."""
    parser = _parser()
    options = parser.parse_args()
    if len(options.words) != len(options.model):
        parser.error(f"{len(options.model)} models, and {len(options.words)} sources of words: --words")
    for model, words in zip(options.model, options.words, strict=True):
        with tempfile.TemporaryDirectory(prefix="keyword-stream-") as name:
            _measure(model, words, options.hours, Path(name))


def _measure(model: Path, words: Path, hours: float, folder: Path) -> None:
    """Print the figures of one model."""
    listener = open_listener(model)
    audio, spoken = _make_stream(listener, words, hours, folder), read_spoken_keywords(folder / "spoken.tsv")
    printed, seconds = folder / "detections.jsonl", audio_seconds(audio)
    cost = measured("listen.py", "--model", str(model), "--json", str(audio), output=printed)
    print(f"recording            {seconds / 3600:8.2f} h, {len(spoken)} keywords")
    print(f"peak memory          {cost.peak_memory / 2**20:8.0f} MiB")
    print(f"real-time factor     {cost.seconds / seconds:8.4f}, start included")
    _print_delay(_read(printed), spoken, late_seconds_of(listener.detection.refractory_ms))
    title = f"{model} on {words}, {len(spoken)} keywords in {seconds / 3600:.2f} h"
    print_table(title, COLUMNS, _compare(listener, stream_recordings(listener, [audio]), spoken))


def _make_stream(listener: Listener, words: Path, hours: float, folder: Path) -> Path:
    """Write the recording and its list into a folder; keywords are the labels of the model."""
    if words == COMMANDS and not words.is_dir():
        run("-m", "data.synthesis.spoken_commands", "--output", str(words))
    source = ["--folder" if words.is_dir() else "--manifest", str(words.absolute())]
    keywords = [label for label in listener.labels if label not in BACKGROUND]
    length = ["--hours", str(hours), "--output", str(folder.absolute())]
    run("-m", "data.keywords.long_recordings", *source, "--words", *keywords, *length)
    return folder / "stream.flac"


def _compare(
    listener: Listener, sound: StreamOutputs, spoken: Sequence[SpokenKeyword]
) -> Iterator[list[str]]:
    """A row for each threshold."""
    late = late_seconds_of(listener.detection.refractory_ms)
    for threshold in sorted({*THRESHOLDS, listener.detection.threshold}):
        matched = match(sound.detections(listener, threshold), spoken, late)
        counts = (len(spoken) - matched.misses, matched.misses, len(matched.false_alarms))
        yield [f"{threshold:g}", *map(str, counts)]


def _print_delay(found: Sequence[PrintedDetection], spoken: Sequence[SpokenKeyword], late: float) -> None:
    hits = match(found, spoken, late).hits
    delays = [
        found[hit].seconds - word.end for hit, word in zip(hits, spoken, strict=True) if hit is not None
    ]
    if delays:
        extremes = f"{min(delays):.2f} to {max(delays):.2f} s"
        print(f"delay after the end  {np.median(delays):8.2f} s (median), {extremes}")


def _read(path: Path) -> list[PrintedDetection]:
    lines = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return [PrintedDetection(line["seconds"], line["keyword"], line["score"]) for line in lines]


def _parser() -> CommandParser:
    parser = CommandParser(description=__doc__)
    parser.add_argument(
        "--model", type=Path, nargs="+", required=True, help="bundles, or streamed artefacts in them"
    )
    parser.add_argument(
        "--words", type=Path, nargs="+", default=[COMMANDS],
        help="for each model a folder with a folder for each word, or a manifest of recorded words",
    )  # fmt: skip
    parser.add_argument("--hours", type=float, default=1.0, help="length of each recording (default: 1)")
    return parser


if __name__ == "__main__":
    run_command(main)
