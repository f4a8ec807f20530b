"""Collects audio and pictures of CTC posteriors (:class:`Evidence`) of the worst utterances of a test.

The model's posteriors come from a function of the caller; ``posterior_picture`` draws them.
"""

from collections.abc import Callable, Sequence

import numpy as np
from pypinyin.contrib.tone_convert import to_tone
from tqdm import tqdm

from analysis.errors.alignment import align
from analysis.inputs.utterance_results import UtteranceResult, as_text, tokens_of
from analysis.page.posterior_picture import (
    MISSED,
    RIGHT,
    WRONG,
    Shown,
    around,
    draw_posteriors,
    picture_address,
)
from analysis.page.rendering import PLAYED_RATE, sound_address
from analysis.page.report import WORST_SHOWN, Evidence
from utils.audio.reading import read_audio
from utils.files import is_file
from utils.hypotheses.inspection import Inspection
from utils.mandarin.output_units import last_tokens, units_of
from utils.mandarin.syllable_distance import syllable_distance
from utils.metrics import count_errors

MAX_SOUND_SECONDS = 120.0  # a page with hours of audio would be too large
NO_RECORDING = ("no sound", "The recording does not exist any more.")
NO_SOUND = (
    "no sound",
    f"Recordings longer than {MAX_SOUND_SECONDS:.0f} seconds are not embedded in the page.",
)
NO_PICTURE = ("no picture", "A recording of this length is recognised in pieces, so there is no picture.")


def collect_evidence(
    utterances: Sequence[UtteranceResult],
    level: str,
    inspect: Callable[[UtteranceResult], Inspection | None],
    examples: int = WORST_SHOWN,
) -> dict[int, Evidence]:
    """Evidence of the worst utterances, by their positions; about 0.2 seconds each.

    Utterances of several lists may have the same id.

    Args:
        utterances: results of one system.
        level: level on which errors are counted: ``syllables`` or ``hanzi``.
        inspect: gives the posteriors of a recording; None if it is recognised in pieces.
        examples: maximum number of utterances.

    Raises:
        AudioError: a recording cannot be read any more.
    """
    worst = tqdm(most_errors(utterances, level, examples), "examples", unit=" utt", disable=None)
    return {position: evidence_of(utterances[position], inspect) for position in worst}


def most_errors(utterances: Sequence[UtteranceResult], level: str, number: int) -> list[int]:
    """Positions of the utterances with the most errors; of equally many, the shorter utterance first."""
    counted = [count_errors(*tokens_of(utterance, level)) for utterance in utterances]
    wrong = [position for position, counts in enumerate(counted) if counts.errors]
    wrong.sort(key=lambda at: (-counted[at].errors, -counted[at].rate, utterances[at].id))
    return wrong[:number]


def evidence_of(
    utterance: UtteranceResult, inspect: Callable[[UtteranceResult], Inspection | None]
) -> Evidence:
    """Sound and picture of one utterance, as far as they exist.

    Raises:
        AudioError: the recording exists, but cannot be read.
    """
    if not is_file(utterance.audio):
        return Evidence(utterance.id, "", "", utterance.seconds, (NO_RECORDING,))
    if utterance.seconds > MAX_SOUND_SECONDS:
        return Evidence(utterance.id, "", "", utterance.seconds, (NO_SOUND, NO_PICTURE))
    samples, inspection = read_audio(utterance.audio, PLAYED_RATE), inspect(utterance)
    seconds = len(samples) / PLAYED_RATE
    if inspection is None:
        return Evidence(utterance.id, sound_address(samples), "", seconds, (NO_PICTURE,))
    recognised, missed = shown_syllables(utterance, inspection)
    picture = picture_address(draw_posteriors(samples, inspection, recognised, missed))
    tracks = _tracks(recognised, missed, inspection, seconds)
    return Evidence(utterance.id, sound_address(samples), picture, seconds, tracks)


def shown_syllables(utterance: UtteranceResult, inspection: Inspection) -> tuple[list[Shown], list[Shown]]:
    """The recognised syllables, and the missed syllables of the reference, each with its time.

    A substituted syllable has the time of its substitute. Deleted syllables share the time between the
    middles of their neighbours evenly. The posterior is that of the token with which a syllable ends.
    """
    recognised: list[Shown] = []
    missed: list[Shown] = []
    deleted: list[int] = []  # positions in the reference, since the last recognised syllable
    last = 0.0  # the middle of the last recognised syllable
    columns = {token: column for column, token in enumerate(inspection.classes)}
    units = units_of(inspection.classes)
    outputs = utterance.pinyin, last_tokens(units, utterance.pinyin, as_text(utterance.hanzi))
    references = (
        utterance.reference_pinyin,
        last_tokens(units, utterance.reference_pinyin, as_text(utterance.reference_hanzi)),
    )

    def show(texts: Sequence[Sequence[str]], position: int, start: float, end: float, kind: str) -> Shown:
        syllable, token = (text[position] for text in texts)
        return Shown(to_tone(syllable), columns.get(token), start, end, kind)

    def place_deleted(until: float) -> None:
        edges = np.linspace(last, max(last, until), len(deleted) + 1).tolist()
        for position, start, end in zip(deleted, edges, edges[1:], strict=False):
            missed.append(show(references, position, start, end, MISSED))
        deleted.clear()

    for pair in align(utterance.reference_pinyin, utterance.pinyin, syllable_distance):
        if pair.hypothesis_position is None:
            deleted.append(pair.reference_position or 0)
            continue
        start, end = utterance.times[pair.hypothesis_position]
        place_deleted((start + end) / 2)
        last = (start + end) / 2
        kind = RIGHT if pair.is_correct else WRONG
        recognised.append(show(outputs, pair.hypothesis_position, start, end, kind))
        if pair.is_substitution:
            missed.append(show(references, pair.reference_position or 0, start, end, MISSED))
    place_deleted(utterance.seconds)
    return recognised, missed


def _tracks(
    recognised: Sequence[Shown], missed: Sequence[Shown], inspection: Inspection, seconds: float
) -> tuple[tuple[str, str], ...]:
    """A description of the parts of the picture."""
    top = PLAYED_RATE // 2000
    blank = float(inspection.posteriors[:, -1].mean())
    tracks = [
        ("spectrogram", f"Spectrogram of {seconds:.1f} seconds, 0 to {top} kHz on a mel scale."),
        ("recognised", f"Highest posterior of each recognised syllable: {_peaks(recognised, inspection)}."),
        (
            "missed",
            f"Highest posterior of each missed syllable of the reference: {_peaks(missed, inspection)}.",
        ),
        ("blank", f"Posterior of the blank, {blank:.0%} on average."),
    ]
    return tuple(track for track in tracks if missed or track[0] != "missed")


def _peaks(shown: Sequence[Shown], inspection: Inspection) -> str:
    """Each syllable with its highest posterior around its time."""
    return ", ".join(f"{syllable.name} {_peak(syllable, inspection)}" for syllable in shown) or "none"


def _peak(syllable: Shown, inspection: Inspection) -> str:
    if syllable.column is None:
        return "(unknown to the model)"
    last = len(inspection.posteriors) - 1
    edges = ((edge - inspection.start) / inspection.frame_seconds for edge in around(syllable, inspection))
    first, stop = (round(edge) for edge in edges)
    first = min(max(first, 0), last)
    return f"{inspection.posteriors[first : max(stop, first + 1), syllable.column].max():.0%}"
