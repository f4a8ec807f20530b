"""Cleans Chinese text for language models: one clause per line, which consists of hanzi only.

    python -m data.text.cleaning a.txt b.txt --output datasets/ab.txt --exclude datasets/thchs30/test.tsv

``data.text.clauses`` splits lines, writes numbers in hanzi and simplifies characters. Clauses are rejected,
and counted, if they can't be read aloud, are too short or too long, are repeated, or share text with an
evaluation list (see ``data.text.deduplication``). Texts are read in pieces, a few at a time; the output does
not depend on the number of processes.

``OUTPUT.report.json`` holds the counts, and some clauses for each reason.
"""

from utils.command.entry import run_command

import lzma
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, TextIO

from tqdm import tqdm

from data.manifest import read_transcripts
from data.text.clauses import LONGEST, SHORTEST, hanzi_of
from data.text.deduplication import SeenLines, index_sentences
from data.text.piece_cleaner import NOT_UTF8, Cleaned, Cleaner, Tally, clean_in_worker, remember_cleaner
from data.text.sources import STANDARD_INPUT, not_utf8, read_lines, read_pieces, worker_died
from utils.command.arguments import add_workers
from utils.command.parser import CommandParser
from utils.errors import CorpusError
from utils.files import replacing, write_json
from utils.processes import ordered_workers
from utils.text_table import print_table

SEEN = "seen before"
ENDINGS = (".txt", ".txt.xz")  # as data.text.pinyin_pairs reads them
_OTHER_ENCODING = 0.1  # if more than this fraction of the first lines is not UTF-8, the source is refused

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
    workers: int = 1,
) -> dict[str, Any]:
    """Clean texts into one file, and write its report beside it.

    Args:
        sources: text files, packed or not; ``-`` is standard input.
        output: ``.txt`` or ``.txt.xz``; appears whole or not at all.
        exclude: evaluation sentences: manifests, transcript lists (``.tsv``) or text files, one per line.
        workers: processes.

    Returns:
        The content of ``OUTPUT.report.json``.

    Raises:
        CorpusError: a file can't be read or is not UTF-8 text, a process died, or no clause is usable.
    """
    output = Path(output)
    if not output.name.endswith(ENDINGS):
        raise CorpusError(
            "the output has an unknown ending", where=output, hint=f"name it {', '.join(ENDINGS)}"
        )
    began = time.perf_counter()
    cleaner = Cleaner(index_sentences(evaluation_sentences(exclude)))
    total, seen = Tally(), SeenLines()
    with replacing(output) as temporary, _writer(temporary) as file:
        with tqdm(desc="text", unit=" characters", unit_scale=True, disable=None, leave=False) as bar:
            for cleaned in _clean_all(sources, cleaner, workers):
                _write_new(cleaned, seen, total, file)
                bar.update(cleaned.tally.characters)
        if not total.clauses:
            raise CorpusError(
                "no usable clause",
                where=", ".join(map(str, sources)) or "no sources",
                hint="see python -m data.text.cleaning --help",
            )
    report = _report(total, sources, exclude, time.perf_counter() - began)
    write_json(f"{output}.report.json", report)
    return report


def _write_new(cleaned: Cleaned, seen: SeenLines, total: Tally, file: TextIO) -> None:
    fresh = seen.add(cleaned.fingerprints)
    new = [text for text, is_new in zip(cleaned.texts, fresh, strict=True) if is_new]
    total.add(cleaned.tally)
    total.reject(SEEN, [text for text, is_new in zip(cleaned.texts, fresh, strict=True) if not is_new])
    total.clauses += len(new)
    total.hanzi += sum(map(len, new))
    if new:
        file.write("\n".join(new) + "\n")


