"""Sets of tokens → an ordered vocabulary with ids, saved beside the weights and never rebuilt from data.

A model's classes are the lines of its vocabulary file. The acoustic vocabulary starts from the full
inventory of Mandarin syllables, so neither the order nor the number of utterances read changes it.
"""

from __future__ import annotations

import difflib
import hashlib
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path

import numpy as np

from utils.errors import VocabularyError
from utils.files import write_text
from utils.mandarin.pinyin import full_inventory
from utils.run_folder.checksums import verified

BLANK = "_"
SPACE = " "
PAD = "<pad>"
UNKNOWN = "<unk>"


@dataclass(frozen=True)
class Vocabulary:
    """An ordered list of distinct tokens; a token's id is its place.

    Attributes:
        tokens: ids 0, 1, 2 … in order.

    Raises:
        VocabularyError: a token is empty, holds a line break, or comes twice.
    """

    tokens: tuple[str, ...]
    _ids: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        ids = {token: place for place, token in enumerate(self.tokens)}
        for line, token in enumerate(self.tokens, start=1):
            if not token or "\n" in token or "\r" in token:
                raise VocabularyError(f"{token!r} can't be a token", where=f"line {line}")
            if ids[token] != line - 1:
                raise VocabularyError(f"'{token}' comes twice", where=f"lines {line} and {ids[token] + 1}")
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

    @property
    def hash(self) -> str:
        """16 hexadecimal digits that change with any token or its place."""
        return hashlib.sha256("\n".join(self.tokens).encode()).hexdigest()[:16]

    def encode(
        self, tokens: Sequence[str], utterance: str | None = None, source: object = None
    ) -> np.ndarray:
        """The ids of a transcript's tokens, ``(len(tokens),) int32``.

        Args:
            tokens: e.g. canonical syllables.
            utterance: its id, for the error message.
            source: the file it comes from, for the error message.

        Raises:
            VocabularyError: a token is not in the vocabulary, or is the blank, which CTC puts in itself.
        """
        for token in tokens:
            if token not in self._ids or token == BLANK:
                raise self._unknown(token, utterance, source)
        return np.array([self._ids[token] for token in tokens], dtype=np.int32)

    def encode_or_unknown(self, tokens: Sequence[str]) -> np.ndarray:
        """The ids of tokens, ``(len(tokens),) int32``, ``<unk>`` for what is not in the vocabulary."""
        unknown = self.index(UNKNOWN)
        return np.array([self._ids.get(token, unknown) for token in tokens], dtype=np.int32)

    def decode(self, ids: Iterable[int]) -> list[str]:
        """The tokens of ids.

        Raises:
            VocabularyError: an id is negative or beyond the last token.
        """
        tokens = []
        for number in ids:
            if not 0 <= number < len(self):
                raise VocabularyError(
                    f"there is no token {number} in a vocabulary of {len(self)}",
                    hint="the ids come from a model with another vocabulary",
                )
            tokens.append(self.tokens[number])
        return tokens

    def save(self, path: str | Path) -> None:
        """Write one token a line (the space token is a line that holds one space)."""
        write_text(path, "".join(f"{token}\n" for token in self.tokens))

    @classmethod
    def load(cls, path: str | Path) -> Vocabulary:
        """Read a vocabulary file.

        Raises:
            VocabularyError: no such file, not UTF-8, an empty line, a token twice.
            RunError: it has changed since a training wrote it.
        """
        try:
            text = verified(path).read_bytes().decode("utf-8")
        except OSError as error:
            raise VocabularyError("can't read the vocabulary", where=path, hint=error.strerror) from error
        except UnicodeDecodeError as error:
            raise VocabularyError(
                "a vocabulary file is UTF-8 text", where=path, hint="copy it again"
            ) from error
        # str.splitlines would also cut at characters that may stand inside a token.
        lines = text.replace("\r\n", "\n").removesuffix("\n").split("\n")
        try:
            return cls(tuple(lines))
        except VocabularyError as error:
            raise VocabularyError(
                error.what, where=f"{path}, {error.where}", hint="one token a line"
            ) from error

    def _unknown(self, token: str, utterance: str | None, source: object) -> VocabularyError:
        places = [f"utterance {utterance}" if utterance else "", f"in {source}" if source else ""]
        if token == BLANK:
            hint = "the blank belongs to CTC: take it out of the transcript"
        elif not token.strip():
            hint = "separate syllables by single spaces; only an acoustic vocabulary holds the space"
        else:
            nearest = difflib.get_close_matches(token, self.tokens, n=3)
            known = f"nearest: {', '.join(nearest)}" if nearest else "no token comes near"
            hint = f"{known}; correct the transcript, or build the vocabulary from this corpus too"
        size = f"the vocabulary of {len(self)} tokens"
        what = f"'{token}' is not in {size}" if token != BLANK else f"the blank '{BLANK}' can't be a label"
        return VocabularyError(what, where=" ".join(filter(None, places)) or None, hint=hint)


