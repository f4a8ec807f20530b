"""Prints the syllables of a live stream while they are spoken: a line that grows or is revised in place.

It shows two kinds of results: a partial result (``Partial``) is provisional, and the next one replaces it;
a segment (``Segment``) is final.
"""

import shutil
from typing import TextIO

from utils.hypotheses.recognition import Partial, Segment

_CLEAR = "\r\x1b[K"  # moves to the beginning of the line and erases it


class LiveText:
    """Shows the syllables of an utterance while it is spoken.

    A terminal shows each partial result in place of the one before; of a long one only the end, which fits
    into the line. Elsewhere (a file, a pipe) a line grows by syllables that will probably stay, and ends as
    the segment has them.

    Args:
        out: where to write.
    """

    def __init__(self, out: TextIO):
        self._out, self._in_place = out, out.isatty()
        self._written: tuple[str, ...] = ()  # syllables of the current line, if it is not a terminal

    def show(self, event: Partial | Segment) -> None:
        """Show a partial result, or the final one of an utterance."""
        ended = isinstance(event, Segment) or not event.pinyin
        if self._in_place:
            text = "" if ended else _last_columns(" ".join(event.pinyin))
            self._out.write(_CLEAR + text)
        elif ended:
            self._end(event.best.pinyin if isinstance(event, Segment) else ())
        else:
            self._append(event.pinyin[: event.stable])
        self._out.flush()

    def _append(self, pinyin: tuple[str, ...]) -> None:
        for syllable in pinyin[len(self._written) :]:
            self._out.write(f"{syllable} ")
        self._written += pinyin[len(self._written) :]

    def _end(self, pinyin: tuple[str, ...]) -> None:
        """A line with the syllables of the segment; a new one if other syllables were written already."""
        if self._written != pinyin[: len(self._written)]:
            self._out.write("\n")
            self._written = ()
        self._append(pinyin)
        if self._written:
            self._out.write("\n")
        self._written = ()


def _last_columns(text: str) -> str:
    columns = shutil.get_terminal_size().columns - 1
    return text if len(text) <= columns else "…" + text[1 - columns :]
