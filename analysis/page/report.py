"""Writes the error report: results, with audio and pictures of utterances, as one self-contained HTML page.

The page needs no network and no other file. Figures and charts are in it as HTML and SVG; its script
(``templates/report_utterances.js``) makes the table of utterances, one page of rows at a time.
"""

import argparse
import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pypinyin.contrib.tone_convert import to_tone
from rapidfuzz.distance import Levenshtein

from analysis.errors.attribution import ACOUSTIC, BOTH, LABEL, LANGUAGE, REPAIRED, SEARCH, UNKNOWN
from analysis.errors.kinds import KINDS
from analysis.inputs.utterance_results import HANZI, SYLLABLES
from analysis.intervals.comparison import Comparison
from analysis.page.charts import HeatMap, bars, breakdown_chart, heat_map
from analysis.page.rendering import TEMPLATES, THIN, duration, page_environment
from analysis.results.rates import HANZI_ERROR, SYLLABLE_ERROR
from analysis.results.results import Results, System, UtteranceRow
from utils.files import write_text
from utils.metrics import ErrorCounts

REPORT = "report.html"
ENGLISH, CHINESE = LANGUAGES = ("en", "zh")
WORST_SHOWN = 40  # utterances, by default: about 4 MB of a page
MISSING = "–"  # shown for text that a system did not write
MATRIX_ORDER = ("initial", "tone", "final")  # in the order in which they fit beside each other
SIGNIFICANCE_LEVEL = 0.05  # p-values below it are called a difference
LEVEL_TITLES = {SYLLABLES: "Syllables", HANZI: "Hanzi"}
# What an attribution means, and what to try next.
ADVICE = {
    ACOUSTIC: (
        "A syllable was recognised wrongly; from the reference syllables the hanzi is correct.",
        "The maps of initials, finals and tones show which sounds are confused; the rates by speaker, speed "
        "and noise show where. More recordings of that kind, augmentation or a larger acoustic model help.",
    ),
    LANGUAGE: (
        "The syllable is correct, but another hanzi was chosen for it.",
        "More text of this domain, a model with a longer context, or a list of user words.",
    ),
    BOTH: (
        "The syllable is wrong, and from the reference syllables the hanzi is wrong too.",
        "A better acoustic model alone does not help. Begin with the stage that would reduce the rate more "
        "if it were perfect (below).",
    ),
    SEARCH: (
        "The search failed: a stage gives the reference a better score than its own output.",
        "A wider beam (--beam) corrects some of these errors, but takes more time.",
    ),
    LABEL: (
        "The recognised syllable is what was spoken, or what the dictionary gives; the reference differs.",
        "Listen to some of these utterances. If the manifest is wrong, correct its pinyin, not the models.",
    ),
    UNKNOWN: (
        "There is no syllable: a Latin word, a number, or a text with more or fewer syllables than hanzi.",
        "Write numbers as hanzi (--normalise digits), and give one syllable for each hanzi.",
    ),
    REPAIRED: (
        "The syllable is wrong and the hanzi correct, because of the context. These are not errors.",
        "Nothing to do. Without a good second stage, these would be errors.",
    ),
}
BASES = {
    "gold pass": "The second stage has converted the reference syllables too, which shows the causes.",
    "syllable": (
        "The second stage has not converted the reference syllables: an error is attributed to the second "
        "stage if its own syllable is correct, else to the first stage."
    ),
}
SETTINGS = {
    "split": "set",
    "speech_run": "speech run",
    "language_run": "language run",
    "syllables_run": "syllable model",
    "fusion_weight": "its weight",
    "insertion_bonus": "bonus per syllable",
    "rejected": "recordings that could not be read",
    "audio_seconds": "audio",
    "seconds": "recognised in",
    "real_time_factor": "real-time factor",
    "seen_in_training": "sentences seen in training",
}
DURATIONS = ("audio_seconds", "seconds")


