"""Checked utterances of a corpus → its figures: size, overlap of splits, syllable coverage, rejections."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from rich.console import Console
from rich.table import Column, Table

from data.manifest import Utterance
from utils.audio.reading import SAMPLE_RATE
from utils.mandarin.pinyin import full_inventory

Splits = Mapping[str, Sequence[Utterance]]


def summarise(
    corpus: str,
    splits: Splits,
    rates: Mapping[int, int],
    rejected: Mapping[str, int],
    notes: Mapping[str, int],
) -> dict[str, Any]:
    """The figures of a prepared corpus as plain nested values, ready for JSON.

    Args:
        corpus: its name.
        splits: utterances by split; the first is the one that models train on.
        rates: how many utterances are recorded at each sample rate, in Hz.
        rejected: how many utterances for each reason.
        notes: how many utterances for each remark.
    """
    return {
        "corpus": corpus,
        "splits": {name: _size(utterances) for name, utterances in splits.items()},
        "overlap": {f"{a}/{b}": _overlap(splits[a], splits[b]) for a, b in combinations(splits, 2)},
        "coverage": _coverage(splits),
        "sample_rates": {str(rate): rates[rate] for rate in sorted(rates)},
        "rejected": dict(sorted(rejected.items())),
        "notes": dict(sorted(notes.items())),
    }


def _syllables(utterances: Sequence[Utterance]) -> Counter[str]:
    return Counter(syllable for utterance in utterances for syllable in utterance.pinyin)


def _size(utterances: Sequence[Utterance]) -> dict[str, Any]:
    syllables = _syllables(utterances)
    return {
        "utterances": len(utterances),
        "hours": round(sum(utterance.seconds for utterance in utterances) / 3600, 4),
        "speakers": len({utterance.speaker for utterance in utterances}),
        "distinct_sentences": len({utterance.hanzi for utterance in utterances}),
        "syllables": syllables.total(),
        "distinct_syllables": len(syllables),
        "spoken_readings": sum(bool(utterance.spoken_pinyin) for utterance in utterances),
    }


def _overlap(a: Sequence[Utterance], b: Sequence[Utterance]) -> dict[str, int]:
    sentences = {utterance.hanzi for utterance in a}
    return {
        "speakers": len({utterance.speaker for utterance in a} & {utterance.speaker for utterance in b}),
        "sentences": len(sentences & {utterance.hanzi for utterance in b}),
        "utterances_of_second": sum(utterance.hanzi in sentences for utterance in b),
    }


def _coverage(splits: Splits) -> dict[str, Any]:
    counts = {name: _syllables(utterances) for name, utterances in splits.items()}
    training_name, training = next(iter(counts.items()))
    seen = set().union(*counts.values())
    return {
        "inventory": len(full_inventory()),
        "seen": len(seen),
        "outside_inventory": sorted(seen - set(full_inventory())),
        f"seen_in_{training_name}": {
            name: {
                "distinct_syllables": len(count),
                "of_these_seen": len(set(count) & set(training)),
                "syllables": count.total(),
                "of_all_seen": sum(number for syllable, number in count.items() if syllable in training),
            }
            for name, count in counts.items()
            if name != training_name
        },
    }


def print_summary(summary: Mapping[str, Any], console: Console | None = None) -> None:
    """Print the figures as tables."""
    console = console or Console()
    sizes = Table(Column("split", overflow="fold"), title=f"{summary['corpus']}: utterances")
    columns = (
        "utterances",
        "hours",
        "speakers",
        "distinct_sentences",
        "distinct_syllables",
        "spoken_readings",
    )
    for label in (
        "utterances",
        "hours",
        "speakers",
        "distinct\ntexts",
        "tonal\nsyllables",
        "spoken\ndiffers",
    ):
        sizes.add_column(label, justify="right", no_wrap=True)
    for name, size in summary["splits"].items():
        hours = f"{size['hours']:,.2f}"
        sizes.add_row(name, *(hours if key == "hours" else f"{size[key]:,}" for key in columns))
    console.print(sizes)
    console.print(_overlap_table(summary["overlap"]))
    for line in _coverage_lines(summary["coverage"]):
        console.print(line, highlight=False)
    console.print(_rate_line(summary["sample_rates"]), highlight=False)
    _print_counts(console, "rejected (see rejected.tsv)", summary["rejected"])
    _print_counts(console, "notes", summary["notes"])


def _overlap_table(overlap: Mapping[str, Mapping[str, int]]) -> Table:
    table = Table("in both", title="overlap between splits")
    for column in ("speakers", "sentences", "utterances of\nthe second"):
        table.add_column(column, justify="right")
    for pair, counts in overlap.items():
        table.add_row(pair, *(f"{count:,}" for count in counts.values()))
    return table


def _coverage_lines(coverage: Mapping[str, Any]) -> list[str]:
    share = coverage["seen"] / coverage["inventory"]
    lines = [f"tonal syllables: {coverage['seen']:,} of {coverage['inventory']:,} in Mandarin ({share:.0%})"]
    for key, splits in coverage.items():
        if not key.startswith("seen_in_"):
            continue
        for name, counts in splits.items():
            missing = counts["distinct_syllables"] - counts["of_these_seen"]
            share = 1 - counts["of_all_seen"] / max(counts["syllables"], 1)
            training = key.removeprefix("seen_in_")
            lines.append(
                f"{name}: {missing} tonal syllables never seen in {training}, {share:.2%} of its text"
            )
    return lines


def _rate_line(rates: Mapping[str, int]) -> str:
    """The sample rates of the recordings, and what to do where they aren't those of the usual features."""
    shown = ", ".join(f"{int(rate):,} Hz ({count:,} utterances)" for rate, count in rates.items())
    lowest = min(map(int, rates))
    if lowest >= SAMPLE_RATE:
        return f"sample rates: {shown}"
    why = "recordings of other rates are brought to it" if len(rates) > 1 else "nothing is recorded above"
    return f"sample rates: {shown}; train with features.sample_rate={lowest}: {why}"


def _print_counts(console: Console, title: str, counts: Mapping[str, int]) -> None:
    if not counts:
        console.print(f"{title}: none")
        return
    table = Table("reason", title=title)
    table.add_column("utterances", justify="right")
    for reason, count in sorted(counts.items(), key=lambda item: -item[1]):
        table.add_row(reason, f"{count:,}")
    console.print(table)
