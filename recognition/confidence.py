"""Computes the confidence of a recognised syllable: the probability that it is right, by logistic regression.

The posterior of a syllable is not calibrated: CTC models are overconfident. A logistic regression, fitted on
dev speakers, computes the confidence from the posterior, from the entropy of the frames around the syllable's
peak, which for CTC separates correct from wrong syllables better than the highest probability (Laptev and
Ginsburg, "Fast entropy-based methods of word-level confidence estimation", arXiv:2212.08703), and from the
means of both over the utterance. The joint search adds how well the hanzi fit their syllables and their
neighbours. ``python -m recognition.calibrate`` fits it and writes ``confidence.json`` into the speech run.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.special import expit

from utils.errors import RunError
from utils.run_folder.checksums import verified
from utils.run_folder.run import RunFolder

PLAIN, JOINT, JOINT_NGRAM = "plain", "joint", "joint_ngram"
"""The kinds of search: syllables alone, syllables and hanzi together, and that with n-grams of hanzi."""
FEATURES = ("posterior", "entropy", "utterance_posterior", "utterance_entropy")
HANZI_FEATURES = ("gap", "context", "emission", "agreement")
FEATURES_OF = {PLAIN: FEATURES, JOINT: FEATURES, JOINT_NGRAM: (*FEATURES, *HANZI_FEATURES)}
"""The inputs of the regression for each kind of search, see :func:`syllable_features`."""
_REACH = 1  # output frames on both sides of a peak
_CLOSEST = 1e-4  # smallest distance of a probability from 0 and 1, so that its logit is finite


def frame_entropy(logits: np.ndarray) -> np.ndarray:
    """(T', C) logits, valid frames only → (T',) entropy of each frame, as a fraction of its maximum."""
    shifted = logits - logits.max(axis=1, keepdims=True)
    exponentials = np.exp(shifted)
    total = exponentials.sum(axis=1, dtype=np.float64)
    # -Σ p log p with p = exp(shifted) / total
    entropy = np.log(total) - np.einsum("tc,tc->t", exponentials, shifted) / total
    return entropy / np.log(logits.shape[1])


def syllable_features(
    frames: Sequence[int],
    posteriors: Sequence[float],
    entropy: np.ndarray,
    hanzi: np.ndarray | None = None,
) -> np.ndarray:
    """The inputs of the regression for each syllable of an utterance.

    Args:
        frames: output frame of each syllable's peak.
        posteriors: the acoustic model's probability of each syllable. Not the highest one of its frame: a
            language model may have chosen another syllable than the acoustic model.
        entropy: (T',) of all frames of the utterance, see :func:`frame_entropy`.
        hanzi: (syllables, :data:`HANZI_FEATURES`): how much less probable the syllable is than the best one
            of its slot, :meth:`model_language.search.joint.JointSearch.evidence`, and :func:`log_odds` of the
            fraction of all hypotheses that have its hanzi.

    Returns:
        (syllables, :data:`FEATURES`, then :data:`HANZI_FEATURES` if they are given) float64.
    """
    if not len(frames):
        return np.zeros((0, len(FEATURES if hanzi is None else FEATURES_OF[JOINT_NGRAM])))
    logits = log_odds(posteriors)
    entropies = [entropy[max(frame - _REACH, 0) : frame + _REACH + 1].mean() for frame in frames]
    whole = np.full((len(frames), 2), (logits.mean(), entropy.mean()))
    return np.column_stack([logits, entropies, whole, *([] if hanzi is None else [hanzi])])


def log_odds(probabilities: Sequence[float]) -> np.ndarray:
    """log(p / (1 - p)) of probabilities (n,), which are first clipped to a small distance from 0 and 1."""
    clipped = np.clip(np.asarray(probabilities, float), _CLOSEST, 1.0 - _CLOSEST)
    return np.log(clipped / (1.0 - clipped))


@dataclass(frozen=True)
class Calibration:
    """Logistic regressions by kind of search.

    Attributes:
        weights: kind → the weights of its :data:`FEATURES_OF`, then the offset.
        lead_seconds: time from the peak of a syllable to its middle. One CTC model emits a syllable where it
            begins, another one in its middle.
    """

    weights: Mapping[str, tuple[float, ...]]
    lead_seconds: float = 0.0

    def confidence(self, kind: str, features: np.ndarray) -> tuple[float, ...]:
        """Probability that each syllable is right; () for a search that was not calibrated.

        Args:
            kind: the kind of search.
            features: (syllables, features) float, those of :data:`FEATURES_OF`.
        """
        if not self.covers(kind):
            return ()
        *slopes, offset = self.weights[self._nearest(kind)]
        return tuple(expit(features[:, : len(slopes)] @ np.array(slopes) + offset).tolist())

    def covers(self, kind: str) -> bool:
        """Whether there are weights for a kind of search."""
        return self._nearest(kind) in self.weights

    def _nearest(self, kind: str) -> str:
        return JOINT if kind == JOINT_NGRAM and kind not in self.weights else kind


def load_calibration(run: Path) -> Calibration:
    """Read the calibration of a speech run; without one no confidences are computed.

    Raises:
        RunError: the file is damaged or changed.
    """
    path = RunFolder(run).confidence
    if not path.is_file():
        return Calibration({})
    try:
        content = json.loads(verified(path).read_text(encoding="utf-8"))
        found = {
            kind: tuple(float(values[name]) for name in (*FEATURES_OF[kind], "offset"))
            for kind, values in content["weights"].items()
        }
        lead_seconds = float(content["lead_seconds"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise RunError(
            "the calibration of the confidences is damaged",
            where=path,
            hint="to write it again: python -m recognition.calibrate RUN --manifest dev.tsv",
        ) from error
    return Calibration(found, lead_seconds)
