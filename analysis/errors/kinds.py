"""Classifies wrong pairs of aligned syllables or hanzi by kind: wrong tone, homophone, insertion ….

Each kind of error is one record (:class:`ErrorKind`) in :data:`SYLLABLE_KINDS` or :data:`HANZI_KINDS`: its
name, the sign that stands for it in alignments, when it applies, and an explanation for readers of a report.
An error has the first kind that applies, so that the counts of all kinds add up to the edits. A new kind is a
new record: files, tables and pages take names, signs and explanations from here.
"""

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache

from pypinyin import Style, pinyin
from pypinyin.constants import PHRASES_DICT

from analysis.errors.alignment import Pair
from analysis.inputs.training_texts import Training
from utils.mandarin.pinyin import is_hanzi, is_syllable, normalise_syllable
from utils.mandarin.syllable_distance import FARTHEST, NEAR, NEUTRAL, parts, syllable_distance

# A reading of a polyphone is common if at least this fraction of the phrases with the hanzi have it.
MIN_PHRASE_FRACTION = 0.02


@lru_cache(maxsize=1_000_000)
def hanzi_distance(first: str, second: str) -> int:
    """The distance between the most similar readings of two hanzi; 100 if one of them has no reading."""
    distances = (syllable_distance(a, b) for a in readings(first) for b in readings(second))
    return min(distances, default=FARTHEST)


@lru_cache(maxsize=50_000)
def readings(hanzi: str) -> tuple[str, ...]:
    """All readings of a hanzi in pypinyin's dictionary; empty for other characters."""
    if len(hanzi) != 1 or not is_hanzi(hanzi):
        return ()
    found = pinyin(hanzi, style=Style.TONE3, heteronym=True, errors="ignore", neutral_tone_with_five=True)
    if not found:
        return ()
    return tuple(dict.fromkeys(normalise_syllable(text) for text in found[0] if is_syllable(text)))


@lru_cache(maxsize=50_000)
def readings_in_use(hanzi: str) -> tuple[str, ...]:
    """The common readings of a hanzi: 大 is da4 (dai4 is rare, and left out), 行 is xing2 and hang2.

    Common are the first reading in the dictionary, and those of at least 2 % and at least two of its phrases
    with this hanzi.
    """
    counts = _phrase_readings().get(hanzi, Counter())
    minimum = max(2, MIN_PHRASE_FRACTION * sum(counts.values()))
    frequent = [reading for reading, count in counts.most_common() if count >= minimum]
    return tuple(dict.fromkeys([*readings(hanzi)[:1], *frequent]))


def is_polyphone(hanzi: str) -> bool:
    """Whether a hanzi has several common readings that are not in the neutral tone."""
    stressed = [reading for reading in readings_in_use(hanzi) if not reading.endswith(str(NEUTRAL))]
    return len(stressed) > 1


def differs_by_tone_only(first: str, second: str) -> bool:
    """Whether two syllables have the same initial and final and different tones."""
    a, b = parts(first), parts(second)
    return a is not None and b is not None and (a.initial, a.final) == (b.initial, b.final) and a != b


@cache
def _phrase_readings() -> dict[str, Counter[str]]:
    """The readings of each hanzi in pypinyin's phrases, with the number of phrases."""
    written: Counter[tuple[str, str]] = Counter()
    for phrase, spelled in PHRASES_DICT.items():
        if len(phrase) == len(spelled):
            written.update((hanzi, options[0]) for hanzi, options in zip(phrase, spelled, strict=True))
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for (hanzi, spelling), count in written.items():
        if is_syllable(spelling):
            counts[hanzi][normalise_syllable(spelling)] += count
    return counts


# Hanzi that are written for one another because of their form or by custom, not because of their sound: two
# forms of one word, or words that only grammar distinguishes. For traditional characters in general see
# analysis.inputs.normalisation.
VARIANT_SETS = (
    "馀余", "的地得", "他她它牠祂", "做作", "你妳", "着著", "象像", "帐账", "唯惟", "于於", "订定", "并並",
    "布佈", "采採", "台臺", "志誌", "周週", "占佔", "托託", "叠迭", "熔溶", "唉哎",
)  # fmt: skip
# The forms of each digit: numeral, counting form, and the capital form used against forgery.
DIGIT_FORMS = ("零〇", "一壹幺", "二两贰", "三叁", "四肆", "五伍", "六陆", "七柒", "八捌", "九玖", "十拾",
               "百佰", "千仟")  # fmt: skip
