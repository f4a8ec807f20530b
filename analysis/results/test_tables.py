"""Figures of a test (:mod:`analysis.results.scores`) in, tables for the terminal out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.table import Table

from analysis.errors.attribution import REPAIRED

TITLES = {
    "syllable_error_rate": "syllable error",
    "toneless_syllable_error_rate": "syllable error, tones aside",
    "tone_error_rate": "tone error, the rest right",
    "cer": "hanzi error (CER)",
    "sentence_error_rate": "sentence error",
}
# These rates count wrong items, not edits: a split into kinds of edits would say nothing.
WITHOUT_EDITS = ("tone_error_rate", "sentence_error_rate")
CONFUSIONS_SHOWN = 10


def print_results(results: Mapping[str, Any], console: Console) -> None:
    """Print rates, results, error types and the worst utterances of ``results.json``."""
    console.print(_rates(results))
    for line in _facts(results):
        console.print(escape(line))
    console.print(_error_types(results["error_types"]))
    if results["worst"]:
        console.print(_worst(results["worst"]))


def _rates(results: Mapping[str, Any]) -> Table:
    table = Table(title=escape(f"{results['task']} on {results['split']}"), title_justify="left")
    table.add_column("")
    for heading in ("rate", "95 % interval", "substituted", "inserted", "deleted", "of"):
        table.add_column(heading, justify="right")
    for name, title in TITLES.items():
        if name not in results:
            continue
        counts, (low, high) = results["counts"][name], results["intervals"][name]
        edits = [str(counts[kind]) for kind in ("substitutions", "insertions", "deletions")]
        if name in WITHOUT_EDITS:
            edits[1:] = ["", ""]
        interval = f"{100 * low:.2f} – {100 * high:.2f} %"
        table.add_row(title, percent(results[name]), interval, *edits, str(counts["reference"]))
    return table


def _facts(results: Mapping[str, Any]) -> list[str]:
    speakers = f" of {results['speakers']} speakers" if results["speakers"] else ""
    lines = [
        f"{results['utterances']} utterances{speakers}; intervals resampled by {results['interval_unit']}"
    ]
    if "audio_seconds" in results:
        lines.append(
            f"{results['audio_seconds']:.1f} s of audio in {results['seconds']:.1f} s: "
            f"real-time factor {results['real_time_factor']:.4f}"
        )
    if "cer_from_gold_pinyin" in results:
        lines.append(f"CER if every syllable were right: {percent(results['cer_from_gold_pinyin'])}")
    if "distinct" in results:
        distinct = results["distinct"]
        lines.append(
            f"each distinct sentence once ({distinct['utterances']}): CER {percent(distinct['cer'])}, "
            f"sentence error {percent(distinct['sentence_error_rate'])}"
        )
    for stage, seen in results["seen_in_training"].items():
        known = (
            "not known (its training lists are gone or plain text)" if seen is None else f"{seen} utterances"
        )
        lines.append(f"sentence seen in the {stage} model's training: {known}")
    return lines


def _error_types(types: Mapping[str, Any]) -> RenderableType:
    parts: list[RenderableType] = []
    for key, title in (
        ("syllables", "syllable errors, aligned by sound"),
        ("hanzi", "hanzi errors, aligned by sound"),
        ("attribution", "wrong hanzi by the stage that made them"),
    ):
        if types.get(key):
            parts.append(kinds_table(title, {k: n for k, n in types[key].items() if k != REPAIRED}))
    if types.get("attribution"):
        repaired = types["attribution"].get(REPAIRED, 0)
        parts.append(f"right hanzi for a wrong syllable (repaired by the second stage): {repaired}")
    named = [f"{name} ({count})" for name, count in types.get("named_confusions", {}).items() if count]
    if named:
        parts.append(f"classic confusions: {'  '.join(named)}")
    for key, title in (("syllable_confusions", "syllables"), ("hanzi_confusions", "hanzi")):
        shown = [f"{one} → {other} ({count})" for one, other, count in types.get(key, [])[:CONFUSIONS_SHOWN]]
        if shown:
            parts.append(f"most confused {title}: {'  '.join(shown)}")
    return Group(*parts)


def kinds_table(title: str, counts: Mapping[str, int]) -> Table:
    """Kinds that occur, each with its count and its share; then their sum."""
    table = Table(title=title, title_justify="left")
    table.add_column("kind")
    table.add_column("count", justify="right")
    table.add_column("share", justify="right")
    everything = sum(counts.values())
    for kind, count in counts.items():
        if count:
            table.add_row(kind, str(count), percent(count / everything))
    table.add_row("all", str(everything), "", style="bold")
    return table


def _worst(worst: list[Mapping[str, Any]]) -> Table:
    table = Table(title=f"the {len(worst)} worst utterances", title_justify="left", show_lines=True)
    table.add_column("id", overflow="fold")
    table.add_column("errors", justify="right")
    table.add_column("reference, then output", overflow="fold")
    for one in worst:
        reference, output = one["reference_pinyin"], one["pinyin"]
        lines = [one["reference_hanzi"], one["hanzi"]] if one["hanzi"] else []
        lines += [reference, output] if reference != output or not lines else []
        table.add_row(escape(one["id"]), f"{one['errors']} of {one['reference']}", escape("\n".join(lines)))
    return table


def percent(rate: float) -> str:
    """``0.0534`` → ``5.34 %``."""
    return f"{100 * rate:.2f} %"
