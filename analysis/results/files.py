"""Results of a report in; ``report.json`` and its tables as CSV files out."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from analysis.results.results import Results, System, UtteranceRow
from utils.files import write_text

FACTS, RATES, KINDS, CUTS, UTTERANCES, ERRORS, CHANGES = (
    "report.json",
    "rates.csv",
    "error_types.csv",
    "breakdowns.csv",
    "utterances.csv",
    "errors.csv",
    "changes.csv",
)
# Spreadsheet programs take a CSV file for one in the system's own encoding unless it begins with this.
BYTE_ORDER_MARK = "\ufeff"


def write_results(folder: str | Path, results: Results) -> list[Path]:
    """Write the results into a folder; returns the files.

    ``report.json`` holds everything; the CSV files (UTF-8 with a byte-order mark, a header) are for
    spreadsheets: rates and oracles, kinds of errors, cuts, utterances, every single error, and what changed
    between systems.
    """
    folder = Path(folder)
    tables = {
        RATES: _rates(results),
        KINDS: _kinds(results),
        CUTS: _cuts(results),
        UTTERANCES: _utterances(results),
        ERRORS: _errors(results),
        CHANGES: _changes(results),
    }
    if not results.comparisons:
        del tables[CHANGES]
        (folder / CHANGES).unlink(missing_ok=True)  # of a report of two systems that was here before
    for name, rows in tables.items():
        write_text(folder / name, BYTE_ORDER_MARK + _csv(rows))
    write_text(folder / FACTS, to_json(results))
    return [folder / FACTS, *(folder / name for name in tables)]


def to_json(results: Results) -> str:
    """Results as JSON: data classes become objects with their attributes' names, tuples become lists."""
    return json.dumps(
        results, ensure_ascii=False, separators=(",", ":"), default=_attributes, allow_nan=False
    )


def _attributes(value: object) -> dict[str, Any]:
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    raise TypeError(f"{type(value).__name__} is not for JSON")


def _csv(rows: Iterable[Sequence[object]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def _rates(results: Results) -> Iterable[Sequence[object]]:
    edits = ("substitutions", "insertions", "deletions", "reference tokens")
    yield "system", "what", "level", "rate", "low", "high", "resampled by", *edits
    for system in results.systems:
        for one in system.rates:
            yield system.name, one.name, one.level, one.rate, one.low, one.high, one.unit, *_edits(one.counts)
        for one in system.oracles:
            yield system.name, one.name, one.level, one.rate, "", "", "", *_edits(one.counts)


def _kinds(results: Results) -> Iterable[Sequence[object]]:
    yield "system", "level", "group", "name", "count"
    for system in results.systems:
        for level, kinds in system.kinds.items():
            yield from ((system.name, level, "kind", kind, count) for kind, count in kinds.items())
        for group, counts in (("confusion", system.named_confusions), ("attribution", system.attribution)):
            yield from ((system.name, "", group, name, count) for name, count in counts.items())


def _cuts(results: Results) -> Iterable[Sequence[object]]:
    edits = ("substitutions", "insertions", "deletions", "reference tokens")
    yield "system", "level", "cut", "group", "utterances", "rate", "low", "high", "resampled by", *edits
    for system in results.systems:
        for cut in system.cuts:
            for one in cut.groups:
                figures = (one.utterances, one.rate, one.low, one.high, one.unit)
                yield system.name, cut.level, cut.name, one.name, *figures, *_edits(one.counts)


def _utterances(results: Results) -> Iterable[Sequence[object]]:
    lists = ("n_best", "times", "places")
    names = [field.name for field in dataclasses.fields(UtteranceRow) if field.name not in lists]
    yield "system", *names
    for system in results.systems:
        for one in system.utterances:
            yield system.name, *(getattr(one, name) for name in names)


def _errors(results: Results) -> Iterable[Sequence[object]]:
    columns = ("reference", "output", "kind", "reference syllable", "recognised syllable", "syllable kind")
    yield "system", "id", "position", *columns, "attribution", "confusions"
    for system in results.systems:
        yield from _errors_of(system)


def _errors_of(system: System) -> Iterable[Sequence[object]]:
    for one in system.utterances:
        position = 0
        for place in one.places:
            position += bool(place[0])
            if place[2] or place[6]:
                yield system.name, one.id, position, *place


def _changes(results: Results) -> Iterable[Sequence[object]]:
    yield (
        "level",
        "first",
        "second",
        "id",
        "errors first",
        "errors second",
        "reference",
        "output 1",
        "output 2",
    )
    for one in results.comparisons:
        for change in (*one.better, *one.worse):
            texts = (change.reference, *change.hypotheses)
            yield one.level, *one.systems, change.id, *change.errors, *texts


def _edits(counts: Any) -> tuple[int, int, int, int]:
    return counts.substitutions, counts.insertions, counts.deletions, counts.reference
