"""Converts traditional characters to simplified ones, character by character, by OpenCC and a short table."""

import re
from functools import cache
from typing import Any

from utils.mandarin.hanzi_readings import phrases

# What OpenCC leaves: 牠 and 妳 are words of their own in Taiwan; 馀, and 甚 for 什, are simplified hanzi too.
_LEFT_BY_OPENCC = str.maketrans("牠妳馀", "它你余")
_WORDS_WITH_ZHU = ("著称", "著录", "著有", "遗著", "所著")  # that neither tw2s nor pypinyin's phrases know
_WHAT = re.compile("甚(?=么)")


def simplified(text: str) -> str:
    """A text in simplified characters, as many as before; converting it again changes nothing.

    著 becomes 着, as in 看着, except in words that keep it (著名, 原著, 显著).
    """
    convert = _converter("t2s").convert
    while (converted := convert(text)) != text:
        text = converted
    if "著" in text:
        text = _with_particle(text)
    return _WHAT.sub("什", text.translate(_LEFT_BY_OPENCC))


def _with_particle(text: str) -> str:
    # t2s leaves 著. tw2s writes 着 for it, but also in 原著 and 土著: not in the phrases where it is zhù.
    kept = {position for found in _words_with_zhu().finditer(text) for position in range(*found.span())}
    pairs = zip(text, _converter("tw2s").convert(text), strict=True)
    return "".join(
        new if old == "著" and index not in kept else old for index, (old, new) in enumerate(pairs)
    )


@cache
def _words_with_zhu() -> re.Pattern[str]:
    words = [
        word
        for word, readings in phrases().items()
        if "著" in word and readings[word.index("著")][0] == "zhù"
    ]
    return re.compile("|".join(sorted([*words, *_WORDS_WITH_ZHU], key=len, reverse=True)))


@cache
def _converter(name: str) -> Any:
    import opencc  # here: what only recognises needs no OpenCC

    return opencc.OpenCC(name)
