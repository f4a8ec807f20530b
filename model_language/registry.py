"""The language models by name: a config's ``name`` in; config class, builder and loader out.

A run folder holds ``config.yaml`` (section ``model``) and the files that :func:`language_parts` names, which
depend on the model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keras

from model_language.converters.base import Converter, NeuralConverter
from model_language.converters.combined import NAME as FUSED
from model_language.converters.combined import FusedConfig, fused_parts, load_fused_converter
from model_language.converters.explain import GuidedConverter
from model_language.converters.gated import ContextConverter
from model_language.converters.ngram import NgramConfig, load_ngram_converter, ngram_parts
from model_language.networks.candidates import TABLES_FILE, ContextTables
from model_language.networks.cbhg import CbhgConfig, build_cbhg
from model_language.networks.gated_cnn import ContextConfig, build_context, context_weights
from model_language.networks.gated_cnn_numpy import ContextNetwork
from model_language.networks.published_transformer import NAME as PUBLISHED_TRANSFORMER
from model_language.networks.published_transformer import (
    PublishedTransformerConfig,
    build_published_transformer,
)
from model_language.networks.transformer import TransformerConfig, build_transformer
from model_language.ngram.syllables import NAME as SYLLABLE_NGRAM
from model_language.ngram.syllables import (
    SyllableNgram,
    SyllableNgramConfig,
    load_syllable_ngram,
    syllable_ngram_parts,
)
from model_language.search.user_words import read_user_words
from model_language.vocabulary.symbols import Symbols
from utils.backend.weights import load_weights
from utils.config import build_config
from utils.errors import ConfigError, RunError
from utils.run_folder.run import RunFolder, open_run

INPUT_LAYER, OUTPUT_LAYER = (
    "embedding",
    "logits",
)  # what every network calls those with weights for each token


@dataclass(frozen=True)
class ModelEntry:
    """A language model.

    Attributes:
        config: its config class.
        build: ``build(config, symbols, run) -> keras.Model``, of the run with these vocabularies; None if it
            is estimated by counting rather than trained.
        parts: ``parts(run, config)``: the files that ``load`` reads.
        load: ``load(run, config)``: the finished model; a converter, unless it writes no hanzi.
    """

    config: type
    build: Callable[[Any, Symbols, RunFolder], keras.Model] | None
    parts: Callable[[RunFolder, Any], list[Path]]
    load: Callable[[RunFolder, Any], Any]


def _by_sizes(build: Callable[[Any, int, int], keras.Model]) -> Callable[..., keras.Model]:
    """A builder that asks for no more than the numbers of tokens."""
    return lambda config, symbols, run: build(config, len(symbols.pinyin), len(symbols.hanzi))


def _build_context(config: ContextConfig, symbols: Symbols, run: RunFolder) -> keras.Model:
    return build_context(config, ContextTables.load(run.vocabulary(TABLES_FILE)), len(symbols.hanzi))


def _network_parts(run: RunFolder, config: Any) -> list[Path]:
    return [*Symbols.files(run.path), run.best_weights]


def _context_parts(run: RunFolder, config: ContextConfig) -> list[Path]:
    return [*_network_parts(run, config), run.vocabulary(TABLES_FILE)]


def _load_neural(run: RunFolder, config: Any) -> NeuralConverter:
    return NeuralConverter(*load_network(run.path))


def _load_context(run: RunFolder, config: ContextConfig) -> ContextConverter:
    model, symbols = load_network(run.path)
    tables = ContextTables.load(run.vocabulary(TABLES_FILE))
    return ContextConverter(ContextNetwork(context_weights(model, tables)), symbols)


def _load_syllables(run: RunFolder, config: SyllableNgramConfig) -> SyllableNgram:
    return load_syllable_ngram(run.path)


MODELS: dict[str, ModelEntry] = {
    "transformer": ModelEntry(TransformerConfig, _by_sizes(build_transformer), _network_parts, _load_neural),
    PUBLISHED_TRANSFORMER: ModelEntry(
        PublishedTransformerConfig, _by_sizes(build_published_transformer), _network_parts, _load_neural
    ),
    "cbhg": ModelEntry(CbhgConfig, _by_sizes(build_cbhg), _network_parts, _load_neural),
    "context": ModelEntry(ContextConfig, _build_context, _context_parts, _load_context),
    "ngram": ModelEntry(NgramConfig, None, ngram_parts, load_ngram_converter),
    FUSED: ModelEntry(FusedConfig, None, fused_parts, load_fused_converter),
    SYLLABLE_NGRAM: ModelEntry(SyllableNgramConfig, None, syllable_ngram_parts, _load_syllables),
}


def load_converter(run_folder: str | Path, words: str | Path | None = None) -> Converter:
    """The model of a finished language run, ready to convert; nothing but the folder is needed.

    Args:
        run_folder: the run.
        words: a file of user words, which the converter then prefers.

    Raises:
        RunError: not a language run, a part is missing, or the weights don't fit the vocabularies.
        CorpusError: the words can't be used.
    """
    if words:  # first: a wrong line is told before a network is loaded
        found = read_user_words(words)
        return GuidedConverter(load_converter(run_folder), found)
    run = open_run(run_folder, task="language")
    config = read_model_config(run)
    if config.name == SYLLABLE_NGRAM:
        hint = "it helps the beam search (--syllables RUN); to write hanzi, give another language run"
        raise RunError("an n-gram of syllables writes no hanzi", where=run.path, hint=hint)
    return MODELS[config.name].load(run, config)


def load_language_model(run_folder: str | Path) -> Any:
    """The model of a finished language run: a converter, or an n-gram of syllables.

    Raises:
        RunError: as :func:`load_converter`.
    """
    run = open_run(run_folder, task="language")
    config = read_model_config(run)
    return MODELS[config.name].load(run, config)


def language_parts(run: RunFolder) -> list[Path]:
    """The files that :func:`load_language_model` reads beside config.yaml.

    Raises:
        ConfigError: the run's model is unknown, or an option of it is wrong.
    """
    config = read_model_config(run)
    return MODELS[config.name].parts(run, config)


def load_network(run_folder: str | Path, weights: str = "best") -> tuple[keras.Model, Symbols]:
    """The network of a language run with its weights, and its vocabularies.

    Args:
        run_folder: the run.
        weights: ``best``, ``last``, or the path of a weights file.

    Raises:
        RunError: not a language run, one of a model that is counted, a part is missing, or the weights don't
            fit the vocabularies.
    """
    run = open_run(run_folder, task="language")
    config = read_model_config(run)
    build = MODELS[config.name].build
    if build is None:
        what = f"the run's model '{config.name}' is estimated by counting: it has no weights to load"
        raise RunError(what, where=run.path, hint="give a run of a network, such as a transformer")
    symbols = Symbols.load(run.path)
    path = run.weights(weights)
    model = build(config, symbols, run)
    load_weights(model, path)
    return model, symbols


def read_model_config(run: RunFolder) -> Any:
    """The section ``model`` of a run's config, as its config class.

    Raises:
        ConfigError: there is no such model, or an option of it is wrong.
    """
    values = run.config().get("model") or {}
    if str(values.get("name")) not in MODELS:
        hint = f"known models: {', '.join(MODELS)}"
        raise ConfigError(f"unknown model.name '{values.get('name')}'", where=run.config_file, hint=hint)
    return build_config(MODELS[values["name"]].config, values, where=str(run.config_file))
