"""Formats results as text tables for the terminal."""

from collections.abc import Iterable, Mapping

from analysis.errors.attribution import REPAIRED
from analysis.inputs.text_files import Problem
from analysis.intervals.comparison import Comparison
from analysis.results.result_files import highest_error_rates
from analysis.results.results import Results, System
from utils.metrics import ErrorCounts
from utils.text_table import percent, text_table

CONFUSIONS_SHOWN = 10  # of each level
RATE_HEADINGS = ("rate", "95 % interval", "substituted", "inserted", "deleted", "of")


def results_text(results: Results) -> str:
    """The test, problems of the files, each system, the worst utterances, the comparisons, and remarks.

    The worst utterances are shown if there is only one system. Breakdowns and the utterances that differ are
    in the page and the files.
    """
    parts = ["\n".join([_size(results), *_settings(results)])]
    problems = [problem for problem in results.problems if not problem.is_harmless]
    remarks = [problem for problem in results.problems if problem.is_harmless]
    if problems:
        parts.append(_problems("problems of the files", problems))
    for system in results.systems:
        parts += _system(system)
    if len(results.systems) == 1:
        parts += _worst(results)
    for comparison in results.comparisons:
        parts.append(_comparison(comparison))
    if remarks:
        parts.append(_problems("remarks on the files", remarks))
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def _size(results: Results) -> str:
    speakers = f" of {results.speakers} speakers" if results.speakers else ""
    unit = results.systems[0].rates[0].unit
    return f"{results.title}: {results.utterances} utterances{speakers}; intervals resampled by {unit}"


def _settings(results: Results) -> Iterable[str]:
    """The computing time, and how many sentences were trained on."""
    settings = results.settings
    if "real_time_factor" in settings:
        yield (
            f"{settings['audio_seconds']:.1f} s of audio in {settings['seconds']:.1f} s: "
            f"real-time factor {settings['real_time_factor']:.4f}"
        )
    seen = settings.get("seen_in_training")
    for stage, count in seen.items() if isinstance(seen, Mapping) else ():
        known = f"{count} utterances"
        if count is None:
            known = "not known (its training manifests are missing or plain text)"
        yield f"sentences that the {stage} model was trained on: {known}"


def _problems(title: str, problems: Iterable[Problem]) -> str:
    lines = [f"{title}:"]
    for problem in problems:
        examples = f" ({' '.join(problem.examples)})" if problem.examples else ""
        lines.append(f"  {problem.file}: {problem.description}: {problem.count}{examples}; {problem.effect}")
    return "\n".join(lines)


def _system(system: System) -> Iterable[str]:
    yield _rates(system)
    if system.automatic_pinyin:
        sides = " and of the ".join(system.automatic_pinyin)
        yield f"the syllables of the {sides} are pypinyin's reading of the hanzi"
    for level, kinds in system.kinds.items():
        yield _kinds(f"{level}: errors by kind, aligned by sound", kinds)
    if system.unknown_kinds:
        yield f"not known, because the model is not known: {', '.join(system.unknown_kinds)}"
    if system.attribution:
        wrong = {name: count for name, count in system.attribution.items() if name != REPAIRED}
        repaired = f"correct hanzi for a wrong syllable ({REPAIRED}): {system.attribution[REPAIRED]}"
        yield f"{_kinds(f'wrong hanzi by cause (by the {system.attribution_basis})', wrong)}{repaired}"
    confusions = {"classic confusions": list(system.named_confusions.items())} | {
        f"most confused {level}": [(f"{a} → {b}", count) for a, b, count in pairs[:CONFUSIONS_SHOWN]]
        for level, pairs in system.top_confusions.items()
    }
    for title, counts in confusions.items():
        if shown := [f"{name} ({count})" for name, count in counts if count]:
            yield f"{title}: {'  '.join(shown)}"


def _rates(system: System) -> str:
    rows = []
    for rate in system.rates:
        edits = _edits(rate.counts)
        if not rate.has_edits:
            edits[1:3] = ["", ""]
        rows.append((rate.name, percent(rate.rate), _interval(rate.low, rate.high), *edits))
    for oracle in system.oracles:
        rows.append((f"{oracle.level}, {oracle.name}", percent(oracle.rate), "", *_edits(oracle.counts)))
    return text_table((system.name, *RATE_HEADINGS), rows)


def _kinds(title: str, counts: Mapping[str, int]) -> str:
    """The kinds that occur, each with its count and its share; then their sum."""
    everything = sum(counts.values())
    rows = [(kind, str(count), percent(count / everything)) for kind, count in counts.items() if count]
    return text_table((title, "count", "share"), [*rows, ("all", str(everything), "")])


def _worst(results: Results) -> Iterable[str]:
    if rows := highest_error_rates(results):
        yield f"the {len(rows)} worst utterances: reference, then output"
    for row in rows:
        errors, tokens = row.errors(results.levels[-1])
        lines = [row.reference_hanzi, row.hanzi] if row.hanzi else []
        if row.reference_pinyin != row.pinyin or not lines:
            lines += [row.reference_pinyin, row.pinyin]
        yield "\n    ".join([f"{row.id}: {errors} of {tokens} wrong", *lines])


def _comparison(comparison: Comparison) -> str:
    first, second = comparison.systems
    test, tokens = comparison.matched_pairs, comparison.tokens
    utterances = ", ".join(f"{count} {name}" for name, count in comparison.utterances.items())
    return (
        f"{comparison.level}: {second} {percent(comparison.rates[1])}, {first} "
        f"{percent(comparison.rates[0])}, difference {100 * comparison.difference:+.2f} points "
        f"(95 %: {100 * comparison.low:+.2f} to {100 * comparison.high:+.2f}, resampled by "
        f"{comparison.unit}); matched pairs over {test.segments} segments: p = {test.p_value:.3g}\n"
        f"utterances: {utterances}; tokens correct in both: {tokens['both']}, only in the first: "
        f"{tokens['first']}, only in the second: {tokens['second']}, in neither: {tokens['neither']}"
    )


def _interval(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return ""
    return f"{100 * low:.2f} – {100 * high:.2f} %"


def _edits(counts: ErrorCounts) -> list[str]:
    figures = (counts.substitutions, counts.insertions, counts.deletions, counts.reference)
    return [str(figure) for figure in figures]