@dataclass(frozen=True)
class Evidence:
    """Sound and picture of an utterance, ready to be embedded in a page.

    Attributes:
        id: id of the utterance.
        sound: data URL (``audio/mpeg``); ``""`` if the recording does not exist any more or is too long.
        picture: data URL (``image/webp``) with the spectrogram above the CTC posteriors. Its width is exactly
            the time axis of the utterance, without margins. ``""`` for a recording recognised in pieces.
        seconds: duration, the width of the picture.
        tracks: (label, alternative text) of the parts of the picture from top to bottom; also the reasons why
            something is missing.
    """

    id: str
    sound: str
    picture: str
    seconds: float
    tracks: tuple[tuple[str, str], ...]


def write_report_page(
    folder: str | Path,
    results: Results,
    evidence: Mapping[int, Evidence] | None = None,
    language: str = ENGLISH,
) -> Path:
    """Write ``report.html`` into a folder; returns its path.

    Args:
        folder: folder of the report.
        results: results of one system or of several.
        evidence: audio and pictures of utterances by position, in the order in which they are listed.
        language: of the page, one of :data:`LANGUAGES`.
    """
    path = Path(folder) / REPORT
    write_text(path, report_page(results, evidence, language))
    return path


def report_page(
    results: Results, evidence: Mapping[int, Evidence] | None = None, language: str = ENGLISH
) -> str:
    """The HTML of :func:`write_report_page`."""
    evidence = evidence or {}
    environment = page_environment()
    environment.filters |= {
        "rate": rate_text,
        "edits": edits_text,
        "probability": probability_text,
        "marks": with_tone_marks,
        "signed": signed_text,
    }
    signs = {kind.name: kind.sign for kind in KINDS}
    return environment.get_template("report.html.j2").render(
        language=language,
        phrases=_chinese_phrases() if language == CHINESE else [],
        results=results,
        settings=setting_texts(results.settings),
        systems=[_system(number, system) for number, system in enumerate(results.systems)],
        comparisons=[_comparison(comparison) for comparison in results.comparisons],
        titles=LEVEL_TITLES,
        advice=ADVICE,
        kinds={kind.name: kind for kind in KINDS},
        data={
            "levels": results.levels,
            "signs": signs,
            "listed": list(evidence),
            "systems": [
                {"name": system.name, "rows": list(map(_row, system.utterances))}
                for system in results.systems
            ],
        },
        evidence={
            position: {
                "sound": each.sound,
                "picture": each.picture,
                "seconds": each.seconds,
                "tracks": each.tracks,
            }
            for position, each in evidence.items()
        },
    )


def _chinese_phrases() -> list[list[str]]:
    """The phrases of the page in English and in Chinese, for its script."""
    lines = (TEMPLATES / "report_chinese.tsv").read_text(encoding="utf-8").splitlines()
    return [line.split("\t") for line in lines]


def add_page_language(parser: argparse.ArgumentParser) -> None:
    """Add ``--language``."""
    parser.add_argument(
        "--language", choices=LANGUAGES, default=ENGLISH, help="language of the page (default: %(default)s)"
    )


def _row(utterance: UtteranceRow) -> dict[str, Any]:
    """The fields of an utterance that the page's script shows."""
    names = (field.name for field in dataclasses.fields(utterance))
    return {name: getattr(utterance, name) for name in names if name not in ("audio", "pitch")}


def rate_text(rate: float) -> str:
    """A rate in per cent with about three digits: ``0.0064`` → ``0.64``, ``0.133`` → ``13.3``."""
    return f"{100 * rate:.2f}" if rate < 0.0995 else f"{100 * rate:.1f}"


def signed_text(value: float, digits: int = 2) -> str:
    """``-0.5`` → ``−0.50``, ``3`` → ``+3.00``."""
    return f"{value:+.{digits}f}".replace("-", "−")


def with_tone_marks(pinyin: str) -> str:
    """Syllables with tone marks instead of digits."""
    return " ".join(map(to_tone, pinyin.split()))


