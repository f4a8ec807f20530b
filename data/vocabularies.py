"""Command that builds the acoustic vocabulary of some manifests.

The vocabulary is the full inventory of Mandarin syllables plus the syllables of the lists that it lacks.
"""

from utils.command.entry import run_command

from data.manifest import read_transcripts
from utils.command.parser import CommandParser
from utils.mandarin.pinyin import full_inventory
from utils.vocabulary import acoustic_vocabulary

_EXAMPLES = """examples:
  python -m data.vocabularies datasets/thchs30/{train,dev,test}.tsv
  python -m data.vocabularies datasets/*/train.tsv --output acoustic.txt
"""


def main(argv: list[str] | None = None) -> int:
    """The command ``python -m data.vocabularies``."""
    options = _parser().parse_args(argv)
    seen = {syllable for path in options.lists for text in read_transcripts(path) for syllable in text.pinyin}
    vocabulary = acoustic_vocabulary(seen)
    outside = sorted(seen - set(full_inventory()))
    print(f"tonal syllables: {len(seen):,} seen; the full inventory has {len(full_inventory()):,}")
    print(f"outside the inventory: {', '.join(outside) or 'none'}")
    print(f"acoustic vocabulary: {len(vocabulary):,} tokens with space and blank, hash {vocabulary.hash}")
    if options.output:
        vocabulary.save(options.output)
        print(f"written: {options.output}")
    return 0


def _parser() -> CommandParser:
    parser = CommandParser(
        "python -m data.vocabularies",
        description="Build the acoustic vocabulary of one or several corpora.",
        epilog=_EXAMPLES,
    )
    parser.add_argument("lists", nargs="+", help="manifests, or lists of id, pinyin, hanzi")
    parser.add_argument("--output", help="write the vocabulary to this file, one token per line")
    return parser


if __name__ == "__main__":
    run_command(main)
