"""Damages files at random, as faulty transfers, disks and edits do."""

import numpy as np

HEADER_BYTES = 100  # every second fault is in them; in a small file the rest is sound
# Field values from mistakes, other programs, or attacks.
_WORDS = """
. - 0 -1 nan inf 1e400 0x10 12,5 ² 十 𠀀 99999999999999999999 ma ma6 lü4 5 _ <unk> 儿 妈妈 %s { } [ ] : # ' "
&a *a ${a} ${ ??? ~ null true 2020-99-99 1:99 .inf [] {} @ / .. /dev/zero
"""
STRANGE = (
    *("", " ", "\x00", "\r", "\u2028", "\ufeff", "../" * 30, "a" * 300, "你" * 3000, "[" * 60, "!!int x"),
    *_WORDS.split(),
)


def mutate_bytes(content: bytes, rng: np.random.Generator) -> bytes:
    """Insert one to three faults: flipped bits, impossible numbers, lost or repeated parts, an early end."""
    data = bytearray(content)
    for _ in range(rng.integers(1, 4)):
        size = max(1, len(data))
        start = int(rng.integers(min(size, HEADER_BYTES) if rng.random() < 0.5 else size))
        part = slice(start, start + int(rng.integers(1, 64)))
        match rng.integers(4):
            case 0:
                data[part] = bytes(byte ^ int(rng.integers(256)) for byte in data[part])
            case 1:
                data[start : start + 4] = rng.choice([b"\0\0\0\0", b"\xff\xff\xff\xff", b"\xff\xff\xff\x7f"])
            case 2:
                data[part] = data[part] * int(rng.integers(5))
            case _:
                del data[start:]
    return bytes(data)


def mutate_text(content: bytes, rng: np.random.Generator) -> bytes:
    """Insert one to three faults into a text of lines and fields; rarely its bytes are not UTF-8."""
    text = content.decode()
    for _ in range(rng.integers(1, 4)):
        mark = rng.choice([mark for mark in ("\n", "\t", " ", ": ", ",") if mark in text] or ["\n"])
        parts = text.split(mark)
        first, second = rng.integers(len(parts), size=2)
        match rng.integers(5):
            case 0:
                del parts[first]
            case 1:
                parts.insert(first, parts[second])
            case 2:
                parts[first] = parts[first][: rng.integers(1 + len(parts[first]))]
            case _:
                parts[first] = STRANGE[rng.integers(len(STRANGE))]
        text = mark.join(parts)
    chance = rng.random()
    if chance < 0.1:
        return mutate_bytes(text.encode(), rng)
    return text.encode("gb18030" if chance < 0.15 else "utf-16" if chance < 0.2 else "utf-8")
