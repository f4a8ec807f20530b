"""Decodes batches of logits to hypotheses by greedy or beam search, here or in worker processes.

Greedy decoding takes the most probable class of each frame, the best path; equal neighbours are merged, then
blanks are dropped.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from model_speech.ctc.prefix_beam import beam_search
from model_speech.ctc.shallow_fusion import Fusion
from utils.arrays import log_sum_exp
from utils.hypotheses.recognition import Hypothesis
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


def greedy_decode(logits: np.ndarray, lengths: np.ndarray, blank: int) -> list[Hypothesis]:
    """Decode a batch of utterances.

    Args:
        logits: (B, T, C) float; log-probabilities work as well.
        lengths: (B,) int, number of valid output frames.
        blank: class of the blank.

    Returns:
        B hypotheses.
    """
    classes, scores = _best_path(logits)
    return [
        _collapse(row[:length], score[:length], blank)
        for row, score, length in zip(classes, scores, np.asarray(lengths), strict=True)
    ]


def best_tokens(logits: np.ndarray, lengths: np.ndarray, blank: int) -> list[list[int]]:
    """The tokens of :func:`greedy_decode` alone, without scores and frames, in less time."""
    paths = (row[:length] for row, length in zip(logits.argmax(axis=-1), lengths, strict=True))
    return [path[(np.diff(path, prepend=-1) != 0) & (path != blank)].tolist() for path in paths]


def _best_path(logits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The best class of each frame and its log-probability: (B, T, C) → (B, T) int, (B, T) float64."""
    classes = logits.argmax(axis=-1)
    best = np.take_along_axis(logits, classes[..., None], axis=-1)[..., 0].astype(np.float64)
    return classes, best - log_sum_exp(logits)


def _collapse(classes: np.ndarray, scores: np.ndarray, blank: int) -> Hypothesis:
    """A path (T,) of one class per frame, with the log-probability of each, as a hypothesis."""
    starts = np.flatnonzero(np.diff(classes, prepend=-1))
    starts_and_end = np.append(starts, len(classes))
    peaks = [
        int(start + scores[start:end].argmax())
        for start, end in zip(starts, starts_and_end[1:], strict=True)
        if classes[start] != blank
    ]
    posteriors = tuple(np.exp(scores[peaks]).tolist())
    return Hypothesis(tuple(classes[peaks].tolist()), float(scores.sum()), tuple(peaks), posteriors)


Submit = Callable[[np.ndarray, np.ndarray], Future[Decoded]]
"""Starts :meth:`Decoder.decode` on a batch: logits (B, T, C) and lengths (B,)."""


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