NOTHING_KNOWN = Training()


@dataclass(frozen=True)
class TokenError:
    """A wrong pair of tokens, as the kinds see it.

    Attributes:
        pair: aligned pair of syllables or of hanzi.
        reference_syllable, hypothesis_syllable: syllables of the two tokens; ``""`` if not known.
        training: what is known of the second stage (syllables to hanzi) and its training.
    """

    pair: Pair
    reference_syllable: str = ""
    hypothesis_syllable: str = ""
    training: Training = NOTHING_KNOWN

    @cached_property
    def wrong_parts(self) -> tuple[bool, bool, bool]:
        """Whether initial, final and tone differ; a token that is not a syllable differs in all of them."""
        a, b = parts(self.reference_syllable), parts(self.hypothesis_syllable)
        if a is None or b is None:
            return True, True, True
        return a.initial != b.initial, a.final != b.final, a.tone != b.tone

    def is_in_one_set(self, sets: Sequence[str]) -> bool:
        """Whether one of these sets of characters contains both tokens."""
        both = {self.pair.reference, self.pair.hypothesis}
        return any(both <= set(characters) for characters in sets)

    def is_variant(self) -> bool:
        """Whether both hanzi are variants of each other, or the same but for their Unicode form."""
        first, second = (unicodedata.normalize("NFKC", token) for token in _tokens(self))
        return first == second or self.is_in_one_set(VARIANT_SETS)

    def is_outside_lexicon(self) -> bool:
        """Whether the second stage cannot write the reference hanzi for its syllable."""
        candidates, syllable = self.training.candidates, self.reference_syllable
        if candidates is None or not syllable:
            return False
        return self.pair.reference not in candidates(syllable)

    def is_misread_polyphone(self) -> bool:
        """Whether the second syllable is another common reading of the reference hanzi."""
        hanzi, (_, syllable) = self.pair.reference or "", self.nearest_syllables
        return syllable in readings_in_use(hanzi) and is_polyphone(hanzi) and not syllable.endswith("5")

    @cached_property
    def nearest_syllables(self) -> tuple[str, str]:
        """The syllables of both hanzi; unknown ones are the readings that sound most similar."""
        reference, hypothesis = _tokens(self)
        firsts = (self.reference_syllable,) if parts(self.reference_syllable) else readings(reference)
        seconds = (self.hypothesis_syllable,) if parts(self.hypothesis_syllable) else readings(hypothesis)
        pairs = [(a, b) for a in firsts for b in seconds]
        return min(pairs, key=lambda pair: syllable_distance(*pair), default=("", ""))

    def is_homophone(self) -> bool:
        """Whether the two hanzi have a known reading in common."""
        first, second = self.nearest_syllables
        return bool(first) and first == second

    def is_near_homophone(self) -> bool:
        """Whether the two hanzi have known readings that sound similar."""
        first, second = self.nearest_syllables
        return bool(first) and syllable_distance(first, second) <= NEAR


@dataclass(frozen=True)
class ErrorKind:
    """One kind of error.

    Attributes:
        name: name of the kind in files, tables and pages.
        sign: short sign that stands for the name where there is little room.
        explanation: one sentence for readers of a report.
        applies: whether an error is of this kind, given that no kind before it applies.
    """

    name: str
    sign: str
    explanation: str
    applies: Callable[[TokenError], bool]


def _substitution_kind(name: str, sign: str, wrong_parts: tuple[bool, bool, bool]) -> ErrorKind:
    explanation = f"The syllables differ in {name.removesuffix(' only')}."
    return ErrorKind(name, sign, explanation, lambda error: error.wrong_parts == wrong_parts)


