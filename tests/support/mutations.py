"""Damages sound files and texts at random, as faulty transfers, disks and edits do."""

import re
import struct
from collections.abc import Callable, Sequence

import numpy as np

HEADER_BYTES = 100  # header bytes of most containers; in a small file the rest is sound
EXTREMES = (0, 1, 0x7F, 0xFF, 0x7FFF, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF)

# Field values from mistakes, other programs, or attacks.
_WORDS = """
. - 0 -1 nan inf 1e400 1e-320 0x10 1_000 12,5 ９ ² 十 é 𠀀 🎙 99999999999999999999
ma ma6 ma0 lü4 lv4 lu:4 MA1 mā 5 _ <pad> <unk> sil 儿 妈妈 A NULL None %s $(id)
{ } [ ] : # ' " &a *a ${a} ${ ??? ~ null true 2020-99-99 1:99 .inf .nan 1e9 \\ [] {} @
/ .. /dev/zero /proc/self/mem
"""
STRANGE = (
    *("", " ", "\x00", "\x1b[31m", "\r", "\v", "\x85", "\u2028", "\u200b", "\ufeff", "\ufffd", "e\u0301"),
    *("../" * 30, "a" * 300, "ni3 " * 3000, "你" * 3000, "[" * 60),
    *("a: b", "- ", "!!int x", "!!binary x", "cat x |", "| cat"),
    *_WORDS.split(),
)


def mutate_bytes(content: bytes, rng: np.random.Generator, donors: Sequence[bytes] = ()) -> bytes:
    """Insert one to three random faults into a binary file.

    Args:
        content: content of the sound file.
        rng: source of all random choices.
        donors: contents of other files, whose parts may be inserted.
    """
    data = bytearray(content)
    for _ in range(rng.integers(1, 4)):
        if data:
            data = bytearray(_BYTE_FAULTS[rng.integers(len(_BYTE_FAULTS))](data, rng, donors or (content,)))
    return bytes(data)


def mutate_text(text: str, rng: np.random.Generator) -> bytes:
    """Insert one to three random faults into a text of lines and fields; rarely the bytes are not UTF-8."""
    for _ in range(rng.integers(1, 4)):
        text = _TEXT_FAULTS[rng.integers(len(_TEXT_FAULTS))](text, rng)
    chance = rng.random()
    if chance < 0.1:
        return mutate_bytes(text.encode(), rng)
    encodings = ((0.15, "gb18030"), (0.2, "utf-16"), (0.25, "utf-8-sig"), (1.0, "utf-8"))
    return text.encode(next(name for limit, name in encodings if chance < limit))


def _place(size: int, rng: np.random.Generator) -> int:
    """A random position in a file; half of them are in its header."""
    return int(rng.integers(min(size, HEADER_BYTES) if rng.random() < 0.5 else size))


def _stretch(size: int, rng: np.random.Generator) -> slice:
    start = _place(size, rng)
    return slice(start, start + int(rng.integers(1, 1 + min(size, 64))))


def _flip_bits(data: bytearray, rng: np.random.Generator, donors: Sequence[bytes]) -> bytes:
    for _ in range(rng.integers(1, 9)):
        data[_place(len(data), rng)] ^= 1 << int(rng.integers(8))
    return data


def _set_number(data: bytearray, rng: np.random.Generator, donors: Sequence[bytes]) -> bytes:
    """Insert an impossible length, rate or count."""
    number, order = EXTREMES[rng.integers(len(EXTREMES))], "<>"[rng.integers(2)]
    number, form = (number & 0xFFFF, "H") if rng.random() < 0.4 else (number, "I")
    start = _place(len(data), rng)
    start -= start % 2 if rng.random() < 0.8 else 0
    data[start : start + struct.calcsize(form)] = struct.pack(order + form, number)
    return data


def _replace_stretch(data: bytearray, rng: np.random.Generator, donors: Sequence[bytes]) -> bytes:
    """Take a part out, or put it there several times, zeros or noise instead."""
    part = _stretch(len(data), rng)
    old = data[part]
    instead = (b"", old * int(rng.integers(2, 6)), bytes(len(old)), b"\xff" * len(old), rng.bytes(64) + old)
    data[part] = instead[rng.integers(len(instead))]
    return data


def _cut_off(data: bytearray, rng: np.random.Generator, donors: Sequence[bytes]) -> bytes:
    return data[: _place(len(data), rng)]


def _splice(data: bytearray, rng: np.random.Generator, donors: Sequence[bytes]) -> bytes:
    """Join the beginning of one file and the rest of another, or noise."""
    other = donors[rng.integers(len(donors))] if rng.random() < 0.5 else rng.bytes(2000)
    return data[: _place(len(data), rng)] + other[_place(len(other), rng) :]


ByteFault = Callable[[bytearray, np.random.Generator, Sequence[bytes]], bytes]
_BYTE_FAULTS: tuple[ByteFault, ...] = (
    _flip_bits,
    *(_set_number, _set_number),
    *(_replace_stretch, _replace_stretch, _replace_stretch),
    _cut_off,
    _splice,
)


def _change_parts(text: str, mark: str, rng: np.random.Generator) -> str:
    """Remove, repeat, move or replace one of the parts between marks: a field or a line."""
    parts = text.split(mark)
    first, second = rng.integers(len(parts), size=2)
    kind = rng.integers(5)
    if kind == 0:
        del parts[first]
    elif kind == 1:
        parts.insert(first, parts[second])
    elif kind == 2:
        parts[first], parts[second] = parts[second], parts[first]
    else:
        parts[first] = STRANGE[rng.integers(len(STRANGE))]
    return mark.join(parts)


def _change_line(text: str, rng: np.random.Generator) -> str:
    return _change_parts(text, "\n", rng)


def _change_field(text: str, rng: np.random.Generator) -> str:
    marks = [mark for mark in ("\t", " ", ": ", ",", "\n") if mark in text] or ["\n"]
    return _change_parts(text, marks[rng.integers(len(marks))], rng)


def _change_word(text: str, rng: np.random.Generator) -> str:
    words = list(re.finditer(r"[^\s:,\[\]{}]+", text))
    if not words:
        return text
    word = words[rng.integers(len(words))]
    return text[: word.start()] + STRANGE[rng.integers(len(STRANGE))] + text[word.end() :]


def _change_characters(text: str, rng: np.random.Generator) -> str:
    characters = list(text)
    for _ in range(rng.integers(1, 4)):
        position = int(rng.integers(len(characters) + 1))
        any_character, ascii_one = chr(int(rng.integers(1, 0xD800))), chr(int(rng.integers(9, 127)))
        removed, added = (
            (1, ""),
            (0, STRANGE[rng.integers(len(STRANGE))]),
            (0, ascii_one),
            (1, any_character),
        )[rng.integers(4)]
        characters[position : position + removed] = added
    return "".join(characters)


def _cut_text(text: str, rng: np.random.Generator) -> str:
    return text[: int(rng.integers(len(text) + 1))]


def _other_line_ends(text: str, rng: np.random.Generator) -> str:
    return text.replace("\n", ("\r\n", "\r", "\n\n", " \n", "\t\n")[rng.integers(5)])


TextFault = Callable[[str, np.random.Generator], str]
_TEXT_FAULTS: tuple[TextFault, ...] = (
    *(_change_field, _change_field, _change_word, _change_word, _change_line),
    *(_change_characters, _change_characters, _cut_text, _other_line_ends),
)
