"""An hour of sound with keywords at known times, through the listener: is all heard, is memory flat?

    python -m benchmarks.keyword_stream --model runs/commands/export
    python -m benchmarks.keyword_stream --model runs/commands/export --folder datasets/commands --hours 3

Makes the recording of the test split of a folder of words (the embedded spoken commands, if no other is
named), lets streaming.listen hear it in a process of its own, and prints: memory in the first and the last
tenth of its work, the real-time factor, keywords missed, false alarms an hour, how late the keywords fire.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from analysis.detections import Matched, Spoken, match, read_spoken
from benchmarks.shared_parts.commands import run
from benchmarks.shared_parts.watched import watched
from utils.audio import audio_seconds
from utils.errors import run_command


@dataclass(frozen=True)
class Line:
    """What the listener printed."""

    seconds: float
    keyword: str
    score: float


def main() -> int:
    """Make the recording, listen to it, print the figures."""
    options = _parser().parse_args()
    with tempfile.TemporaryDirectory(dir=options.temporary, prefix="keyword-stream-") as name:
        folder = Path(name)
        if not options.folder.is_dir():
            run("-m", "data.corpora.spoken_commands", "--output", str(options.folder))
        source = ["--folder", str(options.folder), "--hours", str(options.hours), "--output", str(folder)]
        run("-m", "data.keyword_streams", *source)
        audio, printed, said = (
            folder / "stream.flac",
            folder / "heard.jsonl",
            read_spoken(folder / "said.tsv"),
        )
        command = [
            sys.executable,
            "-m",
            "streaming.listen",
            "--model",
            str(options.model),
            "--json",
            str(audio),
        ]
        measured = watched(command, lambda: printed.stat().st_size > 0, printed)
        seconds = audio_seconds(audio)
        heard = _read(printed)
    print(f"recording            {seconds / 3600:8.2f} h, {len(said)} keywords")
    print(f"peak memory          {measured.peak / 2**20:8.0f} MiB")
    print(f"first, last tenth    {measured.growth()}")
    print(f"real-time factor     {measured.seconds / seconds:8.4f}, start included")
    _report(heard, said, match(heard, said), seconds / 3600)
    return 0


def _report(heard: Sequence[Line], said: Sequence[Spoken], matched: Matched, hours: float) -> None:
    pairs = [(heard[hit], one) for hit, one in zip(matched.hits, said, strict=True) if hit is not None]
    late = np.array([line.seconds - one.end for line, one in pairs])
    print(f"keywords missed      {matched.misses:8d} of {len(said)}: {matched.misses / len(said):.1%}")
    alarms = len(matched.false_alarms)
    print(f"false alarms         {alarms:8d}: {alarms / hours:.1f} an hour")
    if len(late):
        middle, least, most = np.median(late), late.min(), late.max()
        print(f"fired after the end  {middle:8.2f} s in the middle, {least:.2f} to {most:.2f} s")


def _read(path: Path) -> list[Line]:
    lines = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return [Line(line["seconds"], line["keyword"], line["score"]) for line in lines]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", type=Path, required=True, help="a bundle, or a streamed artefact in one")
    parser.add_argument(
        "--folder", type=Path, default=Path("datasets/commands"), help="a folder for each word"
    )
    parser.add_argument("--hours", type=float, default=1.0, help="length of the recording (default: 1)")
    parser.add_argument("--temporary", type=Path, help="for the recording (default: the system's)")
    return parser


if __name__ == "__main__":
    run_command(main)
