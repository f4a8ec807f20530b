"""The n-gram model of syllables for the CTC beam search: training, loading and perplexity.

Its folder is a run of ``train.py language`` with ``model.name: syllable_ngram``: ``config.yaml``,
``vocabulary/pinyin.txt`` and ``syllables.npz``. It writes no hanzi; the converters do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from model_language.array_files import load_part
from model_language.ngram.kneser_ney import BOUNDARY, BackoffModel, check_order, estimate, tables_of
from utils.errors import CorpusError, RunError, TrainingError
from utils.mandarin.pinyin import full_inventory
from utils.run_folder.run import open_run
from utils.vocabulary import Vocabulary, language_vocabulary

NAME = "syllable_ngram"
_BATCH_SYLLABLES = 20_000  # tokens whose probabilities are looked up together for the perplexity


@dataclass(frozen=True)
class SyllableNgramConfig:
    """Settings of the estimation.

    Attributes:
        order: length of the longest n-grams, 2 to 5.
    """

    name: str = NAME
    order: int = 3


class SyllableNgram(BackoffModel):
    """P(syllable | syllables before).

    Args:
        tables: one for each order, 1-grams first.
        vocabulary: ``<pad>`` (here the boundary of a sentence), ``<unk>``, then canonical syllables.
    """

    def __init__(self, tables: Sequence, vocabulary: Vocabulary):
        super().__init__(tables, len(vocabulary))
        self.vocabulary = vocabulary

    @classmethod
    def train(cls, sentences: Iterable[Sequence[str]], config: SyllableNgramConfig) -> SyllableNgram:
        """Count and estimate.

        Args:
            sentences: canonical syllables of each.
            config: the order.

        Raises:
            ConfigError: the order is not possible.
            TrainingError: there is no syllable.
        """
        sentences = [sentence for sentence in sentences if sentence]
        if not sentences:
            raise TrainingError("no training text for the n-gram model", hint="see data.train of the config")
        vocabulary = language_vocabulary(set(full_inventory()).union(*sentences))
        check_order(config.order, len(vocabulary))
        return cls(estimate(_ids(sentences, vocabulary), config.order, len(vocabulary)), vocabulary)

    def ids(self, tokens: Sequence[str]) -> np.ndarray:
        """Ids of syllables, (len(tokens),) int32; ``<unk>`` for an unknown syllable."""
        return self.vocabulary.encode_or_unknown(tokens)

    def perplexity(self, sentences: Iterable[Sequence[str]]) -> float:
        """exp of the mean negative log-probability of a token; the ends of sentences are tokens too.

        Raises:
            CorpusError: there is no sentence, or all are empty.
        """
        sentences = [sentence for sentence in sentences if sentence]
        if not sentences:
            raise CorpusError("no sentence to compute a perplexity from", hint="all sentences are empty")
        ids = _ids(sentences, self.vocabulary).astype(np.int64)
        # Before the beginning of a sentence there are only boundaries; earlier sentences do not count.
        histories = np.zeros((len(ids), self.history), np.int64)
        inside = np.ones(len(ids), bool)
        for back in range(1, self.history + 1):
            before = np.concatenate([np.zeros(back, np.int64), ids[:-back]])
            inside &= before != BOUNDARY
            histories[:, -back] = np.where(inside, before, BOUNDARY)
        logs = [
            self.log_probs(
                histories[start : start + _BATCH_SYLLABLES], ids[start : start + _BATCH_SYLLABLES, None]
            )
            for start in range(1, len(ids), _BATCH_SYLLABLES)
        ]
        return float(np.exp(-np.concatenate(logs).mean(dtype=np.float64)))


def load_syllable_ngram(run_folder: str | Path) -> SyllableNgram:
    """The model of a finished run.

    Raises:
        RunError: the run is of another kind, or a part of it is missing or damaged.
    """
    run = open_run(run_folder, task="language")
    name = (run.config().get("model") or {}).get("name")
    if name != NAME:
        raise RunError(
            f"this is a run of '{name}', not of '{NAME}'",
            where=run.path,
            hint="train one: python train.py language --config configs/language/syllables.yaml",
        )
    vocabulary = Vocabulary.load(run.vocabulary("pinyin.txt"))
    path = run.syllable_ngram
    tables = load_part(path, "the n-gram model", tables_of)
    size = len(tables[0].keys)  # the 1-grams hold all ids
    if size != len(vocabulary):
        raise RunError(
            f"model and vocabulary do not belong together ({size} and {len(vocabulary)} tokens)",
            where=path,
            hint="copy the run folder again",
        )
    return SyllableNgram(tables, vocabulary)


def _ids(sentences: Sequence[Sequence[str]], vocabulary: Vocabulary) -> np.ndarray:
    """Ids of all sentences with one boundary before, between and after them: (tokens,) int32."""
    boundary = np.array([BOUNDARY], np.int32)
    parts = [boundary]
    for sentence in sentences:
        parts += [vocabulary.encode_or_unknown(sentence), boundary]
    return np.concatenate(parts)
