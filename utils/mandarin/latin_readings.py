"""Guesses how Mandarin speakers read Latin letters, codes and a few English words: WiFi, 3G, K歌, CT.

Letters have their names, as far as Mandarin syllables can spell them (A ei1, W da2 bu5 liu5), numbers are
read as numbers and digit by digit, + is jia1. A word in lower case that is no abbreviation and is not in
:data:`WORDS` has no guess: nothing says how it is spoken.
"""

import itertools
import re
from collections.abc import Iterator

from utils.mandarin.numerals import number_readings, spell_digits
from utils.mandarin.pinyin import hanzi_to_pinyin, is_hanzi

Syllables = tuple[tuple[str, ...], ...]
"""The possible syllables at each position, the usual one first."""

# Several readings are separated by a bar, several syllables of a position by a slash.
LETTERS = {
    "A": "ei1/ai1",
    "B": "bi4/bi1",
    "C": "xi1/si1",
    "D": "di4/di1",
    "E": "yi4/yi1",
    "F": "ai2/e2 fu5/fu2",
    "G": "ji4/zhi4",
    "H": "ai2/ei1 qi1/chi5",
    "I": "ai4/ai1",
    "J": "zhei4/jie4",
    "K": "kei4/kai1",
    "L": "ai2/e2 lou5/er5",
    "M": "ai2/e2 mu5/mu3",
    "N": "en1/en4",
    "O": "ou1/ou4",
    "P": "pi4/pi1",
    "Q": "qiu1/kou4",
    "R": "a4/a1|a4/a1 er5",
    "S": "ai2/e2 si5/si1",
    "T": "ti4/ti1",
    "U": "you1/you4",
    "V": "wei4/wei1",
    "W": "da2 bu5/bu4 liu5/you5",
    "X": "ai2/e2 ke4/ke5 si5/si1",
    "Y": "wai4/wai1",
    "Z": "zei4/zi4",
}
WORDS = {
    "app": "ai1/ei1 pu5|ei1 pi4 pi4",
    "google": "gu3 ge1",
    "hello": "ha1/hei1 lou2/lou5",
    "hey": "hei1/hei4",
    "hi": "hai1/hai4",
    "ipad": "ai4 pai4/pai1 de5",
    "iphone": "ai4 feng1/fen1",
    "ok": "ou1 kei4/kai1",
    "pro": "pu5 rou4/lou4",
    "siri": "xi1/si1 rui4/li4/ri4",
    "vlog": "wei1 lou4 ge5|wu1 lou4 ge5",
    "wifi": "wai1 hai1/fa1/fei1",
}
MOST_READINGS = 64
"""Of a word: each letter R doubles the number."""
# The last kind has no reading, and so the word has none.
_PARTS = re.compile(r"[A-Za-z]+|[0-9]+|\+|(?:[^\W0-9_A-Za-z]|#)+")
_ABBREVIATION = re.compile("[A-Z]+s?|[^AEIOUaeiou]+")


def spelling_readings(text: str) -> list[Syllables]:
    """The readings of a word with Latin letters or digits, the usual one first; [] if there is no guess.

    There are at most :data:`MOST_READINGS`.

    >>> spelling_readings("3G")
    [(('san1',), ('ji4', 'zhi4'))]
    >>> spelling_readings("Kubernetes")
    []
    """
    parts = [list(itertools.islice(_part_readings(part), MOST_READINGS)) for part in _PARTS.findall(text)]
    joined = (tuple(itertools.chain.from_iterable(way)) for way in itertools.product(*parts))
    return [way for way in dict.fromkeys(itertools.islice(joined, MOST_READINGS)) if way]


def _part_readings(part: str) -> Iterator[Syllables]:
    if part.lower() in WORDS:
        yield from _written(WORDS[part.lower()])
    elif part.isdecimal():
        usual = number_readings(int(part)) if part[0] != "0" and len(part) < 9 else ()
        for words in dict.fromkeys((*usual, spell_digits(part))):
            yield tuple((syllable,) for syllable in hanzi_to_pinyin(words))
    elif part == "+":
        yield (("jia1",),)
    elif is_hanzi(part):
        yield tuple((syllable,) for syllable in hanzi_to_pinyin(part))
    elif part.isascii() and part.isalpha() and _ABBREVIATION.fullmatch(part):
        for letters in itertools.product(*(_written(LETTERS[letter]) for letter in part.upper())):
            yield tuple(itertools.chain.from_iterable(letters))


def _written(readings: str) -> list[Syllables]:
    return [tuple(tuple(place.split("/")) for place in way.split()) for way in readings.split("|")]
