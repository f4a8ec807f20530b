"""Writes the results of a keyword spotter on a long recording: tables, and a chart of the trade-off.

The trade-off is that between missed keywords and false alarms over all thresholds.
"""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from matplotlib.figure import Figure

from analysis.keyword.detections import COLUMNS, DetectedKeyword, Matched, OperatingPoint, SpokenKeyword
from utils.files import replacing, write_json, write_text
from utils.text_table import tsv_table

# Of trade_off.tsv; ``spoken`` is the number of spoken keywords.
POINT_COLUMNS = (
    "threshold",
    "false_reject_rate",
    "false_alarms_per_hour",
    "spoken",
    "missed",
    "false_alarms",
)


def write_detection_report(
    folder: Path,
    points: Sequence[OperatingPoint],
    chosen: OperatingPoint,
    detected: Sequence[DetectedKeyword],
    spoken: Sequence[SpokenKeyword],
    matched: Matched,
    seconds: float,
) -> None:
    """Write ``trade_off.tsv``, ``trade_off.png``, ``detections.tsv``, ``missed.tsv`` and ``detection.json``.

    Args:
        folder: created if it does not exist.
        points: operating points of all thresholds.
        chosen: operating point of the model's own threshold.
        detected: keywords detected at the chosen threshold.
        spoken: keywords in the recording.
        matched: ``detected`` matched with ``spoken``.
        seconds: length of the recording.
    """
    folder.mkdir(parents=True, exist_ok=True)
    figures = [
        (
            f"{point.threshold:.4f}",
            f"{point.false_reject_rate:.4f}",
            f"{point.false_alarms_per_hour:.3f}",
            point.spoken,
            point.missed,
            point.false_alarms,
        )
        for point in points
    ]
    write_text(folder / "trade_off.tsv", tsv_table(POINT_COLUMNS, figures))
    with replacing(folder / "trade_off.png") as temporary:
        trade_off_figure(points, chosen).savefig(temporary, format="png", dpi=110)
    judgements = ["false alarm" if n in matched.false_alarms else "hit" for n in range(len(detected))]
    hits = [
        (f"{keyword.seconds:.2f}", keyword.keyword, judgement)
        for keyword, judgement in zip(detected, judgements, strict=True)
    ]
    write_text(folder / "detections.tsv", tsv_table(("seconds", "keyword", "judgement"), hits))
    missed = [
        (f"{keyword.start:.2f}", f"{keyword.end:.2f}", keyword.keyword)
        for keyword, hit in zip(spoken, matched.hits, strict=True)
        if hit is None
    ]
    write_text(folder / "missed.tsv", tsv_table(COLUMNS, missed))
    write_json(folder / "detection.json", {"seconds": seconds, **asdict(chosen)})


def trade_off_figure(points: Sequence[OperatingPoint], chosen: OperatingPoint) -> Figure:
    """False reject rate over false alarms an hour, with the chosen threshold marked."""
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    ordered = sorted(points, key=lambda point: point.threshold)
    alarms = [point.false_alarms_per_hour for point in ordered]
    axes.plot(alarms, [100 * point.false_reject_rate for point in ordered], marker=".")
    axes.plot([chosen.false_alarms_per_hour], [100 * chosen.false_reject_rate], "o", markersize=9)
    axes.annotate(
        f"threshold {chosen.threshold:.2f}",
        (chosen.false_alarms_per_hour, 100 * chosen.false_reject_rate),
        textcoords="offset points",
        xytext=(8, 8),
    )
    axes.set_xscale("symlog", linthresh=1)  # shows 0 as well as 1,000 alarms
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("false alarms an hour")
    axes.set_ylabel("false rejects, % of the spoken keywords")
    axes.grid(alpha=0.3)
    return figure
