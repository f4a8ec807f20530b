"""Names of kinds, fates and settings in; the words and signs that the report page shows for them, out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from analysis.errors.attribution import ACOUSTIC, BOTH, LABEL, LANGUAGE, REPAIRED, SEARCH
from analysis.errors.kinds import (
    DELETION,
    EVERYTHING,
    HOMOPHONE,
    HOMOPHONE_BUT_TONE,
    INSERTION,
    NEAR_HOMOPHONE,
    NOT_IN_LEXICON,
    NUMBER_OR_LATIN,
    OTHER_HANZI,
    POLYPHONE,
    UNKNOWN_HANZI,
    VARIANT,
)
from analysis.inputs.utterance_results import HANZI, SYLLABLES
from analysis.page.rendering import THIN, duration
from utils.metrics import ErrorCounts

LEVEL_TITLES = {SYLLABLES: "Syllables", HANZI: "Hanzi"}
# What tells kinds of errors apart where there is no room for words and colour alone won't do.
SIGNS = {
    "tone only": "T",
    "initial only": "I",
    "final only": "F",
    "initial and tone": "IT",
    "final and tone": "FT",
    "initial and final": "IF",
    EVERYTHING: "IFT",
    INSERTION: "+",
    DELETION: "−",
    NUMBER_OR_LATIN: "#",
    VARIANT: "≈",
    UNKNOWN_HANZI: "?",
    NOT_IN_LEXICON: "∉",
    HOMOPHONE: "=",
    POLYPHONE: "⇄",
    HOMOPHONE_BUT_TONE: "=T",
    NEAR_HOMOPHONE: "~",
    OTHER_HANZI: "≠",
}
# What an attribution means, and what to try next.
ADVICE = {
    ACOUSTIC: (
        "Misheard: from the true syllables the right hanzi would have come out.",
        "The maps of initials, finals and tones say which sounds, the cuts by speaker, rate and noise where. "
        "More recordings of that kind, augmentation or a larger acoustic model help.",
    ),
    LANGUAGE: (
        "Miswritten: the syllable was heard right, and another hanzi chosen for it.",
        "More text of this field, a model that sees more context, or words of one's own.",
    ),
    BOTH: (
        "Misheard, and from the true syllables this hanzi would be wrong as well.",
        "Better ears alone won't do: begin with the stage whose perfection would bring more (below).",
    ),
    SEARCH: (
        "Lost in the search: a stage itself prefers the true text to what it wrote.",
        "A wider beam (--beam) finds some of them, at the cost of time.",
    ),
    LABEL: (
        "Label: heard is what was really said or what the dictionary reads; the reference says otherwise.",
        "Listen to a few: where the list is wrong, correct its pinyin rather than the models.",
    ),
    REPAIRED: (
        "Repaired: misheard, and written right all the same, thanks to the words around. No errors.",
        "Nothing to do; without a good second stage these would be errors too.",
    ),
}
BASES = {
    "gold pass": "The second stage has converted the true syllables as well, which tells whose error it is.",
    "syllable": (
        "There was no second pass with the true syllables: an error counts as the second stage's where its "
        "own syllable is right, else as the first stage's."
    ),
}
SETTINGS = {
    "split": "set",
    "manifests": "lists",
    "speech_run": "speech run",
    "language_run": "language run",
    "syllables_run": "syllable model",
    "fusion_weight": "its weight",
    "insertion_bonus": "bonus a syllable",
    "audio_seconds": "audio",
    "seconds": "recognised in",
    "real_time_factor": "real-time factor",
    "seen_in_training": "sentences that were trained on",
}
LENGTHS = ("audio_seconds", "seconds")


def setting_texts(settings: Mapping[str, object]) -> dict[str, str]:
    """Title and text of each setting, in their order."""
    return {
        SETTINGS.get(name, name.replace("_", " ")): _setting(name, value) for name, value in settings.items()
    }


def _setting(name: str, value: object) -> str:
    if value is None:
        return "not known"
    if name in LENGTHS and isinstance(value, float | int):
        return duration(value)
    if name == "real_time_factor" and isinstance(value, float | int) and value > 0:
        return f"{value:.3f} ({1 / value:.0f}{THIN}× real time)"
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {_setting('', one)}" for key, one in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(str, value))
    return str(value)


def edits_text(counts: ErrorCounts) -> str:
    """What errors are made of: ``267 substituted, 16 inserted, 30 deleted``; nothing that is 0."""
    named = {
        "substituted": counts.substitutions,
        "inserted": counts.insertions,
        "deleted": counts.deletions,
    }
    return ", ".join(f"{count:,} {name}" for name, count in named.items() if count) or "none"


def probability_text(value: float) -> str:
    """``0.0312`` → ``p = 0.031``; what is very small isn't written out."""
    return "p < 0.001" if value < 0.001 else f"p = {value:.2g}"
