"""Texts of the report page: titles, explanations of error causes, names of settings, formatted numbers."""

from collections.abc import Mapping, Sequence

from analysis.errors.attribution import ACOUSTIC, BOTH, LABEL, LANGUAGE, REPAIRED, SEARCH, UNKNOWN
from analysis.inputs.utterance_results import HANZI, SYLLABLES
from analysis.page.rendering import THIN, duration
from utils.metrics import ErrorCounts

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
