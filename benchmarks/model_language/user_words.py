"""User words: how many of 200 rare names and terms are written correctly with and without a list; the cost.

    python -m benchmarks.model_language.user_words
    python -m benchmarks.model_language.user_words --model runs/ngram --text mine.tsv

The words are made-up names of a surname and rare characters, and phrases of pypinyin with such characters,
each in several sentences. The cost is measured on text without them (--text, by default AISHELL-1's dev
transcripts beside the project), in character errors and time, with these words and with 10,000 random names.
"""

from utils.command.entry import run_command

import argparse
import random
import statistics
import time
from collections.abc import Sequence
from pathlib import Path

from pypinyin.constants import PHRASES_DICT

from data.manifest import read_transcripts
from model_language.converters.user_word_converter import UserWordConverter
from model_language.registry import load_converter
from model_language.search.user_words import UserWords, read_user_words
from model_language.vocabulary.lexicon import gb2312_hanzi
from utils.command.arguments import positive
from utils.files import write_text
from utils.mandarin.pinyin import hanzi_to_pinyin, is_hanzi
from utils.metrics import count_errors, total
from utils.run_folder.run import PRETRAINED
from utils.text_table import print_table

WORDS, MANY = 200, 10_000
SEED = 3
TEXT = Path("../shared/data/transcripts/aishell_dev.tsv")
FOLDER = Path("runs/benchmarks/user_words")
_SURNAMES = "王李张刘陈杨赵黄周吴徐孙胡朱高林何郭马罗梁宋郑谢韩唐冯于董萧程曹袁邓许傅沈曾彭吕"
_SENTENCES = (
    "昨天下午{}在会上作了发言",
    "我们请{}来谈谈这件事情",
    "记者了解到{}已经回到北京",
    "很多人没有听说过{}",
    "这本书介绍了{}的历史",
)
_ROUNDS = 3


def main() -> int:
    """Write the lists, convert with and without them, print a table."""
    options = _parser().parse_args()
    names = made_up_words(WORDS, SEED)
    many = made_up_names(MANY, SEED + 1, gb2312_hanzi())
    lists = {"the 200 words": names, "10,000 random names": many}
    converter = load_converter(options.model)
    converters = {"none": UserWordConverter(converter, UserWords())}
    for name, words in lists.items():
        path = FOLDER / f"{len(words)}.txt"
        write_text(path, "".join(f"{word}\n" for word in words))
        converters[name] = UserWordConverter(converter, read_user_words(path))
    lines = [row for row in read_transcripts(options.text) if row.hanzi][: options.sentences]
    spoken = [(word, sentence.format(word)) for word in names for sentence in _SENTENCES]
    pinyin = [tuple(hanzi_to_pinyin(sentence)) for _, sentence in spoken]
    rows = []
    seconds = _timed(converters, [line.pinyin for line in lines])
    for name, each in converters.items():
        found = sum(word in text for (word, _), text in zip(spoken, each.convert(pinyin), strict=True))
        hanzi = each.convert([line.pinyin for line in lines])
        errors = total(count_errors(line.hanzi, text) for line, text in zip(lines, hanzi, strict=True))
        ratio = seconds[name] / seconds["none"]
        rows.append((name, f"{found / len(spoken):.1%}", f"{errors.rate:.2%}", f"x {ratio:.2f}"))
    headings = ("words", "of the 200, correct", "errors in text without them", "relative time")
    print_table("conversion with user words", headings, rows)
    print(f"{len(spoken)} sentences with words; {len(lines)} lines of {options.text}")
    return 0


def made_up_names(count: int, seed: int, characters: Sequence[str]) -> list[str]:
    """Names of a frequent surname and one or two of the characters."""
    rng = random.Random(seed)
    names: dict[str, None] = {}
    while len(names) < count:
        given = "".join(rng.choice(characters) for _ in range(rng.choice((1, 2, 2))))
        names[rng.choice(_SURNAMES) + given] = None
    return list(names)


def made_up_words(count: int, seed: int) -> list[str]:
    """Names of rare characters (level 2 of GB 2312) and rare phrases of three or more characters."""
    rng = random.Random(seed)
    rare = gb2312_hanzi()[3755:]
    phrases = sorted(phrase for phrase in PHRASES_DICT if 3 <= len(phrase) <= 5 and is_hanzi(phrase))
    with_rare = [phrase for phrase in phrases if set(phrase) & set(rare)]
    return made_up_names(count // 2, seed, rare) + rng.sample(with_rare, count - count // 2)


def _timed(converters: dict[str, UserWordConverter], sentences: Sequence[Sequence[str]]) -> dict[str, float]:
    """Median time of each converter in seconds, measured in turn."""
    seconds: dict[str, list[float]] = {name: [] for name in converters}
    for _ in range(_ROUNDS):
        for name, converter in converters.items():
            start = time.perf_counter()
            converter.convert(sentences)
            seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(each) for name, each in seconds.items()}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--model", type=Path, default=PRETRAINED, help="run of a language model (default: ours)"
    )
    parser.add_argument(
        "--text", type=Path, default=TEXT, help="manifest or transcript list without the words"
    )
    parser.add_argument("--sentences", type=positive, default=5000, help="largest number of its lines")
    return parser


if __name__ == "__main__":
    run_command(main)
