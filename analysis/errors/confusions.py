"""Names the classic Mandarin confusions of aligned syllables (zh–z, in–ing, tones); confusion matrices.

The names are given in addition to the kind of an error, and one error may have several: zhang1 recognised as
zan4 is both zh–z and an–ang.
"""

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
# The tones of 一 and 不, which depend on the next syllable: initial, final, possible tones.
YI_BU = {"一": ("", "i", {1, 2, 4}), "不": ("b", "u", {2, 4})}
ER = (("", "er"), (2, NEUTRAL))  # 儿: (initial, final), tones
NO_LABEL = ""  # the label of the row of insertions and the column of deletions


@dataclass(frozen=True)
class Matrix:
    """A confusion matrix of one part of the syllable.

    Attributes:
        part: ``initial``, ``final`` or ``tone``.
        labels: labels of rows and columns; ``∅`` is the zero initial, the last (``""``) is no syllable.
        counts: a row for each reference label, a column for each recognised label; the diagonal is correct.
    """

    part: str
    labels: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]


def named_confusions(pair: Pair, reference: Sequence[str], hanzi: Sequence[str] = ()) -> tuple[str, ...]:
    """The classic confusions in one pair of syllables.

    - ``zh–z`` … ``in–ing``: these two initials or finals; other parts of the syllables may differ too.
    - ``third-tone sandhi``: tones 2 and 3 of the same syllable confused before a third tone, where tone 3 is
      pronounced as 2.
    - ``tone 2–3``: tones 2 and 3 confused anywhere else.
    - ``一/不 sandhi``: 一 or 不 with another of its tones. If the hanzi are not known: bu and yi before a
      syllable that changes their tone.
    - ``neutral tone``: one side is neutral and the syllables differ in nothing else.
    - ``erhua``: the syllables differ by the r of erhua, or 儿 (er2, er5) is deleted or inserted.

    Args:
        pair: aligned syllables, from :func:`analysis.errors.alignment.align`.
        reference: all syllables of the reference.
        hanzi: hanzi of the reference, one per syllable; empty if not known.
    """
    if pair.is_correct:
        return ()
    if not pair.is_substitution:
        single = parts(pair.reference or pair.hypothesis or "")
        is_er = single is not None and (single.initial, single.final) == ER[0] and single.tone in ER[1]
        return (ERHUA,) if is_er else ()
    true, recognised = parts(pair.reference or ""), parts(pair.hypothesis or "")
    if true is None or recognised is None:
        return ()
    position = pair.reference_position or 0
    following = parts(reference[position + 1]) if position + 1 < len(reference) else None
    character = hanzi[position] if len(hanzi) == len(reference) else ""
    names = [
        INITIAL_CONFUSIONS.get(frozenset((true.initial, recognised.initial))),
        FINAL_CONFUSIONS.get(frozenset((true.final, recognised.final))),
        _tone_confusion(true, recognised, following, character),
        ERHUA if true.final != recognised.final and _without_r(true) == _without_r(recognised) else None,
    ]
    return tuple(name for name in names if name)


def count_matrices(pairs: Iterable[Pair]) -> list[Matrix]:
    """Confusion matrices of initials, finals and tones; tokens that are not syllables are left out."""
    counts: dict[str, Counter[tuple[str, str]]] = {part: Counter() for part in ("initial", "final", "tone")}
    for (reference, hypothesis), count in Counter(
        (pair.reference, pair.hypothesis) for pair in pairs
    ).items():
        true, recognised = parts(reference or ""), parts(hypothesis or "")
        if (reference and not true) or (hypothesis and not recognised):
            continue
        for part, table in counts.items():
            table[_label(true, part), _label(recognised, part)] += count
    return [_matrix(part, table) for part, table in counts.items()]


def top_confusions(pairs: Iterable[Pair], limit: int = 20) -> list[tuple[str, str, int]]:
    """The most frequent substitutions as (reference, hypothesis, count); ties in the order of the tokens."""
    counts = Counter((pair.reference or "", pair.hypothesis or "") for pair in pairs if pair.is_substitution)
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [(reference, hypothesis, count) for (reference, hypothesis), count in ranked[:limit]]


def _tone_confusion(
    true: Syllable, recognised: Syllable, following: Syllable | None, hanzi: str
) -> str | None:
    tones = {true.tone, recognised.tone}
    if len(tones) == 1:
        return None
    same = (true.initial, true.final) == (recognised.initial, recognised.final)
    if same and _is_yi_bu(true, tones, following, hanzi):
        return YI_BU_SANDHI
    if tones == {2, 3}:
        return THIRD_TONE_SANDHI if same and following and following.tone == 3 else TONES_2_3
    return NEUTRAL_TONE if same and NEUTRAL in tones else None


def _is_yi_bu(syllable: Syllable, tones: set[int], following: Syllable | None, hanzi: str) -> bool:
    """Whether two tones of a syllable are both possible for 一, or both for 不."""
    for character, (initial, final, possible) in YI_BU.items():
        if (syllable.initial, syllable.final) == (initial, final) and tones <= possible:
            if hanzi:
                return hanzi == character
            # The hanzi is not known: one tone must be the citation tone, the other the one of this context.
            # Before a fourth tone 一 and 不 take tone 2; before any other tone 一 takes tone 4.
            changed = 2 if following and following.tone == 4 else 4
            citation = 4 if character == "不" else 1
            return following is not None and tones == {citation, changed}
    return False


def _without_r(syllable: Syllable) -> tuple[str, str]:
    final = syllable.final
    return syllable.initial, final[:-1] if final.endswith("r") and final != "er" else final


def _label(syllable: Syllable | None, part: str) -> str:
    return NO_LABEL if syllable is None else str(getattr(syllable, part)) or "∅"


def _matrix(part: str, table: Counter[tuple[str, str]]) -> Matrix:
    """A matrix with its labels in alphabetical order, the label for no syllable last."""
    found = {label for pair in table for label in pair} - {NO_LABEL}
    labels = (*sorted(found), NO_LABEL)
    rows = tuple(tuple(table[row, column] for column in labels) for row in labels)
    return Matrix(part, labels, rows)
