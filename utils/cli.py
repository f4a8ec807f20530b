"""Types for ``argparse`` that several commands share (positive numbers, fractions), and ``--workers``."""

import argparse
import os


def positive(text: str) -> int:
    """A whole number above 0.

    Raises:
        argparse.ArgumentTypeError: it is not; argparse shows the message with the usage.
    """
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number above 0")
    return int(text)


def not_negative(text: str) -> int:
    """A whole number, 0 or above.

    Raises:
        argparse.ArgumentTypeError: it is not.
    """
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number from 0 on")
    return int(text)


def fraction(text: str) -> float:
    """A number from 0 to 1.

    Raises:
        argparse.ArgumentTypeError: it is not.
    """
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0.0 <= number <= 1.0:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number from 0 to 1")
    return number


def add_workers(parser: argparse.ArgumentParser) -> None:
    """Add ``--workers``, by default the number of CPU cores."""
    parser.add_argument(
        "--workers",
        type=positive,
        default=os.cpu_count() or 1,
        help="default: %(default)s, the number of CPU cores",
    )
