"""Error rates of recognised utterances, for benchmarks that compare settings of a search."""

from collections.abc import Sequence

from data.manifest import Utterance
from model_language.search.joint import JointHypothesis
from utils.metrics import count_errors, total


def joint_error_rates(
    utterances: Sequence[Utterance], found: Sequence[Sequence[JointHypothesis]]
) -> tuple[float, float]:
    """Tonal syllable error rate and CER of the best hypothesis of each utterance.

    Args:
        utterances: the references.
        found: hypotheses of each utterance, the best first, at least one.
    """
    pairs = [(utterance, hypotheses[0]) for utterance, hypotheses in zip(utterances, found, strict=True)]
    syllables = total(count_errors(utterance.pinyin, best.pinyin) for utterance, best in pairs).rate
    return syllables, total(count_errors(utterance.hanzi, best.hanzi) for utterance, best in pairs).rate
