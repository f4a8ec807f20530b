"""Argument types that several command lines share (positive numbers, fractions …), and ``--workers``.

A number beyond its limit raises argparse.ArgumentTypeError, which argparse shows with the usage.
"""

import argparse
import math
import os
import re
from collections.abc import Callable
from pathlib import Path

from utils.errors import UserError, is_utf8, require, unreadable

_LANGUAGE = re.compile("[a-z]{2,3}(-[A-Za-z]+)?|[A-Z]?[a-z]{4,}")  # its code or name
_MANDARIN = re.compile(
    "auto|zh(-hans|-hant)?(-cn|-tw|-sg)?|cmn(-hans)?(-cn)?|chinese|mandarin|中文|汉语|普通话"
)


def positive(text: str) -> int:
    """A whole number above 0."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number above 0")
    return int(text)


def not_negative(text: str) -> int:
    """A whole number, 0 or above."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number from 0 on")
    return int(text)


def split_names(text: str) -> tuple[str, ...]:
    """Different names with commas between them, also full-width ones.

    Raises:
        ConfigError: a name occurs twice.
    """
    names = tuple(filter(None, map(str.strip, text.replace("，", ",").split(","))))
    require(len(set(names)) == len(names), f"a name occurs twice: {text}", hint="give each its own")
    return names


def positive_number(text: str) -> float:
    """A finite number above 0."""
    return _number(text, lambda number: 0.0 < number < math.inf, "a number above 0")


def finite_number(text: str) -> float:
    """A finite number."""
    return _number(text, math.isfinite, "a finite number")


def fraction(text: str) -> float:
    """A number from 0 to 1."""
    return _number(text, lambda number: 0.0 <= number <= 1.0, "a number from 0 to 1")


def _number(text: str, fits: Callable[[float], bool], requirement: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not fits(number):
        raise argparse.ArgumentTypeError(f"'{text}' is not {requirement}")
    return number


def is_mandarin(language: str) -> bool:
    """Whether a name of other recognisers and their clients stands for Mandarin, the only language here."""
    return bool(_MANDARIN.fullmatch(language.lower().replace("_", "-")))


def language_run(text: str) -> Path | None:
    """The run folder of a language model; None for Mandarin, which recognisers of all languages take here."""
    path = Path(text)
    if is_mandarin(text) and not path.exists():
        return None
    if _LANGUAGE.fullmatch(text) and not path.exists():
        raise argparse.ArgumentTypeError(
            f"'{text}' is no run folder of a language model; the only language that is recognised is Mandarin"
        )
    return path


def listed_paths(path: Path) -> list[Path]:
    """The files in a UTF-8 list, one per line; names of existing files need not be UTF-8.

    Raises:
        UserError: the list can't be read, is empty, or is not UTF-8.
    """
    hint = "a UTF-8 text file, one path per line"
    try:
        lines = path.read_text(encoding="utf-8-sig", errors="surrogateescape").splitlines()
    except OSError as error:
        raise unreadable(UserError, "can't read the list", path, error) from error
    paths = [Path(line.strip()) for line in lines if line.strip()]
    require(paths, "the list names no file", where=path, hint=hint, error=UserError)
    for listed in paths:
        if not is_utf8(listed) and not listed.exists():
            raise UserError(f"not UTF-8, and no name of a file: {listed}", where=path, hint=hint)
    return paths


def add_workers(parser: argparse.ArgumentParser) -> None:
    """Add ``--workers``, by default the number of CPU cores."""
    parser.add_argument(
        "--workers",
        type=positive,
        default=os.cpu_count() or 1,
        help="default: %(default)s, the number of CPU cores",
    )
