"""Damages a file: flips a bit, cuts off the end, or swaps two lines or blocks."""

from pathlib import Path

import numpy as np

DAMAGE = ("bit", "cut", "swap")
_BLOCKS = (512, 64, 8, 1)  # bytes; the largest size of which a file has two different blocks


def damage_file(path: Path, kind: str, rng: np.random.Generator) -> None:
    """Damage a file in place; its content differs afterwards.

    Args:
        path: a file of at least one byte.
        kind: one of :data:`DAMAGE`; lines of a text are swapped, blocks of any other file.
        rng: chooses the position.
    """
    content = path.read_bytes()
    if kind == "bit":
        changed = bytearray(content)
        changed[rng.integers(len(content))] ^= 1 << int(rng.integers(8))
    elif kind == "cut":
        changed = content[: rng.integers(len(content))]
    else:
        changed = swapped(content, rng)
    path.write_bytes(changed)


def swapped(content: bytes, rng: np.random.Generator) -> bytes:
    """The content with two different lines of a text, or two different blocks, exchanged."""
    parts, rest = _lines(content), b""
    sizes = iter(_BLOCKS)
    while len(set(parts)) < 2:
        size = next(sizes)
        parts = [content[start : start + size] for start in range(0, len(content) - size + 1, size)]
        rest = content[len(parts) * size :]
    first = int(rng.integers(len(parts)))
    others = [number for number, part in enumerate(parts) if part != parts[first]]
    second = int(rng.choice(others))
    parts[first], parts[second] = parts[second], parts[first]
    return b"".join(parts) + rest


def _lines(content: bytes) -> list[bytes]:
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return []
    return content.splitlines(keepends=True)
