"""Checks recipes (training configs) and run folders with their models, and data before a training starts.

A model needs mel filters that are not empty, and texts that are not too long for CTC.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from data.batches.packed_source import PackedCorpus, is_packed
from data.keywords.clips import labels_of, read_keyword_clips
from data.text.pinyin_pairs import read_pairs
from model_speech.ctc.loss import frames_needed, output_lengths
from preflight.checks.audio import low_rate_of_some
from preflight.checks.manifests import repeated_recording
from preflight.checks.runs import LOADED, OPENED, RUN
from preflight.checks.splits import SPLITS, unheard_syllable
from preflight.examine import examine_texts, examine_vocabulary, recordings_as_listing
from preflight.findings import (
    ERROR,
    WARNING,
    Finding,
    apply,
    check_name,
    count_line,
    format_findings,
    has_errors,
    line_finding,
)
from preflight.listings import Listing, of_role, read_listing
from preflight.overfit import overfit_ten
from training.run import RECIPES
from training.tasks.adaptation import with_initial_settings
from training.tasks.keyword import KeywordConfig
from training.tasks.language_config import LanguageConfig
from training.tasks.speech import SpeechConfig, given_vocabulary
from training.utterance_checks import MAX_SKIPPED_FRACTION
from utils.audio.properties import sample_rates_of
from utils.config import build_config, load_config, read_yaml, with_overrides
from utils.errors import CorpusError, TrainingError
from utils.features.settings import FeatureConfig, empty_filters
from utils.run_folder.run import NOT_OF_THE_RECIPE, RunFolder
from utils.vocabulary import Vocabulary

log = logging.getLogger("train")

# More empty filters are reported. With frames of 25 ms at 16 kHz, one of 80 filters is empty.
_EMPTY_FRACTION = 0.02
_SENTENCES = 1000  # of each kind of text of a language recipe


def empty_filter(features: FeatureConfig) -> Iterator[Finding]:
    """Mel filters without an FFT bin: too many filters for the frame length and sample rate."""
    if features.kind != "filter_bank":
        return
    empty = empty_filters(features.base_bins, features.fft_size, features.sample_rate)
    if empty > _EMPTY_FRACTION * features.base_bins:
        spacing = features.sample_rate / features.fft_size
        advice = "leave features.bins out (it is then chosen to fit), or set a longer features.frame_ms"
        detail = f"{empty} of {features.base_bins}: the FFT's bins are {spacing:g} Hz apart"
        yield Finding(WARNING, "features.bins", "", "mel filters without an FFT bin", advice, detail)


def target_too_long(
    listing: Listing, features: FeatureConfig, time_stride: int, speed: float, units: str
) -> Iterator[Finding]:
    """Texts with more tokens than the model has output frames.

    Args:
        listing: a manifest; its lengths in seconds are assumed to be right.
        features: feature settings of the model.
        time_stride: feature frames for each output frame.
        speed: speed of the fastest augmented copy; 1 if there is none.
        units: output units of the model.
    """
    short = []
    for line in listing.lines:
        if not line.has_length:
            continue
        frames = int(output_lengths(line.frames(features, speed), time_stride))
        tokens = line.tokens(units)
        # The exact number is expensive, and needed for long texts only.
        if 2 * len(tokens) > frames and (needed := frames_needed(np.asarray(tokens))) > frames:
            short.append((line, f"{needed} output frames needed, {frames} available"))
    is_refused = listing.role == "train" and len(short) > MAX_SKIPPED_FRACTION * len(listing.lines)
    severity, problem = ERROR if is_refused else WARNING, "more tokens than CTC can align"
    advice = "check the transcripts, or choose a model with a smaller time stride"
    for line, detail in short:
        yield line_finding(severity, listing, line, problem, advice, detail)


WITH_MODEL = (target_too_long, empty_filter, low_rate_of_some, *OPENED, *RUN, *LOADED, overfit_ten)
"""All checks of this module."""
# Their errors make results meaningless; those of other checks make the training itself fail.
_TRAINABLE = {check_name(check) for check in (repeated_recording, *SPLITS, unheard_syllable)}


def read_recipe(path: Path, overrides: Sequence[str]) -> Any:
    """A recipe, as train.py reads it; the name of its model says for which task.

    Raises:
        ConfigError: it cannot be read.
    """
    model = with_overrides(read_yaml(path), overrides).get("model")
    name = model.get("name") if isinstance(model, Mapping) else None
    task = next((task for task, (_, variants, _) in RECIPES.items() if name in variants["model"]), "speech")
    schema, variants, _ = RECIPES[task]
    return with_initial_settings(load_config(schema, path, [f"task={task}", *overrides], variants))


def keyword_listings(config: KeywordConfig) -> list[Listing]:
    """The recordings of a keyword recipe, a listing for each split.

    Raises:
        CorpusError: the words, the splits or the manifests can't be used.
    """
    clips = read_keyword_clips(config.data)
    labels_of(config.data, clips)
    return [
        recordings_as_listing(f"data.{split}", sorted({clip.audio for clip in own if clip.audio}))
        for split, own in clips.items()
    ]


def check_texts(config: LanguageConfig) -> None:
    """Check the first sentences of the texts of a language recipe.

    Raises:
        CorpusError: a text or list is missing, or has no usable sentence.
    """
    for sources in (config.data.train, config.data.dev, *filter(None, [config.data.test])):
        read_pairs(sources, limit=_SENTENCES)


def recipe_of_run(run: RunFolder) -> SpeechConfig:
    """The recipe that a speech run was trained with.

    Raises:
        UserError: its config.yaml is damaged or of another version.
    """
    values = {key: value for key, value in run.config().items() if key not in NOT_OF_THE_RECIPE}
    schema, variants, _ = RECIPES["speech"]
    return build_config(schema, values, variants, where=str(run.config_file))


def recipe_listings(config: SpeechConfig) -> list[Listing]:
    """The manifests of a recipe, each with its role, without packed corpora.

    Raises:
        CorpusError: a manifest is missing, or a file is not a manifest.
        CacheError: a packed corpus is not whole.
    """
    data = config.data
    for path in filter(is_packed, data.train):
        PackedCorpus.open(path)
    roles = {"train": data.train, "dev": data.dev, "test": data.test}
    return [
        _read_listing(path, role)
        for role, paths in roles.items()
        for path in dict.fromkeys(paths)
        if not is_packed(path)  # packing has checked it
    ]


def _read_listing(path: str, role: str) -> Listing:
    """A manifest of a recipe; errors name its setting."""
    try:
        return read_listing(path, role)
    except CorpusError as error:
        raise CorpusError(f"data.{role}: {error.message}", where=error.where, hint=error.hint) from error


def initial_tokens(config: SpeechConfig) -> tuple[str, ...]:
    """The tokens of the run that a recipe starts from; none if there is no such run."""
    if not config.initialise_from:
        return ()
    path = RunFolder(Path(config.initialise_from)).vocabulary("acoustic.txt")
    return Vocabulary.load(path).tokens if path.is_file() else ()


def examine_recipe(config: SpeechConfig, listings: Sequence[Listing]) -> list[Finding]:
    """Check feature settings, and targets against the model's time stride."""
    return apply((empty_filter,), config.features) + examine_lengths(config, listings)


