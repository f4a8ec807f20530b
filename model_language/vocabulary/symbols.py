"""The vocabularies and the lexicon of a language model: encodes syllables and hanzi as ids, and decodes ids.

In a run folder they are ``vocabulary/pinyin.txt``, ``hanzi.txt`` and ``lexicon.tsv``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from model_language.vocabulary.lexicon import UNREADABLE, Lexicon, build_lexicon
from utils.mandarin.pinyin import full_inventory
from utils.padding import pad_rows
from utils.run_folder.run import RunFolder
from utils.vocabulary import PAD, UNKNOWN, Vocabulary, language_vocabulary

PAD_ID, UNKNOWN_ID = 0, 1
"""Ids of padding and of unknown tokens, the first two lines of every language vocabulary."""


@dataclass(frozen=True)
class Symbols:
    """The vocabularies and the lexicon of a language model.

    Attributes:
        pinyin: input tokens; ``<pad>`` is id 0, ``<unk>`` id 1.
        hanzi: output tokens; ``<pad>`` is id 0, ``<unk>`` id 1.
        lexicon: the hanzi that each syllable may become.
    """

    pinyin: Vocabulary
    hanzi: Vocabulary
    lexicon: Lexicon

    @cached_property
    def candidates(self) -> np.ndarray:
        """Hanzi ids that each syllable id may become, ``(len(pinyin), K) int32``, 0 in empty columns.

        Every row has at least one: ``<unk>`` for a syllable without hanzi.
        """
        return pad_rows([self._candidate_ids(token) for token in self.pinyin.tokens], fill=PAD_ID)

    def encode(self, syllables: Sequence[str]) -> np.ndarray:
        """Syllable ids, ``(len(syllables),) int32``. A syllable that is not in the vocabulary becomes the
        nearest one in the lexicon (``huar3`` → ``hua4``), otherwise ``<unk>``.
        """
        known = [s if s in self.pinyin else self.lexicon.nearest(s) or UNKNOWN for s in syllables]
        return self.pinyin.encode_or_unknown(known)

    def encode_pair(self, syllables: Sequence[str], hanzi: str) -> tuple[np.ndarray, np.ndarray]:
        """Ids of a training pair, two ``(len(hanzi),) int32``."""
        return self.encode(syllables), self.hanzi.encode_or_unknown(hanzi)

    def encode_hanzi(self, hanzi: Sequence[str]) -> np.ndarray:
        """Ids of characters that :meth:`decode` may have written, ``(len(hanzi),) int32``; others are 0.

        :data:`UNREADABLE` has the id of ``<unk>``.
        """
        tokens = [UNKNOWN if character == UNREADABLE else character for character in hanzi]
        ids = [self.hanzi.index(token) if token in self.hanzi else PAD_ID for token in tokens]
        return np.array(ids, np.int32)

    def decode(self, ids: Iterable[int]) -> str:
        """Hanzi ids as text; ``<unk>`` and ``<pad>`` are written as :data:`UNREADABLE`."""
        return "".join(token if len(token) == 1 else UNREADABLE for token in self.hanzi.decode(ids))

    @staticmethod
    def files(run_folder: str | Path) -> tuple[Path, Path, Path]:
        """The files of :meth:`save` and :meth:`load`: pinyin, hanzi, lexicon."""
        run = RunFolder(Path(run_folder))
        return run.vocabulary("pinyin.txt"), run.vocabulary("hanzi.txt"), run.vocabulary("lexicon.tsv")

    def save(self, run_folder: str | Path) -> None:
        """Write the three files into ``run_folder/vocabulary``."""
        pinyin, hanzi, lexicon = self.files(run_folder)
        self.pinyin.save(pinyin)
        self.hanzi.save(hanzi)
        self.lexicon.save(lexicon)

    @classmethod
    def load(cls, run_folder: str | Path) -> Symbols:
        """Read the three files of ``run_folder/vocabulary``.

        Raises:
            UserError: one of them is missing or damaged.
        """
        pinyin, hanzi, lexicon = cls.files(run_folder)
        return cls(Vocabulary.load(pinyin), Vocabulary.load(hanzi), Lexicon.load(lexicon))

    def _candidate_ids(self, syllable: str) -> list[int]:
        if syllable in (PAD, UNKNOWN):
            return [UNKNOWN_ID]
        known = [self.hanzi.index(c) for c in self.lexicon.candidates(syllable) if c in self.hanzi]
        return known or [UNKNOWN_ID]


def build_symbols(pairs: Iterable[tuple[Sequence[str], str]] = ()) -> Symbols:
    """Vocabularies of all Mandarin syllables, all hanzi of GB 2312, and further ones in the training pairs.

    Args:
        pairs: (canonical syllables, hanzi) of equal length.
    """
    lexicon = build_lexicon(pairs)
    pinyin = language_vocabulary({*full_inventory(), *lexicon.syllables})
    return Symbols(pinyin, language_vocabulary(lexicon.hanzi), lexicon)
