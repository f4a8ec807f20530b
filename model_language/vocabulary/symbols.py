"""The vocabularies and the lexicon of a language model: encodes syllables and hanzi as ids, and decodes ids.

:class:`Tokens` extends the syllables by the same syllables without tones. A toneless syllable stands for the
same syllable in any tone: what ``zhong`` may become is what ``zhong1`` … ``zhong5`` may become, and
P(zhong | hanzi) is the sum of P(zhong1 | hanzi) … P(zhong5 | hanzi).

In a run folder they are ``vocabulary/pinyin.txt``, ``hanzi.txt`` and ``lexicon.tsv``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from model_language.vocabulary.lexicon import UNREADABLE, Lexicon, build_lexicon
from utils.arrays import pad_rows
from utils.mandarin.pinyin import full_inventory, has_tone
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


def symbols_of_run(run: RunFolder, pairs: Callable[[], Iterable[tuple[Sequence[str], str]]]) -> Symbols:
    """The vocabularies and the lexicon of a run; a new run gets those of :func:`build_symbols`."""
    if not run.vocabulary("lexicon.tsv").is_file():  # written last of the three files
        build_symbols(pairs()).save(run.path)
    return Symbols.load(run.path)


class Tokens:
    """The tokens of a vocabulary: its syllables, then the same syllables without tones, sorted.

    Args:
        symbols: vocabularies and lexicon.

    Attributes:
        toneless: the syllables without tones, in the order of their tokens, from ``len(symbols.pinyin)`` on.
        members: for each toneless syllable, the ids of the same syllable with a tone.
    """

    def __init__(self, symbols: Symbols):
        self._symbols = symbols
        groups: dict[str, list[int]] = {}
        for number, token in enumerate(symbols.pinyin.tokens):
            if has_tone(token):
                groups.setdefault(token[:-1], []).append(number)
        self.toneless = sorted(groups)
        self.members = [np.array(groups[base]) for base in self.toneless]
        tokens = (*symbols.pinyin.tokens, *self.toneless)
        self._ids = {token: number for number, token in enumerate(tokens)}

    def __len__(self) -> int:
        return len(self._symbols.pinyin) + len(self.toneless)

    def encode(self, sentences: Sequence[Sequence[str]]) -> np.ndarray:
        """Token ids, (B, L) int32, filled with 0; unknown syllables as :meth:`Symbols.encode` takes them."""
        return pad_rows([self._encode(sentence) for sentence in sentences])

    @cached_property
    def bases(self) -> np.ndarray:
        """(tokens,) int32: the index in ``toneless`` of each token without its tone; others have the last."""
        bases = np.full(len(self), len(self.toneless), np.int32)
        bases[len(self._symbols.pinyin) :] = np.arange(len(self.toneless))
        for base, members in enumerate(self.members):
            bases[members] = base
        return bases

    def with_sums(self, table: np.ndarray) -> np.ndarray:
        """A table (pinyin, n) with the sum of its tones added for each toneless syllable: (tokens, n)."""
        return np.concatenate([table, np.stack([table[members].sum(axis=0) for members in self.members])])

    def lexicon_rows(self) -> list[np.ndarray]:
        """Of each token, the ids (n,) int of the hanzi that the lexicon has for it; 0 may be among them."""
        candidates = self._symbols.candidates
        return [*candidates, *(np.unique(candidates[members]) for members in self.members)]

    def with_readings(self, readings: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Candidates and readings of all tokens.

        Args:
            readings: log P(syllable | hanzi) of ``symbols.candidates``, (pinyin, K), -inf in empty columns.

        Returns:
            Hanzi ids (tokens, K') int32, filled with 0, and their log-probabilities (tokens, K') float32,
            -inf in empty columns.
        """
        table = self._symbols.candidates
        sums = [_sum_readings(table[members], readings[members]) for members in self.members]
        candidates = pad_rows([*table, *(ids for ids, _ in sums)], fill=PAD_ID)
        logs = pad_rows([*readings, *(values for _, values in sums)], fill=-np.inf, dtype=np.float32)
        return candidates, logs

    def _encode(self, sentence: Sequence[str]) -> np.ndarray:
        ids = self._ids
        return np.array(
            [ids[syllable] if syllable in ids else self._unknown(syllable) for syllable in sentence], np.int32
        )

    def _unknown(self, syllable: str) -> int:
        return int(self._symbols.encode([syllable])[0])


def _sum_readings(candidates: np.ndarray, readings: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct hanzi of some rows, sorted, and the logs of their summed probabilities."""
    used = readings > -np.inf
    ids, column = np.unique(candidates[used], return_inverse=True)
    return ids, np.log(np.bincount(column, np.exp(readings[used].astype(np.float64)), minlength=len(ids)))
