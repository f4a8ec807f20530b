"""Attributes a wrong hanzi to the part of the pipeline that caused it: acoustic, language, search or label.

The first stage recognises syllables, the second converts them to hanzi. The second stage also converts the
reference syllables (the gold pass): its output shows which errors remain without any acoustic error. The
first cause that applies is taken, in this order:

============  ==========================================================================================
unknown       a token has no syllable: a Latin word, a number, or a text with more or fewer syllables than
              hanzi
label         the recognised syllable is what was really spoken, or a dictionary reading, but the pinyin of
              the reference differs; or that pinyin is not a reading of its hanzi and the second stage failed
search        the stage that would be responsible scores the reference better than its own output: its
              search did not find the reference
acoustic      the gold pass writes the hanzi correctly. This includes correct syllables that were converted
              wrongly because of a wrong syllable nearby, and all insertions: the second stage writes one
              hanzi a syllable
language      the syllable is correct, and the gold pass writes the hanzi wrongly too
both          the syllable is wrong, and the gold pass writes the hanzi wrongly too
repaired      the syllable is wrong and the hanzi correct: not an error, counted separately
============  ==========================================================================================

Without a gold pass, an error is attributed to the second stage if its own syllable is correct, else to the
first stage; ``both`` does not occur.

Search errors are found for whole utterances. The search of the first stage failed where
log P(reference syllables | audio) is above that of its output (summed over all alignments, with the scores of
a fused language model); ``search`` then replaces ``acoustic``. The search of the second stage failed where,
for the reference syllables, log P(reference hanzi) is above that of the gold pass's hanzi. There ``search``
replaces ``language``, because an error that reference syllables do not correct is an error of the gold pass
too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from analysis.errors.alignment import Pair
from analysis.errors.kinds import readings
from analysis.inputs.normalisation import automatic_pinyin
from analysis.inputs.utterance_results import Scores, UtteranceResult
from utils.mandarin.syllable_distance import NEUTRAL, parts

ACOUSTIC, LANGUAGE, BOTH, SEARCH, LABEL = "acoustic", "language", "both", "search", "label"
UNKNOWN = "unknown"
REPAIRED = "repaired"
CAUSES = (ACOUSTIC, LANGUAGE, BOTH, SEARCH, LABEL, UNKNOWN)
ATTRIBUTIONS = (*CAUSES, REPAIRED)
# The difference of log-probabilities (natural logarithm) above which the reference is scored better; smaller
# differences may be rounding.
MIN_SCORE_GAIN = 1e-3


@dataclass(frozen=True, slots=True)
class UtteranceEvidence:
    """What decides the cause of the errors of one utterance.

    Attributes:
        utterance: recognition result of the utterance, by token.
        gold_correct: for each reference hanzi, whether the gold pass wrote it; empty without a gold pass.
        speech_search_failed, language_search_failed: the stage's search did not find the reference.
    """

    utterance: UtteranceResult
    gold_correct: tuple[bool, ...]
    speech_search_failed: bool
    language_search_failed: bool


def utterance_evidence(utterance: UtteranceResult) -> UtteranceEvidence:
    """Collect the evidence of an utterance from :func:`analysis.inputs.utterance_results.by_token`."""
    gold_pass = zip(utterance.reference_hanzi, utterance.gold_hanzi, strict=False)  # there may be none
    return UtteranceEvidence(
        utterance=utterance,
        gold_correct=tuple(hanzi == gold for hanzi, gold in gold_pass),
        speech_search_failed=_reference_scores_better(utterance.speech_scores),
        language_search_failed=_reference_scores_better(utterance.language_scores),
    )


def attribute(pair: Pair, evidence: UtteranceEvidence) -> str | None:
    """The cause of an error, one of :data:`ATTRIBUTIONS`; None for a correct hanzi of a correct syllable.

    Args:
        pair: aligned tokens of an utterance.
        evidence: evidence of this utterance.
    """
    true_syllable = token_at(evidence.utterance.reference_pinyin, pair.reference_position)
    syllable = token_at(evidence.utterance.pinyin, pair.hypothesis_position)
    without_syllable = bool(pair.reference and not true_syllable) or bool(pair.hypothesis and not syllable)
    if pair.is_correct:
        return None if true_syllable == syllable or without_syllable else REPAIRED
    if without_syllable:
        return UNKNOWN
    if _is_label_error(pair, true_syllable, syllable, evidence):
        return LABEL
    stage = _responsible_stage(pair, true_syllable == syllable, evidence)
    failed = {ACOUSTIC: evidence.speech_search_failed, LANGUAGE: evidence.language_search_failed}
    return SEARCH if failed.get(stage) else stage


def is_plausible(hanzi: str, syllable: str) -> bool:
    """Whether a corpus may transcribe ``hanzi`` by ``syllable``.

    Plausible are its readings and their forms in connected speech: neutral tone, erhua, and the tone sandhi
    of 一, 不 and third tones.
    """
    known, given = readings(hanzi), parts(syllable)
    if not known or given is None or syllable in known:
        return True
    final = given.final[:-1] if given.final.endswith("r") and given.final != "er" else given.final
    for reading in filter(None, map(parts, known)):
        if (reading.initial, reading.final) != (given.initial, final):
            continue
        sandhi = hanzi in ("一", "不") or (reading.tone, given.tone) == (3, 2)
        if given.tone in (reading.tone, NEUTRAL) or sandhi or reading.tone == NEUTRAL:
            return True
    return False


_dictionary_pinyin = lru_cache(maxsize=200_000)(automatic_pinyin)


def _responsible_stage(pair: Pair, same_syllable: bool, evidence: UtteranceEvidence) -> str:
    if pair.reference_position is None:
        return ACOUSTIC
    syllable_is_correct = same_syllable and pair.hypothesis is not None
    if not evidence.gold_correct:
        return LANGUAGE if syllable_is_correct else ACOUSTIC
    if evidence.gold_correct[pair.reference_position]:
        return ACOUSTIC
    return LANGUAGE if syllable_is_correct else BOTH


def _is_label_error(pair: Pair, true_syllable: str, syllable: str, evidence: UtteranceEvidence) -> bool:
    if not pair.is_substitution:
        return False
    if true_syllable == syllable:
        return not is_plausible(pair.reference or "", true_syllable)
    utterance = evidence.utterance
    spoken = utterance.spoken_pinyin or _dictionary_pinyin(tuple(utterance.reference_hanzi))
    return token_at(spoken, pair.reference_position) == syllable


def _reference_scores_better(scores: Scores | None) -> bool:
    return scores is not None and scores.reference > scores.output + MIN_SCORE_GAIN


def token_at(tokens: Sequence[str], position: int | None) -> str:
    """The token at a position; ``""`` without a position or without tokens."""
    return tokens[position] if position is not None and position < len(tokens) else ""
