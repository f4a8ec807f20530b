"""Computes the probability that a phrase was spoken, by logistic regression on the scores of its search.

Two questions are separate: whether a phrase of the list was spoken at all, and which one. Only the first
decides about acceptance, so phrases that resemble each other are accepted as readily as others.
"""

import math
from dataclasses import dataclass

# The inputs of the regression are clipped at these limits, beyond which more evidence changes nothing.
LOWEST_WORST, LOWEST_ABSOLUTE = -11.0, -20.0
# Logistic regression on dev speakers: python -m benchmarks.recognition.phrases --fit
BIAS = 0.519
WEIGHTS = {"worst": 0.677, "absolute": 0.401, "syllables": 5.732}
SHARPNESS = 0.95
"""Factor of the scores before the softmax over the phrases of the list, by the same command."""


@dataclass(frozen=True)
class Evidence:
    """What distinguishes a spoken phrase from others. Scores are natural logarithms of best paths.

    Attributes:
        ratio: score of the phrase minus that of the best free syllables, for each syllable; at most 0.
        worst: score of a frame minus that of its best class; the lowest of all frames. It is low for a phrase
            with one wrong or missing syllable, and for speech before or after the phrase.
        absolute: score of the phrase for each syllable. It is low for noise, where all syllables are
            improbable.
        syllables: number of syllables.
        share: posterior of this phrase given that one of the list was spoken, from the scores of all.
    """

    ratio: float
    worst: float
    absolute: float
    syllables: int
    share: float

    def features(self) -> dict[str, float]:
        """The inputs of the logistic regression."""
        return {
            "worst": max(self.worst, LOWEST_WORST),
            "absolute": max(self.absolute, LOWEST_ABSOLUTE),
            "syllables": math.log(self.syllables),
        }

    @property
    def listed(self) -> float:
        """Probability from 0 to 1 that a phrase of the list was spoken, if half of all speech is listed."""
        logit = BIAS + sum(WEIGHTS[name] * value for name, value in self.features().items())
        return 1 / (1 + math.exp(-max(-50.0, min(logit, 50.0))))

    @property
    def confidence(self) -> float:
        """Probability from 0 to 1 that this phrase was spoken."""
        return self.listed * self.share
