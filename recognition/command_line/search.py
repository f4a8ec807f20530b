"""The command-line options of a search; they have the names of the attributes of :class:`SearchOptions`."""

import argparse
from pathlib import Path

from recognition.options import BEAM, FUSION_WEIGHT, INSERTION_BONUS, PHRASE_THRESHOLD
from utils.command.arguments import finite_number, fraction, not_negative, positive


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
        help="words to prefer, one per line, in hanzi or as WiFi, then optionally pinyin and a weight",
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
