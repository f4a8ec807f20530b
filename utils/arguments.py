"""Words of a command line → checked values, for ``type=`` of argparse."""

from __future__ import annotations

import argparse


def positive(text: str) -> int:
    """A whole number above 0.

    Raises:
        argparse.ArgumentTypeError: it is none; argparse shows this with the usage.
    """
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number above 0")
    return int(text)
