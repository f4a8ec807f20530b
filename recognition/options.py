"""Defines the command-line options of a search and reads its settings from them. Loads no model."""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from utils.command.arguments import finite_number, fraction, not_negative, positive
from utils.errors import ConfigError
from utils.hypotheses.transcript_marks import text_hash, weights_state

BEAM = 10  # default prefixes of a beam search with a language model
# Tuned on 31 dev utterances with a 4-gram of syllables (a grid of both).
FUSION_WEIGHT, INSERTION_BONUS = 0.5, 2.5
# Tuned on dev speakers (benchmarks/recognition/phrases.py).
PHRASE_THRESHOLD = 0.5
_JOINT_WEIGHTS = ("language_weight", "joint_bonus", "rescoring_weight")
_OF_JOINT = (*_JOINT_WEIGHTS, "language_model")  # options that have no effect without --joint


def add_search_options(parser: argparse.ArgumentParser) -> None:
    """Add the search for syllables: ``--beam``, ``--syllables RUN`` and its two weights, ``--workers``."""
    parser.add_argument(
        "--beam",
        type=positive,
        help=f"hypotheses of the CTC beam search; 1: greedy (default: 1, with --syllables {BEAM})",
    )
    parser.add_argument(
        "--syllables",
        type=Path,
        metavar="RUN",
        help="run of a syllable_ngram, a language model for the beam search",
    )
    parser.add_argument(
        "--fusion-weight",
        type=finite_number,
        default=FUSION_WEIGHT,
        metavar="W",
        help=f"weight of the syllable_ngram's log-probabilities (default: {FUSION_WEIGHT})",
    )
    parser.add_argument(
        "--insertion-bonus",
        type=finite_number,
        default=INSERTION_BONUS,
        metavar="B",
        help=f"score for each syllable, because a language model prefers few (default: {INSERTION_BONUS})",
    )
    parser.add_argument(
        "--workers",
        type=not_negative,
        default=0,
        metavar="N",
        help="processes that search while the acoustic model computes (default: 0, none)",
    )


def add_word_option(parser: argparse.ArgumentParser) -> None:
    """Add user words: ``--words FILE``."""
    parser.add_argument(
        "--words",
        type=Path,
        metavar="FILE",
        help="words to prefer, one per line: hanzi, then optionally pinyin and a weight",
    )


def add_phrase_options(parser: argparse.ArgumentParser) -> None:
    """Add a list of phrases, ``--phrases FILE``, and its threshold."""
    parser.add_argument(
        "--phrases",
        type=Path,
        metavar="FILE",
        help="recognise only these phrases, one per line; see docs/phrases.md for the grammar",
    )
    parser.add_argument(
        "--phrase-threshold",
        type=fraction,
        default=PHRASE_THRESHOLD,
        metavar="P",
        help="least probability, 0 to 1, that a phrase of the list was spoken (default: %(default)s)",
    )


def add_joint_options(parser: argparse.ArgumentParser) -> None:
    """Add the joint search for syllables and hanzi, ``--joint`` and its weights, and user words."""
    add_word_option(parser)
    parser.add_argument(
        "--joint",
        action=argparse.BooleanOptionalAction,
        help="search syllables and hanzi together, among all syllables that the acoustic model considers",
    )
    parser.add_argument(
        "--language-weight",
        type=finite_number,
        metavar="W",
        help="with --joint: weight of the converter's log-probabilities (default: depends on its kind)",
    )
    parser.add_argument(
        "--joint-bonus",
        type=finite_number,
        metavar="B",
        help="with --joint: score for each syllable (default: depends on the converter's kind)",
    )
    parser.add_argument(
        "--language-model",
        type=Path,
        metavar="RUN",
        help="with --joint: run of a causal_cnn that rescores the best hypotheses; default: this project's",
    )
    parser.add_argument(
        "--rescoring-weight",
        type=finite_number,
        metavar="W",
        help="with --joint: weight of that model; 0: without it (default: depends on the acoustic model)",
    )


