"""The settings of a search, and the command-line options that give them. Loads no model."""

import argparse
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Self

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


@dataclass(frozen=True)
class SearchOptions:
    """What a recogniser searches for, and how; the options of the command line have the same names.

    Attributes:
        beam: prefixes that the beam search keeps, 1: greedy; None: 1, and with ``syllables`` :data:`BEAM`.
        syllables: run of a syllable_ngram, a language model for the beam search.
        fusion_weight: weight of its log-probabilities; 0: without it.
        insertion_bonus: added to the score for each syllable.
        workers: processes that search while the acoustic model computes.
        words: file of user words.
        joint: whether syllables and hanzi are searched together.
        language_weight, joint_bonus, rescoring_weight: of the joint search; None: those of the models.
        language_model: run that rescores the hypotheses of the joint search; None: this project's.
        phrases: file of the only phrases to recognise; None: anything is recognised.
        phrase_threshold: least probability, 0 to 1, that a phrase of the list was spoken.
        n_best: hypotheses, or phrases, of each segment.
        minimum_confidence: a segment with a lower mean confidence of its syllables has no text.

    Raises:
        ConfigError: ``syllables`` is combined with a greedy search, or a weight is negative.
    """

    beam: int | None = None
    syllables: Path | None = None
    fusion_weight: float = FUSION_WEIGHT
    insertion_bonus: float = INSERTION_BONUS
    workers: int = 0
    words: Path | None = None
    joint: bool = False
    language_weight: float | None = None
    joint_bonus: float | None = None
    rescoring_weight: float | None = None
    language_model: Path | None = None
    phrases: Path | None = None
    phrase_threshold: float = PHRASE_THRESHOLD
    n_best: int = 1
    minimum_confidence: float = 0.0

    def __post_init__(self):
        if self.syllables and self.beam == 1:
            raise ConfigError("--syllables needs a beam search, not a greedy one", hint="e.g. --beam 10")
        for name in ("fusion_weight", "language_weight", "rescoring_weight"):
            value = getattr(self, name)
            if value is not None and value < 0:
                raise ConfigError(f"{_option(name)} {value} is below 0", hint="0 turns it off")

    @classmethod
    def of(cls, options: argparse.Namespace, **changes: Any) -> Self:
        """The search of a parsed command line; what it does not give keeps its default."""
        given = vars(options) | changes
        names = (field.name for field in fields(cls))
        return cls(**{name: given[name] for name in names if given.get(name) is not None})

    @property
    def beam_width(self) -> int:
        """Prefixes that the beam search keeps."""
        return self.beam or (BEAM if self.syllables else 1)

    @property
    def joint_settings(self) -> dict[str, Any]:
        """Arguments of ``load_joint_search_for``: a run of syllables and weights; None: the default."""
        return {
            "syllables": self.syllables,
            "language": self.language_weight,
            "bonus": self.joint_bonus,
            "rescoring": self.rescoring_weight,
            "language_model": self.language_model,
        }

    def recorded(self) -> dict[str, Any]:
        """The settings that results.json records."""
        settings: dict[str, Any] = {"beam": self.beam_width}
        if self.syllables:
            settings["syllables_run"] = str(self.syllables)
            settings |= {name: getattr(self, name) for name in ("fusion_weight", "insertion_bonus")}
        if self.joint:
            settings |= {name: getattr(self, name) for name in ("joint", *_JOINT_WEIGHTS)}
            settings["language_model"] = str(self.language_model) if self.language_model else None
        if self.words:
            settings["words"] = str(self.words)
        if self.phrases:
            settings |= {"phrases": str(self.phrases), "phrase_threshold": self.phrase_threshold}
        return settings


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


def check_joint_options(search: SearchOptions) -> None:
    """Check that settings of the joint search are not given where there is none.

    Raises:
        ConfigError: one of them is given; it is named.
    """
    for name in _OF_JOINT:
        if not search.joint and getattr(search, name) is not None:
            raise ConfigError(f"{_option(name)} without the joint search", hint="add --joint")


def check_phrase_options(search: SearchOptions, language: Path | None) -> None:
    """Check options of :func:`add_phrase_options`: phrases replace the conversion to hanzi.

    Args:
        search: the search.
        language: the run of ``--language``, if it is given.

    Raises:
        ConfigError: a threshold without phrases, or phrases together with options of the
            conversion.
    """
    if not search.phrases:
        if search.phrase_threshold != PHRASE_THRESHOLD:
            raise ConfigError("--phrase-threshold without --phrases", hint="give --phrases FILE")
        return
    given = {name: getattr(search, name) for name in ("joint", "words", *_OF_JOINT)} | {"language": language}
    for name, value in given.items():
        if value not in (None, False):
            raise ConfigError(
                f"--phrases can't be combined with {_option(name)}", hint="leave one of them out"
            )
    if search.minimum_confidence:
        raise ConfigError(
            "--phrases can't be combined with --minimum-confidence",
            hint="--phrase-threshold decides which phrases are accepted",
        )


def _option(name: str) -> str:
    """The option that sets an attribute of the parsed command line."""
    return f"--{name.replace('_', '-')}"


def transcript_settings(
    search: SearchOptions, runs: Mapping[str, Path], flags: Mapping[str, bool]
) -> dict[str, Any]:
    """Everything except the recording that determines a transcript of ``transcribe.py``.

    Args:
        search: the search.
        runs: every run that it uses, see :func:`recognition.loading.runs_in_use`.
        flags: whether the options ``stream`` and ``digits`` are given.
    """
    lists = {"words": search.words} | ({"phrases": search.phrases} if search.phrases else {})
    return {
        **search.recorded(),
        "n_best": search.n_best,
        "minimum_confidence": search.minimum_confidence,
        **{name: text_hash(path) for name, path in lists.items()},
        **{name: True for name, given in flags.items() if given},
        **{name: weights_state(run) for name, run in runs.items()},
    }
