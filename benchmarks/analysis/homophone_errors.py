"""A converter's errors on THCHS-30's test sentences by the kind of word that is wrong: a table with examples.

    python -m benchmarks.analysis.homophone_errors
    python -m benchmarks.analysis.homophone_errors --model runs/mine --transcripts FOLDER

The converter gets the reference syllables with tones, each distinct sentence once. An error is a hanzi that
differs from the reference. It is a homophone if it can be read as the syllable; the other errors are counted
apart. A homophone is classified by the word that holds it in the reference, by the first rule that applies:

1. name: jieba tags the word as one (nr, ns, nt, nz: of persons, places, institutions, others), its dictionary
   has the word less than 100 times, and no hanzi of it is a classical word or a modern particle
2. function word: tagged u, p, c, r, y (particle, preposition, conjunction, pronoun, modal), or d (adverb) and
   of one hanzi; 100 times or more in the dictionary
3. rare word: less than 100 times in the dictionary (which counted 60 million words), or not in it
4. classical style: the sentence has at least two classical words and no modern particle
5. other

Words and tags are those of jieba 0.42 (``pip install -r requirements/bench.txt``). Its tags are a guess where
the dictionary lacks the word: a rare word is now and then taken for a name. ``--list`` shows every error.
"""

from utils.command.entry import run_command

import argparse
import importlib
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from analysis.errors.phonology import readings
from benchmarks.support.pinyin_sentences import DISTINCT, TONED, read_conditions
from model_language.registry import load_converter
from utils.errors import ConfigError
from utils.run_folder.run import PRETRAINED

TRANSCRIPTS = Path("../shared/data/transcripts")
NAME, FUNCTION, RARE = "name", "function word", "rare word"
CLASSICAL, OTHER, NO_HOMOPHONE = "classical style", "other", "not a homophone"
CLASSES = (NAME, FUNCTION, RARE, CLASSICAL, OTHER, NO_HOMOPHONE)

_COMMON = 100  # times in jieba's dictionary; below, a word is rare
_NAME_TAGS = ("nr", "ns", "nt", "nz")
_FUNCTION_TAGS = ("u", "p", "c", "r", "y")
_CLASSICAL_WORDS = frozenset("之其而乎矣焉哉兮曰吾尔岂孰皆亦若则故乃")
_MODERN_PARTICLES = frozenset("的了着们吗呢吧这那")
_GRAMMATICAL = _CLASSICAL_WORDS | _MODERN_PARTICLES
_LEAST_CLASSICAL = 2
_EXAMPLES = 6
_WIDTH = 160


@dataclass(frozen=True)
class Word:
    """A word of a sentence.

    Attributes:
        text: its hanzi.
        tag: part of speech, one of jieba's.
        frequency: times in jieba's dictionary; 0 if it isn't there.
    """

    text: str
    tag: str
    frequency: int


@dataclass(frozen=True)
class HanziError:
    """A wrong hanzi: the true one, what was written, the class, and the word that holds the true one."""

    reference: str
    written: str
    kind: str
    word: str


def errors_of(pinyin: Sequence[str], reference: str, written: str, words: Sequence[Word]) -> list[HanziError]:
    """The errors of a sentence.

    Args:
        pinyin: reference syllables, one per hanzi.
        reference, written: texts of the same length.
        words: of the reference, in order, without gaps.
    """
    holders = [word for word in words for _ in word.text]
    classical = is_classical(words)
    return [
        HanziError(true, wrong, class_of(syllable, wrong, word, classical), word.text)
        for syllable, true, wrong, word in zip(pinyin, reference, written, holders, strict=True)
        if true != wrong
    ]


def class_of(syllable: str, written: str, word: Word, classical: bool) -> str:
    """The class of an error: the first rule of this module's description that applies."""
    common = word.frequency >= _COMMON
    is_name = word.tag.startswith(_NAME_TAGS) and not _GRAMMATICAL & set(word.text)
    is_function = word.tag.startswith(_FUNCTION_TAGS) or (word.tag == "d" and len(word.text) == 1)
    rules = {
        NO_HOMOPHONE: syllable not in readings(written),
        NAME: is_name and not common,
        FUNCTION: is_function and common,
        RARE: not common,
        CLASSICAL: classical,
    }
    return next((kind for kind, applies in rules.items() if applies), OTHER)


