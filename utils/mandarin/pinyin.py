"""Converts pinyin in any usual spelling, or hanzi, to canonical syllables (``zhong1``); splits syllables.

The canonical form is used everywhere inside the project: lower case, ``v`` for ü (``lv4``, ``nve4``; but
``ju``, ``yu`` as pinyin spells them), one tone digit 1-5 at the end, 5 for the neutral tone.
"""

import hashlib
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import chain, groupby

from utils.errors import CorpusError
from utils.mandarin.hanzi_readings import known_parts, part_readings, phrase_readings, version
from utils.mandarin.polyphones import RULES_PATH, correct_polyphones, matching_rule

TONES = (1, 2, 3, 4, 5)

# Spellings whose canonical form is cached, at most 3 MB: users may type any number of other spellings.
_SPELLINGS_KEPT = 16_384
# Version of hanzi_to_pinyin without ``words``, whose results are in caches: increase it when a change of the
# code changes them.
_READING = "4"

# The initials that combine with each final ('-' is the zero initial): GB/T 16159 and the table of the Xiandai
# Hanyu Cidian, with the rare but recorded dia, tei, kei, cei, nou, len, cen, den, lo, yo, chua, rua, nia,
# din, nun, fiao. Finals are in full form: iou, uei, uen are written iu, ui, un after an initial.
_COMBINATIONS = {
    "a": "- b p m f d t n l g k h zh ch sh z c s",
    "o": "- b p m f l",
    "e": "- m d t n l g k h zh ch sh r z c s",
    "ai": "- b p m d t n l g k h zh ch sh z c s",
    "ei": "- b p m f d t n l g k h zh sh z c",
    "ao": "- b p m d t n l g k h zh ch sh r z c s",
    "ou": "- p m f d t n l g k h zh ch sh r z c s",
    "an": "- b p m f d t n l g k h zh ch sh r z c s",
    "en": "- b p m f d n l g k h zh ch sh r z c s",
    "ang": "- b p m f d t n l g k h zh ch sh r z c s",
    "eng": "- b p m f d t n l g k h zh ch sh r z c s",
    "ong": "d t n l g k h zh ch r z c s",
    "er": "-",
    "i": "- b p m d t n l j q x zh ch sh r z c s",
    "ia": "- d n l j q x",
    "io": "-",
    "ie": "- b p m d t n l j q x",
    "iao": "- b p m f d t n l j q x",
    "iou": "- m d n l j q x",
    "ian": "- b p m d t n l j q x",
    "in": "- b p m d n l j q x",
    "iang": "- n l j q x",
    "ing": "- b p m d t n l j q x",
    "iong": "- j q x",
    "u": "- b p m f d t n l g k h zh ch sh r z c s",
    "ua": "- g k h zh ch sh r",
    "uo": "- d t n l g k h zh ch sh r z c s",
    "uai": "- g k h zh ch sh",
    "uei": "- d t g k h zh ch sh r z c s",
    "uan": "- d t n l g k h zh ch sh r z c s",
    "uen": "- d t n l g k h zh ch sh r z c s",
    "uang": "- g k h zh ch sh",
    "ueng": "-",
    "v": "- n l j q x",
    "ve": "- n l j q x",
    "van": "- j q x",
    "vn": "- j q x",
    # Interjections without a vowel: 呣 m, 嗯 n / ng, 噷 hm, 哼 hng.
    "m": "- h",
    "n": "-",
    "ng": "- h",
}
INITIALS = frozenset(" ".join(_COMBINATIONS.values()).split()) - {"-"}
"""The 21 initials, without the zero initial."""
_SYLLABIC_NASALS = ("m", "n", "ng")
_SHORT_FINALS = {"iou": "iu", "uei": "ui", "uen": "un"}

# Erhua (a syllable merged with a following 儿) is accepted by every function here: any syllable plus r. The
# inventory has only the forms in daily use, because each form is a class of every acoustic model: all
# syllables in 5 tones would add 2,100 classes that no corpus fills. Our corpora write no erhua (the phone set
# of THCHS-30 has no r-coloured final; AISHELL and pypinyin write 儿 as a syllable, er2 or er5). A vocabulary
# that is built from a corpus with other forms includes these.
_ERHUA = (
    "bianr1 dianr3 duir4 fanr4 ganr4 ger4 ger1 guar1 guanr3 guor3 haor4 huar1 huar4 huor2 huor4 "
    "huir3 huir4 jinr1 jinr4 kongr4 kuair4 kour3 lengr4 mingr2 menr2 menr5 mianr4 nar3 nar4 nianr2 niaor3 "
    "panr2 pianr1 pianr4 qunr2 shir4 shengr1 sir1 tiaor2 tour2 tour5 wanr2 weir4 wanr3 xiaor3 xinr4 yangr4 "
    "yingr3 yanr3 zher4 zuor4 zuir3 zir4"
)

