"""Formats the results of a keyword test as text tables, and as one self-contained HTML page."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from analysis.keyword.scores import Decision, surest_mistakes
from analysis.page.data_urls import recording_address
from analysis.page.rendering import page_environment
from utils.files import write_text
from utils.text_table import percent, text_table

REPORT = "report.html"
CONFUSIONS_SHOWN = 12  # in the text
MISTAKES_SHOWN = 50  # clips, on the page
RECORDINGS_EMBEDDED = 30  # at most; a page with more would be too large


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
        results: results of :func:`analysis.keyword.scores.keyword_results`, with ``run`` and ``split``.
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
