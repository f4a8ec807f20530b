"""Reports a keyword model's decisions on clips: accuracy with its interval, F1 by word, confusions.

The results are text tables, and one self-contained HTML page.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from analysis.intervals.bootstrap import MIN_GROUPS, rate_interval
from analysis.page.rendering import page_environment, recording_address
from data.keywords.clips import KeywordClip
from utils.files import write_text
from utils.metrics import ErrorCounts
from utils.text_table import percent, text_table, tsv_table

UNKNOWN_SPEAKER = "not known"
# Of the table of decisions; ``predicted`` is the label with the highest probability.
COLUMNS = ("id", "speaker", "label", "predicted", "probability", "probability_of_label", "audio")
REPORT = "report.html"
CONFUSIONS_SHOWN = 12  # in the text
MISTAKES_SHOWN = 50  # clips, on the page
RECORDINGS_EMBEDDED = 30  # at most; a page with more would be too large


@dataclass(frozen=True)
class Decision:
    """The decision of a model on one clip.

    Attributes:
        id: name of the clip.
        label: the true label.
        predicted: the most probable label.
        probability: probability of ``predicted``.
        label_probability: probability of ``label``.
        speaker: speaker of the clip; ``""`` if not known.
        audio: path of the recording; ``""`` for a part of a recording and for generated silence.
    """

    id: str
    label: str
    predicted: str
    probability: float
    label_probability: float
    speaker: str = ""
    audio: str = ""

    @property
    def is_correct(self) -> bool:
        """Whether the most probable label is the true one."""
        return self.predicted == self.label


def decisions_of(
    clips: Sequence[KeywordClip], probabilities: np.ndarray, labels: Sequence[str]
) -> list[Decision]:
    """The model's decision on each clip.

    Args:
        clips: the clips; their labels are among ``labels``.
        probabilities: (clips, labels).
        labels: labels of the columns.
    """
    columns = {label: column for column, label in enumerate(labels)}
    return [
        Decision(
            id=clip.id,
            label=clip.label,
            predicted=labels[best],
            probability=float(row[best]),
            label_probability=float(row[columns[clip.label]]),
            speaker=clip.speaker,
            audio=str(clip.audio) if clip.audio and not clip.seconds else "",
        )
        for clip, row, best in zip(clips, probabilities, probabilities.argmax(axis=1), strict=True)
    ]


def keyword_results(decisions: Sequence[Decision], labels: Sequence[str]) -> dict[str, Any]:
    """The contents of ``results.json``.

    Args:
        decisions: one per clip, at least one.
        labels: labels of the model, in its order.

    Returns:
        ``accuracy`` with a 95 % interval (bootstrapped over speakers if there are five or more, else over
        clips), ``words`` (precision, recall, F1 and clips of each label; None if the denominator is 0),
        ``macro_f1`` (mean F1 of the labels that occur in the list or in the predictions), ``confusions``
        (label, predicted label, clips; the most frequent first), ``matrix`` (a row for each true
        label, a column for each predicted label) and ``by_speaker``, the worst first.
    """
    rate, low, high, unit = _rate(decisions)
    words = _words(decisions, labels)
    f1 = [word["f1"] for word in words.values() if word["f1"] is not None]
    return {
        "clips": len(decisions),
        "wrong": sum(not decision.is_correct for decision in decisions),
        "accuracy": 1 - rate,
        "interval": [1 - high, 1 - low],
        "interval_unit": unit,
        "speakers": len({decision.speaker for decision in decisions if decision.speaker}),
        "labels": list(labels),
        "macro_f1": sum(f1) / len(f1),
        "words": words,
        "confusions": _confusions(decisions),
        "matrix": _matrix(decisions, labels),
        "by_speaker": _by_speaker(decisions),
    }


def decisions_tsv(decisions: Sequence[Decision]) -> str:
    """One line per clip, with a header."""
    rows = [
        (
            decision.id,
            decision.speaker,
            decision.label,
            decision.predicted,
            f"{decision.probability:.4f}",
            f"{decision.label_probability:.4f}",
            decision.audio,
        )
        for decision in decisions
    ]
    return tsv_table(COLUMNS, rows)


def surest_mistakes(decisions: Sequence[Decision]) -> list[Decision]:
    """The wrong decisions, the least probable true labels first."""
    wrong = [decision for decision in decisions if not decision.is_correct]
    return sorted(wrong, key=lambda decision: (decision.label_probability, decision.id))


def _rate(decisions: Sequence[Decision]) -> tuple[float, float, float, str]:
    """The error rate, the ends of its interval, and what was resampled."""
    counts = [ErrorCounts(substitutions=int(not decision.is_correct), reference=1) for decision in decisions]
    known = {decision.speaker for decision in decisions if decision.speaker}
    # Silence has no speaker: each of its clips is a group of its own.
    groups = [decision.speaker or decision.id for decision in decisions] if len(known) >= MIN_GROUPS else []
    found = rate_interval(counts, groups, "speaker")
    unit = "clip" if found.unit == "utterance" else found.unit
    return sum(decision.errors for decision in counts) / len(counts), found.low, found.high, unit


def _words(decisions: Sequence[Decision], labels: Sequence[str]) -> dict[str, dict[str, Any]]:
    clips = Counter(decision.label for decision in decisions)
    predicted = Counter(decision.predicted for decision in decisions)
    right = Counter(decision.label for decision in decisions if decision.is_correct)
    return {
        label: {
            "clips": clips[label],
            "predicted": predicted[label],
            "right": right[label],
            "precision": right[label] / predicted[label] if predicted[label] else None,
            "recall": right[label] / clips[label] if clips[label] else None,
            "f1": 2 * right[label] / (clips[label] + predicted[label])
            if clips[label] + predicted[label]
            else None,
        }
        for label in labels
    }


def _confusions(decisions: Sequence[Decision]) -> list[dict[str, Any]]:
    counts = Counter(
        (decision.label, decision.predicted) for decision in decisions if not decision.is_correct
    )
    clips = Counter(decision.label for decision in decisions)
    return [
        {"label": label, "predicted": predicted, "clips": count, "share": count / clips[label]}
        for (label, predicted), count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    ]


def _matrix(decisions: Sequence[Decision], labels: Sequence[str]) -> list[list[int]]:
    counts = Counter((decision.label, decision.predicted) for decision in decisions)
    return [[counts[label, predicted] for predicted in labels] for label in labels]


def _by_speaker(decisions: Sequence[Decision]) -> list[dict[str, Any]]:
    groups: dict[str, list[Decision]] = defaultdict(list)
    for decision in decisions:
        groups[decision.speaker or UNKNOWN_SPEAKER].append(decision)
    rows = [
        {
            "speaker": speaker,
            "clips": len(group),
            "accuracy": sum(decision.is_correct for decision in group) / len(group),
        }
        for speaker, group in groups.items()
    ]
    return sorted(rows, key=lambda row: (row["accuracy"], row["speaker"]))


def keyword_tables(results: Mapping[str, Any]) -> str:
    """The text that ``test.py keyword`` prints: accuracy, words, and the confusions between them."""
    low, high = results["interval"]
    speakers = f" of {results['speakers']} speakers" if results["speakers"] else ""
    lines = [
        f"keyword on {results['split']}: {results['clips']} clips{speakers}",
        f"accuracy {percent(results['accuracy'])}  (95 % interval {100 * low:.2f} – {100 * high:.2f} %, "
        f"resampled by {results['interval_unit']}; {results['wrong']} wrong)",
        f"macro F1 {percent(results['macro_f1'])}",
        "",
    ]
    words = [
        (label, str(word["clips"]), *(percent(word[name]) for name in ("precision", "recall", "f1")))
        for label, word in results["words"].items()
    ]
    text = "\n".join(lines) + text_table(("word", "clips", "precision", "recall", "F1"), words)
    if results["confusions"]:
        pairs = [
            (pair["label"], pair["predicted"], str(pair["clips"]), percent(pair["share"]))
            for pair in results["confusions"][:CONFUSIONS_SHOWN]
        ]
        text += "\n" + text_table(("word", "recognised as", "clips", "of the word's"), pairs, left=2)
    if results.get("accuracy_by_shift"):
        rows = [(f"{ms:+d}", percent(accuracy)) for ms, accuracy in results["accuracy_by_shift"].items()]
        text += "\n" + text_table(("shift in ms", "accuracy"), rows)
    if results["speakers"] > 1:
        rows = [
            (row["speaker"], str(row["clips"]), percent(row["accuracy"])) for row in results["by_speaker"]
        ]
        text += "\n" + text_table(("speaker", "clips", "accuracy"), rows)
    return text


def recording_table(results: Mapping[str, Any]) -> str:
    """The results for a long recording as text."""
    return "\n".join(
        [
            f"recording       {results['hours']:.2f} h, real-time factor {results['real_time_factor']:.4f}",
            f"threshold       {results['threshold']:.3f}",
            f"missed          {results['missed']} of {results['spoken']}: {results['false_reject_rate']:.1%}",
            f"false alarms    {results['false_alarms']}: {results['false_alarms_per_hour']:.1f} an hour",
            f"all thresholds  {results['report']}/trade_off.tsv, trade_off.png",
        ]
    )


def write_keyword_report(
    folder: str | Path, results: Mapping[str, Any], decisions: Sequence[Decision]
) -> Path:
    """Write ``report.html`` into a folder; returns its path.

    Args:
        folder: folder of the report.
        results: results of :func:`analysis.keyword.clip_report.keyword_results`, with ``run`` and ``split``.
        decisions: decisions on the clips of these results.
    """
    mistakes = surest_mistakes(decisions)
    page = (
        page_environment()
        .get_template("keyword.html.j2")
        .render(
            results=results,
            rows=_heat_rows(results),
            mistakes=[
                (each, recording_address(each.audio) if each.audio and rank < RECORDINGS_EMBEDDED else None)
                for rank, each in enumerate(mistakes[:MISTAKES_SHOWN])
            ],
            left_out=max(0, len(mistakes) - MISTAKES_SHOWN),
        )
    )
    path = Path(folder) / REPORT
    write_text(path, page)
    return path


def _heat_rows(results: Mapping[str, Any]) -> list[tuple[str, int, list[tuple[int, float, bool]]]]:
    """Rows of the matrix: label, clips, and each cell's count, heat (0 to 1) and whether it is correct."""
    matrix = results["matrix"]
    largest = max((count for i, row in enumerate(matrix) for j, count in enumerate(row) if i != j), default=0)
    return [
        (
            label,
            sum(row),
            [(count, count / largest if largest and i != j else 0.0, i == j) for j, count in enumerate(row)],
        )
        for i, (label, row) in enumerate(zip(results["labels"], matrix, strict=True))
    ]
