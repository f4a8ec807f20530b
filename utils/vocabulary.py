"""The vocabulary of a model: an ordered list of tokens, whose index is the token's id (the model's class).

It is saved beside the weights, one token per line, and never rebuilt from data. The acoustic vocabulary is
the full inventory of Mandarin syllables; a corpus adds only syllables that the inventory lacks (rare erhua).
"""

from __future__ import annotations

import difflib
import hashlib
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import zip_longest
from pathlib import Path

import numpy as np

from utils.errors import VocabularyError, require, unreadable
from utils.files import write_text
from utils.mandarin.output_units import TONAL, inventory_of, units_of
from utils.run_folder.checksums import verified

BLANK = "_"
SPACE = " "
PAD = "<pad>"
UNKNOWN = "<unk>"


@dataclass(frozen=True)
class Vocabulary:
    """An ordered list of distinct tokens; the id of a token is its index.

    Attributes:
        tokens: the tokens in the order of their ids 0, 1, 2 …

    Raises:
        VocabularyError: a token is empty, contains a line break, or occurs twice.
    """

    tokens: tuple[str, ...]
    _ids: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        ids = {token: index for index, token in enumerate(self.tokens)}
        for line, token in enumerate(self.tokens, start=1):
            if not token or "\n" in token or "\r" in token:
                raise VocabularyError(f"{token!r} can't be a token", where=f"line {line}")
            if ids[token] != line - 1:
                raise VocabularyError(f"'{token}' occurs twice", where=f"lines {line} and {ids[token] + 1}")
        object.__setattr__(self, "_ids", ids)

    def __len__(self) -> int:
        return len(self.tokens)

    def __contains__(self, token: object) -> bool:
        return token in self._ids

    def index(self, token: str) -> int:
        """The id of ``token``.

        Raises:
            VocabularyError: it is not in the vocabulary.
        """
        if token not in self._ids:
            raise self._unknown(token, None, None)
        return self._ids[token]

    @property
    def blank_index(self) -> int:
        """The id of the CTC blank (the last class of an acoustic vocabulary)."""
        return self.index(BLANK)

    @cached_property
    def units(self) -> str:
        """What the classes of an acoustic model stand for, see :mod:`utils.mandarin.output_units`."""
        return units_of(self.tokens)

    def require_tonal_syllables(self, user: str, where: object = None) -> None:
        """Check the units of an acoustic model's classes.

        Args:
            user: what works with tonal syllables only, as the beginning of the message.
            where: the run, for the message.

        Raises:
            ConfigError: they are others.
        """
        require(
            self.units == TONAL,
            f"{user} of tonal syllables, not of {self.units}",
            where=where,
            hint="take another run, or train one with vocabulary.units=tonal_syllables",
        )

    @property
    def hash(self) -> str:
        """16 hexadecimal digits that change with any token or its position."""
        return hashlib.sha256("\n".join(self.tokens).encode()).hexdigest()[:16]

    def encode(
        self, tokens: Sequence[str], utterance: str | None = None, source: object = None
    ) -> np.ndarray:
        """The ids of a transcript's tokens, ``(len(tokens),) int32``.

        Raises:
            VocabularyError: a token is not in the vocabulary, or is the blank, which only CTC inserts.
        """
        for token in tokens:
            if token not in self._ids or token == BLANK:
                raise self._unknown(token, utterance, source)
        return np.array([self._ids[token] for token in tokens], dtype=np.int32)

    def encode_or_unknown(self, tokens: Sequence[str]) -> np.ndarray:
        """The ids of tokens, ``(len(tokens),) int32``; ``<unk>`` for tokens outside the vocabulary."""
        unknown = self.index(UNKNOWN)
        return np.array([self._ids.get(token, unknown) for token in tokens], dtype=np.int32)

    def decode(self, ids: Iterable[int]) -> list[str]:
        """The tokens of ids.

        Raises:
            VocabularyError: an id is negative or beyond the last token.
        """
        numbers = ids.tolist() if isinstance(ids, np.ndarray) else list(ids)  # Python's integers are faster
        for number in (min(numbers), max(numbers)) if numbers else ():
            if not 0 <= number < len(self):
                raise VocabularyError(
                    f"there is no token {number} in a vocabulary of {len(self)}",
                    hint="the ids belong to a model with another vocabulary",
                )
        return [self.tokens[number] for number in numbers]

    def save(self, path: str | Path) -> None:
        """Write one token per line (the space token is a line with one space)."""
        write_text(path, "".join(f"{token}\n" for token in self.tokens))

    @classmethod
    def load(cls, path: str | Path) -> Vocabulary:
        """Read a vocabulary file.

        Raises:
            VocabularyError: there is no such file, it is not UTF-8, a line is empty or occurs twice.
            RunError: the file has changed since a training run wrote it.
        """
        try:
            text = verified(path).read_bytes().decode("utf-8-sig")  # editors may add a byte order mark
        except OSError as error:
            raise unreadable(VocabularyError, "can't read the vocabulary", path, error) from error
        except UnicodeDecodeError as error:
            raise VocabularyError(
                "the vocabulary file is not UTF-8 text", where=path, hint="copy it again"
            ) from error
        # str.splitlines would also split at characters that a token may contain.
        lines = text.replace("\r\n", "\n").removesuffix("\n").split("\n")
        try:
            return cls(tuple(lines))
        except VocabularyError as error:
            raise VocabularyError(
                error.message, where=f"{path}, {error.where}", hint="one token per line"
            ) from error

    def _unknown(self, token: str, utterance: str | None, source: object) -> VocabularyError:
        places = [f"utterance {utterance}" if utterance else "", f"in {source}" if source else ""]
        if token == BLANK:
            hint = "the blank is inserted by CTC: remove it from the transcript"
        elif not token.strip():
            hint = "separate syllables by single spaces; only an acoustic vocabulary has the space"
        else:
            nearest = difflib.get_close_matches(token, self.tokens, n=3)
            known = f"nearest: {', '.join(nearest)}" if nearest else "no token is similar"
            hint = f"{known}; correct the transcript, or build the vocabulary from this corpus too"
        size = f"the vocabulary of {len(self)} tokens"
        message = f"'{token}' is not in {size}" if token != BLANK else f"the blank '{BLANK}' can't be a label"
        return VocabularyError(message, where=" ".join(filter(None, places)) or None, hint=hint)


