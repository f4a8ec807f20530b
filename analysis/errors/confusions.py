"""Aligned syllables in; the classic confusions among them by name, tables of what was taken for what, out.

A name is a tag beside the error's kind: one error may have several (zhang1 for zan4 is zh–z and an–ang).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from analysis.errors.alignment import Pair
from utils.mandarin.pinyin import Syllable
from utils.mandarin.syllable_distance import FINAL_CONFUSIONS, INITIAL_CONFUSIONS, NEUTRAL, parts

TONES_2_3 = "tone 2–3"
THIRD_TONE_SANDHI, YI_BU_SANDHI = "third-tone sandhi", "一/不 sandhi"
NEUTRAL_TONE, ERHUA = "neutral tone", "erhua"
NAMES = (
    *INITIAL_CONFUSIONS.values(),
    *dict.fromkeys(FINAL_CONFUSIONS.values()),
    TONES_2_3,
    THIRD_TONE_SANDHI,
    YI_BU_SANDHI,
    NEUTRAL_TONE,
    ERHUA,
)
# 一 and 不 change their tone before the next syllable: the tones that each is written with.
YI_BU = {"一": ("", "i", {1, 2, 4}), "不": ("b", "u", {2, 4})}
ER = (("", "er"), (2, NEUTRAL))
NOTHING = ""  # the row of what was inserted and the column of what was left out


@dataclass(frozen=True)
class Matrix:
    """How often which part of a syllable was taken for which.

    Attributes:
        part: ``initial``, ``final`` or ``tone``.
        labels: of rows and columns; the zero initial is ``∅``, the last one (``""``) stands for no syllable.
        counts: one row for each reference label, one number for each recognised label; right ones included.
    """

    part: str
    labels: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]


def named_confusions(pair: Pair, reference: Sequence[str], hanzi: Sequence[str] = ()) -> tuple[str, ...]:
    """The classic confusions in one pair of syllables.

    - ``zh–z`` … ``in–ing``: initial, final; also where something else is wrong too.
    - ``third-tone sandhi``: tones 2 and 3 exchanged before a third tone, where 3 is said as 2.
    - ``tone 2–3``: the same exchange anywhere else.
    - ``一/不 sandhi``: 一 or 不 with another of its tones; where the hanzi aren't known, bu and yi before a
      syllable that changes their tone.
    - ``neutral tone``: one side is neutral and the syllables differ in nothing else.
    - ``erhua``: the syllables differ by the r of erhua; or 儿 (er2, er5) is missing or too much.

    Args:
        pair: from :func:`analysis.errors.alignment.align`.
        reference: all syllables of the reference.
        hanzi: of the reference, one a syllable, or none.
    """
    if pair.right:
        return ()
    if not pair.substituted:
        alone = parts(pair.reference or pair.hypothesis or "")
        is_er = alone is not None and (alone.initial, alone.final) == ER[0] and alone.tone in ER[1]
        return (ERHUA,) if is_er else ()
    said, heard = parts(pair.reference or ""), parts(pair.hypothesis or "")
    if said is None or heard is None:
        return ()
    position = pair.reference_position or 0
    following = parts(reference[position + 1]) if position + 1 < len(reference) else None
    character = hanzi[position] if len(hanzi) == len(reference) else ""
    names = [
        INITIAL_CONFUSIONS.get(frozenset((said.initial, heard.initial))),
        FINAL_CONFUSIONS.get(frozenset((said.final, heard.final))),
        _tone_confusion(said, heard, following, character),
        ERHUA if said.final != heard.final and _without_r(said) == _without_r(heard) else None,
    ]
    return tuple(name for name in names if name)


def count_matrices(pairs: Iterable[Pair]) -> list[Matrix]:
    """Initials, finals and tones of all aligned syllables, the right ones too; other tokens are left out."""
    counts: dict[str, Counter[tuple[str, str]]] = {part: Counter() for part in ("initial", "final", "tone")}
    for (reference, hypothesis), count in Counter(
        (pair.reference, pair.hypothesis) for pair in pairs
    ).items():
        said, heard = parts(reference or ""), parts(hypothesis or "")
        if (reference and not said) or (hypothesis and not heard):
            continue
        for part, table in counts.items():
            table[_label(said, part), _label(heard, part)] += count
    return [_matrix(part, table) for part, table in counts.items()]


def top_confusions(pairs: Iterable[Pair], most: int = 20) -> list[tuple[str, str, int]]:
    """The most frequent substitutions: (reference, hypothesis, count), ties in order of the tokens."""
    counts = Counter((pair.reference or "", pair.hypothesis or "") for pair in pairs if pair.substituted)
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [(reference, hypothesis, count) for (reference, hypothesis), count in ranked[:most]]


def _tone_confusion(said: Syllable, heard: Syllable, following: Syllable | None, hanzi: str) -> str | None:
    tones = {said.tone, heard.tone}
    if len(tones) == 1:
        return None
    same = (said.initial, said.final) == (heard.initial, heard.final)
    if same and _is_yi_bu(said, tones, following, hanzi):
        return YI_BU_SANDHI
    if tones == {2, 3}:
        return THIRD_TONE_SANDHI if same and following and following.tone == 3 else TONES_2_3
    return NEUTRAL_TONE if same and NEUTRAL in tones else None


def _is_yi_bu(said: Syllable, tones: set[int], following: Syllable | None, hanzi: str) -> bool:
    """Whether two tones of a syllable are both tones of 一 or of 不."""
    for character, (initial, final, possible) in YI_BU.items():
        if (said.initial, said.final) == (initial, final) and tones <= possible:
            if hanzi:
                return hanzi == character
            # Not knowing the hanzi: the tone that it takes there. 不 and 一 are tone 2 before a fourth tone,
            # 一 is tone 4 before any other.
            changed = 2 if following and following.tone == 4 else 4
            citation = 4 if character == "不" else 1
            return following is not None and tones == {citation, changed}
    return False


def _without_r(syllable: Syllable) -> tuple[str, str]:
    final = syllable.final
    return syllable.initial, final[:-1] if final.endswith("r") and final != "er" else final


def _label(syllable: Syllable | None, part: str) -> str:
    return NOTHING if syllable is None else str(getattr(syllable, part)) or "∅"


def _matrix(part: str, table: Counter[tuple[str, str]]) -> Matrix:
    """Labels in alphabetical order, the one for nothing last."""
    found = {label for pair in table for label in pair} - {NOTHING}
    labels = (*sorted(found), NOTHING)
    rows = tuple(tuple(table[said, heard] for heard in labels) for said in labels)
    return Matrix(part, labels, rows)
