"""The output units of acoustic models: what the classes of the CTC layer stand for.

Tonal syllables are the usual ones. Toneless syllables leave the tone to the converter. Initials and finals
are fewer classes (the tone belongs to the final). Hanzi need no second stage.
"""

from collections.abc import Iterable, Sequence

from utils.mandarin.pinyin import (
    INITIALS,
    Syllable,
    full_inventory,
    hanzi_to_pinyin,
    is_hanzi,
    is_syllable,
    split_syllable,
    without_tone,
)

TONAL, TONELESS, PARTS, HANZI = "tonal_syllables", "toneless_syllables", "initials_finals", "hanzi"
UNITS = (TONAL, TONELESS, PARTS, HANZI)
# Initials that are no syllables: only a vocabulary of initials and finals has them.
_INITIALS = INITIALS - {"m", "n"}


def tokens_of(units: str, pinyin: Sequence[str], hanzi: str) -> tuple[str, ...]:
    """The tokens of an utterance, from its tonal syllables and its hanzi."""
    if units == TONELESS:
        return tuple(map(without_tone, pinyin))
    if units == PARTS:
        return tuple(part for syllable in pinyin for part in _parts(syllable))
    return tuple(hanzi if units == HANZI else pinyin)


def compared(units: str, pinyin: Sequence[str], hanzi: str) -> tuple[str, ...]:
    """What counts as right or wrong in a text: its syllables, as far as the units tell them, or its hanzi."""
    return tokens_of(TONAL if units == PARTS else units, pinyin, hanzi)


def last_tokens(units: str, pinyin: Sequence[str], hanzi: str) -> tuple[str, ...]:
    """The token with which each syllable ends: its final, its hanzi, or the syllable itself.

    A text with more or fewer hanzi than syllables has none: an empty string for each syllable.
    """
    if units == HANZI and len(hanzi) != len(pinyin):
        return ("",) * len(pinyin)
    return tuple(_parts(each)[-1] for each in pinyin) if units == PARTS else compared(units, pinyin, hanzi)


def inventory_of(units: str) -> tuple[str, ...]:
    """All tokens that depend on no corpus; hanzi have none."""
    return tuple(dict.fromkeys(tokens_of(units, full_inventory(), "")))


def units_of(tokens: Iterable[str]) -> str:
    """The units of a vocabulary with these tokens."""
    tokens = set(tokens)
    if any(map(is_hanzi, tokens)):
        return HANZI
    if not tokens.isdisjoint(_INITIALS):
        return PARTS
    return TONAL if any(token[-1:].isdigit() for token in tokens) else TONELESS


def read_tokens(units: str, tokens: Sequence[str]) -> tuple[tuple[str, ...], tuple[int, ...], str]:
    """Recognised tokens as syllables, the index of the token that each ends with, and their hanzi if known.

    An initial without a final is left out, and so is one that the final behind it can't have.
    """
    if units == HANZI:
        kept = [index for index, token in enumerate(tokens) if is_hanzi(token)]
        text = "".join(tokens[index] for index in kept)
        return tuple(hanzi_to_pinyin(text)), tuple(kept), text
    if units != PARTS:
        kept = [index for index, token in enumerate(tokens) if token.strip()]
        return tuple(tokens[index] for index in kept), tuple(kept), ""
    syllables, ends, initial = [], [], ""
    for index, token in enumerate(tokens):
        if token[-1:].isdigit():
            both, alone = (str(Syllable(part, token[:-1], int(token[-1]))) for part in (initial, ""))
            if found := next(filter(is_syllable, (both, alone)), None):
                syllables.append(found)
                ends.append(index)
        initial = token if token.isalpha() else ""
    return tuple(syllables), tuple(ends), ""


def _parts(syllable: str) -> tuple[str, ...]:
    """``zhong1`` → ``zh``, ``ong1``; ``an4`` → ``an4``."""
    parts = split_syllable(syllable)
    return (*filter(None, [parts.initial]), f"{parts.final}{parts.tone}")
