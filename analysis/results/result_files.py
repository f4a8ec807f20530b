"""Writes results to files: those of a test (``results.json``, hypotheses), JSON and CSV of a report."""

import dataclasses
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from analysis.inputs.utterance_results import HANZI, SYLLABLES, UtteranceResult, as_text, tokens_of
from analysis.results.rates import BEST_OF_N_BEST, PERFECT_FIRST_STAGE
from analysis.results.results import Results, System, UtteranceRow
from utils.files import write_text
from utils.hypotheses.transcript_formats import n_best_values
from utils.metrics import ErrorCounts, count_errors
from utils.text_table import csv_table, tsv_table

REPORT, RATES, KINDS, BREAKDOWNS, UTTERANCES, ERRORS, CHANGES = (
    "report.json",
    "rates.csv",
    "error_types.csv",
    "breakdowns.csv",
    "utterances.csv",
    "errors.csv",
    "changes.csv",
)
# Spreadsheet programs assume the system's own encoding for a CSV file that does not begin with this.
BYTE_ORDER_MARK = "\ufeff"
EDITS = ("substitutions", "insertions", "deletions", "reference tokens")
WORST_KEPT = 10  # utterances in results.json
CONFUSIONS_KEPT = 20  # of each level in results.json

Row = Sequence[object]


def write_results(folder: str | Path, results: Results) -> list[Path]:
    """Write all results into a folder; returns the files.

    ``report.json`` contains everything. The CSV files (UTF-8 with a byte-order mark and a header) are for
    spreadsheets: rates and oracles, kinds of errors, breakdowns, utterances, every single error, and the
    changes between systems.
    """
    folder = Path(folder)
    tables = {
        RATES: _rates(results),
        KINDS: _kinds(results),
        BREAKDOWNS: _breakdowns(results),
        UTTERANCES: _utterances(results),
        ERRORS: _errors(results),
        CHANGES: _changes(results),
    }
    if not results.comparisons:
        del tables[CHANGES]
        (folder / CHANGES).unlink(missing_ok=True)  # of an earlier report in the same folder
    for name, (headings, *rows) in tables.items():
        write_text(folder / name, BYTE_ORDER_MARK + csv_table(headings, rows))
    write_text(folder / REPORT, to_json(results))
    return [folder / REPORT, *(folder / name for name in tables)]


def to_json(results: Results) -> str:
    """Results as JSON: data classes become objects with the names of their attributes, tuples lists."""
    return json.dumps(
        results, ensure_ascii=False, separators=(",", ":"), default=_attributes, allow_nan=False
    )


def summary(results: Results) -> dict[str, Any]:
    """The contents of a test's ``results.json``: the main results of its system.

    Returns:
        ``task``, all settings, ``utterances``, ``speakers``, each rate under its key, ``intervals`` (low,
        high, by rate) with their ``interval_unit``, ``counts`` by rate, ``error_types``, ``worst``, and where
        they are known ``cer_from_gold_pinyin``, and by level ``best_of_n_best``, the rates of the best
        hypotheses of the n-best lists.
    """
    (system,) = results.systems
    rates = {rate.key: rate for rate in system.rates}
    oracles = {(oracle.name, oracle.level): oracle.rate for oracle in system.oracles}
    best_of_n_best = {level: rate for (name, level), rate in oracles.items() if name == BEST_OF_N_BEST}
    return {
        "task": results.task,
        **results.settings,
        "utterances": results.utterances,
        "speakers": results.speakers,
        **{key: rate.rate for key, rate in rates.items()},
        "intervals": {key: [rate.low, rate.high] for key, rate in rates.items()},
        "interval_unit": system.rates[0].unit,
        "counts": {key: dataclasses.asdict(rate.counts) for key, rate in rates.items()},
        "error_types": _error_types(system),
        "worst": [_worst_summary(row, results.levels[-1]) for row in highest_error_rates(results)],
        **(
            {"cer_from_gold_pinyin": oracles[key]} if (key := (PERFECT_FIRST_STAGE, HANZI)) in oracles else {}
        ),
        **({"best_of_n_best": best_of_n_best} if best_of_n_best else {}),
    }


def highest_error_rates(results: Results) -> list[UtteranceRow]:
    """The utterances of the first system with the highest error rates; repeated results count once."""
    level = results.levels[-1]
    distinct = {
        (row.reference_pinyin, row.reference_hanzi, row.pinyin, row.hanzi): row
        for row in results.systems[0].utterances
    }

    def rank(row: UtteranceRow) -> tuple[float, int, str]:
        errors, tokens = row.errors(level)
        return -errors / max(tokens, 1), -errors, row.id

    return sorted((row for row in distinct.values() if row.errors(level)[0]), key=rank)[:WORST_KEPT]