def beam_width(options: argparse.Namespace) -> int:
    """The beam width that the options of :func:`add_search_options` ask for.

    Raises:
        ConfigError: ``--syllables`` is combined with a greedy search, or its weight is negative.
    """
    beam = options.beam or (BEAM if options.syllables else 1)
    if options.syllables and beam == 1:
        raise ConfigError("--syllables needs a beam search, not a greedy one", hint="e.g. --beam 10")
    if options.fusion_weight < 0:
        raise ConfigError(f"--fusion-weight {options.fusion_weight} is below 0", hint="0 turns it off")
    return beam


def joint_settings(options: argparse.Namespace) -> dict[str, Any]:
    """Arguments of ``load_joint_search``: a run of syllables and weights; None: the default of its kind.

    Raises:
        ConfigError: a weight is negative.
    """
    for name in ("language_weight", "rescoring_weight"):
        value = getattr(options, name)
        if value is not None and value < 0:
            raise ConfigError(f"{_option(name)} {value} is below 0", hint="0 turns it off")
    return {
        "syllables": options.syllables,
        "language": options.language_weight,
        "bonus": options.joint_bonus,
        "rescoring": options.rescoring_weight,
        "language_model": options.language_model,
    }


def check_joint_options(options: argparse.Namespace) -> None:
    """Check that settings of the joint search are not given where there is none.

    Raises:
        ConfigError: one of them is given; it is named.
    """
    for name in _OF_JOINT:
        if not options.joint and getattr(options, name) is not None:
            raise ConfigError(f"{_option(name)} without the joint search", hint="add --joint")


def check_phrase_options(options: argparse.Namespace) -> None:
    """Check options of :func:`add_phrase_options`: phrases replace the conversion to hanzi.

    Raises:
        ConfigError: a threshold without phrases, or phrases together with options of the
            conversion.
    """
    if not options.phrases:
        if options.phrase_threshold != PHRASE_THRESHOLD:
            raise ConfigError("--phrase-threshold without --phrases", hint="give --phrases FILE")
        return
    for name in ("joint", "words", "language", *_OF_JOINT):
        if getattr(options, name) not in (None, False):
            raise ConfigError(
                f"--phrases can't be combined with {_option(name)}", hint="leave one of them out"
            )
    if options.minimum_confidence:
        raise ConfigError(
            "--phrases can't be combined with --minimum-confidence",
            hint="--phrase-threshold decides which phrases are accepted",
        )


def _option(name: str) -> str:
    """The option that sets an attribute of the parsed command line."""
    return f"--{name.replace('_', '-')}"


def search_settings(options: argparse.Namespace) -> dict[str, Any]:
    """The search settings that results.json records; options that a command doesn't have are left out."""
    settings: dict[str, Any] = {}
    if hasattr(options, "beam"):
        settings["beam"] = beam_width(options)
        if options.syllables:
            settings["syllables_run"] = str(options.syllables)
            settings |= {name: getattr(options, name) for name in ("fusion_weight", "insertion_bonus")}
    if getattr(options, "joint", False):
        settings |= {name: getattr(options, name) for name in ("joint", *_JOINT_WEIGHTS)}
        settings["language_model"] = str(options.language_model) if options.language_model else None
    if getattr(options, "words", None):
        settings["words"] = str(options.words)
    if getattr(options, "phrases", None):
        settings |= {"phrases": str(options.phrases), "phrase_threshold": options.phrase_threshold}
    return settings


def transcript_settings(options: argparse.Namespace, runs: Mapping[str, Path]) -> dict[str, Any]:
    """Everything except the recording that determines a transcript of ``transcribe.py``.

    Args:
        options: of the command.
        runs: every run that it uses, see :func:`recognition.loading.runs_in_use`.
    """
    lists = {"words": options.words} | ({"phrases": options.phrases} if options.phrases else {})
    return {
        **search_settings(options),
        "n_best": options.n_best,
        "minimum_confidence": options.minimum_confidence,
        **{name: text_hash(path) for name, path in lists.items()},
        **{name: True for name in ("stream", "digits") if getattr(options, name)},
        **{name: weights_state(run) for name, run in runs.items()},
    }
