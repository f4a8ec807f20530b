"""A hanzi's place in the alignment, with its syllables, in; which stage is to blame for it, out.

The question is asked by replacing: the second stage has also converted the true syllables (the gold pass), so
that it is known what it would have written, had the first stage made no error.

============  ==========================================================================================
label         the first stage heard what was really said, or what the dictionary reads, and the reference's
              pinyin says otherwise; or that pinyin is no reading of its hanzi, and the second stage failed
search        the stage that would be to blame gives the reference a better score than its own output: its
              search missed it
acoustic      from the true syllables the right hanzi comes out: also where the syllable here is right, and
              a wrong one nearby misled the second stage; and all that is too much, since the second stage
              writes one hanzi a syllable
language      the syllable is right, and from the true syllables the hanzi is wrong too
both          the syllable is wrong, and the true one would not have helped
repaired      the syllable is wrong and the hanzi right: no error, counted beside them
============  ==========================================================================================

The first that holds, in this order. Without a gold pass, an error is the second stage's if its own syllable
is right, else the first stage's, and there is no ``both``.

Search is asked for a whole utterance, of the model that searched. The first stage missed the reference where
log P(reference syllables | audio) is above that of its output (summed over all alignments, with what a fused
language model adds); its search then takes the place of ``acoustic``. The second stage missed it where, for
the true syllables, log P(reference hanzi) is above that of the gold pass's hanzi; its search then takes the
place of ``language``: an error that true syllables don't mend is one of the gold pass too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from analysis.errors.alignment import Pair
from analysis.errors.phonology import readings
from analysis.inputs.utterance_results import Scores, UtteranceResult, as_tokens
from utils.errors import CorpusError
from utils.mandarin.pinyin import hanzi_to_pinyin
from utils.mandarin.syllable_distance import NEUTRAL, parts

ACOUSTIC, LANGUAGE, BOTH, SEARCH, LABEL = "acoustic", "language", "both", "search", "label"
REPAIRED = "repaired"
BLAMED = (ACOUSTIC, LANGUAGE, BOTH, SEARCH, LABEL)
ATTRIBUTIONS = (*BLAMED, REPAIRED)
# By how much (natural log) the reference must score better: less is the rounding of two computations.
LEAST_GAIN = 1e-3


@dataclass(frozen=True, slots=True)
class Blame:
    """What attribution knows of one utterance.

    Attributes:
        gold_right: of each reference hanzi, whether the gold pass wrote it; empty without a gold pass.
        missed_speech, missed_language: the stage's search missed the reference.
    """

    utterance: UtteranceResult
    gold_right: tuple[bool, ...]
    missed_speech: bool
    missed_language: bool


def blame_of(utterance: UtteranceResult) -> Blame:
    """Gather what is known of an utterance with hanzi on both sides."""
    gold: tuple[bool, ...] = ()
    reference, written = as_tokens(utterance.reference_hanzi), as_tokens(utterance.gold_hanzi)
    if len(written) == len(reference):
        gold = tuple(a == b for a, b in zip(reference, written, strict=True))
    return Blame(
        utterance=utterance,
        gold_right=gold,
        missed_speech=_missed(utterance.speech_scores),
        missed_language=_missed(utterance.language_scores),
    )


def attribute(pair: Pair, blame: Blame) -> str | None:
    """Who is to blame, one of :data:`ATTRIBUTIONS`; None for a right hanzi from a right syllable.

    Args:
        pair: of the alignment of an utterance's hanzi; both sides have one hanzi a syllable.
        blame: of this utterance.
    """
    said = _at(blame.utterance.reference_pinyin, pair.reference_position)
    heard = _at(blame.utterance.pinyin, pair.hypothesis_position)
    if pair.right:
        return None if said == heard else REPAIRED
    if _is_label(pair, said, heard, blame):
        return LABEL
    stage = _stage(pair, said == heard, blame)
    if (stage == ACOUSTIC and blame.missed_speech) or (stage == LANGUAGE and blame.missed_language):
        return SEARCH
    return stage


def is_plausible(hanzi: str, syllable: str) -> bool:
    """Whether a corpus may write ``syllable`` for ``hanzi``: a reading of it, or what connected speech makes
    of one (neutral, sandhi of 一 不 and of third tones, erhua).
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


@lru_cache(maxsize=200_000)
def citation(hanzi: str) -> tuple[str, ...]:
    """How pypinyin reads a text; nothing if it holds anything but hanzi."""
    try:
        return tuple(hanzi_to_pinyin(hanzi))
    except CorpusError:
        return ()


def _stage(pair: Pair, heard_right: bool, blame: Blame) -> str:
    if pair.reference_position is None:
        return ACOUSTIC
    heard_right = heard_right and pair.hypothesis is not None
    if not blame.gold_right:
        return LANGUAGE if heard_right else ACOUSTIC
    if blame.gold_right[pair.reference_position]:
        return ACOUSTIC
    return LANGUAGE if heard_right else BOTH


def _is_label(pair: Pair, said: str, heard: str, blame: Blame) -> bool:
    if not pair.substituted:
        return False
    if said == heard:
        return not is_plausible(pair.reference or "", said)
    utterance = blame.utterance
    spoken = utterance.spoken_pinyin or citation("".join(utterance.reference_hanzi))
    return _at(spoken, pair.reference_position) == heard


def _missed(scores: Scores | None) -> bool:
    return scores is not None and scores.reference > scores.output + LEAST_GAIN


def _at(tokens: Sequence[str], position: int | None) -> str:
    return tokens[position] if position is not None and position < len(tokens) else ""
