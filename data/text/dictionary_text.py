"""A dictionary's words and how often each is used in; lines of words in no order, a text to count, out.

A word that no text has is still a word, and its hanzi belong together: n-grams that are counted in such lines
beside the texts know words that the texts alone would leave to chance. Every word of two hanzi and more is
there once, and common ones again as often as they are drawn: so a word's hanzi are weighed against those of
others that are read alike.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
from pypinyin.constants import PHRASES_DICT

from utils.errors import ConfigError
from utils.mandarin.pinyin import is_hanzi

PACKAGE = "jieba"
"""Its ``dict.txt`` (MIT) has 350,000 words and how often each occurred in its author's texts."""
INSTALL = "pip install jieba, or -r requirements/converter.txt"
_WORDS_A_LINE = 8


def read_dictionary() -> dict[str, int]:
    """Words of nothing but hanzi → how often each is used: jieba's, and pypinyin's phrases with 1.

    Raises:
        ConfigError: jieba is not installed, or has no dictionary that can be read.
    """
    path = _dictionary_file()
    words = {}
    try:
        # jieba isn't imported: it would build a cache of its own, and none of its code is needed.
        for line in path.read_text(encoding="utf-8").splitlines():
            word, times, _ = line.rsplit(" ", 2)  # the last is the part of speech
            words[word] = int(times)
    except (OSError, ValueError) as error:
        raise ConfigError(f"can't read jieba's dictionary ({error})", where=path, hint=INSTALL) from error
    for phrase in PHRASES_DICT:
        words.setdefault(phrase, 1)
    return {word: times for word, times in words.items() if is_hanzi(word)}


def dictionary_lines(
    words: Mapping[str, int], count: int, power: float = 0.75, seed: int = 0
) -> Iterator[str]:
    """A text of words, shuffled, eight words a line without spaces.

    Args:
        words: word → how often it is used.
        count: words that are drawn, beside one of each word of two hanzi and more.
        power: a word is drawn as often as its use to this power says; below 1, rare words gain.
        seed: for the same words, count and power, the same lines.

    Raises:
        ConfigError: there are no words, or none is ever used.
    """
    names = list(words)
    weights = np.array([words[name] for name in names], np.float64)
    if not weights.any():
        raise ConfigError("a dictionary without words can't be drawn from", hint="see read_dictionary")
    weights[weights > 0] **= power
    rng = np.random.default_rng(seed)
    drawn = rng.choice(len(names), count, p=weights / weights.sum())
    once = [place for place, name in enumerate(names) if len(name) > 1]
    text = np.concatenate([np.array(once, np.int64), drawn])
    rng.shuffle(text)
    for start in range(0, len(text), _WORDS_A_LINE):
        yield "".join(names[place] for place in text[start : start + _WORDS_A_LINE])


def _dictionary_file() -> Path:
    package = importlib.util.find_spec(PACKAGE)
    if package is None or not package.submodule_search_locations:
        raise ConfigError("jieba is not installed; its dictionary is read", where="dict.txt", hint=INSTALL)
    return Path(package.submodule_search_locations[0]) / "dict.txt"