def examine_vocabulary_file(config: SpeechConfig, listings: Sequence[Listing]) -> list[Finding]:
    """Check the train and dev lists against ``vocabulary.file``; not for a run, which has its own copy.

    Raises:
        ConfigError, VocabularyError: the file can't be used.
    """
    if not config.vocabulary.file:
        return []
    used = [*of_role(listings, "train"), *of_role(listings, "dev")]
    return examine_vocabulary(used, given_vocabulary(config.vocabulary))


def examine_lengths(config: SpeechConfig, listings: Sequence[Listing]) -> list[Finding]:
    """Check targets against the model's time stride, also of copies with a higher speed."""
    fastest = max(1.0, *config.augment.speeds) if config.augment.copies else 1.0
    return [
        finding
        for listing in listings
        for finding in apply(
            (target_too_long,),
            listing,
            config.features,
            config.model.time_stride,
            fastest if listing.role == "train" else 1.0,
            config.vocabulary.units,
        )
    ]


def examine_run(run: RunFolder) -> list[Finding]:
    """Check the files of a run folder; load the model if they are intact."""
    findings = apply(OPENED, run)
    if not findings:
        findings = apply(RUN, run)
    if not has_errors(findings):
        findings += apply(LOADED, run)
    return findings


def check_before_training(config: Any) -> None:
    """Run the quick checks of train.py; under 2 s for 10,000 utterances. Warnings are logged.

    They cover texts, splits, lengths and feature settings; recordings must exist, and the sample rates of
    some are checked. Recipes of language and keyword models have no checks.

    Raises:
        TrainingError: an error would make the training fail, or its results meaningless.
        CorpusError: a manifest is missing.
    """
    if not isinstance(config, SpeechConfig):
        return
    listings = recipe_listings(config)
    units = config.vocabulary.units
    findings = examine_texts(listings, readings=False, initial=initial_tokens(config), units=units)
    findings += examine_recipe(config, listings) + _examine_rates(config, listings)
    errors = [finding for finding in findings if finding.severity == ERROR]
    for line in format_findings(findings):
        log.warning("%s", line)
    if errors:
        hint = "correct the data (doctor.py --config has more checks)"
        if {error.check for error in errors} <= _TRAINABLE:
            hint += ", or train anyway with --no-checks"
        raise TrainingError(f"{count_line(errors)} in the data would waste this training", hint=hint)


def _examine_rates(config: SpeechConfig, listings: Sequence[Listing]) -> list[Finding]:
    """Check the sample rates of some recordings of each list."""
    return [
        finding
        for listing in listings
        for finding in apply(
            (low_rate_of_some,),
            listing,
            sample_rates_of([line.audio for line in listing.lines]),
            config.features.sample_rate,
        )
    ]
