"""Manifests or transcript lists of all splits → the acoustic vocabulary, with sizes and overlap printed."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path

from rich.console import Console
from rich.table import Table

from data.manifest import Transcript, read_transcripts
from utils.errors import run_command
from utils.mandarin.pinyin import full_inventory, without_tone
from utils.vocabulary import Vocabulary, acoustic_vocabulary

_EXAMPLES = """examples:
  python -m data.vocabularies datasets/thchs30/{train,dev,test}.tsv
  python -m data.vocabularies datasets/*/train.tsv --output acoustic.txt
"""


def build_acoustic_vocabulary(lists: Mapping[str, Sequence[Transcript]]) -> Vocabulary:
    """The acoustic vocabulary of several lists: the full inventory and what they have beyond it."""
    return acoustic_vocabulary({s for texts in lists.values() for text in texts for s in text.pinyin})


def read_lists(paths: Sequence[str | Path]) -> dict[str, list[Transcript]]:
    """Read each file, keyed by the shortest ending of its path that tells it from the others.

    Raises:
        CorpusError: a file can't be read (see :func:`data.manifest.read_transcripts`).
    """
    whole = [Path(path).resolve() for path in dict.fromkeys(paths)]
    return {_name(path, whole): read_transcripts(path) for path in whole}


def _name(path: Path, others: Sequence[Path]) -> str:
    for count in range(1, len(path.parts)):
        ending = path.parts[-count:]
        if sum(other.parts[-count:] == ending for other in others) == 1:
            return "/".join(ending).removesuffix(".tsv")
    return str(path)


def print_lists(lists: Mapping[str, Sequence[Transcript]], console: Console | None = None) -> None:
    """Print how large the lists are and what they have in common."""
    console = console or Console()
    sizes = Table("list", title="sizes")
    for column in (
        "texts",
        "distinct\ntexts",
        "syllables",
        "tonal\nkinds",
        "toneless\nkinds",
        "hanzi\nkinds",
    ):
        sizes.add_column(column, justify="right")
    kinds = {name: {s for text in texts for s in text.pinyin} for name, texts in lists.items()}
    sentences = {name: {text.hanzi for text in texts} for name, texts in lists.items()}
    for name, texts in lists.items():
        hanzi = set().union(*sentences[name])
        counts = (len(texts), len(sentences[name]), sum(len(text.pinyin) for text in texts))
        counts += (len(kinds[name]), len(set(map(without_tone, kinds[name]))), len(hanzi))
        sizes.add_row(name, *(f"{count:,}" for count in counts))
    console.print(sizes)
    if len(lists) < 2:
        return
    overlap = Table("first", "second", title="overlap")
    for column in ("texts\nin both", "tonal\nin both", "only in\nfirst", "only in\nsecond"):
        overlap.add_column(column, justify="right")
    for first, second in combinations(lists, 2):
        a, b = kinds[first], kinds[second]
        counts = (len(sentences[first] & sentences[second]), len(a & b), len(a - b), len(b - a))
        overlap.add_row(first, second, *(f"{count:,}" for count in counts))
    console.print(overlap)


def main(argv: list[str] | None = None) -> int:
    """The command ``python -m data.vocabularies``."""
    options = _parser().parse_args(argv)
    lists = read_lists(options.lists)
    vocabulary = build_acoustic_vocabulary(lists)
    print_lists(lists)
    seen = {s for texts in lists.values() for text in texts for s in text.pinyin}
    beyond = sorted(seen - set(full_inventory()))
    print(f"tonal syllables: {len(seen):,} seen; the full inventory has {len(full_inventory()):,}")
    print(f"beyond the inventory: {', '.join(beyond) or 'none'}")
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
    parser.add_argument("--output", help="write the vocabulary to this file, one token a line")
    return parser


if __name__ == "__main__":
    run_command(main)
