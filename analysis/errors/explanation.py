"""What a test recognised, and the models that did it, in; outcomes with what explains their errors out.

The models are known only by what they can be asked (protocols); they come from the script that runs the test.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Protocol

import numpy as np

from analysis.inputs.noise import signal_to_noise
from analysis.inputs.utterance_results import Scores, UtteranceResult
from data.manifest import Utterance
from utils.audio.reading import read_audio
from utils.hypotheses.recognition import Recognition


class SpeechScorer(Protocol):
    """The first stage, e.g. ``recognition.recognizer.Recognizer``."""

    sample_rate: int  # Hz

    def scores(self, samples: np.ndarray, sequences: Sequence[Sequence[str]]) -> list[float] | None:
        """Log-probabilities of sequences of syllables for one recording; None if it can't be told."""


class HanziScorer(Protocol):
    """The second stage, e.g. ``model_language.converters.ngram.NgramConverter``."""

    def scores(self, sentences: Sequence[Sequence[str]], hanzi: Sequence[Sequence[str]]) -> list[float]:
        """Log-probabilities of given hanzi for given syllables; -inf for what can't be written."""


def utterance_result(utterance: Utterance, output: Recognition) -> UtteranceResult:
    """What was recognised beside what was said."""
    return UtteranceResult(
        id=utterance.id,
        speaker=utterance.speaker,
        seconds=output.seconds,
        reference_pinyin=utterance.pinyin,
        pinyin=output.pinyin,
        reference_hanzi=utterance.hanzi,
        hanzi=output.hanzi,
        spoken_pinyin=utterance.spoken_pinyin,
        n_best=output.n_best if len(output.n_best) > 1 else (),
        audio=str(utterance.audio),
        times=output.times,
    )


def listened(outcome: UtteranceResult, scorer: SpeechScorer) -> UtteranceResult:
    """Add what only the recording tells: its noise and, where the output is wrong, how truth and it score.

    Raises:
        AudioError: the recording can't be read any more.
    """
    samples, scores = read_audio(outcome.audio, scorer.sample_rate), None
    if outcome.pinyin != outcome.reference_pinyin:
        scores = scorer.scores(samples, (outcome.reference_pinyin, outcome.pinyin))
    return dataclasses.replace(
        outcome,
        snr=signal_to_noise(samples, scorer.sample_rate),
        speech_scores=Scores(*scores) if scores else None,
    )


def with_gold_hanzi(outcomes: Iterable[UtteranceResult], hanzi: Iterable[str]) -> list[UtteranceResult]:
    """Add what the second stage writes for the true syllables."""
    pairs = zip(outcomes, hanzi, strict=True)
    return [dataclasses.replace(outcome, gold_hanzi=output) for outcome, output in pairs]


def with_language_scores(outcomes: Sequence[UtteranceResult], scorer: HanziScorer) -> list[UtteranceResult]:
    """Add how the second stage rates the true hanzi and its own, both for the true syllables.

    Args:
        outcomes: with gold hanzi; those in which these are right need no scores.
        scorer: the stage that wrote them.
    """
    wrong = [i for i, one in enumerate(outcomes) if one.gold_hanzi != one.reference_hanzi]
    syllables = [outcomes[i].reference_pinyin for i in wrong]
    references = scorer.scores(syllables, [outcomes[i].reference_hanzi for i in wrong])
    outputs = scorer.scores(syllables, [outcomes[i].gold_hanzi for i in wrong])
    scored = list(outcomes)
    for i, reference, output in zip(wrong, references, outputs, strict=True):
        scored[i] = dataclasses.replace(scored[i], language_scores=Scores(reference, output))
    return scored
