"""Checks recipes (training configs) and run folders with their models, and data before a training starts."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from data.batches.packed_source import PackedCorpus, is_packed
from data.manifest import is_manifest
from preflight.checks.audio import low_rate_of_some
from preflight.checks.cache import CACHE, CacheState, cache_state, disk_space, needs_room
from preflight.checks.manifests import repeated_recording
from preflight.checks.model import empty_filter, target_too_long
from preflight.checks.runs import LOADED, OPENED, RUN, foreign_vocabulary
from preflight.checks.splits import SPLITS, unheard_syllable
from preflight.examine import examine_texts
from preflight.findings import ERROR, Finding, apply, check_name, count_line, format_findings, has_errors
from preflight.listings import Listing, lines_of, read_listing
from preflight.overfit import overfit_ten
from training.distillation import teacher_features
from training.run import RECIPES
from training.tasks.adaptation import with_initial_model
from training.tasks.speech import SpeechConfig
from utils.audio.reading import sample_rates_of
from utils.config import build_config, load_config
from utils.errors import TrainingError
from utils.features.speech import FeatureConfig
from utils.run_folder.run import NOT_OF_THE_RECIPE, RunFolder
from utils.vocabulary import Vocabulary

log = logging.getLogger("train")

WITH_MODEL = (
    target_too_long,
    empty_filter,
    low_rate_of_some,
    *CACHE,
    *OPENED,
    *RUN,
    *LOADED,
    foreign_vocabulary,
    overfit_ten,
)
"""All checks of this module."""
# Their errors make results meaningless; those of other checks make the training itself fail.
_TRAINABLE = {check_name(check) for check in (repeated_recording, *SPLITS, unheard_syllable)}


def read_recipe(path: Path, overrides: Sequence[str]) -> SpeechConfig:
    """The recipe of an acoustic model, as train.py reads it.

    Raises:
        ConfigError: it cannot be read, or is a recipe of a language model.
    """
    schema, variants, _ = RECIPES["speech"]
    return with_initial_model(load_config(schema, path, ["task=speech", *overrides], variants))


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
        read_listing(path, role)
        for role, paths in roles.items()
        for path in dict.fromkeys(paths)
        if not is_packed(path)  # packing has checked it
    ]


def initial_syllables(config: SpeechConfig) -> tuple[str, ...]:
    """The tokens of the run that a recipe starts from; none if there is no such run."""
    if not config.initialise_from:
        return ()
    path = RunFolder(Path(config.initialise_from)).vocabulary("acoustic.txt")
    return Vocabulary.load(path).tokens if path.is_file() else ()


def examine_recipe(config: SpeechConfig, listings: Sequence[Listing], thorough: bool) -> list[Finding]:
    """Check feature settings, targets against the model's time stride, feature cache and disk space.

    Args:
        config: the recipe.
        listings: its manifests.
        thorough: whether to read the whole cache.
    """
    findings = apply((empty_filter,), config.features) + examine_lengths(config, listings)
    for state in cache_states(config, listings, thorough):
        findings += apply(CACHE, state)
    return findings


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
        )
    ]


def examine_run(run: RunFolder) -> list[Finding]:
    """Check the files of a run folder; load the model if they are intact."""
    findings = apply(OPENED, run)
    if not findings:
        findings = apply(RUN, run)
    if not has_errors(findings):
        findings += apply(LOADED, run)
    if not has_errors(findings) and run.config().get("task") == "speech":
        findings += _against_manifests(run)
    return findings


def check_before_training(config: Any) -> None:
    """Run the quick checks of train.py; under 2 s for 10,000 utterances. Warnings are logged.

    They cover texts, splits, lengths, feature settings and disk space; recordings must exist, and the sample
    rates of some are checked. Recipes of language and keyword models have no checks.

    Raises:
        TrainingError: an error would make the training fail, or its results meaningless.
        CorpusError: a manifest is missing.
    """
    if not isinstance(config, SpeechConfig):
        return
    listings = recipe_listings(config)
    findings = examine_texts(listings, readings=False, initial=initial_syllables(config))
    findings += examine_lengths(config, listings)
    findings += apply((empty_filter,), config.features) + _examine_rates(config, listings)
    hours = sum(line.seconds for line in lines_of(listings) if line.seconds >= 0) / 3600
    settings = _feature_settings(config)
    hours *= len(settings) * (1 + config.augment.copies)
    if any(needs_room(features, hours, config.data.cache) for features in settings):
        for state in cache_states(config, listings, thorough=False):
            findings += apply((disk_space,), state)
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


def cache_states(config: SpeechConfig, listings: Sequence[Listing], thorough: bool) -> list[CacheState]:
    """The caches of the model's features and of the teacher's, if these are others.

    The first one has the bytes that both need: they are on one disk.
    """
    states = [
        cache_state(
            lines=[
                (line, config.augment if listing.role == "train" and config.augment.copies else None)
                for listing in listings
                if listing.role == "train" or (listing.role == "dev" and features == config.features)
                for line in listing.lines
            ],
            features=features,
            folder=config.data.cache,
            seed=config.seed,
            thorough=thorough,
        )
        for features in _feature_settings(config)
    ]
    needed = sum(state.bytes_needed for state in states)
    return [replace(states[0], bytes_needed=needed), *(replace(each, bytes_needed=0) for each in states[1:])]


def _feature_settings(config: SpeechConfig) -> list[FeatureConfig]:
    """Those of the model, and those of its teacher if they are others."""
    teacher = [teacher_features(config.distillation)] if config.distillation.teacher else []
    return list(dict.fromkeys([config.features, *teacher]))


def _against_manifests(run: RunFolder) -> list[Finding]:
    """Check the vocabulary against its manifests, if they still exist."""
    data = run.config().get("data") or {}  # unchecked: another version may have written it
    paths = [Path(path) for split in ("train", "dev") for path in data.get(split) or ()]
    if not paths or not all(map(is_manifest, paths)):
        return []
    syllables = {s for path in paths for line in read_listing(path).lines for s in line.pinyin}
    return apply((foreign_vocabulary,), run, sorted(syllables))
