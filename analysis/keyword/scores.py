"""What a keyword model heard in each clip in; accuracy with its interval, by word and by speaker, out."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from analysis.intervals.bootstrap import FEWEST_GROUPS, rate_interval
from data.keywords.clips import KeywordClip
from utils.metrics import ErrorCounts

UNKNOWN_SPEAKER = "not known"
COLUMNS = ("id", "speaker", "label", "heard", "probability", "probability_of_label", "audio")


@dataclass(frozen=True)
class Decision:
    """One clip.

    Attributes:
        id: of the clip.
        label: what it is.
        heard: the label that the model found most probable.
        probability: of ``heard``.
        label_probability: of ``label``.
        speaker: ``""`` if not known.
        audio: the recording; ``""`` for a stretch of one, and for silence that was generated.
    """

    id: str
    label: str
    heard: str
    probability: float
    label_probability: float
    speaker: str = ""
    audio: str = ""

    @property
    def is_right(self) -> bool:
        """Whether the model heard what it is."""
        return self.heard == self.label


def decisions_of(
    clips: Sequence[KeywordClip], probabilities: np.ndarray, labels: Sequence[str]
) -> list[Decision]:
    """What was heard in each clip.

    Args:
        clips: their labels are among ``labels``.
        probabilities: (clips, labels).
        labels: of the columns.
    """
    places = {label: place for place, label in enumerate(labels)}
    return [
        Decision(
            id=clip.id,
            label=clip.label,
            heard=labels[best],
            probability=float(row[best]),
            label_probability=float(row[places[clip.label]]),
            speaker=clip.speaker,
            audio=str(clip.audio) if clip.audio and not clip.seconds else "",
        )
        for clip, row, best in zip(clips, probabilities, probabilities.argmax(axis=1), strict=True)
    ]


def keyword_results(decisions: Sequence[Decision], labels: Sequence[str]) -> dict[str, Any]:
    """The figures of ``results.json``.

    Args:
        decisions: one a clip, at least one.
        labels: of the model, in its order.

    Returns:
        ``accuracy`` with a 95 % interval (bootstrapped over speakers where there are five or more, else over
        clips), ``words`` (precision, recall, F1 and clips of each label; None where there is nothing to
        divide by), ``macro_f1`` (their mean over the labels that occur, in the list or in the answers),
        ``confusions`` (label, heard, clips; the most frequent first), ``matrix`` (a row a label, a
        column for what was heard) and ``by_speaker``, the worst first.
    """
    rate, low, high, unit = _rate(decisions)
    words = _words(decisions, labels)
    f1 = [one["f1"] for one in words.values() if one["f1"] is not None]
    return {
        "clips": len(decisions),
        "wrong": sum(not one.is_right for one in decisions),
        "accuracy": 1 - rate,
        "interval": [1 - high, 1 - low],
        "interval_unit": unit,
        "speakers": len({one.speaker for one in decisions if one.speaker}),
        "labels": list(labels),
        "macro_f1": sum(f1) / len(f1),
        "words": words,
        "confusions": _confusions(decisions),
        "matrix": _matrix(decisions, labels),
        "by_speaker": _by_speaker(decisions),
    }


def decisions_tsv(decisions: Sequence[Decision]) -> str:
    """One line a clip, with a header."""
    rows = [
        (
            one.id,
            one.speaker,
            one.label,
            one.heard,
            f"{one.probability:.4f}",
            f"{one.label_probability:.4f}",
            one.audio,
        )
        for one in decisions
    ]
    return "".join("\t".join(row) + "\n" for row in (COLUMNS, *rows))


def surest_mistakes(decisions: Sequence[Decision]) -> list[Decision]:
    """The wrong ones, those first whose label the model found least probable."""
    wrong = [one for one in decisions if not one.is_right]
    return sorted(wrong, key=lambda one: (one.label_probability, one.id))


def _rate(decisions: Sequence[Decision]) -> tuple[float, float, float, str]:
    """Share of wrong ones, the ends of its interval, and what was resampled."""
    counts = [ErrorCounts(substitutions=int(not one.is_right), reference=1) for one in decisions]
    known = {one.speaker for one in decisions if one.speaker}
    # Silence has no speaker: its clips stand each for itself, as if by a speaker of its own.
    groups = [one.speaker or one.id for one in decisions] if len(known) >= FEWEST_GROUPS else []
    found = rate_interval(counts, groups, "speaker")
    unit = "clip" if found.unit == "utterance" else found.unit
    return sum(one.errors for one in counts) / len(counts), found.low, found.high, unit


def _words(decisions: Sequence[Decision], labels: Sequence[str]) -> dict[str, dict[str, Any]]:
    clips, heard = (Counter(getattr(one, name) for one in decisions) for name in ("label", "heard"))
    right = Counter(one.label for one in decisions if one.is_right)
    return {
        label: {
            "clips": clips[label],
            "heard": heard[label],
            "right": right[label],
            "precision": right[label] / heard[label] if heard[label] else None,
            "recall": right[label] / clips[label] if clips[label] else None,
            "f1": 2 * right[label] / (clips[label] + heard[label]) if clips[label] + heard[label] else None,
        }
        for label in labels
    }


def _confusions(decisions: Sequence[Decision]) -> list[dict[str, Any]]:
    counts = Counter((one.label, one.heard) for one in decisions if not one.is_right)
    clips = Counter(one.label for one in decisions)
    return [
        {"label": label, "heard": heard, "clips": count, "share": count / clips[label]}
        for (label, heard), count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    ]


def _matrix(decisions: Sequence[Decision], labels: Sequence[str]) -> list[list[int]]:
    counts = Counter((one.label, one.heard) for one in decisions)
    return [[counts[label, heard] for heard in labels] for label in labels]


def _by_speaker(decisions: Sequence[Decision]) -> list[dict[str, Any]]:
    groups: dict[str, list[Decision]] = defaultdict(list)
    for one in decisions:
        groups[one.speaker or UNKNOWN_SPEAKER].append(one)
    rows = [
        {"speaker": speaker, "clips": len(group), "accuracy": sum(one.is_right for one in group) / len(group)}
        for speaker, group in groups.items()
    ]
    return sorted(rows, key=lambda row: (row["accuracy"], row["speaker"]))