def marked(reference: str, text: str, level: str) -> list[tuple[str, bool]]:
    """A text in pieces, each with whether it differs from the reference; missing text is a dash.

    Hanzi are compared character by character; syllables one by one, written with tone marks.
    """
    true_tokens, tokens, separator = list(reference), list(text), ""
    if level == SYLLABLES:
        true_tokens, tokens = with_tone_marks(reference).split(), with_tone_marks(text).split()
        separator = " "
    pieces = []
    for block in Levenshtein.opcodes(true_tokens, tokens):
        piece = separator.join(tokens[block.dest_start : block.dest_end])
        pieces.append((piece or MISSING, block.tag != "equal"))
    return pieces


def _system(number: int, system: System) -> dict[str, Any]:
    """What the template shows of a system in addition to its results."""
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
        "top": {level: _top(system, level) for level, pairs in system.top_confusions.items() if pairs},
        "causes": _causes(system),
        "basis": BASES.get(system.attribution_basis, ""),
        "breakdowns": {
            level: [
                breakdown_chart(each)
                for each in system.breakdowns
                if each.level == level and len(each.groups) > 1
            ]
            for level in system.kinds
        },
        "single_group": [each for each in system.breakdowns if len(each.groups) == 1],
        "headlines": {
            rate.level: rate.rate for rate in system.rates if rate.key in (SYLLABLE_ERROR, HANZI_ERROR)
        },
        "speakers": sorted({row.speaker for row in system.utterances if row.speaker}),
    }


def _maps(system: System) -> list[HeatMap]:
    maps = [heat_map(matrix) for matrix in system.matrices]
    return sorted((each for each in maps if each.pairs), key=lambda each: MATRIX_ORDER.index(each.part))


def _top(system: System, level: str) -> list[tuple[str, str, int, float]]:
    total = sum(system.kinds[level].values())
    return [
        (reference, output, count, count / total) for reference, output, count in system.top_confusions[level]
    ]


def _causes(system: System) -> list[tuple[str, int, float]]:
    """(attribution, count, share of the errors) of those that occur; ``repaired`` has no share."""
    errors = sum(count for name, count in system.attribution.items() if name != REPAIRED) or 1
    return [
        (name, count, 0.0 if name == REPAIRED else count / errors)
        for name, count in system.attribution.items()
        if count
    ]


def _comparison(comparison: Comparison) -> dict[str, Any]:
    """A comparison with its verdict, and its changes with the differences marked."""
    better = comparison.systems[1] if comparison.difference < 0 else comparison.systems[0]
    if not comparison.difference:
        verdict = "Both make the same number of errors."
    elif comparison.matched_pairs.p_value < SIGNIFICANCE_LEVEL:
        verdict = f"{better} makes fewer errors; the difference is statistically significant."
    else:
        verdict = f"{better} makes fewer errors here, but the difference may be due to chance."
    return {
        "results": comparison,
        "verdict": verdict,
        "changes": {
            title: [
                (change, [marked(change.reference, text, comparison.level) for text in change.hypotheses])
                for change in changes
            ]
            for title, changes in (("better", comparison.better), ("worse", comparison.worse))
        },
    }


def setting_texts(settings: Mapping[str, object]) -> dict[str, str]:
    """Title and text of each setting, in their order."""
    return {
        SETTINGS.get(name, name.replace("_", " ")): _setting(name, value) for name, value in settings.items()
    }


def _setting(name: str, value: object) -> str:
    if value is None:
        return "not known"
    if name in DURATIONS and isinstance(value, float | int):
        return duration(value)
    if name == "real_time_factor" and isinstance(value, float | int) and value > 0:
        return f"{value:.3f} ({1 / value:.0f}{THIN}× real time)"
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {_setting('', item)}" for key, item in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(str, value))
    return str(value)


def edits_text(counts: ErrorCounts) -> str:
    """The edits that occur: ``267 substituted, 16 inserted, 30 deleted``."""
    named = {
        "substituted": counts.substitutions,
        "inserted": counts.insertions,
        "deleted": counts.deletions,
    }
    return ", ".join(f"{count:,} {name}" for name, count in named.items() if count) or "none"


def probability_text(value: float) -> str:
    """``0.0312`` → ``p = 0.031``; values below 0.001 are not written out."""
    return "p < 0.001" if value < 0.001 else f"p = {value:.2g}"
