"""Writes the demo's ``summary.html`` from its summary, training histories, test results and hypotheses.

A Jinja template makes one self-contained page: curves and recordings are embedded, no network is needed.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pypinyin.contrib.tone_convert import to_tone

from analysis.demo.curves import Curve, draw_curve
from analysis.demo.examples import Sentence, align_example, choose_examples, read_hypotheses
from analysis.errors.attribution import ACOUSTIC, LANGUAGE, REPAIRED
from analysis.page.charts import bars
from analysis.page.data_urls import recording_address
from analysis.page.rendering import page_environment
from analysis.runs.history import read_history
from data.manifest import read_manifest
from utils.errors import RunError
from utils.files import write_text

# Rate in results.json → title and description on the page.
HEADLINES = {
    "syllable_error_rate": ("Syllable error", "wrong, missing or additional syllables, with tones"),
    "cer": ("Character error", "from audio to hanzi, with both models"),
    "sentence_error_rate": ("Sentence error", "sentences with at least one wrong character"),
}
DETAILS = {
    "toneless_syllable_error_rate": "Syllable error without tones",
    "tone_error_rate": "Wrong tone of correct base syllables",
    "cer_from_gold_pinyin": "Character error with all syllables correct",
}
CURVES = {
    "speech": (
        Curve("Acoustic model: loss", {"train_loss": "training", "dev_loss": "dev"}),
        Curve("Acoustic model: syllable error (dev)", {"dev_syllable_error_rate": "dev"}, percent=True),
    ),
    "language": (
        Curve("Language model: loss", {"train_loss": "training", "dev_loss": "dev"}),
        Curve("Language model: character error (dev)", {"dev_character_error_rate": "dev"}, percent=True),
    ),
}
TABLES = {"syllables": "Syllables", "hanzi": "Characters"}
CONFUSIONS_SHOWN = 8  # of syllables, and as many of hanzi
MIN_CONFUSED = 2  # a single confusion may be chance


def write_summary_page(folder: str | Path) -> Path:
    """Write ``summary.html`` into the demo's folder, from the files there; returns its path.

    Args:
        folder: has ``summary.json`` (see ``demo.py``), ``speech`` and ``language`` (runs) and ``test`` (of
            ``test.py pipeline``).

    Raises:
        RunError, CorpusError: one of these files is missing or damaged.
    """
    folder = Path(folder)
    summary, results = _read_json(folder / "summary.json"), _read_json(folder / "test" / "results.json")
    groups = choose_examples(read_hypotheses(folder / "test" / "hypotheses.tsv"))
    recordings = _recordings(results["manifests"])
    right, worst, drawn = ([_example(sentence, recordings) for sentence in group] for group in groups)
    page = page_environment().get_template("summary.html.j2")
    html = page.render(
        summary=summary,
        results=results,
        headlines=_headlines(results),
        details={title: results[name] for name, title in DETAILS.items() if results.get(name) is not None},
        stages=_stages(summary),
        curves=[curve for stage in CURVES for curve in _curves(folder / stage, CURVES[stage])],
        causes=_causes(results["error_types"]),
        tables=_tables(results["error_types"]),
        confusions=_confusions(results["error_types"]),
        examples={"correct": right, "worst": worst, "drawn": drawn},
        transcripts=[
            {**transcript, "sound": recording_address(transcript["audio"])}
            for transcript in summary["transcripts"]
        ],
    )
    write_text(folder / "summary.html", html)
    return folder / "summary.html"


def _read_json(path: Path) -> dict[str, Any]:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RunError(f"not valid results ({error})", where=path, hint="run demo.py") from error


def _headlines(results: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Rate, interval and description of each headline figure."""
    return [
        {
            "title": title,
            "note": note,
            "rate": results[name],
            "low": results["intervals"][name][0],
            "high": results["intervals"][name][1],
            "counts": results["counts"][name],
        }
        for name, (title, note) in HEADLINES.items()
        if name in results
    ]


def _stages(summary: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Stages with their original computing time (None: not known), also relative to the longest."""
    made = summary["seconds_when_made"]
    longest = max(made.values(), default=0.0) or 1.0
    return [
        {
            "title": summary["titles"][name],
            "seconds": seconds,
            "made_seconds": made.get(name),
            "share": made.get(name, 0.0) / longest,
            "reused": name in summary["reused"],
        }
        for name, seconds in summary["seconds"].items()
    ]


def _curves(run: Path, curves: Sequence[Curve]) -> list[dict[str, Any]]:
    """Learning curves of a run; none for an n-gram model, which has no epochs."""
    if not (run / "history.csv").is_file():
        return []
    history = read_history(run / "history.csv")
    drawn = [curve for curve in curves if set(curve.columns) <= set(history)]
    return [{"title": curve.title, "svg": draw_curve(history, curve)} for curve in drawn]


def _causes(types: Mapping[str, Any]) -> dict[str, int]:
    """The number of wrong hanzi by cause; empty if not known."""
    counts = Counter(types.get("attribution", {}))
    wrong = counts.total() - counts[REPAIRED]
    others = wrong - counts[ACOUSTIC] - counts[LANGUAGE]
    names = (ACOUSTIC, LANGUAGE, REPAIRED)
    return {"wrong": wrong, "others": others, **{name: counts[name] for name in names}} if counts else {}


def _tables(types: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Kinds of errors by level, the most frequent first; levels without errors are left out."""
    rows = {title: bars(types.get(key, {})) for key, title in TABLES.items()}
    return [
        {"title": title, "total": sum(row.count for row in found), "rows": found}
        for title, found in rows.items()
        if found
    ]


def _confusions(types: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The most frequent confusions, of syllables (with tone marks) and then of hanzi."""
    syllables = [
        (to_tone(reference), to_tone(output), count)
        for reference, output, count in types.get("syllable_confusions", [])
    ]
    shown = syllables[:CONFUSIONS_SHOWN] + types.get("hanzi_confusions", [])[:CONFUSIONS_SHOWN]
    return [
        {"reference": reference, "output": output, "count": count}
        for reference, output, count in shown
        if count >= MIN_CONFUSED
    ]


def _recordings(manifests: Sequence[str]) -> dict[str, Path]:
    """The recording of each utterance of the test set, as far as its manifests still exist."""
    found = [Path(path) for path in manifests if Path(path).is_file()]
    return {utterance.id: utterance.audio for path in found for utterance in read_manifest(path)}


def _example(sentence: Sentence, recordings: Mapping[str, Path]) -> dict[str, Any]:
    sound = recording_address(recordings[sentence.id]) if sentence.id in recordings else ""
    return {"sentence": align_example(sentence), "sound": sound}
