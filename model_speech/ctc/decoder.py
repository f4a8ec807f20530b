"""Decodes batches of logits to hypotheses by greedy or beam search, here or in worker processes."""

from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from model_speech.ctc.greedy import Hypothesis, greedy_decode
from model_speech.ctc.prefix_beam import beam_search
from model_speech.ctc.shallow_fusion import Fusion
from utils.processes import WorkerPool

Decoded = list[list[Hypothesis]]


@dataclass(frozen=True, eq=False)
class Decoder:
    """The search and its settings.

    Attributes:
        blank: class of the blank.
        beam: prefixes kept by the beam search; 1 decodes greedily.
        n_best: hypotheses of each utterance.
        fusion: a language model in the beam search; needs a beam of more than 1.
    """

    blank: int
    beam: int = 1
    n_best: int = 1
    fusion: Fusion | None = None

    def decode(self, logits: np.ndarray, lengths: np.ndarray) -> Decoded:
        """Hypotheses of each utterance, best first, from logits (B, T, C) and lengths (B,)."""
        if self.beam == 1:
            return [[hypothesis] for hypothesis in greedy_decode(logits, lengths, self.blank)]
        return beam_search(
            logits, lengths, self.blank, beam=self.beam, n_best=self.n_best, fusion=self.fusion
        )


class Submit(Protocol):
    """Decodes a batch; the future holds the result of :meth:`Decoder.decode`."""

    def __call__(self, logits: np.ndarray, lengths: np.ndarray) -> Future[Decoded]:
        """Logits (B, T, C) and lengths (B,)."""


@contextmanager
def decoding(decoder: Decoder, workers: int) -> Iterator[Submit]:
    """Decode in ``workers`` processes beside this one; with 0 workers, in this process."""
    if workers == 0:
        yield lambda logits, lengths: _finished(decoder.decode(logits, lengths))
        return
    # The decoder is sent once to each process, not with every batch: a language model may take 100 MB.
    pool = WorkerPool(workers, _set_decoder, decoder)
    try:
        yield lambda logits, lengths: pool.submit(_decode, logits, lengths)
    finally:
        pool.close()


def _finished(result: Decoded) -> Future[Decoded]:
    future: Future[Decoded] = Future()
    future.set_result(result)
    return future


_decoders: list[Decoder] = []  # of a worker process


def _set_decoder(decoder: Decoder) -> None:
    _decoders[:] = [decoder]


def _decode(logits: np.ndarray, lengths: np.ndarray) -> Decoded:
    return _decoders[0].decode(logits, lengths)
