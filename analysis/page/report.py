"""Results of a report, and what is there to hear and see, in; one self-contained HTML page out.

The page needs no network and no other file. Figures and drawings stand in it; the table of utterances is made
by its script (``templates/report_utterances.js``) from short rows, a page of them at a time.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pypinyin.contrib.tone_convert import to_tone
from rapidfuzz.distance import Levenshtein

from analysis.inputs.utterance_results import HANZI, SYLLABLES
from analysis.intervals.comparison import Comparison
from analysis.page.charts import HeatMap, bars, breakdown_chart, heat_map
from analysis.page.evidence import Evidence
from analysis.page.flow import draw_flow
from analysis.page.rendering import page_environment
from analysis.page.texts import (
    ADVICE,
    BASES,
    LEVEL_TITLES,
    SIGNS,
    edits_text,
    probability_text,
    setting_texts,
)
from analysis.page.utterance_rows import WORDS, utterance_rows
from analysis.results.results import Results, System
from utils.files import write_text

REPORT = "report.html"
MISSING = "–"
MAPS = ("initial", "tone", "final")  # in the order in which they fit beside each other
CERTAIN = 0.05  # the p-value below which two systems are called different


def write_report_page(
    folder: str | Path, results: Results, evidence: Mapping[str, Evidence] | None = None
) -> Path:
    """Write ``report.html`` into a folder; returns its path.

    Args:
        folder: of the report.
        results: of one system or of several.
        evidence: sound and picture of utterances by their ids, in the order in which they are to be listed.
    """
    evidence = evidence or {}
    environment = page_environment()
    environment.filters |= {
        "rate": rate_text,
        "edits": edits_text,
        "probability": probability_text,
        "marks": with_tone_marks,
        "signed": signed_text,
    }
    page = environment.get_template("report.html.j2").render(
        results=results,
        settings=setting_texts(results.settings),
        systems=[_system(number, system) for number, system in enumerate(results.systems)],
        comparisons=[_comparison(one) for one in results.comparisons],
        normalised=[one for one in results.normalisation if any(one.lines.values())],
        titles=LEVEL_TITLES,
        advice=ADVICE,
        signs=SIGNS,
        data=_data(results, evidence),
        evidence={name: _evidence(one) for name, one in evidence.items()},
    )
    path = Path(folder) / REPORT
    write_text(path, page)
    return path


def rate_text(rate: float) -> str:
    """A rate in per cent, with three digits or so: ``0.0064`` → ``0.64``, ``0.133`` → ``13.3``."""
    return f"{100 * rate:.2f}" if rate < 0.0995 else f"{100 * rate:.1f}"


def signed_text(value: float, digits: int = 2) -> str:
    """``-0.5`` → ``−0.50``, ``3`` → ``+3.00``."""
    return f"{value:+.{digits}f}".replace("-", "−")


def with_tone_marks(pinyin: str) -> str:
    """Syllables with tone marks, not digits."""
    return " ".join(map(to_tone, pinyin.split()))


def marked(reference: str, text: str, level: str) -> list[tuple[str, bool]]:
    """A text in pieces, each with whether it differs from the reference; what is missing is a dash.

    Hanzi are compared by character, syllables by word, and these are written with tone marks.
    """
    ours, theirs, glue = list(reference), list(text), ""
    if level == SYLLABLES:
        ours, theirs, glue = with_tone_marks(reference).split(), with_tone_marks(text).split(), " "
    pieces = []
    for move in Levenshtein.opcodes(ours, theirs):
        piece = glue.join(theirs[move.dest_start : move.dest_end])
        pieces.append((piece or MISSING, move.tag != "equal"))
    return pieces


def _system(number: int, system: System) -> dict[str, Any]:
    """What the template shows of a system beside its plain results."""
    return {
        "key": f"s{number}",
        "results": system,
        "kinds": {level: bars(counts) for level, counts in system.kinds.items()},
        "absent": {
            level: [kind for kind, count in counts.items() if not count and kind not in system.unknown_kinds]
            for level, counts in system.kinds.items()
        },
        "confusions": bars(system.named_confusions),
        "unconfused": [name for name, count in system.named_confusions.items() if not count],
        "maps": _maps(system),
        "top": {level: _top(system, level) for level, found in system.top_confusions.items() if found},
        "flow": draw_flow(system.flow, f"s{number}-flow-title"),
        "fates": [one for one in system.flow if one.attribution],
        "blame": _blame(system),
        "basis": BASES.get(system.attribution_basis, ""),
        "cuts": {
            level: [breakdown_chart(cut) for cut in system.cuts if cut.level == level and len(cut.groups) > 1]
            for level in system.kinds
        },
        "single_cuts": [cut for cut in system.cuts if len(cut.groups) == 1],
        "headlines": {one.level: one.rate for one in system.rates if one.name in _BASE.values()},
        "speakers": sorted({one.speaker for one in system.utterances if one.speaker}),
    }


_BASE = {SYLLABLES: "syllable error", HANZI: "hanzi error"}


def _maps(system: System) -> list[HeatMap]:
    drawn = [heat_map(one) for one in system.matrices]
    return sorted((one for one in drawn if one.pairs), key=lambda one: MAPS.index(one.part))


def _top(system: System, level: str) -> list[tuple[str, str, int, float]]:
    total = sum(system.kinds[level].values())
    return [(said, heard, count, count / total) for said, heard, count in system.top_confusions[level]]


def _blame(system: System) -> list[tuple[str, int, float]]:
    """(attribution, count, share of the errors), what occurs; ``repaired`` has no share."""
    errors = sum(count for name, count in system.attribution.items() if name != "repaired") or 1
    return [
        (name, count, 0.0 if name == "repaired" else count / errors)
        for name, count in system.attribution.items()
        if count
    ]


def _comparison(one: Comparison) -> dict[str, Any]:
    """A comparison with its verdict, and its changes with what differs marked."""
    test = one.matched_pairs
    better = one.systems[1] if one.difference < 0 else one.systems[0]
    if not one.difference:
        verdict = "Both make as many errors."
    elif test.p_value < CERTAIN:
        verdict = f"{better} makes fewer errors, by more than chance explains."
    else:
        verdict = f"{better} makes fewer errors here, but chance may explain that."
    return {
        "results": one,
        "verdict": verdict,
        "changes": {
            title: [
                (change, [marked(change.reference, text, one.level) for text in change.hypotheses])
                for change in changes
            ]
            for title, changes in (("better", one.better), ("worse", one.worse))
        },
    }


def _data(results: Results, evidence: Mapping[str, Evidence]) -> dict[str, Any]:
    """What the page's script reads."""
    return {
        "levels": results.levels,
        "words": WORDS,
        "signs": SIGNS,
        "listed": list(evidence),
        "systems": [
            {"name": system.name, "rows": utterance_rows(system.utterances)} for system in results.systems
        ],
    }


def _evidence(one: Evidence) -> dict[str, Any]:
    return {"sound": one.sound, "picture": one.picture, "seconds": one.seconds, "tracks": one.tracks}
