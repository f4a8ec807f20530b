"""Turns a dictionary (the words of jieba and pypinyin) into training text: lines of words in random order.

N-grams that are counted in these lines as well as in texts also contain words that the texts lack.
Every word of two hanzi or more occurs once, and frequent words again, as often as they are drawn: this makes
the more frequent of two homophones more probable.
"""

import importlib.util
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
from pypinyin.constants import PHRASES_DICT

from data.text.sources import read_lines
from utils.errors import ConfigError, require
from utils.mandarin.pinyin import is_hanzi

PACKAGE = "jieba"
"""Its ``dict.txt`` (MIT) has 350,000 words and their frequencies in its author's texts."""
INSTALL = "pip install jieba, or -r requirements/converter.txt"
NAME_FREQUENCY = 8
"""Of a name, whose true frequency is unknown. From 4 to 20 the errors on dev sentences are the same."""
_WORDS_PER_LINE = 8
_POWER = 0.75  # words are drawn in proportion to their frequency to this power: rare words gain


def read_dictionary() -> dict[str, int]:
    """Words of hanzi only → frequency: those of jieba, and pypinyin's phrases with a frequency of 1.

    Raises:
        ConfigError: jieba is not installed, or its dictionary can't be read.
    """
    path = _dictionary_file()
    words = {}
    try:
        # jieba is not imported: that would build a cache, and none of its code is needed.
        for line in path.read_text(encoding="utf-8").splitlines():
            word, frequency, _ = line.rsplit(" ", 2)  # the last field is the part of speech
            words[word] = int(frequency)
    except (OSError, ValueError) as error:
        raise ConfigError(f"can't read jieba's dictionary ({error})", where=path, hint=INSTALL) from error
    for phrase in PHRASES_DICT:
        words.setdefault(phrase, 1)
    return {word: frequency for word, frequency in words.items() if is_hanzi(word)}


def add_names(words: dict[str, int], path: str | Path) -> None:
    """Add the names of a text file, one a line, with a frequency of at least :data:`NAME_FREQUENCY`.

    Raises:
        CorpusError: the file can't be read.
    """
    for name in read_lines(path):
        if len(name) > 1 and is_hanzi(name):  # pack_words omits the long ones
            words[name] = max(words.get(name, 0), NAME_FREQUENCY)


def dictionary_lines(words: Mapping[str, int], count: int, seed: int = 0) -> Iterator[str]:
    """Shuffled words, eight per line, without spaces.

    Args:
        words: word → frequency.
        count: number of words that are drawn, in addition to every word of two hanzi or more.
        seed: seed of the random choices.

    Raises:
        ConfigError: there are no words, or all frequencies are 0.
    """
    names = list(words)
    weights = np.array([words[name] for name in names], np.float64)
    require(weights.any(), "the dictionary has no word with a frequency above 0", hint="see read_dictionary")
    weights[weights > 0] **= _POWER
    rng = np.random.default_rng(seed)
    drawn = rng.choice(len(names), count, p=weights / weights.sum())
    once = [index for index, name in enumerate(names) if len(name) > 1]
    text = np.concatenate([np.array(once, np.int64), drawn])
    rng.shuffle(text)
    for start in range(0, len(text), _WORDS_PER_LINE):
        yield "".join(names[index] for index in text[start : start + _WORDS_PER_LINE])


def _dictionary_file() -> Path:
    package = importlib.util.find_spec(PACKAGE)
    if package is None or not package.submodule_search_locations:
        raise ConfigError(
            "jieba, whose dictionary is needed, is not installed", where="dict.txt", hint=INSTALL
        )
    return Path(package.submodule_search_locations[0]) / "dict.txt"