_TONE_MARKS = {"\u0304": "1", "\u0301": "2", "\u030c": "3", "\u0306": "3", "\u0300": "4"}
TEXTBOOK_LETTERS = {ord("ɑ"): "a", ord("ɡ"): "g"}
"""Letters of Chinese textbooks, U+0251 and U+0261, which look like the handwritten a and g."""
HANZI_BLOCKS = "\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
"""Chinese characters, for a set of characters in a regular expression."""
_HANZI = re.compile(f"[{HANZI_BLOCKS}]+")


@dataclass(frozen=True)
class Syllable:
    """The parts of a syllable.

    Attributes:
        initial: ``b`` … ``zh``; ``""`` is the zero initial (``an``, ``yi`` = ``i``, ``wei`` = ``uei``).
        final: final in full form and with v for ü: ``iou`` for ``jiu``, ``v`` for ``qu``; with a trailing
            ``r`` if the syllable has erhua. ``zhi`` and ``zi`` have the final ``i``.
        tone: 1-4, or 5 for the neutral tone.
    """

    initial: str
    final: str
    tone: int

    def __str__(self) -> str:
        return f"{_spell(self.initial, self.final)}{self.tone}"


def _spell(initial: str, final: str) -> str:
    """Spell a syllable without its tone by the rules of Hanyu pinyin (``""`` + ``iou`` → ``you``)."""
    if final.endswith("r") and final != "er":
        return _spell(initial, final[:-1]) + "r"
    if final in _SYLLABIC_NASALS:
        return initial + final
    if initial in ("j", "q", "x"):
        return initial + _SHORT_FINALS.get(final, final).replace("v", "u")
    if initial:
        return initial + _SHORT_FINALS.get(final, final)
    if final in ("i", "in", "ing", "u"):
        return ("y" if final[0] == "i" else "w") + final
    if final[0] == "v":
        return "yu" + final[1:]
    return {"i": "y", "u": "w"}.get(final[0], final[0]) + final[1:]


@cache
def _plain_parts() -> dict[str, tuple[str, str]]:
    """Each toneless syllable without erhua to its (initial, final)."""
    return {
        _spell(initial, final): (initial, final)
        for final, initials in _COMBINATIONS.items()
        for initial in initials.replace("-", "").split(" ")
    }


@cache
def _parts() -> dict[str, tuple[str, str]]:
    """Each toneless syllable, erhua included, to its (initial, final)."""
    plain = _plain_parts()
    erhua = {f"{name}r": (i, f"{f}r") for name, (i, f) in plain.items() if f not in ("er", *_SYLLABIC_NASALS)}
    return erhua | plain


@cache
def full_inventory() -> tuple[str, ...]:
    """All Mandarin tonal syllables, sorted: every legal syllable in tones 1-5, and erhua in daily use.

    It depends on no corpus, so a vocabulary built from it never changes.
    """
    tonal = {f"{name}{tone}" for name in _plain_parts() for tone in TONES}
    return tuple(sorted(tonal | {normalise_syllable(text) for text in _ERHUA.split()}))


@lru_cache(maxsize=_SPELLINGS_KEPT)
def normalise_syllable(text: str) -> str:
    """Convert one written syllable to the canonical form.

    Accepts capitals, tone marks (``zhōng``), tone digits 0-5 (0 and none = neutral; also ``zhong¹``), ``ɑ``
    and ``ɡ`` of textbooks, ``ü``, ``u:`` and ``v``, ``nue``/``lue``, and a tone digit before the r of erhua.

    >>> normalise_syllable("Lü4"), normalise_syllable("de"), normalise_syllable("zhōng")
    ('lv4', 'de5', 'zhong1')

    Raises:
        CorpusError: ``text`` is not a Mandarin syllable.
    """
    letters, digits = [], []
    for character in unicodedata.normalize("NFD", text.strip().lower().translate(TEXTBOOK_LETTERS)):
        if character in _TONE_MARKS:
            digits.append(_TONE_MARKS[character])
        elif character.isdigit():
            digits.append(unicodedata.normalize("NFKC", character))
        else:
            letters.append(character)
    name = unicodedata.normalize("NFC", "".join(letters)).replace("u:", "v").replace("ü", "v")
    name = _respell(name.replace("ê", "ei" if name == "ê" else "e"))
    tone = "".join(digits) or "5"
    if tone not in ("0", "1", "2", "3", "4", "5") or name not in _parts():
        raise CorpusError(
            f"'{text}' is not a Mandarin syllable",
            hint="write syllables like zhong1 lv4 de5, separated by single spaces",
        )
    return f"{name}{'5' if tone == '0' else tone}"


