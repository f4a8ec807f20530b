"""The user's mistakes: one exception family, shown as ``error: what, where, what to do``, exit code 2."""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Callable

from utils.stop_signals import Stopped

LONGEST_WORD, LONGEST_TEXT = 300, 4000  # characters that a message quotes whole
_LONG_WORD = re.compile(rf"\S{{{LONGEST_WORD + 1},}}")
_MORE_ROOM = "free some space, then run the same command again"
_RIGHTS = "change the rights, or choose another place"
# What an OSError may say that the user can put right without reading a stack trace → what to do.
USERS_TO_MEND = {
    errno.ENOSPC: _MORE_ROOM,
    errno.EDQUOT: _MORE_ROOM,
    errno.EACCES: _RIGHTS,
    errno.EPERM: _RIGHTS,
    errno.EROFS: "choose another place: this disk can only be read",
    errno.ENOENT: "check the path",
    errno.EEXIST: "a file stands where a folder should be: check the path",
    errno.ENOTDIR: "a file stands where a folder should be: check the path",
    errno.EISDIR: "a folder stands where a file should be: check the path",
    errno.ENAMETOOLONG: "shorten the name",
}


def shortened(text: str, longest: int = LONGEST_TEXT) -> str:
    """A text as a message quotes it: of very long words and texts the beginning, the end and the length.

    A file of another kind may hold a "word" of megabytes, which no terminal should be filled with.

    Args:
        text: of any length.
        longest: characters of a text that is quoted whole.
    """
    words = _LONG_WORD.sub(lambda found: _cut(found[0], LONGEST_WORD), text)
    return _cut(words, longest) if len(words) > longest else words


def _cut(text: str, length: int) -> str:
    return f"{text[: length // 2]}…{text[-length // 4 :]} ({len(text):,} characters)"


class UserError(Exception):
    """Something that the user can put right; what it quotes is shortened.

    Args:
        what: what is wrong, with the offending value.
        where: the file, line, utterance or config key.
        hint: what to do about it.
    """

    def __init__(self, what: str, *, where: object = None, hint: str | None = None):
        self.what, self.where = shortened(what), where
        self.hint = hint and shortened(hint)
        shown_where = where and shortened(str(where))
        super().__init__(", ".join(part for part in (self.what, shown_where, self.hint) if part))


class ConfigError(UserError):
    """A config file or an override is wrong."""


class CorpusError(UserError):
    """A corpus, a manifest or a transcript is wrong."""


class AudioError(UserError):
    """An audio file can't be read or is not usable."""


class VocabularyError(UserError):
    """A token is not in the vocabulary, or two vocabularies don't match."""


class RunError(UserError):
    """A run folder is missing a part, or can't be used as asked."""


class BundleError(UserError):
    """A model can't be exported, or a part of a bundle is missing, damaged or of another model."""


class TrainingError(UserError):
    """Training can't go on: the loss is not finite, no utterance is left, and the like."""


def run_command(main: Callable[[], int | None]) -> None:
    """Run a script's ``main`` and exit with what it returns; 2 for a user's mistake.

    After a signal the exit code is that of the shells: 130 for Ctrl-C, 143 for SIGTERM.
    A full disk, a forbidden or a missing file are the user's to mend as well, and shown the same way.
    """
    try:
        code = main() or 0
        sys.stdout.flush()
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        code = 2
    except KeyboardInterrupt as error:
        stopped = error if isinstance(error, Stopped) else Stopped()
        print(stopped, file=sys.stderr)
        code = 128 + stopped.number
    except BrokenPipeError:
        # The reader of our output has gone (`| head`): close quietly, as other Unix tools do.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except OSError as error:
        if error.errno not in USERS_TO_MEND:
            raise
        where = shortened(str(error.filename or "while writing"))
        print(f"error: {error.strerror}, {where}, {USERS_TO_MEND[error.errno]}", file=sys.stderr)
        code = 2
    sys.exit(code)
