"""Command that builds the acoustic vocabulary of some manifests.

The vocabulary is the full inventory of Mandarin syllables plus the syllables of the lists that it lacks. With
``--only-seen`` it is the syllables of the lists alone; ``--units`` takes other units than tonal syllables.
With ``--as-seen`` it is that of the original project instead, whose weights need it: the tokens of the first
utterances in the order in which they appear.
"""

from utils.command.entry import run_command

from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path

from data.manifest import COLUMNS, is_manifest, read_rows, read_transcripts
from utils.command.arguments import positive
from utils.command.parser import CommandParser
from utils.errors import CorpusError, require
from utils.mandarin.output_units import TONAL, UNITS, inventory_of, tokens_of
from utils.vocabulary import BLANK, PAD, SPACE, Vocabulary, acoustic_vocabulary

ACOUSTIC, PINYIN, HANZI = "acoustic", "pinyin", "hanzi"
KINDS = (ACOUSTIC, PINYIN, HANZI)

_EXAMPLES = """examples:
  python -m data.vocabularies datasets/thchs30/{train,dev,test}.tsv
  python -m data.vocabularies datasets/*/train.tsv --output acoustic.txt
  python -m data.vocabularies datasets/demo/train.tsv --only-seen --output few.txt
  python -m data.vocabularies datasets/*/train.tsv --units hanzi --output hanzi.txt
  python -m data.vocabularies old/data/thchs_train.txt --as-seen acoustic --first 10 --output tokens.txt
"""


def main(argv: list[str] | None = None) -> int:
    """The command ``python -m data.vocabularies``."""
    parser = _parser()
    options = parser.parse_args(argv)
    if options.as_seen:
        if not options.output:
            parser.error("--as-seen needs --output FILE")
        if options.only_seen or options.units != TONAL:
            parser.error("--as-seen has tokens of its own: leave --units and --only-seen out")
        vocabulary = vocabulary_as_seen(options.lists, options.as_seen, options.first)
        vocabulary.save(options.output)
        print(f"written: {options.output}, {len(vocabulary)} tokens in the order of their first appearance")
        return 0
    units = options.units
    texts = (text for path in options.lists for text in read_transcripts(path))
    seen = {token for text in texts for token in tokens_of(units, text.pinyin, text.hanzi)}
    inventory = set(inventory_of(units))
    vocabulary = acoustic_vocabulary(seen, units, only=options.only_seen)
    print(f"{units.replace('_', ' ')}: {len(seen):,} seen")
    if inventory:
        print(f"the full inventory has {len(inventory):,}")
        print(f"outside the inventory: {', '.join(sorted(seen - inventory)) or 'none'}")
    print(f"acoustic vocabulary: {len(vocabulary):,} tokens with space and blank, hash {vocabulary.hash}")
    if options.output:
        vocabulary.save(options.output)
        print(f"written: {options.output}")
    return 0


def vocabulary_as_seen(lists: Sequence[str | Path], kind: str, first: int | None = None) -> Vocabulary:
    """The vocabulary that the original project made of its lists.

    Args:
        lists: manifests, or lists of audio or id, pinyin, hanzi, in the order in which the project read them.
        kind: one of :data:`KINDS`: the classes of the acoustic model (blank and space last), or the syllables
            or the hanzi of the language model (padding first).
        first: number of utterances, over all lists; None: all.

    Raises:
        CorpusError: a list can't be read, or a line has another number of fields.
    """
    texts = islice(chain.from_iterable(map(_texts, lists)), first)
    seen = dict.fromkeys(
        token for pinyin, hanzi in texts for token in (hanzi if kind == HANZI else pinyin.split())
    )
    return Vocabulary((*seen, BLANK, SPACE) if kind == ACOUSTIC else (PAD.upper(), *seen))


def _texts(path: str | Path) -> Iterator[tuple[str, str]]:
    """Pinyin, as it is spelt, and hanzi of each line."""
    rows = read_rows(path)
    pinyin = COLUMNS.index("pinyin") if is_manifest(Path(path)) else 1
    for line, fields in rows[1:] if pinyin > 1 else rows:
        require(
            len(fields) > pinyin + 1,
            f"{len(fields)} fields",
            where=f"{path}:{line}",
            hint="audio or id, pinyin, hanzi, separated by tabs",
            error=CorpusError,
        )
        yield fields[pinyin], fields[pinyin + 1].strip()


def _parser() -> CommandParser:
    parser = CommandParser(
        description="Build the acoustic vocabulary of one or several corpora.",
        epilog=_EXAMPLES,
    )
    parser.add_argument("lists", nargs="+", help="manifests, or lists of id, pinyin, hanzi")
    parser.add_argument("--as-seen", choices=KINDS, help="in the order of the lists, for published weights")
    parser.add_argument(
        "--first", type=positive, metavar="N", help="with --as-seen: only the first N utterances of all lists"
    )
    parser.add_argument(
        "--units", choices=UNITS, default=TONAL, help="what the tokens are (default: %(default)s)"
    )
    parser.add_argument(
        "--only-seen", action="store_true", help="the tokens of the lists alone, not the whole inventory"
    )
    parser.add_argument("--output", help="write the vocabulary to this file, one token per line")
    return parser


if __name__ == "__main__":
    run_command(main)
