"""Damages sound files and texts at random, as faulty transfers, disks and edits do."""

import re
import struct
from collections.abc import Callable, Sequence

import numpy as np

HEADER_BYTES = 100  # header bytes of most containers; in a small file the rest is sound
EXTREMES = (0, 1, 0x7F, 0xFF, 0x7FFF, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF)

# Field values from mistakes, other programs, or attacks.
STRANGE = (
    *(
        "",
        " ",
        ".",
        "-",
        "0",
        "-1",
        "nan",
        "inf",
        "1e400",
        "1e-320",
        "0x10",
        "1_000",
        "12,5",
        "９",
        "²",
        "十",
    ),
    *(
        "\x00",
        "\x1b[31m",
        "\r",
        "\v",
        "\x85",
        "\u2028",
        "\u200b",
        "\ufeff",
        "\ufffd",
        "é",
        "e\u0301",
        "𠀀",
        "🎙",
    ),
    *(
        "ma",
        "ma6",
        "ma0",
        "lü4",
        "lv4",
        "lu:4",
        "MA1",
        "mā",
        "5",
        "_",
        "<pad>",
        "<unk>",
        "sil",
        "儿",
        "妈妈",
        "A",
    ),
    *("/", "..", "../" * 30, "/dev/zero", "/proc/self/mem", "a" * 300, "ni3 " * 3000, "你" * 3000),
    *("{", "}", "[", "[" * 60, "]", ":", "a: b", "- ", "#", "'", '"', "&a", "*a", "!!int x", "!!binary x"),
    *(
        "${a}",
        "${",
        "???",
        "~",
        "null",
        "true",
        "2020-99-99",
        "1:99",
        ".inf",
        ".nan",
        "1e9",
        "99999999999999999999",
    ),
    *("cat x |", "| cat", "\\", "%s", "$(id)", "NULL", "None", "[]", "{}", "@"),
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
        if not data:
            break
        data = bytearray(BYTE_FAULTS[rng.integers(len(BYTE_FAULTS))](data, rng, donors or (content,)))
    return bytes(data)


def mutate_text(text: str, rng: np.random.Generator) -> bytes:
    """Insert one to three random faults into a text of lines and fields; rarely the bytes are not UTF-8."""
    for _ in range(rng.integers(1, 4)):
        text = TEXT_FAULTS[rng.integers(len(TEXT_FAULTS))](text, rng)
    content = text.encode()
    chance = rng.random()
    if chance < 0.1:
        content = mutate_bytes(content, rng)
    elif chance < 0.15:
        content = text.encode("gb18030")
    elif chance < 0.2:
        content = text.encode("utf-16")
    elif chance < 0.25:
        content = b"\xef\xbb\xbf" + content
    return content


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


def _set_bytes(data: bytearray, rng: np.random.Generator, donors: Sequence[bytes]) -> bytes:
    for _ in range(rng.integers(1, 5)):
        data[_place(len(data), rng)] = int(rng.integers(256))
    return data


def _set_number(data: bytearray, rng: np.random.Generator, donors: Sequence[bytes]) -> bytes:
    """Insert an impossible length, rate or count."""
    number, order = EXTREMES[rng.integers(len(EXTREMES))], "<>"[rng.integers(2)]
    number, form = (number & 0xFFFF, "H") if rng.random() < 0.4 else (number, "I")
    packed = struct.pack(order + form, number)
    start = _place(len(data), rng)
    start -= start % 2 if rng.random() < 0.8 else 0
    data[start : start + len(packed)] = packed
    return data


def _cut_off(data: bytearray, rng: np.random.Generator, donors: Sequence[bytes]) -> bytes:
    return data[: _place(len(data), rng)]


def _take_out(data: bytearray, rng: np.random.Generator, donors: Sequence[bytes]) -> bytes:
    del data[_stretch(len(data), rng)]
    return data


def _double(data: bytearray, rng: np.random.Generator, donors: Sequence[bytes]) -> bytes:
    part = data[_stretch(len(data), rng)]
    start = _place(len(data), rng)
    return data[:start] + part * int(rng.integers(1, 5)) + data[start:]


def _put_in(data: bytearray, rng: np.random.Generator, donors: Sequence[bytes]) -> bytes:
    start = _place(len(data), rng)
    return data[:start] + rng.bytes(int(rng.integers(1, 64))) + data[start:]


def _zero(data: bytearray, rng: np.random.Generator, donors: Sequence[bytes]) -> bytes:
    part = _stretch(len(data), rng)
    data[part] = bytes([int(rng.integers(2)) * 255]) * len(data[part])
    return data


def _splice(data: bytearray, rng: np.random.Generator, donors: Sequence[bytes]) -> bytes:
    """Join the beginning of one file and the rest of another."""
    other = donors[rng.integers(len(donors))]
    return data[: _place(len(data), rng)] + other[_place(len(other), rng) :]


def _only_a_beginning(data: bytearray, rng: np.random.Generator, donors: Sequence[bytes]) -> bytes:
    return data[: int(rng.integers(0, 60))] + rng.bytes(int(rng.integers(1, 2000)))


ByteFault = Callable[[bytearray, np.random.Generator, Sequence[bytes]], bytes]
BYTE_FAULTS: tuple[ByteFault, ...] = (
    *(_flip_bits, _set_bytes, _set_number, _set_number, _cut_off, _take_out),
    *(_double, _put_in, _zero, _splice, _only_a_beginning),
)


def _change_line(text: str, rng: np.random.Generator) -> str:
    """Remove, repeat, move, join or empty a line."""
    lines = text.splitlines(keepends=True) or [""]
    first, second = rng.integers(len(lines), size=2)
    kind = rng.integers(5)
    if kind == 0:
        del lines[first]
    elif kind == 1:
        lines.insert(second, lines[first])
    elif kind == 2:
        lines[first], lines[second] = lines[second], lines[first]
    elif kind == 3:
        lines[first] = lines[first].rstrip("\r\n")
    else:
        lines.insert(first, "\n")
    return "".join(lines)


def _change_field(text: str, rng: np.random.Generator) -> str:
    """Remove, repeat or replace a field between tabs, spaces or colons."""
    separator = [mark for mark in ("\t", " ", ": ", ",", "\n") if mark in text] or ["\n"]
    mark = separator[rng.integers(len(separator))]
    fields = text.split(mark)
    first, second = rng.integers(len(fields), size=2)
    kind = rng.integers(4)
    if kind == 0:
        del fields[first]
    elif kind == 1:
        fields.insert(first, fields[second])
    else:
        fields[first] = STRANGE[rng.integers(len(STRANGE))]
    return mark.join(fields)


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
        kind = rng.integers(4)
        if kind == 0:
            del characters[position : position + 1]
        elif kind == 1:
            characters.insert(position, STRANGE[rng.integers(len(STRANGE))])
        elif kind == 2:
            characters.insert(position, chr(int(rng.choice([9, 10, 13, 32, *range(33, 127)]))))
        else:
            characters[position : position + 1] = chr(int(rng.integers(1, 0xD800)))
    return "".join(characters)


def _cut_text(text: str, rng: np.random.Generator) -> str:
    return text[: int(rng.integers(len(text) + 1))]


def _other_line_ends(text: str, rng: np.random.Generator) -> str:
    return text.replace("\n", ("\r\n", "\r", "\n\n", " \n", "\t\n")[rng.integers(5)])


TextFault = Callable[[str, np.random.Generator], str]
TEXT_FAULTS: tuple[TextFault, ...] = (
    *(_change_field, _change_field, _change_word, _change_word, _change_line, _change_characters),
    *(_change_characters, _cut_text, _other_line_ends),
)