def _respell(name: str) -> str:
    if name == "r":  # CC-CEDICT's 儿 after a syllable
        return "er"
    name = re.sub("^([jqxy])v", r"\1u", name)
    return re.sub("^([nl])ue", r"\1ve", name)


def is_syllable(text: str) -> bool:
    """Whether :func:`normalise_syllable` can read ``text``."""
    try:
        normalise_syllable(text)
    except CorpusError:
        return False
    return True


@lru_cache(maxsize=_SPELLINGS_KEPT)
def split_syllable(text: str) -> Syllable:
    """Split a syllable into initial, full final and tone: ``jiu3`` → ``("j", "iou", 3)``.

    Raises:
        CorpusError: ``text`` is not a Mandarin syllable.
    """
    canonical = normalise_syllable(text)
    return Syllable(*_parts()[canonical[:-1]], tone=int(canonical[-1]))


def has_tone(syllable: str) -> bool:
    """Whether a syllable ends in a tone digit; the empty one does not."""
    return syllable[-1:].isdigit()


def is_tone_written(text: str) -> bool:
    """Whether a syllable as written has a tone digit or a tone mark."""
    decomposed = unicodedata.normalize("NFD", text)
    return any(character.isdigit() or character in _TONE_MARKS for character in decomposed)


def tone_of(text: str) -> int:
    """The tone 1-5 of a syllable."""
    return int(normalise_syllable(text)[-1])


def without_tone(text: str) -> str:
    """A syllable without its tone: ``zhong1`` → ``zhong``."""
    return normalise_syllable(text)[:-1]


NAME_DOTS = "·•‧・"
"""Dots between the parts of a foreign name (阿尔伯特·爱因斯坦), in NFKC form; they are not pronounced."""


def is_hanzi(text: str) -> bool:
    """Whether ``text`` is one or more Chinese characters and nothing else (〇 counts)."""
    return _HANZI.fullmatch(text) is not None


# A particle that is a word by itself nearly always has the neutral tone; the most frequent reading in
# pypinyin is the full one (di4, de2).
_PARTICLES = {"的": "de5", "地": "de5", "得": "de5", "了": "le5", "着": "zhe5"}


def hanzi_to_pinyin(text: str, words: Sequence[str] | None = None) -> list[str]:
    """One canonical syllable for each hanzi, by pypinyin's phrases and the rules for polyphones.

    The tones are citation tones except for 一 and 不: some phrases of the dictionary have the spoken tone
    (一定 yi2 ding4, 是不是 shi4 bu2 shi4), others, and all combinations across two phrases, have the citation
    tone (第一 di4 yi1).

    Args:
        text: hanzi only.
        words: the same text cut into words, if the segmentation is known; phrases are then looked up within
            each word, and within neighbouring words of one character. These are read by the rules for their
            place in the whole text; if none fits, a particle (的 地 得 了 着) has the neutral tone.

    Raises:
        CorpusError: a character has no reading, or ``words`` joined are not ``text``.
    """
    if words is not None and "".join(words) != text:
        raise CorpusError(f"the words '{' '.join(words)}' are not the text '{text}'")
    if words is None:
        return _read_phrases(text)
    syllables: list[str] = []
    for single, group in groupby(filter(None, words), lambda word: len(word) == 1):
        run = list(group)
        if single:
            syllables += _read_characters(text, len(syllables), len(syllables) + len(run))
        else:
            syllables += chain.from_iterable(map(_read_word, run))
    return syllables


@cache
def reading_version() -> str:
    """16 hexadecimal digits that change with everything that determines :func:`hanzi_to_pinyin`."""
    key = f"{_READING} {version()} ".encode() + RULES_PATH.read_bytes()
    return hashlib.sha256(key).hexdigest()[:16]


def _read_characters(text: str, start: int, end: int) -> list[str]:
    """The readings of the words of one character from ``start`` to ``end`` in a text."""
    syllables = list(map(normalise_syllable, phrase_readings(text[start:end])))
    for index, character in enumerate(text[start:end], start):
        # After a longer word 地 is nearly always the particle (普遍 地); the rules do not know the words, and
        # would find 遍地.
        is_particle = character == "地" and index == start > 0
        rule = None if is_particle else matching_rule(text, index)
        syllables[index - start] = (
            rule.reading if rule else _PARTICLES.get(character, syllables[index - start])
        )
    return syllables


@lru_cache(maxsize=200_000)
def _read_word(word: str) -> list[str]:
    return _read_phrases(word)


def _read_phrases(text: str) -> list[str]:
    parts = list(known_parts(text))
    return correct_polyphones(parts, list(map(normalise_syllable, part_readings(parts))))
