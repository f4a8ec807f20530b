"""Chooses few sentences to read aloud that together contain all initials, finals, tones and tone pairs.

Greedy set cover (Chvátal, 1979): the next sentence is the one whose parts are worth most for its length. A
part (an initial, a final, a pair of tones …) that has occurred once is worth a tenth, one that has occurred
twice a hundredth, and so on.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from data.synthesis.reading import Sentence
from utils.mandarin.pinyin import split_syllable

_REPEATED = 0.1  # worth of a part when it has occurred once more
_SECONDS_A_SYLLABLE, _SECONDS_OF_PAUSES = 0.25, 0.6  # of a sentence that is read


def reading_seconds(pinyin: Sequence[str]) -> float:
    """Estimated length of the recording of a sentence."""
    return len(pinyin) * _SECONDS_A_SYLLABLE + _SECONDS_OF_PAUSES


def parts_of(pinyin: Sequence[str]) -> set[str]:
    """The initials, finals (alone and with their tones), and pairs of successive tones of a sentence."""
    syllables = [split_syllable(syllable) for syllable in pinyin]
    parts = {f"initial {s.initial}" for s in syllables} | {f"final {s.final}" for s in syllables}
    parts |= {f"toned final {s.final}{s.tone}" for s in syllables}
    return parts | {f"tone pair {left.tone} {right.tone}" for left, right in pairwise(syllables)}


def choose_sentences(
    candidates: Sequence[Sentence], chosen: Sequence[Sentence], seconds: float, count: int | None = None
) -> list[Sentence]:
    """Continue a choice of sentences until it is long enough.

    Args:
        candidates: to choose from; of equally good ones the first is taken.
        chosen: the sentences that have been chosen before.
        seconds: estimated length of the recordings of all chosen sentences.
        count: number of all chosen sentences, in place of ``seconds``.

    Returns:
        ``chosen`` and the new ones, which are fewer than wanted if there are too few candidates.
    """
    chosen = list(chosen)
    texts = {sentence.hanzi for sentence in chosen}
    remaining = {sentence.hanzi: sentence for sentence in candidates if sentence.hanzi not in texts}
    parts = {text: parts_of(sentence.pinyin) for text, sentence in remaining.items()}
    counts = Counter(part for sentence in chosen for part in parts_of(sentence.pinyin))
    total = sum(reading_seconds(sentence.pinyin) for sentence in chosen)
    while remaining and (total < seconds if count is None else len(chosen) < count):
        worth = {part: _REPEATED**times for part, times in counts.items()}
        best = max(remaining, key=lambda text: sum(worth.get(part, 1.0) for part in parts[text]) / len(text))
        chosen.append(remaining.pop(best))
        counts.update(parts[best])
        total += reading_seconds(chosen[-1].pinyin)
    return chosen