INSERTION = ErrorKind(
    "insertion",
    "+",
    "The hypothesis has a token where the reference has none.",
    lambda error: error.pair.reference is None,
)
DELETION = ErrorKind(
    "deletion",
    "−",
    "The reference has a token where the hypothesis has none.",
    lambda error: error.pair.hypothesis is None,
)
SYLLABLE_KINDS = (
    _substitution_kind("tone only", "T", (False, False, True)),
    _substitution_kind("initial only", "I", (True, False, False)),
    _substitution_kind("final only", "F", (False, True, False)),
    _substitution_kind("initial and tone", "IT", (True, False, True)),
    _substitution_kind("final and tone", "FT", (False, True, True)),
    _substitution_kind("initial and final", "IF", (True, True, False)),
    ErrorKind(
        "everything",
        "IFT",
        "The syllables differ in initial, final and tone, or one token is not a syllable.",
        lambda error: all(error.wrong_parts),
    ),
)
OUT_OF_VOCABULARY = ErrorKind(
    "out-of-vocabulary hanzi",
    "?",
    "The second stage cannot write the reference hanzi at all.",
    lambda error: error.training.hanzi is not None and error.pair.reference not in error.training.hanzi,
)
NOT_IN_LEXICON = ErrorKind(
    "not in the lexicon",
    "∉",
    "The second stage cannot write the reference hanzi for its syllable.",
    TokenError.is_outside_lexicon,
)
HANZI_KINDS = (
    ErrorKind(
        "number or Latin form",
        "#",
        "One side is not a hanzi, or both write the same digit in different forms.",
        lambda error: not all(map(is_hanzi, _tokens(error))) or error.is_in_one_set(DIGIT_FORMS),
    ),
    ErrorKind(
        "variant character",
        "≈",
        "Both are variants of one character, or words that only grammar distinguishes (的 地 得).",
        TokenError.is_variant,
    ),
    OUT_OF_VOCABULARY,
    NOT_IN_LEXICON,
    ErrorKind(
        "exact homophone",
        "=",
        "Another hanzi with the same syllable.",
        TokenError.is_homophone,
    ),
    ErrorKind(
        "polyphone read wrongly",
        "⇄",
        "The recognised syllable is another common reading of the reference hanzi.",
        TokenError.is_misread_polyphone,
    ),
    ErrorKind(
        "homophone but for the tone",
        "=T",
        "Another hanzi with the same syllable in another tone.",
        lambda error: differs_by_tone_only(*error.nearest_syllables),
    ),
    ErrorKind(
        "near homophone",
        "~",
        f"Another hanzi with a similar syllable (a distance of at most {NEAR} of 100).",
        TokenError.is_near_homophone,
    ),
    ErrorKind("other hanzi", "≠", "Another hanzi that sounds different.", lambda error: True),
)
KINDS = (*SYLLABLE_KINDS, *HANZI_KINDS, INSERTION, DELETION)
SYLLABLE_ERRORS = tuple(kind.name for kind in (*SYLLABLE_KINDS, INSERTION, DELETION))
HANZI_ERRORS = tuple(kind.name for kind in (*HANZI_KINDS, INSERTION, DELETION))


def syllable_error(pair: Pair) -> str | None:
    """The kind of error of a pair of syllables, one of :data:`SYLLABLE_ERRORS`; None for a correct pair."""
    return _first_kind(TokenError(pair, pair.reference or "", pair.hypothesis or ""), SYLLABLE_KINDS)


def syllable_difference(reference: str, hypothesis: str) -> str | None:
    """The kind of difference between two syllables; None if they are equal."""
    return syllable_error(Pair(reference, hypothesis, None, None))


def hanzi_error(
    pair: Pair, reference_syllable: str = "", hypothesis_syllable: str = "", training: Training | None = None
) -> str | None:
    """The kind of error of a pair of hanzi, one of :data:`HANZI_ERRORS`; None for a correct pair.

    Args:
        pair: aligned pair of hanzi.
        reference_syllable: the syllable of the reference hanzi; ``""``: any reading in the dictionary.
        hypothesis_syllable: the syllable from which the wrong hanzi was made; ``""``: of the readings in the
            dictionary, the nearest.
        training: what the second stage can write, if known.
    """
    return _first_kind(
        TokenError(pair, reference_syllable, hypothesis_syllable, training or NOTHING_KNOWN), HANZI_KINDS
    )


def _first_kind(error: TokenError, substitutions: Sequence[ErrorKind]) -> str | None:
    if error.pair.is_correct:
        return None
    kinds = substitutions if error.pair.is_substitution else (INSERTION, DELETION)
    return next(kind.name for kind in kinds if kind.applies(error))


def _tokens(error: TokenError) -> tuple[str, str]:
    return error.pair.reference or "", error.pair.hypothesis or ""
