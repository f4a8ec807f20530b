"""The settings of a search, the defaults of a transcription, and which models both use. Loads no model."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from utils.errors import ConfigError, RunError
from utils.hypotheses.transcript_marks import text_hash, weights_state
from utils.run_folder.run import (
    PRETRAINED,
    PRETRAINED_LANGUAGE_MODEL,
    PRETRAINED_PUNCTUATION,
    PRETRAINED_SPEECH,
    open_run,
)

BEAM = 10  # default prefixes of a beam search with a language model
WIDEST_BEAM = 1000  # prefixes; 0.5 GB for a batch of long utterances
# Tuned on 31 dev utterances with a 4-gram of syllables (a grid of both).
FUSION_WEIGHT, INSERTION_BONUS = 0.5, 2.5
# Tuned on dev speakers (benchmarks/recognition/phrases.py).
PHRASE_THRESHOLD = 0.5
MIX, FIRST, SEPARATE = CHANNELS = ("mix", "first", "separate")
"""What becomes of several channels: one mixed channel, the first one only, or a transcript of each."""
_JOINT_WEIGHTS = ("language_weight", "joint_bonus", "rescoring_weight")
_PATHS = ("syllables", "words", "language_model", "phrases")
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
        punctuation: whether the text has punctuation.

    Raises:
        ConfigError: ``syllables`` is combined with a greedy search, a weight is negative, or a value that
            should be a path is none.
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
    punctuation: bool = False

    def __post_init__(self):
        for name in _PATHS:
            if (value := getattr(self, name)) is None:
                continue
            if not isinstance(value, str | Path):
                message = f"{_option(name)} is a {type(value).__name__}, not the path of a file or folder"
                raise ConfigError(message, hint="give a path, such as 'names.txt'")
            object.__setattr__(self, name, Path(value))
        if self.syllables and self.beam == 1:
            raise ConfigError("--syllables needs a beam search, not a greedy one", hint="e.g. --beam 10")
        if self.beam_width > WIDEST_BEAM:
            raise ConfigError(f"--beam {self.beam} would need too much memory", hint=f"at most {WIDEST_BEAM}")
        for name in ("fusion_weight", "language_weight", "rescoring_weight"):
            value = getattr(self, name)
            if value is not None and value < 0:
                raise ConfigError(f"{_option(name)} {value} is below 0", hint="0 turns it off")

    @property
    def beam_width(self) -> int:
        """Prefixes that the beam search keeps."""
        return self.beam or (BEAM if self.syllables else 1)

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


def given_settings(values: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a search among those of a command; None: it keeps its default, and is left out."""
    names = (field.name for field in fields(SearchOptions))
    return {name: values[name] for name in names if values.get(name) is not None}


def transcription_search(
    speech: str | Path | None, language: str | Path | None, **settings: Any
) -> SearchOptions:
    """The search of a transcription: with punctuation; joint, unless another search or model is given.

    Args:
        speech, language: the runs that are given; None: those of this project.
        settings: of :class:`SearchOptions`.

    Raises:
        ConfigError: a value is wrong, or settings contradict each other.
    """
    others = (speech, language, *(settings.get(name) for name in ("beam", "syllables", "phrases")))
    search = SearchOptions(**{"joint": not any(others), "punctuation": True} | settings)
    check_phrase_options(search, language)
    check_joint_options(search)
    return search


def transcription_runs(speech: str | Path | None, language: str | Path | None) -> dict[str, Path]:
    """The run folder of each stage, None: that of this project; a wrong one is found before models load.

    Raises:
        RunError: a run is missing or of another kind.
    """
    if not speech and not PRETRAINED_SPEECH.is_dir():
        hint = "get the whole project again, or give --speech RUN"
        raise RunError("the shipped acoustic model is missing", where=PRETRAINED_SPEECH, hint=hint)
    chosen = {"speech": speech or PRETRAINED_SPEECH, "language": language or PRETRAINED}
    return {stage: open_run(path, stage).path for stage, path in chosen.items()}


def check_joint_options(search: SearchOptions) -> None:
    """Check that settings of the joint search are not given where there is none.

    Raises:
        ConfigError: one of them is given; it is named.
    """
    for name in _OF_JOINT:
        if not search.joint and getattr(search, name) is not None:
            raise ConfigError(f"{_option(name)} without the joint search", hint="add --joint")


def check_phrase_options(search: SearchOptions, language: str | Path | None) -> None:
    """Check that phrases are not combined with the conversion to hanzi, which they replace.

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
        runs: the run of each stage.
        flags: whether the options ``stream`` and ``digits`` are given.
    """
    used = dict(runs)
    if search.syllables:
        used["syllables"] = search.syllables
    if search.joint and search.rescoring_weight != 0:
        used["language_model"] = search.language_model or PRETRAINED_LANGUAGE_MODEL
    if search.punctuation and not search.phrases:
        used["punctuation"] = PRETRAINED_PUNCTUATION
    lists = {"words": search.words} | ({"phrases": search.phrases} if search.phrases else {})
    return {
        **search.recorded(),
        "n_best": search.n_best,
        "minimum_confidence": search.minimum_confidence,
        **{name: text_hash(path) for name, path in lists.items()},
        **{name: True for name, given in flags.items() if given},
        **{name: weights_state(run) for name, run in used.items()},
    }
