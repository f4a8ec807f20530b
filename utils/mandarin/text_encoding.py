"""Guesses the encoding of a text that is not UTF-8, for the hint of an error."""

import shlex
from pathlib import Path

_MAX_RARE = 0.1  # of the characters of a simplified text, those that GB 2312 lacks


def conversion_hint(path: str | Path, sample: bytes) -> str:
    """The command that converts a text file to UTF-8, by some bytes of it that are not UTF-8."""
    return f"convert it: iconv -f {likely_encoding(sample)} -t UTF-8 {shlex.quote(str(path))} > FILE"


def likely_encoding(text: bytes) -> str:
    """The name that iconv has for the likely encoding of a Chinese text: UTF-16, BIG5 or GB18030.

    UTF-16 has a byte-order mark or zero bytes. In Big5, four of ten second bytes are below those of GB 2312,
    which has nearly all characters of simplified texts.
    """
    if text.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "UTF-16"
    if b"\0" in text:
        return "UTF-16LE" if text.find(b"\0") % 2 else "UTF-16BE"
    decoded = text.decode("gb2312", "replace")
    is_simplified = decoded.count("\ufffd") <= _MAX_RARE * len(decoded)
    is_big5 = "\ufffd" not in text.decode("big5", "replace")[:-1]  # the last character may be cut
    return "BIG5" if is_big5 and not is_simplified else "GB18030"
