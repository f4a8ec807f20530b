"""Computes the probability that a phrase was said, by logistic regression on the scores of its search."""

import math
from dataclasses import dataclass

# The inputs of the regression are clipped at these limits, beyond which more evidence changes nothing.
LARGEST_MARGIN = 3.0
LOWEST_WORST, LOWEST_ABSOLUTE = -15.0, -20.0
# Logistic regression on dev speakers: python -m benchmarks.recognition.phrases --fit
BIAS = 0.058
WEIGHTS = {"worst": 0.284, "margin": 0.344, "absolute": 0.473, "syllables": 2.238}


@dataclass(frozen=True)
class Evidence:
    """What tells a phrase that was said from others. Scores are natural logarithms of best paths.

    Attributes:
        ratio: score of the phrase minus that of the best free syllables, for each syllable; at most 0.
        worst: score of a frame minus that of its best class; the lowest of all frames. It tells a phrase with
            one wrong or missing syllable, and speech before or after the phrase.
        margin: score of the phrase minus that of the best phrase with another pronunciation.
        absolute: score of the phrase for each syllable. It tells noise, where all syllables are improbable.
        syllables: number of syllables.
    """

    ratio: float
    worst: float
    margin: float
    absolute: float
    syllables: int

    def features(self) -> dict[str, float]:
        """The inputs of the logistic regression."""
        return {
            "worst": max(self.worst, LOWEST_WORST),
            "margin": max(-LARGEST_MARGIN, min(self.margin, LARGEST_MARGIN)),
            "absolute": max(self.absolute, LOWEST_ABSOLUTE),
            "syllables": math.log(self.syllables),
        }


def confidence(evidence: Evidence) -> float:
    """Probability from 0 to 1 that the phrase was said: as often right as it says, on the dev speakers."""
    features = evidence.features()
    logit = BIAS + sum(weight * features[name] for name, weight in WEIGHTS.items())
    return 1 / (1 + math.exp(-max(-50.0, min(logit, 50.0))))
