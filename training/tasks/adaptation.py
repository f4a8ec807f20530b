"""Prepares the adaptation of an acoustic model to a speaker: settings of the initial run, held-out sentences.

A recipe (training config) with ``model.name: initial`` has model and features of the run that
``initialise_from`` names; without a dev manifest, a part of the training sentences is held out.
"""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from data.manifest import Utterance
from model_speech.acoustic_model import trained_settings
from utils.errors import ConfigError, require
from utils.features.settings import FeatureConfig
from utils.mandarin.output_units import TONAL
from utils.run_folder.run import SEARCH, RunFolder, open_run
from utils.vocabulary import Vocabulary

INITIAL = "initial"


@dataclass(frozen=True)
class InitialModelConfig:
    """Stands for the model of the run that ``initialise_from`` names, see :func:`with_initial_settings`."""

    name: str = INITIAL


def with_initial_settings(config: Any, run: RunFolder | None = None) -> Any:
    """A speech recipe with what it leaves to its initial run: output units, and ``model.name: initial``.

    The model ``initial`` becomes the model and the features of the initial run. Without ``vocabulary.units``
    the units are those of ``vocabulary.file``, else of the initial run, else tonal syllables.

    Args:
        config: a ``SpeechConfig``; any other recipe is returned as it is.
        run: the run folder of the training. If it was begun with this recipe, its settings are taken: the
            initial run may have been moved since.

    Raises:
        ConfigError: no run is named, or the recipe sets features of its own.
        RunError: ``initialise_from`` is not a speech run.
        VocabularyError: the vocabulary can't be read.
    """
    if config.task != "speech":
        return config
    if not config.vocabulary.units:
        units = _given_units(config, run)
        config = dataclasses.replace(config, vocabulary=dataclasses.replace(config.vocabulary, units=units))
    if not isinstance(config.model, InitialModelConfig):
        return config
    if not config.initialise_from:
        raise ConfigError(f"model.name is '{INITIAL}' without initialise_from", hint="initialise_from=RUN")
    require(
        config.features == FeatureConfig(),
        f"features.* are set, and model.name is '{INITIAL}'",
        hint="the features are those of the initial run: remove these settings",
    )
    begun = run if run and run.config_file.is_file() else None
    if begun and begun.config().get("initialise_from") == config.initialise_from:
        features, model = trained_settings(begun)
    else:
        features, model = trained_settings(open_run(config.initialise_from, "speech"))
    return dataclasses.replace(config, features=features, model=model)


def _given_units(config: Any, run: RunFolder | None) -> str:
    """The output units of the first vocabulary there is: of the run, of the file, of the initial run."""
    runs = [run, RunFolder(Path(config.initialise_from)) if config.initialise_from else None]
    own, initial = (each and each.vocabulary("acoustic.txt") for each in runs)
    files = (own, config.vocabulary.file, initial)
    given = next((each for each in files if each and Path(each).is_file()), None)
    return Vocabulary.load(given).units if given else TONAL


def initial_search(recipe: Any) -> dict[str, float]:
    """The weights of the joint search that were chosen for the initial run; the adapted model takes them too.

    Args:
        recipe: as loaded, before :func:`with_initial_settings`.

    Returns:
        the section of the run's config; empty if it has none, or the recipe has a model of its own.
    """
    if not isinstance(getattr(recipe, "model", None), InitialModelConfig):
        return {}
    return open_run(recipe.initialise_from, "speech").config().get(SEARCH) or {}


def hold_out(
    corpora: Sequence[Sequence[Utterance]], every: int
) -> tuple[list[list[Utterance]], list[Utterance]]:
    """Split the first corpus into a training and a dev set; no corpus has a sentence of the dev set.

    Args:
        corpora: utterances in the order of their manifests.
        every: each sentence of the first corpus with this number, counted from 1, goes to the dev set with
            all its recordings there.

    Returns:
        the training utterances of each corpus, and the dev set.

    Raises:
        ConfigError: there are too few sentences.
    """
    sentences = list(dict.fromkeys(utterance.pinyin for utterance in corpora[0]))
    held_out = set(sentences[every - 1 :: every])
    require(
        held_out,
        f"{len(sentences)} different sentences, and data.hold_out is {every}: none is held out",
        hint="record more sentences, or name a dev manifest: data.dev=[dev.tsv]",
    )
    train = [[each for each in corpus if each.pinyin not in held_out] for corpus in corpora]
    return train, [each for each in corpora[0] if each.pinyin in held_out]