def is_classical(words: Sequence[Word]) -> bool:
    """Whether a sentence is of classical style: two classical words or more, and no modern particle."""
    if any(_MODERN_PARTICLES & set(word.text) for word in words):
        return False
    return sum(word.text in _CLASSICAL_WORDS for word in words) >= _LEAST_CLASSICAL


def main(arguments: Sequence[str] | None = None) -> int:
    """Convert the sentences, print the table."""
    options = _parser().parse_args(arguments)
    tagged = _tagger()
    conditions = read_conditions(options.transcripts)
    sentences = next(
        condition for condition in conditions if (condition.test_set, condition.given) == (DISTINCT, TONED)
    )
    converted = load_converter(options.model).convert(sentences.pinyin)
    found: dict[str, list[HanziError]] = defaultdict(list)
    for pinyin, reference, written in zip(sentences.pinyin, sentences.hanzi, converted, strict=True):
        for error in errors_of(pinyin, reference, written, tagged(reference)):
            found[error.kind].append(error)
    hanzi = sum(map(len, sentences.hanzi))
    Console(width=_WIDTH).print(as_table(found, len(sentences.hanzi), hanzi))
    if options.list:
        for kind in CLASSES:
            print(f"{kind}: {examples(found[kind], len(found[kind]))}")
    return 0


def as_table(found: Mapping[str, Sequence[HanziError]], sentences: int, hanzi: int) -> Table:
    """Counts, shares and examples of each class, in the order of the rules."""
    total = sum(map(len, found.values()))
    title = f"{total} errors in {hanzi:,} hanzi of {sentences} sentences: {100 * total / hanzi:.2f} %"
    table = Table(title=title)
    for name in ("errors in", "errors", "of all", "examples: true → written (word)"):
        table.add_column(name, justify="right" if name in ("errors", "of all") else "left")
    for kind in CLASSES:
        errors = found.get(kind, ())
        share = f"{100 * len(errors) / max(total, 1):.1f} %"
        table.add_row(kind, str(len(errors)), share, examples(errors, _EXAMPLES))
    return table


def examples(errors: Sequence[HanziError], most: int) -> str:
    """Some errors of a class, spread evenly over them, none twice."""
    distinct = list(dict.fromkeys(errors))
    step = max(1, len(distinct) // max(most, 1))
    shown = distinct[::step][:most]
    return ", ".join(f"{error.reference}→{error.written} ({error.word})" for error in shown)


def _tagger() -> Callable[[str], list[Word]]:
    """Sentence → its words.

    Raises:
        ConfigError: jieba is not installed.
    """
    try:
        jieba, tagging = importlib.import_module("jieba"), importlib.import_module("jieba.posseg")
    except ImportError as error:
        hint = "pip install -r requirements/bench.txt"
        raise ConfigError("words are tagged by jieba, which is not installed", hint=hint) from error
    jieba.setLogLevel("ERROR")  # it reports where it keeps its cache
    jieba.initialize()
    frequencies = jieba.dt.FREQ

    def tagged(sentence: str) -> list[Word]:
        return [Word(text, tag, frequencies.get(text, 0)) for text, tag in tagging.cut(sentence)]

    return tagged


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--transcripts",
        type=Path,
        default=TRANSCRIPTS,
        metavar="DIR",
        help="folder of thchs_test.tsv and aishell_dev.tsv (default: %(default)s)",
    )
    parser.add_argument(
        "--model", type=Path, default=PRETRAINED, metavar="RUN", help="a converter (default: ours)"
    )
    parser.add_argument("--list", action="store_true", help="show all errors, by class")
    return parser


if __name__ == "__main__":
    run_command(main)
