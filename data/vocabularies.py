"""Builds the acoustic vocabulary from the manifests of all splits; as a command, prints sizes and overlap.

The vocabulary is the full inventory of Mandarin syllables plus the syllables of the lists that it lacks.
"""

from utils.command.entry import run_command

import argparse
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from pathlib import Path

from data.manifest import Transcript, read_transcripts
from utils.mandarin.pinyin import full_inventory, without_tone
from utils.text_table import print_table
from utils.vocabulary import Vocabulary, acoustic_vocabulary

_EXAMPLES = """examples:
  python -m data.vocabularies datasets/thchs30/{train,dev,test}.tsv
  python -m data.vocabularies datasets/*/train.tsv --output acoustic.txt
"""


def build_acoustic_vocabulary(lists: Mapping[str, Sequence[Transcript]]) -> Vocabulary:
    """Build the acoustic vocabulary: the full inventory and the lists' syllables outside of it."""
    return acoustic_vocabulary(_syllables(text for texts in lists.values() for text in texts))


def read_lists(paths: Sequence[str | Path]) -> dict[str, list[Transcript]]:
    """Read each file; the keys are the shortest endings of the paths that distinguish them.

    Raises:
        CorpusError: a file can't be read (see :func:`data.manifest.read_transcripts`).
    """
    resolved = [Path(path).resolve() for path in dict.fromkeys(paths)]
    return {_shortest_name(path, resolved): read_transcripts(path) for path in resolved}


def _shortest_name(path: Path, paths: Sequence[Path]) -> str:
    for count in range(1, len(path.parts)):
        ending = path.parts[-count:]
        if sum(other.parts[-count:] == ending for other in paths) == 1:
            return "/".join(ending).removesuffix(".tsv")
    return str(path)


def _syllables(texts: Iterable[Transcript]) -> set[str]:
    return {syllable for text in texts for syllable in text.pinyin}


def print_lists(lists: Mapping[str, Sequence[Transcript]]) -> None:
    """Print the sizes of the lists and what each two of them have in common."""
    syllables = {name: _syllables(texts) for name, texts in lists.items()}
    sentences = {name: {text.hanzi for text in texts} for name, texts in lists.items()}
    headings = ("texts", "distinct\ntexts", "syllables", "tonal\nkinds", "toneless\nkinds", "hanzi\nkinds")
    sizes = [
        (
            name,
            len(texts),
            len(sentences[name]),
            sum(len(text.pinyin) for text in texts),
            len(syllables[name]),
            len(set(map(without_tone, syllables[name]))),
            len(set().union(*sentences[name])),
        )
        for name, texts in lists.items()
    ]
    print_table("sizes", ("list", *headings), sizes)
    if len(lists) > 1:
        overlap = [
            (
                first,
                second,
                len(sentences[first] & sentences[second]),
                len(syllables[first] & syllables[second]),
                len(syllables[first] - syllables[second]),
                len(syllables[second] - syllables[first]),
            )
            for first, second in combinations(lists, 2)
        ]
        headings = ("texts\nin both", "tonal\nin both", "only in\nfirst", "only in\nsecond")
        print_table("overlap", ("first", "second", *headings), overlap, left=2)


def main(argv: list[str] | None = None) -> int:
    """The command ``python -m data.vocabularies``."""
    options = _parser().parse_args(argv)
    lists = read_lists(options.lists)
    vocabulary = build_acoustic_vocabulary(lists)
    print_lists(lists)
    seen = _syllables(text for texts in lists.values() for text in texts)
    outside = sorted(seen - set(full_inventory()))
    print(f"tonal syllables: {len(seen):,} seen; the full inventory has {len(full_inventory()):,}")
    print(f"outside the inventory: {', '.join(outside) or 'none'}")
    print(f"acoustic vocabulary: {len(vocabulary):,} tokens with space and blank, hash {vocabulary.hash}")
    if options.output:
        vocabulary.save(options.output)
        print(f"written: {options.output}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m data.vocabularies",
        description="Build the acoustic vocabulary of one or several corpora; print sizes and overlap.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("lists", nargs="+", help="manifests, or lists of id, pinyin, hanzi")
    parser.add_argument("--output", help="write the vocabulary to this file, one token per line")
    return parser


if __name__ == "__main__":
    run_command(main)
