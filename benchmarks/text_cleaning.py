"""Cleaning of plain text: characters a second, memory, what is left out; polyphones that are read right.

    python -m benchmarks.text_cleaning
    python -m benchmarks.text_cleaning --text news.txt.xz --exclude datasets/thchs30/test.tsv --hanzi 5000000

Cleaned is the text of --text, if given, cut after so many hanzi, and as much made-up dirty text (figures,
markup, Latin words, planted evaluation sentences). Memory is the peak of all processes together.
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
import threading
import time
from pathlib import Path

import psutil
from pypinyin import Style, lazy_pinyin
from rich.console import Console
from rich.table import Table

from data.text_cleaning import clean_text, print_report
from data.text_sources import decoded, read_pieces
from tests.polyphones import TUNED, UNSEEN, accuracy, read_sentences
from utils.errors import run_command
from utils.pinyin import hanzi_to_pinyin, normalise_syllable

MEGABYTE = 1 << 20
PLANTED = "这一句话属于评测集所以不可以留在训练文本里"


def main() -> int:
    """Clean both texts, print the tables."""
    options = _parser().parse_args()
    console = Console()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "planted.txt").write_text(PLANTED, encoding="utf-8")
        exclude = [folder / "planted.txt", *options.exclude]
        if options.text:
            _write_head(options.text, folder / "text.txt", options.hanzi)
            _clean(folder / "text.txt", exclude, options.workers, console)
        _write_dirty(folder / "dirty.txt", options.hanzi)
        _clean(folder / "dirty.txt", exclude, options.workers, console)
        kept = (folder / "dirty.txt.clean.txt").read_text(encoding="utf-8")
        found = sum(PLANTED[i : i + 10] in kept for i in range(len(PLANTED) - 9))
        console.print(f"runs of ten hanzi of the planted evaluation sentence that were left: {found}")
    _print_polyphones(console)
    return 0


def _clean(source: Path, exclude: list[Path], workers: int, console: Console) -> None:
    peak = [0]
    over = threading.Event()
    watch = threading.Thread(target=_watch, args=(peak, over))
    watch.start()
    report = clean_text([source], f"{source}.clean.txt", exclude=exclude, workers=workers)
    over.set()
    watch.join()
    print_report(report, console)
    console.print(f"{source.name}, {workers} workers: peak memory {peak[0] / MEGABYTE:.0f} MB, all processes")


def _watch(peak: list[int], over: threading.Event) -> None:
    me = psutil.Process()
    while not over.wait(0.2):
        total = 0
        for process in [me, *me.children(recursive=True)]:
            try:
                total += process.memory_info().rss
            except psutil.NoSuchProcess:
                continue
        peak[0] = max(peak[0], total)


def _write_head(sources: list[Path], path: Path, hanzi: int) -> None:
    """The beginnings of the sources, an equal part of each."""
    share = hanzi // len(sources)
    with path.open("w", encoding="utf-8") as file:
        for source in sources:
            left = share
            for piece in read_pieces(source):
                text = decoded(piece)[0][:left]
                file.write(text)
                left -= len(text)
                if not left:
                    break
            file.write("\n")


def _write_dirty(path: Path, hanzi: int) -> None:
    """Paragraphs of shuffled sentences with everything that a crawl brings."""
    rng = random.Random(0)
    sentences = [one.text for one in read_sentences()]
    extras = [
        "2026年3月5日",
        "占3.5%",
        "iPhone手机",
        "https://a.example/x?y=1",
        "<b>粗体</b>",
        "比分3-1",
        "😀",
        PLANTED,
    ]
    written = 0
    with path.open("w", encoding="utf-8") as file:
        while written < hanzi:
            halves = [sentence[: rng.randint(3, 20)] for sentence in rng.sample(sentences, 3)]
            joined = [a + b for a, b in zip(halves, reversed(halves), strict=True)]
            line = "，".join([*joined, rng.choice([*extras, PLANTED])]) + "。\n"
            file.write(line)
            written += len(line)


def _print_polyphones(console: Console) -> None:
    table = Table(title="polyphones read right")
    for column in ("part of the list", "pypinyin alone, %", "with our rules, %", "characters"):
        table.add_column(column, justify="right")
    for part, about in ((TUNED, "rules were written on it"), (UNSEEN, "only scored")):
        alone, count = accuracy(part, _pypinyin_alone)
        ours, _ = accuracy(part)
        table.add_row(about, f"{100 * alone / count:.1f}", f"{100 * ours / count:.1f}", str(count))
    console.print(table)
    text = "".join(one.text for one in read_sentences())
    began = time.process_time()
    hanzi_to_pinyin(text)
    console.print(f"{len(text) / (time.process_time() - began):,.0f} hanzi a CPU second to pinyin")


def _pypinyin_alone(text: str) -> list[str]:
    spelled = lazy_pinyin(text, style=Style.TONE3, neutral_tone_with_five=True)
    return [normalise_syllable(syllable) for syllable in spelled]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--text", nargs="+", type=Path, metavar="FILE", help="text files, packed or not")
    parser.add_argument(
        "--exclude", nargs="+", type=Path, default=[], metavar="LIST", help="evaluation lists"
    )
    parser.add_argument("--hanzi", type=int, default=1_000_000, metavar="N", help="of each (%(default)s)")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, metavar="N")
    return parser


if __name__ == "__main__":
    run_command(main)
