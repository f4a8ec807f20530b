"""Chinese text of any kind in; lines of nothing but hanzi, one clause each, to train language models on, out.

    python -m data.text.cleaning a.txt b.txt --output datasets/ab.txt --exclude datasets/thchs30/test.tsv

Clauses, figures and simplification: ``data.text.clauses``. Left out and counted: what can't be read aloud,
what stood before, and what an evaluation list holds (``data.text.deduplication`` says what counts as held).
Texts stream through, a few pieces at a time, and the output does not depend on the number of processes.

Beside the output ``….report.json`` has the counts, for each reason some of the clauses, and under ``made_of``
what the output was made of. The same command again leaves the output as it is; with other texts, lists or
limits, or another content of them, the output is made anew.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from rich.console import Console
from rich.table import Table
from tqdm import tqdm

from data.manifest import read_transcripts
from data.text.clauses import Limits, hanzi_of
from data.text.cleaned_pieces import NOT_UTF8, Cleaned, Cleaner, Tally, clean_in_worker, remember_cleaner
from data.text.deduplication import SeenLines, excluded
from data.text.sources import STANDARD_INPUT, not_utf8, read_lines, read_pieces
from utils.cli import positive
from utils.errors import CorpusError, run_command
from utils.files import replacing, write_json
from utils.processes import WorkerPool
from utils.run_folder.checksum_files import file_hash

SEEN = "seen before"
ENDINGS = (".txt", ".txt.xz")  # those that data.text.pinyin_pairs reads
_VERSION = 1  # raise it when the same texts, lists and limits give other lines than before
_OTHER_ENCODING = 0.1  # of a source's first lines; from here on it is not damage but another encoding

_EXAMPLES = """examples:
  python -m data.text.cleaning news/*.txt.gz --output datasets/text/news.txt
  python -m data.text.cleaning a.txt b.txt --output datasets/text/ab.txt.xz \\
      --exclude datasets/thchs30/test.tsv datasets/aishell1/dev.tsv --workers 8
  zcat dump.gz | python -m data.text.cleaning - --output datasets/text/dump.txt
"""


def clean_text(
    sources: Sequence[str | Path],
    output: str | Path,
    *,
    exclude: Sequence[str | Path] = (),
    limits: Limits | None = None,
    workers: int = 1,
) -> dict[str, Any]:
    """Clean texts into one file, and write its report beside it.

    Args:
        sources: text files, packed or not; ``-`` is standard input.
        output: ``.txt`` or ``.txt.xz``; appears whole or not at all.
        exclude: manifests, transcript lists (``.tsv``) or text files of evaluation
            sentences, one a line.
        limits: hanzi a clause.
        workers: processes.

    Returns:
        What ``OUTPUT.report.json`` holds.

    Raises:
        CorpusError: a file can't be read or is no UTF-8 text, a process died, or nothing was left.
    """
    output = Path(output)
    if not output.name.endswith(ENDINGS):
        raise CorpusError(
            "the output has an unknown ending", where=output, hint=f"name it {', '.join(ENDINGS)}"
        )
    began = time.perf_counter()
    limits = limits or Limits()
    made_of = ingredients(sources, exclude, limits)
    Path(f"{output}.report.json").unlink(missing_ok=True)  # written last: it belongs to the output beside it
    cleaner = Cleaner(limits, excluded(evaluation_sentences(exclude)))
    total, seen = Tally(), SeenLines()
    with replacing(output) as temporary, _writer(temporary) as file:
        with tqdm(desc="text", unit=" characters", unit_scale=True, disable=None, leave=False) as bar:
            for cleaned in _all_cleaned(sources, cleaner, workers):
                _write_new(cleaned, seen, total, file)
                bar.update(cleaned.tally.characters)
        if not total.clauses:
            where = ", ".join(map(str, sources)) or "no sources"
            raise CorpusError(
                "no clause that can be used", where=where, hint="see python -m data.text.cleaning --help"
            )
    report = _report(total, sources, exclude, limits, time.perf_counter() - began)
    report["made_of"] = {**made_of, "output": file_hash(output)}
    write_json(f"{output}.report.json", report)
    return report


def ingredients(
    sources: Sequence[str | Path], exclude: Sequence[str | Path], limits: Limits
) -> dict[str, Any]:
    """What the lines of a cleaned text depend on, as plain values; files by their SHA-256.

    Raises:
        CorpusError: a file can't be read.
    """
    return {
        "version": _VERSION,
        "sources": [_hash(source) for source in sources],
        "excluded_lists": sorted(_hash(path) for path in exclude),
        "limits": {"shortest": limits.shortest, "longest": limits.longest},
    }


def is_made_of(output: str | Path, made_of: Mapping[str, Any]) -> bool:
    """Whether an output is there, whole, and was made of the same :func:`ingredients`.

    What comes from standard input is never the same.
    """
    try:
        report = json.loads(Path(f"{output}.report.json").read_text(encoding="utf-8"))
        expected = {**made_of, "output": file_hash(output)}
    except (OSError, ValueError):
        return False
    return STANDARD_INPUT not in made_of["sources"] and report.get("made_of") == expected


def _hash(path: str | Path) -> str:
    if str(path) == STANDARD_INPUT:
        return STANDARD_INPUT
    try:
        return file_hash(path)
    except OSError as error:
        raise CorpusError("can't read the text", where=path, hint=error.strerror or str(error)) from error


def _write_new(cleaned: Cleaned, seen: SeenLines, total: Tally, file: TextIO) -> None:
    fresh = seen.add(cleaned.prints)
    new = [text for text, is_new in zip(cleaned.texts, fresh, strict=True) if is_new]
    total.add(cleaned.tally)
    total.reject(SEEN, [text for text, is_new in zip(cleaned.texts, fresh, strict=True) if not is_new])
    total.clauses += len(new)
    total.hanzi += sum(map(len, new))
    if new:
        file.write("\n".join(new) + "\n")


def evaluation_sentences(lists: Iterable[str | Path]) -> Iterator[str]:
    """The hanzi of each sentence of evaluation lists (``.tsv``) or texts.

    Raises:
        CorpusError: a list can't be read, or holds no sentence.
    """
    for path in map(Path, lists):
        if path.suffix == ".tsv":
            sentences = [line.hanzi for line in read_transcripts(path)]
        else:
            sentences = list(read_lines(path))
        found = [hanzi_of(sentence) for sentence in sentences]
        if not any(found):
            raise CorpusError(
                "no sentence to exclude", where=path, hint="one sentence a line, or a .tsv list"
            )
        yield from found


def _all_cleaned(sources: Sequence[str | Path], cleaner: Cleaner, workers: int) -> Iterator[Cleaned]:
    """All pieces of all sources in their order, checked for their encoding."""
    if workers == 1:
        for source in sources:
            yield from _checked(map(cleaner.clean, read_pieces(source)), source)
        return
    with closing(WorkerPool(workers, remember_cleaner, cleaner)) as pool:
        for source in sources:
            try:
                jobs = ((piece,) for piece in read_pieces(source))
                yield from _checked(pool.in_order(clean_in_worker, jobs, 2 * workers), source)
            except BrokenExecutor as error:
                hint = "was it killed for its memory? try --workers 1"
                raise CorpusError("a worker process died", where=source, hint=hint) from error


def _checked(results: Iterator[Cleaned], source: str | Path) -> Iterator[Cleaned]:
    for number, cleaned in enumerate(results):
        if number == 0 and cleaned.tally.rejected[NOT_UTF8] > _OTHER_ENCODING * cleaned.tally.lines:
            raise not_utf8(source)
        yield cleaned


def _writer(path: Path) -> TextIO:
    if path.suffix == ".xz":
        return lzma.open(path, "wt", encoding="utf-8", newline="\n", preset=2)
    return path.open("w", encoding="utf-8", newline="\n")


def _report(
    total: Tally, sources: Sequence[str | Path], exclude: Sequence[str | Path], limits: Limits, seconds: float
) -> dict[str, Any]:
    return {
        "sources": [str(source) for source in sources],
        "excluded_lists": [str(path) for path in exclude],
        "limits": {"shortest": limits.shortest, "longest": limits.longest},
        "read": {"lines": total.lines, "characters": total.characters},
        "kept": {"clauses": total.clauses, "hanzi": total.hanzi},
        "rejected": {
            reason: {"clauses": count, "characters": total.rejected_characters[reason]}
            for reason, count in sorted(total.rejected.items())
        },
        "samples": {reason: [text for _, text in ranked] for reason, ranked in sorted(total.samples.items())},
        "seconds": round(seconds, 1),
    }


def print_report(report: dict[str, Any], console: Console) -> None:
    """Show the counts of a report as a table."""
    read, kept, seconds = report["read"], report["kept"], report["seconds"]
    rate = f"{read['characters'] / max(seconds, 0.1):,.0f} characters/s"
    table = Table(title=f"{read['characters']:,} characters in {read['lines']:,} lines; {seconds} s, {rate}")
    table.add_column("")
    table.add_column("clauses", justify="right")
    table.add_column("characters", justify="right")
    table.add_column("example")
    table.add_row("kept", f"{kept['clauses']:,}", f"{kept['hanzi']:,}", "")
    for reason, counts in report["rejected"].items():
        example = (report["samples"].get(reason) or [""])[0][:24]
        table.add_row(reason, f"{counts['clauses']:,}", f"{counts['characters']:,}", example)
    console.print(table)


def main(argv: list[str] | None = None) -> int:
    """Clean texts as the command line says, print the counts."""
    options = _parser().parse_args(argv)
    if options.shortest > options.longest:
        raise CorpusError(
            f"--shortest {options.shortest} is above --longest {options.longest}", hint="swap them"
        )
    limits = Limits(options.shortest, options.longest)
    if is_made_of(options.output, ingredients(options.sources, options.exclude, limits)):
        print(f"unchanged: {options.output} was made of these texts and lists")
        return 0
    clean = partial(clean_text, options.sources, options.output, exclude=options.exclude, limits=limits)
    print_report(clean(workers=options.workers), Console())
    print(f"written: {options.output} and {options.output}.report.json")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m data.text.cleaning",
        description="Make training lines of nothing but hanzi, one clause a line, of Chinese text.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=_EXAMPLES,
    )
    parser.add_argument(
        "sources", nargs="+", metavar="INPUT", help=f".txt, .xz, .gz, .bz2; {STANDARD_INPUT} is stdin"
    )
    parser.add_argument("--output", required=True, type=Path, metavar="FILE", help="FILE.txt or FILE.txt.xz")
    parser.add_argument(
        "--exclude",
        nargs="+",
        default=[],
        metavar="LIST",
        help="evaluation lists (.tsv) or texts (.txt) to keep out",
    )
    parser.add_argument(
        "--shortest", type=positive, default=Limits.shortest, metavar="N", help="hanzi a clause (%(default)s)"
    )
    parser.add_argument(
        "--longest", type=positive, default=Limits.longest, metavar="N", help="hanzi a clause (%(default)s)"
    )
    workers = os.cpu_count() or 1
    parser.add_argument(
        "--workers", type=positive, default=workers, metavar="N", help="processes (default: %(default)s)"
    )
    return parser


if __name__ == "__main__":
    run_command(main)