def evaluation_sentences(lists: Iterable[str | Path]) -> Iterator[str]:
    """The hanzi of each sentence in evaluation lists (``.tsv``) or texts.

    Raises:
        CorpusError: a list can't be read, or contains no sentence.
    """
    for path in map(Path, lists):
        if path.suffix == ".tsv":
            sentences = [line.hanzi for line in read_transcripts(path)]
        else:
            sentences = list(read_lines(path))
        found = [hanzi_of(sentence) for sentence in sentences]
        if not any(found):
            raise CorpusError(
                "no sentence to exclude", where=path, hint="one sentence per line, or a .tsv list"
            )
        yield from found


def _clean_all(sources: Sequence[str | Path], cleaner: Cleaner, workers: int) -> Iterator[Cleaned]:
    """The cleaned pieces of all sources, in order."""
    with ordered_workers(workers, remember_cleaner, cleaner) as run:
        for source in sources:
            pieces = read_pieces(source)
            first = next(pieces, b"")
            jobs = ((piece,) for piece in chain([first], pieces))
            for number, cleaned in enumerate(run(clean_in_worker, jobs, worker_died(source))):
                tally = cleaned.tally
                if number == 0 and tally.rejected[NOT_UTF8] > _OTHER_ENCODING * tally.lines:
                    raise not_utf8(source, first)
                yield cleaned


def _writer(path: Path) -> TextIO:
    if path.suffix == ".xz":
        return lzma.open(path, "wt", encoding="utf-8", newline="\n", preset=2)
    return path.open("w", encoding="utf-8", newline="\n")


def _report(
    total: Tally, sources: Sequence[str | Path], exclude: Sequence[str | Path], seconds: float
) -> dict[str, Any]:
    return {
        "sources": [str(source) for source in sources],
        "excluded_lists": [str(path) for path in exclude],
        "read": {"lines": total.lines, "characters": total.characters},
        "kept": {"clauses": total.clauses, "hanzi": total.hanzi},
        "rejected": {
            reason: {"clauses": count, "characters": total.rejected_characters[reason]}
            for reason, count in sorted(total.rejected.items())
        },
        "samples": dict(sorted(total.samples.items())),
        "seconds": round(seconds, 1),
    }


def print_report(report: dict[str, Any]) -> None:
    """Print the counts of a report as a table."""
    read, kept, seconds = report["read"], report["kept"], report["seconds"]
    rate = f"{read['characters'] / max(seconds, 0.1):,.0f} characters/s"
    title = f"{read['characters']:,} characters in {read['lines']:,} lines; {seconds} s, {rate}"
    rows = [("kept", "", kept["clauses"], kept["hanzi"])]
    for reason, counts in report["rejected"].items():
        example = (report["samples"].get(reason) or [""])[0][:24]
        rows.append((reason, example, counts["clauses"], counts["characters"]))
    print_table(title, ("", "example", "clauses", "characters"), rows, left=2)


def main(argv: list[str] | None = None) -> int:
    """The command ``python -m data.text.cleaning``."""
    options = _parser().parse_args(argv)
    report = clean_text(options.sources, options.output, exclude=options.exclude, workers=options.workers)
    print_report(report)
    print(f"written: {options.output} and {options.output}.report.json")
    return 0


def _parser() -> CommandParser:
    parser = CommandParser(
        description="Clean Chinese text for language models: one clause per line, which consists of "
        f"{SHORTEST} to {LONGEST} hanzi.",
        epilog=_EXAMPLES,
    )
    parser.add_argument(
        "sources",
        nargs="+",
        metavar="INPUT",
        help=f".txt, .xz, .gz, .bz2; {STANDARD_INPUT} is standard input",
    )
    parser.add_argument("--output", required=True, type=Path, metavar="FILE", help="FILE.txt or FILE.txt.xz")
    parser.add_argument(
        "--exclude",
        nargs="+",
        default=[],
        metavar="LIST",
        help="evaluation lists (.tsv) or texts (.txt) whose sentences are removed",
    )
    add_workers(parser)
    return parser


if __name__ == "__main__":
    run_command(main)
