"""Results of a report in, tables for the terminal out."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from analysis.errors.attribution import REPAIRED
from analysis.inputs.hypothesis_files import Normalisation
from analysis.inputs.text_files import Problem
from analysis.intervals.comparison import Change, Comparison
from analysis.results.breakdowns import Breakdown
from analysis.results.results import Results, System
from analysis.results.test_tables import kinds_table, percent
from utils.metrics import ErrorCounts

GROUPS_SHOWN = 12  # of a cut; of speakers there may be hundreds
CHANGES_SHOWN = 5
CONFUSIONS_SHOWN = 10


def print_results_report(results: Results, console: Console) -> None:
    """Print what is wrong with the files, then each system, then the comparisons.

    Cuts, and what got better and worse, are printed of the last level only (hanzi, where there are hanzi).
    """
    speakers = f" of {results.speakers} speakers" if results.speakers else ""
    console.print(escape(f"{results.title}: {results.utterances} utterances{speakers}"))
    if results.problems:
        console.print(_problems(results.problems))
    if any(any(one.lines.values()) for one in results.normalisation):
        console.print(_normalisation(results.normalisation))
    for system in results.systems:
        _print_system(system, console)
    for comparison in results.comparisons:
        _print_comparison(comparison, console, changes=comparison.level == results.levels[-1])


def _print_system(system: System, console: Console) -> None:
    console.print(_rates(system))
    if system.automatic_pinyin:
        console.print("its syllables are pypinyin's reading of its hanzi")
    for level, kinds in system.kinds.items():
        console.print(kinds_table(f"{level}: errors by kind, aligned by sound", kinds))
    if system.unknown_kinds:
        console.print(f"not told, as the model isn't known: {', '.join(system.unknown_kinds)}")
    _print_counts("classic confusions", system.named_confusions.items(), console)
    for level, confusions in system.top_confusions.items():
        shown = [(f"{one} → {other}", count) for one, other, count in confusions[:CONFUSIONS_SHOWN]]
        _print_counts(f"most confused {level}", shown, console)
    if system.attribution:
        wrong = {name: count for name, count in system.attribution.items() if name != REPAIRED}
        console.print(
            kinds_table(f"wrong hanzi by who is to blame (by the {system.attribution_basis})", wrong)
        )
        console.print(f"right hanzi for a wrong syllable: {system.attribution[REPAIRED]}")
    for cut in system.cuts:
        if cut.level == list(system.kinds)[-1]:
            console.print(_cut(cut))


def _print_counts(title: str, counts: Iterable[tuple[str, int]], console: Console) -> None:
    shown = [f"{name} ({count})" for name, count in counts if count]
    if shown:
        console.print(escape(f"{title}: {'  '.join(shown)}"))


def _print_comparison(one: Comparison, console: Console, changes: bool) -> None:
    first, second = one.systems
    test = one.matched_pairs
    console.print(
        escape(
            f"{one.level}: {second} {percent(one.rates[1])}, {first} {percent(one.rates[0])}, "
            f"difference {100 * one.difference:+.2f} points (95 %: {100 * one.low:+.2f} to "
            f"{100 * one.high:+.2f}, resampled by {one.unit}); matched pairs over {test.segments} segments: "
            f"p = {test.p_value:.3g}"
        )
    )
    utterances = ", ".join(f"{count} {name}" for name, count in one.utterances.items())
    tokens = one.tokens
    console.print(
        f"utterances: {utterances}; tokens right in both: {tokens['both']}, only in the first: "
        f"{tokens['first']}, only in the second: {tokens['second']}, in neither: {tokens['neither']}"
    )
    for title, found in (("got better", one.better), ("got worse", one.worse)):
        if found and changes:
            console.print(_changes(title, one, found[:CHANGES_SHOWN]))


def _rates(system: System) -> Table:
    table = _table(system.name, "", "rate", "95 % interval", "substituted", "inserted", "deleted", "of")
    for one in system.rates:
        interval = f"{100 * one.low:.2f} – {100 * one.high:.2f} %"
        table.add_row(one.name, percent(one.rate), interval, *_edits(one.counts))
    for one in system.oracles:
        table.add_row(f"{one.level}, {one.name}", percent(one.rate), "", *_edits(one.counts))
    return table


def _cut(cut: Breakdown) -> Table:
    headings = (cut.name, "utterances", "rate", "95 % interval", "substituted", "inserted", "deleted", "of")
    table = _table(f"{cut.level} by {cut.name}", *headings)
    groups = cut.groups
    if len(groups) > GROUPS_SHOWN:
        groups = sorted(groups, key=lambda group: -group.rate)[:GROUPS_SHOWN]
        table.title = f"{cut.level} by {cut.name}: the worst {GROUPS_SHOWN} of {len(cut.groups)}"
    for one in groups:
        interval = f"{100 * one.low:.2f} – {100 * one.high:.2f} %"
        figures = (str(one.utterances), percent(one.rate), interval)
        table.add_row(escape(one.name), *figures, *_edits(one.counts))
    return table


def _problems(problems: Iterable[Problem]) -> Table:
    table = _table("problems of the files", "file", "what", "count", "e.g.", "effect")
    for one in problems:
        table.add_row(*map(escape, (one.file, one.what, str(one.count), " ".join(one.examples), one.effect)))
    return table


def _normalisation(rules: Iterable[Normalisation]) -> Table:
    table = _table("normalisation", "rule", "applied", "lines concerned", "hanzi errors otherwise")
    for one in rules:
        lines = ", ".join(f"{name}: {count}" for name, count in one.lines.items())
        errors = ", ".join(
            f"{name}: {count}" for name, count in one.errors_otherwise.items() if count is not None
        )
        table.add_row(one.rule, "yes" if one.applied else "no", escape(lines), escape(errors))
    return table


def _changes(title: str, one: Comparison, changes: Iterable[Change]) -> Table:
    table = _table(title, "id", "errors", f"reference, {one.systems[0]}, {one.systems[1]}")
    table.show_lines = True
    for change in changes:
        texts = "\n".join((change.reference, *change.hypotheses))
        table.add_row(escape(change.id), f"{change.errors[0]} → {change.errors[1]}", escape(texts))
    return table


def _table(title: str, *headings: str) -> Table:
    table = Table(title=escape(title), title_justify="left")
    for heading in headings:
        numbers = heading in (
            "rate",
            "95 % interval",
            "substituted",
            "inserted",
            "deleted",
            "of",
            "utterances",
        )
        table.add_column(escape(heading), justify="right" if numbers else "left", overflow="fold")
    return table


def _edits(counts: ErrorCounts) -> tuple[str, str, str, str]:
    figures = (counts.substitutions, counts.insertions, counts.deletions, counts.reference)
    return tuple(map(str, figures))
