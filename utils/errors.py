"""Exceptions for errors that a user can correct; a command prints them without a stack trace, exit code 2.

Such an error prints up to three lines: ``error:`` says what is wrong, ``where:`` names the file, line or
setting, ``hint:`` says what to do. :mod:`utils.command.entry` runs a command and handles these errors.

A file name need not be UTF-8 (old archives have names in GBK). Python keeps such bytes as surrogates, which
can't be printed or written. :func:`printable` shows them as ``\\xc4``, and so do the streams of a command.
"""

import codecs
import difflib
import errno
import re
from collections.abc import Sequence
from functools import cache

from utils.addresses import address_of

_MAX_WORD, _MAX_TEXT = 300, 4000  # characters; longer quotations are shortened
_LONG_WORD = re.compile(rf"\S{{{_MAX_WORD + 1},}}")
_INSTALL = "pip install -r requirements.txt (requirements/run.txt is for shipped and exported models only)"
_FREE_SPACE = "free some space, then run the same command again"
_PERMISSIONS = "change the permissions, or choose another path"
_FILE_FOR_FOLDER = "there is a file where a folder is expected: check the path"
# Error numbers of an OSError that the user can correct, and the hint for each.
OS_ERROR_HINTS = {
    errno.ENOSPC: _FREE_SPACE,
    errno.EDQUOT: _FREE_SPACE,
    errno.EACCES: _PERMISSIONS,
    errno.EPERM: _PERMISSIONS,
    errno.EROFS: "choose another path: this disk is read-only",
    errno.ENOENT: "check the path",
    errno.EEXIST: _FILE_FOR_FOLDER,
    errno.ENOTDIR: _FILE_FOR_FOLDER,
    errno.EISDIR: "there is a folder where a file is expected: check the path",
    errno.ENAMETOOLONG: "shorten the name",
}


def _show_bytes(error: UnicodeError) -> tuple[str, int]:
    """Error handler of an encoding: ``\\xc4`` for a byte of a file name, escapes of Python for the rest."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    shown = (
        f"\\x{ord(character) - 0xDC00:02x}"
        if "\udc80" <= character <= "\udcff"
        else character.encode("ascii", "backslashreplace").decode()
        for character in error.object[error.start : error.end]
    )
    return "".join(shown), error.end


@cache
def escape_handler() -> str:
    """The name of the error handler of :func:`printable`, for ``encode`` and for streams."""
    codecs.register_error("show_bytes", _show_bytes)
    return "show_bytes"


def printable(name: object) -> str:
    """A file name as text for people and for UTF-8 files; bytes that are not UTF-8 become ``\\xc4``."""
    return str(name).encode("utf-8", escape_handler()).decode()


def is_utf8(name: object) -> bool:
    """Whether a file name is UTF-8, as manifests and ids must be."""
    return printable(name) == str(name)


def shorten(text: str, longest: int = _MAX_TEXT) -> str:
    """Replace the middle of very long words and texts by ``…`` and their length.

    A file of an unexpected kind may contain a "word" of megabytes; a message must not print all of it.
    The result is printable.
    """
    words = _LONG_WORD.sub(lambda match: _cut_middle(match[0], _MAX_WORD), printable(text))
    return _cut_middle(words, longest) if len(words) > longest else words


def _cut_middle(text: str, length: int) -> str:
    return f"{text[: length // 2]}…{text[-length // 4 :]} ({len(text):,} characters)"


class UserError(Exception):
    """An error that the user can correct. ``str(error)`` is one line; long quotations are shortened.

    Args:
        message: what is wrong, with the offending value.
        where: the file, line, utterance or config key.
        hint: what to do about it.
    """

    def __init__(self, message: str, *, where: object = None, hint: str | None = None):
        self.message, self.where = shorten(message), where
        self.hint = hint and shorten(hint)
        place = shorten(address_of(str(where)) or str(where)) if where else None
        self._lines = {"error": self.message, "where": place, "hint": self.hint}
        super().__init__(", ".join(filter(None, self._lines.values())))

    def labelled(self) -> str:
        """The message as a command prints it: one line each for ``error:``, ``where:`` and ``hint:``."""
        return "\n".join(f"{label}: {text}" for label, text in self._lines.items() if text)


class ConfigError(UserError):
    """A config file or an override is wrong."""


class CorpusError(UserError):
    """A corpus, a manifest or a transcript is wrong."""


class AudioError(UserError):
    """An audio file can't be read, or its content is not usable."""


class TranscriptError(UserError):
    """A transcript would replace another file."""


class StoreError(UserError):
    """A network or object store does not answer, or refuses."""


class CacheError(UserError):
    """A cache folder can't be written or is too small, or a file in it is damaged."""


class VocabularyError(UserError):
    """A token is not in the vocabulary, or two vocabularies don't match."""


class PhraseError(UserError):
    """A file of phrases is wrong."""


class RunError(UserError):
    """A run folder is incomplete, or doesn't support the requested use."""


class BundleError(UserError):
    """A model can't be exported, or a part of a bundle is missing, damaged or belongs to another model."""


class TrainingError(UserError):
    """Training can't continue, for example because the loss is not finite or no utterance is left."""


def missing_package(name: str) -> UserError:
    """The error of a package that is not installed, with the command that installs it."""
    return UserError(f"the package {name} is missing", hint=_INSTALL)


def unreadable(kind: type[UserError], message: str, path: object, error: OSError) -> UserError:
    """The error of a file that can't be read: the message, with the reason that the system gave."""
    return kind(f"{message} ({error.strerror})", where=path, hint="check the path")


def suggestion(given: object, known: Sequence[str], prefix: str = "", advice: str = "") -> str:
    """A hint for a wrong name: the nearest known one, or ``advice`` and all."""
    nearest = difflib.get_close_matches(str(given), known, n=1)
    if nearest:
        return f"did you mean '{prefix}{nearest[0]}'?"
    return f"{advice}there are: {', '.join(prefix + name for name in known)}"


def require(
    valid: object,
    message: str,
    *,
    where: object = None,
    hint: str | None = None,
    error: type[UserError] = ConfigError,
) -> None:
    """Check something that the user gave; the message is made in any case, so keep it out of inner loops.

    Raises:
        ConfigError, or the given ``error``: it is not ``valid``. The texts are those of :class:`UserError`.
    """
    if not valid:
        raise error(message, where=where, hint=hint)
