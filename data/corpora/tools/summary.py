"""Computes and prints statistics of a prepared corpus: sizes, overlap of splits, syllables, rejections."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from data.manifest import Utterance
from utils.audio.reading import SAMPLE_RATE
from utils.mandarin.pinyin import full_inventory
from utils.text_table import print_table

Splits = Mapping[str, Sequence[Utterance]]

_SIZE_COLUMNS = {
    "utterances": "utterances",
    "hours": "hours",
    "speakers": "speakers",
    "distinct_sentences": "distinct\ntexts",
    "distinct_syllables": "tonal\nsyllables",
    "spoken_readings": "spoken\ndiffers",
}


def summarise(
    corpus: str,
    splits: Splits,
    rates: Mapping[int, int],
    rejected: Mapping[str, int],
    notes: Mapping[str, int],
) -> dict[str, Any]:
    """Compute the statistics of a prepared corpus as plain nested values, ready for JSON.

    Args:
        corpus: name of the corpus.
        splits: utterances by split; the first is the training split.
        rates: number of utterances by sample rate in Hz.
        rejected: number of utterances by reason.
        notes: number of utterances by note.
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


def _speakers(utterances: Sequence[Utterance]) -> set[str]:
    """The known speakers."""
    return {utterance.speaker for utterance in utterances} - {""}


def _size(utterances: Sequence[Utterance]) -> dict[str, Any]:
    syllables = _syllables(utterances)
    return {
        "utterances": len(utterances),
        "hours": round(sum(utterance.seconds for utterance in utterances) / 3600, 4),
        "speakers": len(_speakers(utterances)),
        "distinct_sentences": len({utterance.hanzi for utterance in utterances}),
        "syllables": syllables.total(),
        "distinct_syllables": len(syllables),
        "spoken_readings": sum(bool(utterance.spoken_pinyin) for utterance in utterances),
    }


def _overlap(a: Sequence[Utterance], b: Sequence[Utterance]) -> dict[str, int]:
    sentences = {utterance.hanzi for utterance in a}
    return {
        "speakers": len(_speakers(a) & _speakers(b)),
        "sentences": len(sentences & {utterance.hanzi for utterance in b}),
        "utterances_of_second": sum(utterance.hanzi in sentences for utterance in b),
    }


def _coverage(splits: Splits) -> dict[str, Any]:
    counts = {name: _syllables(utterances) for name, utterances in splits.items()}
    (training, training_counts), *others = counts.items()
    seen = set().union(*counts.values())
    return {
        "inventory": len(full_inventory()),
        "seen": len(seen),
        "outside_inventory": sorted(seen - set(full_inventory())),
        f"seen_in_{training}": {
            name: {
                "distinct_syllables": len(count),
                "of_these_seen": len(set(count) & set(training_counts)),
                "syllables": count.total(),
                "of_all_seen": sum(n for syllable, n in count.items() if syllable in training_counts),
            }
            for name, count in others
        },
    }


def print_summary(summary: Mapping[str, Any]) -> None:
    """Print the statistics as tables."""
    sizes = [
        (name, *({key: size[key] for key in _SIZE_COLUMNS} | {"hours": f"{size['hours']:,.2f}"}).values())
        for name, size in summary["splits"].items()
    ]
    title = f"{summary['corpus']}: utterances"
    print_table(title, ("split", *_SIZE_COLUMNS.values()), sizes)
    overlap = [(pair, *counts.values()) for pair, counts in summary["overlap"].items()]
    headings = ("in both", "speakers", "sentences", "utterances of\nthe second")
    print_table("overlap between splits", headings, overlap)
    for line in (*_coverage_lines(summary), _rate_line(summary["sample_rates"])):
        print(line)
    _print_counts("rejected (see rejected.tsv)", summary["rejected"])
    _print_counts("notes", summary["notes"])


def _coverage_lines(summary: Mapping[str, Any]) -> list[str]:
    coverage = summary["coverage"]
    seen, inventory = coverage["seen"], coverage["inventory"]
    lines = [f"tonal syllables: {seen:,} of {inventory:,} in Mandarin ({seen / inventory:.0%})"]
    training = next(iter(summary["splits"]))
    for name, counts in coverage[f"seen_in_{training}"].items():
        missing = counts["distinct_syllables"] - counts["of_these_seen"]
        if not counts["syllables"]:
            continue  # an empty split: the command reports it
        fraction = 1 - counts["of_all_seen"] / counts["syllables"]
        lines.append(
            f"{name}: {missing} tonal syllables never seen in {training}, {fraction:.2%} of its text"
        )
    return lines


def _rate_line(rates: Mapping[str, int]) -> str:
    """The sample rates of the recordings, and how to train if one is below the usual rate."""
    shown = ", ".join(f"{int(rate):,} Hz ({count:,} utterances)" for rate, count in rates.items())
    lowest = min(map(int, rates))
    if lowest >= SAMPLE_RATE:
        return f"sample rates: {shown}"
    reason = "other rates are converted to it" if len(rates) > 1 else "no recording has a higher rate"
    return f"sample rates: {shown}; train with features.sample_rate={lowest}: {reason}"


def _print_counts(title: str, counts: Mapping[str, int]) -> None:
    if not counts:
        print(f"{title}: none")
        return
    ordered = sorted(counts.items(), key=lambda item: -item[1])
    print_table(title, ("reason", "utterances"), ordered)
