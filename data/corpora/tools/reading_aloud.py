"""Chooses sentences to read aloud, and checks their recordings.

Few sentences together contain all initials, finals, tones and tone pairs, by greedy set cover (Chvátal,
1979): the next sentence is the one whose parts are worth most for its length. A part (an initial, a final, a
pair of tones …) that has occurred once is worth a tenth, one that has occurred twice a hundredth, and so on.
Of a recording, level, clipping and length are checked; the result says what to do.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from data.synthesis.reading import Sentence
from utils.audio.levels import clipped_fraction, frame_levels, speech_level
from utils.mandarin.pinyin import split_syllable

_REPEATED = 0.1  # worth of a part when it has occurred once more
_SECONDS_A_SYLLABLE, _SECONDS_OF_PAUSES = 0.25, 0.6  # of a sentence that is read
_CLIPPED = 0.002  # a recording is refused if a larger fraction of its samples is clipped
# A recording is silent or too quiet if its loud frames are below these levels in dB; read speech: -35 to -15.
_SILENT, _QUIET = -60.0, -45.0
_CONTRAST = 10.0  # least difference in dB between the loud frames and the softest ones
_SOFTEST_PERCENTILE = 5  # of the frame levels
_SPEECH_RANGE = 30.0  # dB below the loud frames; softer frames at both ends count as pauses
_SLOWEST, _FASTEST = 1.2, 9.0  # accepted syllables a second; read sentences have 3 to 6
_MARGIN_SECONDS = 0.4  # tolerance of the length, because that of a single syllable varies more


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


def find_problem(samples: np.ndarray, rate: int, syllables: int) -> str | None:
    """Check level, clipping and length of a recording.

    Args:
        samples: (samples,) float32 in [-1, 1].
        rate: Hz.
        syllables: number of syllables in the sentence.

    Returns:
        What is wrong and what to do, or None.
    """
    if not len(samples):
        return "nothing was recorded"
    level = speech_level(samples, rate)
    if level < _SILENT:
        return f"silence ({level:.0f} dB): is this the right microphone, and is it switched on?"
    if level < _QUIET:
        return f"too quiet ({level:.0f} dB): move closer, or raise the input level"
    if (clipped := clipped_fraction(samples)) > _CLIPPED:
        return f"clipped ({clipped:.1%} of the samples): move away, or lower the input level"
    levels = frame_levels(samples, rate)
    if level - np.percentile(levels, _SOFTEST_PERCENTILE) < _CONTRAST:
        return "no speech that is louder than the background: find a quieter place, or move closer"
    loud = np.flatnonzero(levels > level - _SPEECH_RANGE)
    seconds = (loud[-1] - loud[0] + 1) * len(samples) / rate / len(levels)
    if seconds + _MARGIN_SECONDS < syllables / _FASTEST:
        return f"{seconds:.1f} s of speech are too short for {syllables} syllables: was the end cut off?"
    if seconds > syllables / _SLOWEST + _MARGIN_SECONDS:
        return f"{seconds:.1f} s of speech are too long for {syllables} syllables: were there other words?"
    return None
