"""Measures the cleaning of plain text: speed, memory, omitted lines; and correct readings of polyphones.

    python -m benchmarks.data.text_cleaning
    python -m benchmarks.data.text_cleaning --text news.txt.xz --exclude test.tsv --hanzi 5000000
    python -m benchmarks.data.text_cleaning --text ../shared/data/text/*.xz \\
        --exclude ../shared/data/transcripts/*.tsv --hanzi 0

The input is the text of --text, if given, cut after a number of hanzi (0: all), and generated dirty text
(figures, markup, Latin words, evaluation sentences). Memory is the peak of all processes together. Remaining
evaluation text is found by a plain search, without the fingerprints that the cleaning uses.
"""

from utils.command.entry import run_command

import argparse
import os
import random
import resource
import tempfile
import threading
import time
from pathlib import Path

import psutil
from pypinyin import Style, lazy_pinyin
from tqdm import tqdm

from data.text.cleaning import clean_text, evaluation_sentences, print_report
from data.text.deduplication import GRAM, SHORTEST_PART
from data.text.sources import decode, read_pieces
from tests.support.polyphones import TUNED, UNSEEN, accuracy, read_sentences
from utils.mandarin.pinyin import hanzi_to_pinyin, normalise_syllable
from utils.text_table import print_table

MEGABYTE = 1 << 20
MADE_UP = 1_000_000  # characters, where the text is not cut
PLANTED = "这一句话属于评测集所以不可以留在训练文本里"


def main() -> int:
    """Clean both texts, print the tables."""
    options = _parser().parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "planted.txt").write_text(PLANTED, encoding="utf-8")
        exclude = [folder / "planted.txt", *options.exclude]
        if options.text:
            sources = options.text
            if options.hanzi:
                sources = [folder / "head.txt"]
                _write_head(options.text, sources[0], options.hanzi)
            _clean(sources, folder / "text.clean.txt", exclude, options.workers)
        dirty = folder / "dirty.txt"
        _write_dirty(dirty, options.hanzi or MADE_UP)
        _clean([dirty], folder / "dirty.clean.txt", exclude, options.workers)
    _print_polyphones()
    return 0


def _clean(sources: list[Path], output: Path, exclude: list[Path], workers: int) -> None:
    peak = [0]
    over = threading.Event()
    watch = threading.Thread(target=_watch, args=(peak, over))
    watch.start()
    began = _cpu_seconds()
    report = clean_text(sources, output, exclude=exclude, workers=workers)
    cpu = _cpu_seconds() - began
    over.set()
    watch.join()
    print_report(report)
    kept = report["kept"]["hanzi"]
    print(
        f"{len(sources)} texts, {workers} workers: {report['seconds']} s, {cpu:.0f} s of CPU "
        f"({kept / cpu:,.0f} hanzi kept a CPU second), peak memory {peak[0] / MEGABYTE:.0f} MB, all processes"
    )
    print(f"clauses with evaluation text that were left: {_left_over(output, exclude)}")


def _cpu_seconds() -> float:
    """Processor seconds of this process and of the processes that it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def _left_over(cleaned: Path, exclude: list[Path]) -> int:
    """Count lines with a whole evaluation sentence or ten consecutive hanzi of one."""
    sentences = set(evaluation_sentences(exclude))
    runs = {sentence[i : i + GRAM] for sentence in sentences for i in range(len(sentence) - GRAM + 1)}
    short: dict[str, list[str]] = {}
    for sentence in sentences:
        if SHORTEST_PART <= len(sentence) < GRAM:
            short.setdefault(sentence[:SHORTEST_PART], []).append(sentence)
    count = 0
    with cleaned.open(encoding="utf-8") as file:
        for line in map(str.rstrip, tqdm(file, desc="search", unit=" lines", disable=None, leave=False)):
            parts = (short.get(line[i : i + SHORTEST_PART], ()) for i in range(len(line) - SHORTEST_PART + 1))
            count += (
                line in sentences
                or any(line[i : i + GRAM] in runs for i in range(len(line) - GRAM + 1))
                or any(part in line for found in parts for part in found)
            )
    return count


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
                text = decode(piece)[0][:left]
                file.write(text)
                left -= len(text)
                if not left:
                    break
            file.write("\n")


def _write_dirty(path: Path, hanzi: int) -> None:
    """Write paragraphs of shuffled sentences with the dirt of crawled text."""
    rng = random.Random(0)
    sentences = [sentence.text for sentence in read_sentences()]
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


def _print_polyphones() -> None:
    rows = []
    for part, about in ((TUNED, "rules were written on it"), (UNSEEN, "only scored")):
        alone, count = accuracy(part, _pypinyin_alone)
        ours, _ = accuracy(part)
        rows.append((about, f"{100 * alone / count:.1f}", f"{100 * ours / count:.1f}", count))
    headings = ("part of the list", "pypinyin alone, %", "with our rules, %", "characters")
    print_table("polyphones with the correct reading", headings, rows)
    text = "".join(sentence.text for sentence in read_sentences())
    began = time.process_time()
    hanzi_to_pinyin(text)
    print(f"{len(text) / (time.process_time() - began):,.0f} hanzi a CPU second to pinyin")


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
    parser.add_argument(
        "--hanzi", type=int, default=MADE_UP, metavar="N", help="hanzi of each text (%(default)s); 0: all"
    )
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, metavar="N")
    return parser


if __name__ == "__main__":
    run_command(main)
