"""What the first stage computes for a recording of one utterance, for an analysis of errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from model_speech.ctc.forward_backward import sequence_score
from recognition.voice_activity import speech_stretches
from utils.arrays import softmax
from utils.hypotheses.inspection import Inspection

if TYPE_CHECKING:  # test.py --help has no need of them
    from recognition.pieces import Piece
    from recognition.recognizer import Recognizer


def token_scores(
    recognizer: Recognizer, samples: np.ndarray, sequences: Sequence[Sequence[str]]
) -> list[float] | None:
    """Scores of token sequences for one recording: the quantity that the search maximises.

    Args:
        recognizer: the recognizer.
        samples: (samples,) in [-1, 1], mono, at its sample rate.
        sequences: tokens, in the output units of the acoustic model.

    Returns:
        natural logarithms, -inf for tokens outside the vocabulary; None if the recording is cut at a
        pause, or if a joint search is used, which maximises another quantity.
    """
    whole = None if recognizer.joint else _whole(recognizer, samples)
    if whole is None:
        return None
    logits, _ = whole
    vocabulary, decoder = recognizer.acoustic.vocabulary, recognizer.decoder
    return [
        sequence_score(logits, vocabulary.encode(tokens).tolist(), decoder.blank, decoder.fusion)
        if all(token in vocabulary for token in tokens)
        else -np.inf
        for tokens in sequences
    ]


def inspection_of(recognizer: Recognizer, samples: np.ndarray) -> Inspection | None:
    """The output of the acoustic model for one recording, for a plot.

    Args:
        recognizer: the recognizer.
        samples: (samples,) in [-1, 1], mono, at its sample rate.

    Returns:
        None if the recording is cut at a pause.
    """
    whole = _whole(recognizer, samples)
    if whole is None:
        return None
    logits, piece = whole
    posteriors = softmax(logits).astype(np.float32)  # (T', C)
    acoustic = recognizer.acoustic
    start = piece.start - piece.padding
    return Inspection(posteriors, acoustic.vocabulary.tokens, acoustic.frame_seconds, start)


def _whole(recognizer: Recognizer, samples: np.ndarray) -> tuple[np.ndarray, Piece] | None:
    """Logits (T', C) of a recording that is recognised in one piece, and the piece; else None."""
    stretches = list(speech_stretches([samples], recognizer.sample_rate))
    if len(stretches) != 1:
        return None
    piece = recognizer.piece(stretches[0].start / recognizer.sample_rate, stretches[0].samples)
    logits, lengths = recognizer.acoustic.logits([piece.features])
    return logits[0, : lengths[0]], piece
