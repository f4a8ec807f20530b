"""Convert lines of pinyin in any usual spelling to hanzi, from a pipe or files, as they arrive."""

from utils.command.entry import run_command

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tqdm import tqdm

from data.text.sources import worker_died
from model_language.line_conversion import convert_block, prepare
from utils.command.arguments import fraction, positive
from utils.command.parser import CommandParser
from utils.errors import CorpusError
from utils.processes import ordered_workers
from utils.run_folder.run import PRETRAINED, PRETRAINED_LANGUAGE_MODEL

PIPE = Path("-")
READ_BYTES = 1 << 18  # the lines of one read are converted and written together
EXAMPLES = """\
examples:
  echo "jin1 tian1 tian1 qi4 hen3 hao3" | python convert.py
  echo "Jīntiān tiānqì hěn hǎo!" | python convert.py
  echo "jintian tianqi henhao" | python convert.py --n-best 5
  python convert.py lines.txt > hanzi.txt
  python convert.py --workers 2 many_lines.txt > hanzi.txt
  python convert.py --words names.txt --json < lines.txt      # with reasons for each character
  python convert.py --model runs/ngram lines.txt
  python convert.py --recognised recognised.txt
  python convert.py --rescoring-weight 0.2 lines.txt          # fewer errors, two to three times as slow

Accepts zhong1, zhong¹, zhōng, lv4 nü3 lu:4, capitals, erhua, with and without tones, with and without spaces
(xi'an is two syllables, xian one). Where spaces separate words, not single syllables, no word of the result
crosses a space. After pinyin, the marks , ? ! become those of Chinese; other text is
unchanged. If most syllables of a line have tones, a syllable without a tone is neutral if any hanzi is read
so; otherwise, and in a word of several syllables without any tone (Beijing), it may have any tone. A file of
user words has one word per line: hanzi, optionally its pinyin and a weight (a natural logarithm per
character; default 6).

In Python:
  from model_language.pinyin_to_hanzi import PinyinToHanzi
  to_hanzi = PinyinToHanzi()
  print(to_hanzi("jin1 tian1 tian1 qi4 hen3 hao3"))
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line; convert lines as soon as they arrive."""
    parser = _parser()
    options = parser.parse_args(arguments)
    files = options.files or [PIPE]
    if options.workers > 1 and PIPE in files:
        parser.error("--workers is for files: lines of a pipe are converted as they arrive, by one process")
    if options.language_model and not options.rescoring_weight:
        parser.error("--language-model is used with --rescoring-weight alone, e.g. --rescoring-weight 0.2")
    form, unread, example = (options.n_best, options.json), 0, ""
    rescoring = (options.rescoring_weight, options.language_model or PRETRAINED_LANGUAGE_MODEL)
    converter = (options.model, options.words, options.strict, options.recognised, *rescoring)
    with ordered_workers(options.workers, prepare, *converter) as run:
        # Raises an error of `prepare`.
        list(run(convert_block, [(*form, [], 1, "")], worker_died(options.model)))
        for path in files:
            if path != PIPE and not path.exists():
                hint = f'check the path; pinyin itself comes from a pipe: echo "{path}" | python convert.py'
                raise CorpusError("no such file", where=path, hint=hint)
            if path.is_dir():
                raise CorpusError("this is a folder", where=path, hint="give the files in it")
        for path in files:
            where = "standard input" if path == PIPE else str(path)
            with _Bar(path) as bar:
                jobs = ((*form, lines, number, where) for number, lines in _lines(path, where, bar))
                for block in run(convert_block, jobs, worker_died(where)):
                    sys.stdout.write(block.text)
                    sys.stdout.flush()
                    unread, example = unread + block.unread, example or block.example
    if unread:
        words = "1 word is not pinyin and is" if unread == 1 else f"{unread} words are not pinyin and are"
        print(f"note: {words} unchanged, e.g. {example}", file=sys.stderr)


class _Bar(tqdm):
    """A progress bar for a file; hidden for a pipe, and when the output is a terminal."""

    def __init__(self, path: Path):
        hidden = path == PIPE or sys.stdout.isatty() or None
        size = path.stat().st_size if path != PIPE else None
        super().__init__(total=size, desc=path.name, unit="B", unit_scale=True, disable=hidden)


def _lines(path: Path, where: str, bar: tqdm) -> Iterator[tuple[int, list[str]]]:
    """(number of the first line, lines) for each block of lines that has arrived.

    Raises:
        CorpusError: a line is not UTF-8.
    """
    number, rest = 1, list[bytes]()
    for block in _blocks(path):
        bar.update(len(block))
        *complete, last = block.split(b"\n")
        if complete:
            complete[0] = b"".join([*rest, complete[0]])
            rest = []
            yield number, [_decode(line, number + i, where) for i, line in enumerate(complete)]
            number += len(complete)
        rest.append(last)
    if any(rest):
        yield number, [_decode(b"".join(rest), number, where)]


def _blocks(path: Path) -> Iterator[bytes]:
    """The bytes that have arrived, without waiting for more: a typed line is converted at once."""
    file = sys.stdin.fileno() if path == PIPE else os.open(path, os.O_RDONLY)
    try:
        while block := os.read(file, READ_BYTES):
            yield block
    finally:
        if path != PIPE:
            os.close(file)


def _decode(line: bytes, number: int, where: str) -> str:
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise CorpusError(
            "not UTF-8", where=f"{where}, line {number}", hint="save the text as UTF-8"
        ) from error
    return text.removesuffix("\r").removeprefix("\ufeff" if number == 1 else "")


def _parser() -> CommandParser:
    parser = CommandParser(description=__doc__, epilog=EXAMPLES)
    parser.add_argument("files", nargs="*", type=Path, help="UTF-8 text; - or none is standard input")
    parser.add_argument(
        "--model",
        type=Path,
        default=PRETRAINED,
        metavar="RUN",
        help="run of a language model (default: the shipped one)",
    )
    parser.add_argument("--words", type=Path, metavar="FILE", help="user words, which are preferred")
    parser.add_argument(
        "--n-best",
        type=positive,
        default=1,
        metavar="N",
        help="alternatives for each line, separated by tabs",
    )
    parser.add_argument(
        "--json", action="store_true", help="one JSON object per line: scores, reasons, words"
    )
    parser.add_argument(
        "--recognised",
        action="store_true",
        help="the pinyin comes from a speech recogniser: correct likely recognition errors",
    )
    parser.add_argument(
        "--rescoring-weight",
        type=fraction,
        default=0.0,
        metavar="W",
        help="weight of a language model that rescores the best conversions, e.g. 0.2: fewer errors, but "
        "two to three times as slow (default: 0, without it)",
    )
    parser.add_argument(
        "--language-model",
        type=Path,
        metavar="RUN",
        help="run of a causal_cnn for --rescoring-weight (default: the shipped one)",
    )
    parser.add_argument(
        "--workers", type=positive, default=1, help="processes, for files (default: %(default)s)"
    )
    parser.add_argument("--strict", action="store_true", help="text that is not pinyin is an error")
    return parser


if __name__ == "__main__":
    run_command(main)