def acoustic_vocabulary(tokens: Iterable[str] = (), units: str = TONAL, *, only: bool = False) -> Vocabulary:
    """The classes of an acoustic model: all tokens sorted, then the space, then the blank.

    Args:
        tokens: those of the corpora; those outside the inventory of the units (erhua, hanzi) add classes.
        units: see :mod:`utils.mandarin.output_units`.
        only: without the rest of the inventory.
    """
    found = set(() if only else inventory_of(units)).union(tokens) - {SPACE, BLANK}
    return Vocabulary((*sorted(found), SPACE, BLANK))


def language_vocabulary(tokens: Iterable[str]) -> Vocabulary:
    """The tokens of a language model: padding (id 0), unknown (id 1), then ``tokens`` sorted."""
    return Vocabulary((PAD, UNKNOWN, *sorted(set(tokens) - {PAD, UNKNOWN})))


def explain_mismatch(model_vocabulary: Vocabulary, weights_vocabulary: Vocabulary) -> str:
    """Describe how the vocabulary of the weights differs from that of the model.

    Returns:
        several lines: the sizes, the first tokens that are only in one of the two, and the first class that
        differs; ``"the vocabularies are the same"`` if they are.
    """
    if model_vocabulary == weights_vocabulary:
        return "the vocabularies are the same"
    model, weights = set(model_vocabulary.tokens), set(weights_vocabulary.tokens)
    pairs = enumerate(zip_longest(model_vocabulary.tokens, weights_vocabulary.tokens, fillvalue="(none)"))
    index, (ours, theirs) = next((index, pair) for index, pair in pairs if pair[0] != pair[1])
    return "\n".join(
        [
            f"the model has {len(model_vocabulary)} classes, the weights have {len(weights_vocabulary)}; "
            f"{len(model & weights)} tokens are in both",
            f"only in the model ({len(model - weights)}): {first_few(sorted(model - weights))}",
            f"only in the weights ({len(weights - model)}): {first_few(sorted(weights - model))}",
            f"the first difference is class {index}: '{ours}' in the model, '{theirs}' in the weights",
        ]
    )


def transfer_command(weights_run: str | Path, new_run: str | Path, vocabulary: str | Path) -> str:
    """The command line that moves the weights of a run to the tokens of a vocabulary file, ready to paste."""
    source, new, file = (shlex.quote(Path(path).as_posix()) for path in (weights_run, new_run, vocabulary))
    return f"python inspect_model.py transfer {source} {new} --vocabulary {file}"


def first_few(tokens: Sequence[str], count: int = 12) -> str:
    """The first tokens or names as text, the space in quotes: ``a1, ' ', b1, …``; ``none`` for no tokens."""
    shown = ", ".join(repr(token) if not token.strip() else token for token in tokens[:count])
    return (shown or "none") + (", …" if len(tokens) > count else "")