def acoustic_vocabulary(syllables: Iterable[str] = ()) -> Vocabulary:
    """The classes of an acoustic model: all tonal syllables sorted, then the space, then the blank last.

    Args:
        syllables: canonical syllables of the corpora; only those outside the full inventory (erhua of a
            corpus that writes it) add a class.
    """
    every = set(full_inventory()).union(syllables) - {SPACE, BLANK}
    return Vocabulary((*sorted(every), SPACE, BLANK))


def language_vocabulary(tokens: Iterable[str]) -> Vocabulary:
    """The tokens of a language model: padding (id 0), unknown (id 1), then ``tokens`` sorted."""
    return Vocabulary((PAD, UNKNOWN, *sorted(set(tokens) - {PAD, UNKNOWN})))


def explain_mismatch(model_vocabulary: Vocabulary, weights_vocabulary: Vocabulary) -> str:
    """Say in words how the weights' vocabulary differs from the model's (see :func:`transfer_command`).

    Returns:
        Some lines: the sizes, the first tokens that only one of the two has, the first place where they
        part. ``"the vocabularies are the same"`` if so.
    """
    if model_vocabulary == weights_vocabulary:
        return "the vocabularies are the same"
    model, weights = set(model_vocabulary.tokens), set(weights_vocabulary.tokens)
    pairs = enumerate(zip_longest(model_vocabulary.tokens, weights_vocabulary.tokens, fillvalue="(none)"))
    place, (ours, theirs) = next((place, pair) for place, pair in pairs if pair[0] != pair[1])
    return "\n".join(
        [
            f"the model has {len(model_vocabulary)} classes, the weights have {len(weights_vocabulary)}; "
            f"{len(model & weights)} tokens are in both",
            f"only in the model ({len(model - weights)}): {first_few(sorted(model - weights))}",
            f"only in the weights ({len(weights - model)}): {first_few(sorted(weights - model))}",
            f"they part at class {place}: '{ours}' in the model, '{theirs}' in the weights",
        ]
    )


def transfer_command(weights_run: str | Path, new_run: str | Path, vocabulary: str | Path) -> str:
    """The command line that moves the weights of a run to the tokens of a vocabulary file, ready to paste.

    Args:
        weights_run: run folder that the weights belong to, or a word to replace.
        new_run: run folder to make.
        vocabulary: file with the tokens wanted.
    """
    source, new, file = (shlex.quote(Path(path).as_posix()) for path in (weights_run, new_run, vocabulary))
    return f"python inspect_model.py transfer {source} {new} --vocabulary {file}"


def first_few(tokens: Sequence[str], most: int = 12) -> str:
    """The first tokens in words, the space in quotes: ``a1, ' ', b1, …``; ``none`` if there are none."""
    shown = ", ".join(repr(token) if not token.strip() else token for token in tokens[:most])
    return (shown or "none") + (", …" if len(tokens) > most else "")
