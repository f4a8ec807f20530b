"""Estimates the probability that a recognised segment contains no speech.

It is a logistic regression on outputs of the acoustic model for the segment: the mean log-odds of the
syllables, the mean entropy of all frames, and the number of syllables per second.
"""

import math

from recognition.confidence import FEATURES
from utils.hypotheses.recognition import Recognition

# Fitted on dev speakers and generated sounds, with an earlier acoustic model. With later ones, none of the
# generated sounds gives a text: there is nothing to fit (benchmarks/recognition/no_speech.py).
BIAS = 2.995
WEIGHTS = {"posterior": -0.730, "entropy": -7.161, "rate": -5.014}
NO_SPEECH = 0.6
"""A segment with at least this probability has no text: few and uncertain syllables, such as tones give."""
WITHOUT_SYLLABLES = 0.99  # the probability for a segment without a syllable


def no_speech_probability(segment: Recognition) -> float:
    """Probability that a segment contains no speech, 0 to 1."""
    if segment.certainty is None or not len(segment.certainty):
        return WITHOUT_SYLLABLES if not segment.times else 0.0
    logit = BIAS + sum(WEIGHTS[name] * value for name, value in features(segment).items())
    return 1.0 / (1.0 + math.exp(-max(-50.0, min(logit, 50.0))))


def features(segment: Recognition) -> dict[str, float]:
    """The inputs of the regression for a segment with syllables."""
    assert segment.certainty is not None  # there are syllables
    means = dict(zip(FEATURES, segment.certainty[:, : len(FEATURES)].mean(axis=0).tolist(), strict=True))
    return {
        "posterior": means["utterance_posterior"],
        "entropy": means["utterance_entropy"],
        "rate": len(segment.times) / max(segment.end - segment.start, 1e-3),
    }
