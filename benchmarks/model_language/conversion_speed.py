"""Measures the throughput of ``convert.py`` on a file in sentences/s, with one and with two processes.

    python -m benchmarks.model_language.conversion_speed [--rounds 3]

The file has AISHELL-1's dev set five times: 71,610 sentences, as typed pinyin, as typed pinyin with a
language model that rescores the best conversions, and as recognised pinyin, which may be wrong. The rounds
alternate between these and the numbers of processes; needs an idle machine. Loading, reading and writing are
included; the throughput without the start follows from the time for a file of one sentence.
"""

from utils.command.entry import run_command

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.support.commands import ROOT
from benchmarks.support.open_text import SHARED
from data.manifest import read_transcripts
from utils.command.arguments import positive
from utils.text_table import print_table

COPIES = 5
OPTIONS: dict[str, tuple[str, ...]] = {
    "typed": (),
    "typed, rescored": ("--rescoring-weight", "0.2"),
    "recognised": ("--recognised",),
}
CASES = [(pinyin, processes) for pinyin in OPTIONS for processes in (1, 2)]


def main() -> None:
    """Convert the file several times, print the table."""
    options = _parser().parse_args()
    sentences = [" ".join(utterance.pinyin) for utterance in read_transcripts(options.list)]
    count = COPIES * len(sentences)
    file_seconds: dict[tuple[str, int], list[float]] = {case: [] for case in CASES}
    start_seconds: dict[tuple[str, int], list[float]] = {case: [] for case in CASES}
    with tempfile.TemporaryDirectory() as name:
        one, many = Path(name) / "one.txt", Path(name) / "many.txt"
        one.write_text(sentences[0] + "\n", encoding="utf-8")
        many.write_text("".join(f"{sentence}\n" for sentence in sentences) * COPIES, encoding="utf-8")
        for _ in range(options.rounds):
            for case in CASES:
                start_seconds[case].append(_seconds(one, *case))
                file_seconds[case].append(_seconds(many, *case))
    rows = []
    for case in CASES:
        whole, start = statistics.median(file_seconds[case]), statistics.median(start_seconds[case])
        pinyin, processes = case
        rates = (f"{count / whole:,.0f}", f"{start:.1f}", f"{count / (whole - start):,.0f}")
        rows.append((pinyin, str(processes), *rates))
    header = ("pinyin", "processes", "sentences/s", "start, s", "without it")
    print_table(f"convert.py, {count:,} sentences, median of {options.rounds}", header, rows)


def _seconds(lines: Path, pinyin: str, processes: int) -> float:
    command = [sys.executable, "convert.py", *OPTIONS[pinyin], "--workers", str(processes), str(lines)]
    began = time.perf_counter()
    with lines.with_suffix(".hanzi").open("wb") as output:
        subprocess.run(
            command, cwd=ROOT, stdout=output, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
        )
    return time.perf_counter() - began


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    aishell = SHARED / "transcripts" / "aishell_dev.tsv"
    parser.add_argument(
        "--list", type=Path, default=aishell, help="transcripts (default: AISHELL-1's dev set)"
    )
    parser.add_argument("--rounds", type=positive, default=3, help="(default: %(default)s)")
    return parser


if __name__ == "__main__":
    run_command(main)