def hypotheses_tsv(utterances: Sequence[UtteranceResult]) -> str:
    """A table with a header: reference, output and number of errors of each utterance.

    If no utterance has hanzi (a recogniser of syllables), ``hanzi`` and ``hanzi_errors`` are empty.
    """
    columns = (
        "id",
        "reference_pinyin",
        "pinyin",
        "reference_hanzi",
        "hanzi",
        "syllable_errors",
        "hanzi_errors",
    )
    has_hanzi = any(utterance.hanzi for utterance in utterances)
    rows = (
        (
            utterance.id,
            " ".join(utterance.reference_pinyin),
            " ".join(utterance.pinyin),
            as_text(utterance.reference_hanzi),
            as_text(utterance.hanzi),
            count_errors(*tokens_of(utterance, SYLLABLES)).errors,
            count_errors(*tokens_of(utterance, HANZI)).errors if has_hanzi else "",
        )
        for utterance in utterances
    )
    return tsv_table(columns, rows)


def n_best_lines(utterances: Sequence[UtteranceResult]) -> str:
    """A line of JSON for each utterance: ``id``, the best ``hanzi`` and ``pinyin``, and ``n_best``.

    The list is that of a segment in the JSON of ``transcribe.py``.
    """
    lines = []
    for utterance in utterances:
        texts = {"hanzi": as_text(utterance.hanzi), "pinyin": " ".join(utterance.pinyin)}
        values = {"id": utterance.id, **texts, "n_best": n_best_values(utterance.n_best)}
        lines.append(json.dumps(values, ensure_ascii=False) + "\n")
    return "".join(lines)


def _error_types(system: System) -> dict[str, Any]:
    types: dict[str, Any] = {}
    for level, kinds in system.kinds.items():
        types[level] = kinds
        types[f"{level.removesuffix('s')}_confusions"] = system.top_confusions[level][:CONFUSIONS_KEPT]
    groups = {"named_confusions": system.named_confusions, "attribution": system.attribution}
    return types | {name: counts for name, counts in groups.items() if counts}


def _worst_summary(row: UtteranceRow, level: str) -> dict[str, Any]:
    errors, tokens = row.errors(level)
    texts = ("reference_pinyin", "pinyin", "reference_hanzi", "hanzi")
    return {
        "id": row.id,
        "errors": errors,
        "reference": tokens,
        **{name: getattr(row, name) for name in texts},
    }


def _attributes(value: object) -> dict[str, Any]:
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


def _rates(results: Results) -> Iterable[Row]:
    yield "system", "metric", "level", "rate", "low", "high", "resampled by", *EDITS
    for system in results.systems:
        for rate in system.rates:
            interval = (rate.low, rate.high, rate.unit)
            yield system.name, rate.name, rate.level, rate.rate, *interval, *_edits(rate.counts)
        for oracle in system.oracles:
            yield system.name, oracle.name, oracle.level, oracle.rate, "", "", "", *_edits(oracle.counts)


def _kinds(results: Results) -> Iterable[Row]:
    yield "system", "level", "group", "name", "count"
    for system in results.systems:
        for level, kinds in system.kinds.items():
            yield from ((system.name, level, "kind", kind, count) for kind, count in kinds.items())
        for group, counts in (("confusion", system.named_confusions), ("attribution", system.attribution)):
            yield from ((system.name, "", group, name, count) for name, count in counts.items())


def _breakdowns(results: Results) -> Iterable[Row]:
    yield "system", "level", "breakdown", "group", "utterances", "rate", "low", "high", "resampled by", *EDITS
    for system in results.systems:
        for breakdown in system.breakdowns:
            for group in breakdown.groups:
                names = (system.name, breakdown.level, breakdown.name, group.name)
                figures = (group.utterances, group.rate, group.low, group.high, group.unit)
                yield *names, *figures, *_edits(group.counts)


def _utterances(results: Results) -> Iterable[Row]:
    lists = ("n_best", "times", "alignment")
    names = [field.name for field in dataclasses.fields(UtteranceRow) if field.name not in lists]
    yield "system", *names
    for system in results.systems:
        for row in system.utterances:
            yield system.name, *(getattr(row, name) for name in names)


def _errors(results: Results) -> Iterable[Row]:
    columns = ("reference", "output", "kind", "reference syllable", "recognised syllable", "syllable kind")
    yield "system", "id", "position", *columns, "attribution", "confusions"
    for system in results.systems:
        for row in system.utterances:
            position = 0
            for fields in row.alignment:
                reference, _, kind, _, _, _, attribution, _ = fields
                position += bool(reference)
                if kind or attribution:
                    yield system.name, row.id, position, *fields


def _changes(results: Results) -> Iterable[Row]:
    texts = ("reference", "output 1", "output 2")
    yield "level", "first", "second", "id", "errors first", "errors second", *texts
    for comparison in results.comparisons:
        for change in (*comparison.better, *comparison.worse):
            outputs = (change.reference, *change.hypotheses)
            yield comparison.level, *comparison.systems, change.id, *change.errors, *outputs


def _edits(counts: ErrorCounts) -> tuple[int, int, int, int]:
    return counts.substitutions, counts.insertions, counts.deletions, counts.reference
