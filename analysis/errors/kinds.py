"""Aligned pairs of syllables and of hanzi in, kinds of errors out.

Every pair that isn't right has exactly one kind, so that the kinds add up to the edits of the alignment:
insertions and deletions are kinds of their own, all others are substitutions.
"""

from __future__ import annotations

import unicodedata

from analysis.errors.alignment import Pair
from analysis.errors.phonology import differs_by_tone_only, is_polyphone, readings, readings_in_use
from analysis.inputs.training_texts import Training
from utils.mandarin.pinyin import is_hanzi
from utils.mandarin.syllable_distance import NEAR, parts, syllable_distance

INSERTION, DELETION = "insertion", "deletion"
# Which of a syllable's (initial, final, tone) are wrong in a substitution.
EVERYTHING = "everything"
SUBSTITUTIONS = {
    (False, False, True): "tone only",
    (True, False, False): "initial only",
    (False, True, False): "final only",
    (True, False, True): "initial and tone",
    (False, True, True): "final and tone",
    (True, True, False): "initial and final",
    (True, True, True): EVERYTHING,
}
SYLLABLE_ERRORS = (*SUBSTITUTIONS.values(), INSERTION, DELETION)

NUMBER_OR_LATIN = "number or Latin form"
VARIANT = "variant character"
UNKNOWN_HANZI = "out-of-vocabulary hanzi"
NOT_IN_LEXICON = "not in the lexicon"
POLYPHONE = "polyphone read wrongly"
HOMOPHONE = "exact homophone"
HOMOPHONE_BUT_TONE = "homophone but for the tone"
NEAR_HOMOPHONE = "near homophone"
OTHER_HANZI = "other hanzi"
# In the order in which they are tried: the first that holds is the kind.
HANZI_SUBSTITUTIONS = (
    NUMBER_OR_LATIN,
    VARIANT,
    UNKNOWN_HANZI,
    NOT_IN_LEXICON,
    HOMOPHONE,
    POLYPHONE,
    HOMOPHONE_BUT_TONE,
    NEAR_HOMOPHONE,
    OTHER_HANZI,
)
HANZI_ERRORS = (*HANZI_SUBSTITUTIONS, INSERTION, DELETION)

# Characters that are written one for another, by spelling and not by sound: the same word in two forms, or
# words that only grammar tells apart. For traditional characters in general see
# analysis.inputs.normalisation.
VARIANT_SETS = (
    "馀余", "的地得", "他她它牠祂", "做作", "你妳", "着著", "象像", "帐账", "唯惟", "于於", "订定", "并並",
    "布佈", "采採", "台臺", "志誌", "周週", "占佔", "托託", "叠迭", "熔溶", "唉哎",
)  # fmt: skip
# One digit in its forms: number words, words for counting, capitals against forgery.
DIGIT_FORMS = ("零〇", "一壹幺", "二两贰", "三叁", "四肆", "五伍", "六陆", "七柒", "八捌", "九玖", "十拾",
               "百佰", "千仟")  # fmt: skip


def syllable_error(pair: Pair) -> str | None:
    """The kind of a syllable pair's error, one of :data:`SYLLABLE_ERRORS`; None for a right pair.

    A token that is no syllable differs from all others in everything.
    """
    if not pair.substituted:
        return _right_or_alone(pair)
    return syllable_difference(pair.reference or "", pair.hypothesis or "")


def syllable_difference(said: str, heard: str) -> str | None:
    """In what two syllables differ, one of :data:`SYLLABLE_ERRORS`; None if in nothing."""
    if said == heard:
        return None
    a, b = parts(said), parts(heard)
    if a is None or b is None:
        return EVERYTHING
    return SUBSTITUTIONS[a.initial != b.initial, a.final != b.final, a.tone != b.tone]


def hanzi_error(pair: Pair, said: str = "", heard: str = "", training: Training | None = None) -> str | None:
    """The kind of a hanzi pair's error, one of :data:`HANZI_ERRORS`; None for a right pair.

    The first of these that holds:

    - number or Latin form: one side is no hanzi, or both write the same digit
    - variant character: both are in one set of :data:`VARIANT_SETS`, or the same but for Unicode's form
    - out-of-vocabulary hanzi: the second stage can't write the right one at all
    - not in the lexicon: it can't write it for the right syllable
    - exact homophone: the same syllable
    - polyphone read wrongly: heard was another reading, in use, of the right hanzi
    - homophone but for the tone: the same syllable in another tone
    - near homophone: a distance of 40 at most (:mod:`analysis.errors.phonology`)
    - other hanzi

    Args:
        pair: of an alignment of hanzi.
        said: the reference's syllable at this place; empty: any that the dictionary has.
        heard: the syllable from which the wrong hanzi was made; empty: the nearest that the dictionary has.
        training: what the second stage can write, if known.
    """
    if not pair.substituted:
        return _right_or_alone(pair)
    right, wrong = pair.reference or "", pair.hypothesis or ""
    if not (is_hanzi(right) and is_hanzi(wrong)) or _together(right, wrong, DIGIT_FORMS):
        return NUMBER_OR_LATIN
    if _is_variant(right, wrong):
        return VARIANT
    if training and training.hanzi is not None and right not in training.hanzi:
        return UNKNOWN_HANZI
    if training and training.candidates and said and right not in training.candidates(said):
        return NOT_IN_LEXICON
    return _by_sound(right, *_nearest(right, wrong, said, heard))


def _by_sound(right: str, said: str, heard: str) -> str:
    if not said or not heard:
        return OTHER_HANZI
    if said == heard:
        return HOMOPHONE
    if heard in readings_in_use(right) and is_polyphone(right) and not heard.endswith("5"):
        return POLYPHONE
    if differs_by_tone_only(said, heard):
        return HOMOPHONE_BUT_TONE
    return NEAR_HOMOPHONE if syllable_distance(said, heard) <= NEAR else OTHER_HANZI


def _nearest(right: str, wrong: str, said: str, heard: str) -> tuple[str, str]:
    """The syllables of two hanzi: as given, else those of their readings that sound most alike."""
    ours = (said,) if parts(said) else readings(right)
    theirs = (heard,) if parts(heard) else readings(wrong)
    pairs = [(a, b) for a in ours for b in theirs]
    return min(pairs, key=lambda pair: syllable_distance(*pair), default=("", ""))


def _is_variant(one: str, other: str) -> bool:
    same_form = unicodedata.normalize("NFKC", one) == unicodedata.normalize("NFKC", other)
    return same_form or _together(one, other, VARIANT_SETS)


def _together(one: str, other: str, sets: tuple[str, ...]) -> bool:
    return any(one in characters and other in characters for characters in sets)


def _right_or_alone(pair: Pair) -> str | None:
    if pair.right:
        return None
    return INSERTION if pair.reference is None else DELETION
