"""Words of a command line → checked values, and options that several commands have in common."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from utils.errors import ConfigError

BEAM = 10  # prefixes that a search with a language model keeps, if no number is given
# Tuned on 31 dev utterances with a 4-gram of syllables (benchmarks/model_speech/beam_search.py).
FUSION_WEIGHT, INSERTION_BONUS = 0.5, 2.5


def positive(text: str) -> int:
    """A whole number above 0.

    Raises:
        argparse.ArgumentTypeError: it is none; argparse shows this with the usage.
    """
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number above 0")
    return int(text)


def not_negative(text: str) -> int:
    """A whole number from 0 on.

    Raises:
        argparse.ArgumentTypeError: it is none.
    """
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number from 0 on")
    return int(text)


def add_search_options(parser: argparse.ArgumentParser) -> None:
    """How syllables are searched: ``--beam``, ``--syllables RUN`` and its two weights, ``--workers``."""
    parser.add_argument(
        "--beam",
        type=positive,
        help=f"prefixes kept; 1 is greedy (default: 1, with --syllables {BEAM})",
    )
    parser.add_argument(
        "--syllables",
        type=Path,
        metavar="RUN",
        help="run of a syllable_ngram, which helps the beam search",
    )
    parser.add_argument(
        "--fusion-weight",
        type=float,
        default=FUSION_WEIGHT,
        metavar="W",
        help=f"of its log-probabilities (default: {FUSION_WEIGHT})",
    )
    parser.add_argument(
        "--insertion-bonus",
        type=float,
        default=INSERTION_BONUS,
        metavar="B",
        help=f"for each syllable, against its liking for few (default: {INSERTION_BONUS})",
    )
    parser.add_argument(
        "--workers",
        type=not_negative,
        default=0,
        metavar="N",
        help="processes that search beside the acoustic model (default: 0, none)",
    )


def add_word_option(parser: argparse.ArgumentParser) -> None:
    """User words: ``--words FILE``."""
    parser.add_argument(
        "--words",
        type=Path,
        metavar="FILE",
        help="words to prefer, one a line: hanzi, then if wanted pinyin and a weight",
    )


def add_joint_options(parser: argparse.ArgumentParser) -> None:
    """Syllables and hanzi searched together: ``--joint`` and its weights; and user words."""
    add_word_option(parser)
    parser.add_argument(
        "--joint",
        action="store_true",
        help="search syllables and hanzi together, among all that the acoustic model holds for possible",
    )
    parser.add_argument(
        "--language-weight",
        type=float,
        metavar="W",
        help="with --joint: of the converter's log-probabilities (default: what suits its kind)",
    )
    parser.add_argument(
        "--joint-bonus",
        type=float,
        metavar="B",
        help="with --joint: for each syllable (default: what suits the converter's kind)",
    )


def joint_settings(options: argparse.Namespace) -> dict[str, Any]:
    """What the options ask of a joint search: a run of syllables and weights; None: to be chosen for it.

    Raises:
        ConfigError: the weight is negative.
    """
    if options.language_weight is not None and options.language_weight < 0:
        raise ConfigError(f"--language-weight {options.language_weight} is below 0", hint="0 leaves it out")
    return {
        "syllables": options.syllables,
        "language": options.language_weight,
        "bonus": options.joint_bonus,
    }


def beam_of(options: argparse.Namespace) -> int:
    """The beam that the options of :func:`add_search_options` ask for.

    Raises:
        ConfigError: a language model of syllables is to help a greedy search, or its weight is negative.
    """
    beam = options.beam or (BEAM if options.syllables else 1)
    if options.syllables and beam == 1:
        raise ConfigError("--syllables helps a beam search, not a greedy one", hint="e.g. --beam 10")
    if options.fusion_weight < 0:
        raise ConfigError(f"--fusion-weight {options.fusion_weight} is below 0", hint="0 leaves it out")
    return beam


def search_facts(options: argparse.Namespace) -> dict[str, Any]:
    """How syllables and hanzi are searched, for the record; what a command doesn't offer is left out."""
    facts: dict[str, Any] = {}
    if hasattr(options, "beam"):
        facts["beam"] = beam_of(options)
        if options.syllables:
            facts["syllables_run"] = str(options.syllables)
            facts |= {name: getattr(options, name) for name in ("fusion_weight", "insertion_bonus")}
    if getattr(options, "joint", False):
        facts |= {name: getattr(options, name) for name in ("joint", "language_weight", "joint_bonus")}
    if getattr(options, "words", None):
        facts["words"] = str(options.words)
    return facts


def add_keyword_options(command: argparse.ArgumentParser) -> None:
    """Options of a keyword test beside those of all tests: weights, shifts, or a long recording."""
    command.add_argument("--weights", help="best (default), last, or a weights file")
    command.add_argument(
        "--shift-ms", type=int, nargs="+", default=(), metavar="MS",
        help="also the accuracy of clips that are so much later (or earlier: -100)",
    )  # fmt: skip
    command.add_argument("--recording", type=Path, help="a long one; the run's export listens to it")
    command.add_argument("--said", type=Path, help="its keywords: start, end, keyword; none: all is alarm")


def settle_keyword_options(options: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """Refuse options that choose clips beside ``--recording``, and its list without it; fill in defaults."""
    if options.said and not options.recording:
        parser.error("--said is the list of keywords in a --recording: give both")
    given = {"--manifest": options.manifest, "--weights": options.weights, "--split": options.split}
    given["--shift-ms"] = options.shift_ms
    unused = [*(name for name, value in given.items() if value), *options.overrides]
    if options.recording and unused:
        parser.error(f"--recording is tested with the run's export: leave out {', '.join(unused)}")
    options.split, options.weights = options.split or "test", options.weights or "best"
