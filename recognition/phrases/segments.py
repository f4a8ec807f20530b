"""Divides a piece of a recording into utterances and searches each for a phrase: one segment an utterance.

Utterances are separated by pauses. A pause is a long time between two free syllables (those of greedy
decoding, without phrases); it is not found by the level of the sound, because noise can hide it.
"""

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from recognition.phrases.search import PhraseSearch
from utils.hypotheses.phrases import PhraseResult
from utils.hypotheses.recognition import Alternative, Recognition, syllable_times

PAUSE_SECONDS = 1.0
"""Time between the peaks of two syllables; in fluent speech it is 0.1 to 0.4 s."""


def phrase_segments(
    search: PhraseSearch,
    logits: np.ndarray,
    pinyin: Sequence[str],
    frames: Sequence[int],
    frame_seconds: float,
    start: float,
    seconds: float,
    lead_seconds: float = 0.0,
    padding: float = 0.0,
) -> Iterator[Recognition]:
    """Search each utterance of a piece for a phrase.

    Args:
        search: the phrases.
        logits: (T, C) float, valid frames only.
        pinyin: free syllables of the piece, without spaces.
        frames: output frame of each.
        frame_seconds: seconds from one frame to the next.
        start, seconds: start of the piece in the recording, and its length.
        lead_seconds: see :func:`utils.hypotheses.recognition.syllable_times`.
        padding: seconds of added silence before the start, which the first frames belong to.

    Yields:
        segments in order, see :func:`phrase_segment`.
    """
    first = 0
    for first_frame, end_frame in utterances(frames, len(logits), frame_seconds):
        end = first + sum(first_frame <= frame < end_frame for frame in frames[first:])
        first_time = start - padding + first_frame * frame_seconds
        begin = max(first_time, start)
        lead = lead_seconds - (begin - first_time)
        length = min(start - padding + end_frame * frame_seconds, start + seconds) - begin
        result = search.search(logits[first_frame:end_frame], frame_seconds, begin, lead, length)
        peaks = [frame - first_frame for frame in frames[first:end]]
        free = tuple(pinyin[first:end])
        yield phrase_segment(result, begin, length, free, peaks, frame_seconds, lead)
        first = end


def utterances(frames: Sequence[int], total: int, frame_seconds: float) -> Iterator[tuple[int, int]]:
    """(first, end) frame of each utterance of a piece; they are cut in the middle of a pause.

    Args:
        frames: output frame of each free syllable, ascending.
        total: number of frames.
        frame_seconds: seconds from one frame to the next.
    """
    cuts = [
        (frame + following) // 2
        for frame, following in itertools.pairwise(frames)
        if (following - frame) * frame_seconds >= PAUSE_SECONDS
    ]
    yield from zip([0, *cuts], [*cuts, total], strict=True)


def phrase_segment(
    result: PhraseResult,
    start: float,
    seconds: float,
    pinyin: tuple[str, ...],
    frames: Sequence[int],
    frame_seconds: float,
    lead_seconds: float = 0.0,
) -> Recognition:
    """The segment of an utterance that was compared with a list of phrases.

    The best hypothesis of an accepted phrase is its text with its syllables; that of a rejected one is the
    free syllables, without hanzi.

    Args:
        result: the comparison; its times count from the start of the recording.
        start: start of the utterance in the recording, in seconds.
        seconds: length of the utterance.
        pinyin: free syllables: those recognised without the list of phrases.
        frames: output frame of each free syllable, counted from the start of the utterance.
        frame_seconds: time from one frame to the next.
        lead_seconds: as in :func:`syllable_times`.
    """
    if result.accepted:
        # The ratio of the whole phrase, by which the search ranks: those for each syllable need not descend.
        n_best = tuple(
            Alternative(match.pinyin, match.text, match.score * len(match.pinyin)) for match in result.matches
        )
        return Recognition(start, start + seconds, result.matches[0].times, n_best, result)
    times = tuple(syllable_times(frames, frame_seconds, seconds, start, lead_seconds))
    return Recognition(start, start + seconds, times, (Alternative(pinyin, "", 0.0),), result)
