"""Injects known errors into gold transcripts and returns the outputs and the injected changes.

At least two correct syllables are between errors: closer together, two errors may be equal to two
others, and no analysis could distinguish them.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache

from pypinyin.constants import PHRASES_DICT, PINYIN_DICT

from analysis.errors.kinds import DIGIT_FORMS, VARIANT_SETS
from analysis.inputs.utterance_results import UtteranceResult
from utils.mandarin.pinyin import hanzi_to_pinyin, is_syllable, normalise_syllable, split_syllable

GAP = 2  # correct syllables between errors, and at both ends of a sentence
POLYPHONES = {("行", "hang2"): "xing2", ("长", "chang2"): "zhang3", ("重", "zhong4"): "chong2"}
POLYPHONE_KINDS = {"xing2": "initial and final", "zhang3": "initial and tone", "chong2": "initial and tone"}
VARIANTS = {"的": "地", "地": "的", "他": "她", "做": "作", "作": "做", "象": "像"}
FIGURES = {"一": "1", "二": "2", "三": "3", "四": "4", "五": "5", "七": "7", "八": "8", "九": "9"}
SPECIAL = set("".join((*VARIANT_SETS, *DIGIT_FORMS)))


@dataclass(frozen=True)
class Change:
    """The change at one position: its new syllables and hanzi, and the resulting kinds of errors.

    ``gold`` is the conversion of the reference syllable; a kind is None without an error.
    """

    pinyin: tuple[str, ...]
    hanzi: str
    syllable_kind: str | None
    hanzi_kind: str | None
    attribution: str
    gold: str


Injector = Callable[[str, str, random.Random], Change | None]
Injected = list[tuple[int, Change]]  # of one utterance: reference position, change


def gold_outcomes(utterances: int, speakers: int = 12, seed: int = 0) -> list[UtteranceResult]:
    """Outcomes without errors: sentences of idioms and of words with the characters that injectors need."""
    rng = random.Random(seed)
    idioms = [phrase for phrase, _ in zip(_idioms(), range(4_000), strict=False)]
    words = ["银行", "长城", "重量", "他做", "一二三", "七八九", "四五", "大象", "的话", "作家", "土地"]
    outcomes = []
    for number in range(utterances):
        parts = [rng.choice(idioms if rng.random() < 0.6 else words) for _ in range(rng.randint(2, 9))]
        text = "".join(parts)
        pinyin = tuple(hanzi_to_pinyin(text, parts))
        seconds = len(text) / rng.uniform(1.5, 7.0)
        snr = rng.uniform(-3.0, 40.0)
        pitch = 80.0 + 5.0 * snr
        speaker = f"S{number % speakers:02}"
        outcomes.append(
            UtteranceResult(
                f"{speaker}-{number}", speaker, seconds, pinyin, pinyin, text, text, snr=snr, pitch=pitch
            )
        )
    return outcomes


def inject(
    outcomes: Sequence[UtteranceResult], kinds: Sequence[str], share: float, seed: int = 0
) -> tuple[list[UtteranceResult], list[Injected]]:
    """Inject errors of these kinds (of :data:`INJECTORS`, also insertions) into correct outcomes.

    Args:
        outcomes: only their references are used.
        kinds: kinds of errors, used as evenly as the texts allow.
        share: fraction of the possible positions that get an error.
        seed: seed of the random choices.

    Returns:
        the outcomes with errors, and the changes of each.
    """
    rng, used = random.Random(seed), Counter(dict.fromkeys(kinds, 0))
    pairs = [_inject(outcome, share, rng, used) for outcome in outcomes]
    return [outcome for outcome, _ in pairs], [injected for _, injected in pairs]


def _inject(
    outcome: UtteranceResult, share: float, rng: random.Random, used: Counter[str]
) -> tuple[UtteranceResult, Injected]:
    syllables, text = outcome.reference_pinyin, outcome.reference_hanzi
    injected: Injected = []
    free = GAP
    for position in range(len(text) - GAP):
        if position >= free and rng.random() < share:
            kind, change = _rarest(syllables[position], text[position], rng, used)
            around = text[position - GAP : position] + text[position + 1 : position + 1 + GAP]
            if text[position] not in around and not set(change.hanzi) & set(around):
                injected.append((position, change))
                used[kind] += 1
                free = position + GAP + 1
    pinyin, hanzi, gold = [(syllable,) for syllable in syllables], list(text), list(text)
    for position, change in injected:
        pinyin[position], hanzi[position], gold[position] = change.pinyin, change.hanzi, change.gold
    recognised = tuple(syllable for group in pinyin for syllable in group)
    return replace(outcome, pinyin=recognised, hanzi="".join(hanzi), gold_hanzi="".join(gold)), injected


def _rarest(spoken: str, hanzi: str, rng: random.Random, used: Counter[str]) -> tuple[str, Change]:
    """The change of the kind that was used least so far, among the kinds possible here."""
    changes = {kind: INJECTORS[kind](spoken, hanzi, rng) for kind in used}
    kind = min((kind for kind, change in changes.items() if change), key=used.__getitem__)
    return kind, changes[kind]


def _idioms() -> list[str]:
    return [
        phrase
        for phrase, spelled in PHRASES_DICT.items()
        if len(phrase) == len(spelled) == 4 and len(phrase.encode("gb2312", errors="ignore")) == 8
    ]


@cache
def _written() -> dict[str, tuple[str, ...]]:
    """Syllable → the GB 2312 hanzi that have only this reading and no variants."""
    found = defaultdict(list)
    for point, spelled in sorted(PINYIN_DICT.items()):
        readings = {normalise_syllable(reading) for reading in spelled.split(",") if is_syllable(reading)}
        if len(readings) == 1 and chr(point).encode("gb2312", errors="ignore") and chr(point) not in SPECIAL:
            found[readings.pop()].append(chr(point))
    return {syllable: tuple(characters) for syllable, characters in found.items()}


@cache
def _names() -> tuple[str, ...]:
    return tuple(sorted(_written()))


@cache
def _relatives(syllable: str, wrong: tuple[bool, bool, bool]) -> tuple[str, ...]:
    """Syllables of some hanzi that differ exactly in these parts (initial, final, tone)."""
    parts, found = split_syllable(syllable), []
    for name in _names():
        other = split_syllable(name)
        differs = (parts.initial != other.initial, parts.final != other.final, parts.tone != other.tone)
        if differs == wrong:
            found.append(name)
    return tuple(found)


def _misrecognised(kind: str, wrong: tuple[bool, bool, bool], hanzi_kind: str) -> Injector:
    def injector(syllable: str, hanzi: str, rng: random.Random) -> Change | None:
        options = _relatives(syllable, wrong)
        if not options or hanzi not in _written().get(syllable, ()):
            return None
        recognised = rng.choice(options)
        return Change((recognised,), rng.choice(_written()[recognised]), kind, hanzi_kind, "acoustic", hanzi)

    return injector


def _homophone(syllable: str, hanzi: str, rng: random.Random) -> Change | None:
    options = [character for character in _written().get(syllable, ()) if character != hanzi]
    if not options or hanzi in SPECIAL:
        return None
    other = rng.choice(options)
    return Change((syllable,), other, None, "exact homophone", "language", other)


def _variant(syllable: str, hanzi: str, rng: random.Random) -> Change | None:
    other = VARIANTS.get(hanzi)
    return Change((syllable,), other, None, "variant character", "language", other) if other else None


def _figure(syllable: str, hanzi: str, rng: random.Random) -> Change | None:
    other = FIGURES.get(hanzi)
    return Change((syllable,), other, None, "number or Latin form", "language", other) if other else None


def _polyphone(syllable: str, hanzi: str, rng: random.Random) -> Change | None:
    recognised = POLYPHONES.get((hanzi, syllable))
    if recognised is None:
        return None
    written, kind = rng.choice(_written()[recognised]), POLYPHONE_KINDS[recognised]
    return Change((recognised,), written, kind, "polyphone read wrongly", "acoustic", hanzi)


def _both(syllable: str, hanzi: str, rng: random.Random) -> Change | None:
    """A wrong tone at a position where the second stage also fails."""
    change = INJECTORS["tone"](syllable, hanzi, rng)
    others = [character for character in _written().get(syllable, ()) if character != hanzi]
    return replace(change, attribution="both", gold=rng.choice(others)) if change and others else None


def _repaired(syllable: str, hanzi: str, rng: random.Random) -> Change | None:
    options = _relatives(syllable, (False, False, True))
    return Change((rng.choice(options),), hanzi, "tone only", None, "repaired", hanzi) if options else None


def _insertion(syllable: str, hanzi: str, rng: random.Random) -> Change:
    added = rng.choice(_names())
    written = hanzi + rng.choice(_written()[added])
    return Change((syllable, added), written, "insertion", "insertion", "acoustic", hanzi)


def _deletion(syllable: str, hanzi: str, rng: random.Random) -> Change:
    return Change((), "", "deletion", "deletion", "acoustic", hanzi)


INJECTORS: dict[str, Injector] = {
    "tone": _misrecognised("tone only", (False, False, True), "homophone but for the tone"),
    "initial": _misrecognised("initial only", (True, False, False), "near homophone"),
    "final": _misrecognised("final only", (False, True, False), "near homophone"),
    "everything": _misrecognised("everything", (True, True, True), "other hanzi"),
    "homophone": _homophone,
    "variant": _variant,
    "figure": _figure,
    "polyphone": _polyphone,
    "both": _both,
    "repaired": _repaired,
    "insertion": _insertion,
    "deletion": _deletion,
}
