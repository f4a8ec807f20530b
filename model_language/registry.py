"""Table of the language models by name, with their config classes and builders; loads finished language runs.

A run folder holds ``config.yaml`` (section ``model``) and files that depend on the model. Modules of networks
are imported on first use: the other models start without Keras.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from model_language.converters.base import EMISSIONS, Converter
from model_language.converters.combined import load_combined_converter
from model_language.converters.combined_config import NAME as COMBINED
from model_language.converters.combined_config import CombinedConfig
from model_language.converters.ngram import NAME as NGRAM
from model_language.converters.ngram import NgramConfig, load_ngram_converter
from model_language.converters.user_word_converter import AnyConverter, UserWordConverter
from model_language.language_model import (
    RESCORING,
    HanziLanguageModel,
    SecondPass,
    load_hanzi_language_model,
)
from model_language.networks.candidates import TABLES_FILE, CandidateTables
from model_language.networks.causal_cnn_numpy import NAME as CAUSAL_CNN
from model_language.networks.causal_cnn_numpy import CausalCnnConfig
from model_language.networks.punctuation_config import NAME as PUNCTUATION
from model_language.networks.punctuation_config import PunctuationConfig
from model_language.ngram.syllables import NAME as SYLLABLE_NGRAM
from model_language.ngram.syllables import SyllableNgramConfig, load_syllable_ngram
from model_language.punctuation import Punctuation, load_punctuation
from model_language.search.joint import JointSearch, JointWeights
from model_language.search.sequences import SequenceSearch
from model_language.search.user_words import UserWords, read_user_words
from model_language.vocabulary.symbols import Symbols
from utils.backend.quiet import silence_tensorflow
from utils.config import build_config
from utils.errors import RunError, require
from utils.run_folder.run import PRETRAINED, PRETRAINED_LANGUAGE_MODEL, RunFolder, open_run

if TYPE_CHECKING:
    import keras

GATED_CNN, CANDIDATE_TRANSFORMER = "gated_cnn", "candidate_transformer"
CANDIDATE_NETWORKS = (GATED_CNN, CANDIDATE_TRANSFORMER)
"""Networks that score only the candidates of each syllable."""
INPUT_LAYER, OUTPUT_LAYER = "embedding", "logits"
"""Names of the layers of every network that have weights for each token."""


@dataclass(frozen=True)
class ModelEntry:
    """A language model.

    Attributes:
        config_class: the config class, or for a network its name as ``module:class`` below ``networks``.
        load: ``load(run, config)`` → the finished model: a converter, or an n-gram model of syllables.
        build: ``build(config, symbols, run)`` → the Keras model of a run with these vocabularies; None if
            the model is estimated by counting, not trained.
        exported: whether ``export.py`` can export its network.
    """

    config_class: type | str
    load: Callable[[RunFolder, Any], Any]
    build: Callable[[Any, Symbols, RunFolder], keras.Model] | None = None
    exported: bool = False

    @property
    def config(self) -> type:
        """The config class."""
        return _network(self.config_class) if isinstance(self.config_class, str) else self.config_class


def _imported(module: str, attribute: str) -> Any:
    """The attribute of a module that needs Keras."""
    silence_tensorflow()
    return getattr(importlib.import_module(module), attribute)


def _network(name: str) -> Any:
    """``module:attribute`` of a module below ``networks``."""
    module, attribute = name.split(":")
    return _imported(f"model_language.networks.{module}", attribute)


def _load_neural(run: RunFolder, config: Any) -> Converter:
    return _imported("model_language.converters.neural", "NeuralConverter")(*load_network(run.path))


def _neural(config: str, builder: str) -> ModelEntry:
    """A network with logits over all hanzi."""

    def build(config: Any, symbols: Symbols, run: RunFolder) -> keras.Model:
        return _network(builder)(config, len(symbols.pinyin), len(symbols.hanzi))

    return ModelEntry(config, _load_neural, build, exported=True)


def _load_candidates(run: RunFolder, config: Any) -> Converter:
    model, symbols = load_network(run.path)
    tables = CandidateTables.load(run.vocabulary(TABLES_FILE))
    return _imported("model_language.converters.neural", "CandidateConverter")(model, tables, symbols)


def _candidates(config: str, builder: str) -> ModelEntry:
    """A network with logits over the candidates of each syllable."""

    def build(config: Any, symbols: Symbols, run: RunFolder) -> keras.Model:
        tables = CandidateTables.load(run.vocabulary(TABLES_FILE))
        return _network(builder)(config, tables, len(symbols.hanzi))

    return ModelEntry(config, _load_candidates, build)


def _build_causal_cnn(config: Any, symbols: Symbols, run: RunFolder) -> keras.Model:
    return _network("causal_cnn:build_causal_cnn")(config, len(symbols.hanzi))


def _build_punctuation(config: Any, symbols: Symbols, run: RunFolder) -> keras.Model:
    return _network("punctuation:build_punctuation")(config, len(symbols.hanzi))


def _load_punctuation(run: RunFolder, config: Any) -> Punctuation:
    return load_punctuation(run.path)


MODELS: dict[str, ModelEntry] = {
    "transformer": _neural("transformer:TransformerConfig", "transformer:build_transformer"),
    "published_transformer": _neural(
        "published_transformer:PublishedTransformerConfig",
        "published_transformer:build_published_transformer",
    ),
    "cbhg": _neural("cbhg:CbhgConfig", "cbhg:build_cbhg"),
    GATED_CNN: _candidates("gated_cnn:GatedCnnConfig", "gated_cnn:build_gated_cnn"),
    CANDIDATE_TRANSFORMER: _candidates(
        "candidate_transformer:CandidateTransformerConfig",
        "candidate_transformer:build_candidate_transformer",
    ),
    CAUSAL_CNN: ModelEntry(CausalCnnConfig, load_hanzi_language_model, _build_causal_cnn),
    PUNCTUATION: ModelEntry(PunctuationConfig, _load_punctuation, _build_punctuation),
    NGRAM: ModelEntry(NgramConfig, load_ngram_converter),
    COMBINED: ModelEntry(CombinedConfig, load_combined_converter),
    SYLLABLE_NGRAM: ModelEntry(SyllableNgramConfig, lambda run, config: load_syllable_ngram(run.path)),
}


_NO_CONVERTERS = {
    SYLLABLE_NGRAM: ("an n-gram model of syllables", "the beam search (--syllables RUN)"),
    CAUSAL_CNN: ("a language model of hanzi", "the joint search (--language-model RUN)"),
    PUNCTUATION: ("a punctuation network", "transcripts, after python -m bundle.pack"),
}
"""Models that convert no syllables: what they are and what they are for."""


def load_converter_with(words: str | Path | None, run_folder: str | Path) -> AnyConverter:
    """The converter of a finished language run, which prefers the user words of a file, if one is given.

    Raises:
        RunError: as :func:`load_converter`.
        CorpusError: the user words cannot be used.
    """
    if not words:
        return load_converter(run_folder)
    user_words = read_user_words(words)  # first: reports a wrong line before a model is loaded
    return UserWordConverter(load_converter(run_folder), user_words)


def load_converter(run_folder: str | Path) -> Converter:
    """The converter of a finished language run; only the folder is needed.

    Raises:
        RunError: not a language run, a part is missing, or the weights do not fit the vocabularies.
    """
    if Path(run_folder) == PRETRAINED and not PRETRAINED.is_dir():
        raise RunError(
            "the converter that comes with this project is missing",
            where=run_folder,
            hint="give another model: --model RUN, e.g. runs/demo/language, which `make demo` creates",
        )
    run, config, entry = _open(run_folder)
    if config.name in _NO_CONVERTERS:
        description, use = _NO_CONVERTERS[config.name]
        raise RunError(
            f"{description} writes no hanzi",
            where=run.path,
            hint=f"use it for {use}; to write hanzi, give another language run",
        )
    return entry.load(run, config)


def load_language_model(run_folder: str | Path) -> Any:
    """The model of a finished language run: a converter, or a model of syllables or hanzi.

    Raises:
        RunError: as :func:`load_converter`.
    """
    run, config, entry = _open(run_folder)
    return entry.load(run, config)


def load_hanzi_model(run_folder: str | Path | HanziLanguageModel) -> HanziLanguageModel:
    """The language model of hanzi of a finished run; one that is loaded is returned as it is.

    Raises:
        RunError: as :func:`load_converter`, or the run is of another kind.
    """
    if isinstance(run_folder, HanziLanguageModel):
        return run_folder
    found = load_language_model(run_folder)
    require(
        isinstance(found, HanziLanguageModel),
        "this run is not a language model of hanzi",
        where=run_folder,
        hint="give a run of model.name=causal_cnn, or --rescoring-weight 0 for none",
        error=RunError,
    )
    return found


def load_second_pass(
    weight: float = RESCORING, language_model: str | Path | HanziLanguageModel = PRETRAINED_LANGUAGE_MODEL
) -> SecondPass:
    """A second pass with a language model: a run or a loaded model, by default the shipped one.

    Raises:
        RunError: as :func:`load_hanzi_model`.
    """
    return SecondPass(load_hanzi_model(language_model), weight)


def load_network(run_folder: str | Path, weights: str = "best") -> tuple[keras.Model, Symbols]:
    """The network of a language run with its weights, and its vocabularies.

    Args:
        run_folder: the run.
        weights: ``best``, ``last``, or the path of a weights file.

    Raises:
        RunError: not a language run, a model without a network, a part is missing, or the weights do not fit
            the vocabularies.
    """
    run, config, entry = _open(run_folder)
    if entry.build is None:
        raise RunError(
            f"the run's model '{config.name}' is estimated by counting: it has no weights to load",
            where=run.path,
            hint="give a run of a network, such as a transformer",
        )
    symbols = Symbols.load(run.path)
    path = run.weights(weights)
    model = entry.build(config, symbols, run)
    _imported("utils.backend.weights", "load_weights")(model, path)
    return model, symbols


def _open(run_folder: str | Path) -> tuple[RunFolder, Any, ModelEntry]:
    """A language run, the config of its model, and the model's entry."""
    run = open_run(run_folder, task="language")
    config = read_model_config(run)
    return run, config, MODELS[config.name]


def read_model_config(run: RunFolder) -> Any:
    """The section ``model`` of a run's config, as its config class.

    Raises:
        ConfigError: there is no such model, or one of its settings is wrong.
    """
    values = run.config().get("model") or {}
    name = str(values.get("name"))
    require(
        name in MODELS,
        f"unknown model.name '{name}'",
        where=run.config_file,
        hint=f"known models: {', '.join(MODELS)}",
    )
    return build_config(MODELS[name].config, values, where=str(run.config_file))


# Default weights for each kind of model that scores the hanzi, tuned on the dev set of the demo, whose
# sentences its language models predict well.
TUNED = {
    "n-gram": JointWeights(language=1.0, syllables=0.0, bonus=3.0),
    "network and syllables": JointWeights(language=1.0, syllables=1.0, bonus=3.0),
    "network": JointWeights(language=3.0, syllables=0.0, bonus=0.0),
}


def needs_syllable_ngram(converter: AnyConverter) -> bool:
    """Whether the joint search with a converter uses a syllable n-gram; a generative converter needs none."""
    inner = converter.converter if isinstance(converter, UserWordConverter) else converter
    return not _is_generative(inner.generative())


def _is_generative(converter: Converter) -> bool:
    """Whether a converter scores from left to right; its scores are then those of the syllables too."""
    return converter.score_kind == EMISSIONS


def load_joint_search(
    converter: AnyConverter,
    syllables: str | Path | None = None,
    language: float | None = None,
    bonus: float | None = None,
    rescoring: float | None = None,
    language_model: HanziLanguageModel | None = None,
) -> JointSearch | SequenceSearch:
    """A joint search with the models that it needs.

    Args:
        converter: a converter, with or without user words.
        syllables: a run of ``syllable_ngram``; not used where :func:`needs_syllable_ngram` is False.
        language, bonus, rescoring: see :class:`JointWeights`; None: the values for this kind of converter
            (:data:`TUNED`).
        language_model: rescores the best hypotheses.

    Raises:
        RunError: that run is of another kind, or damaged.
    """
    if not isinstance(converter, UserWordConverter):
        converter = UserWordConverter(converter, UserWords())
    generative = converter.converter.generative()
    syllables = None if _is_generative(generative) else syllables
    kind = "network and syllables" if syllables else "network"
    weights = TUNED["n-gram" if generative.history_model is not None else kind]
    if language is not None:
        weights = replace(weights, language=language)
    if bonus is not None:
        weights = replace(weights, bonus=bonus)
    if rescoring is not None:
        weights = replace(weights, rescoring=rescoring)
    search = UserWordConverter(generative, converter.words)
    if _is_generative(generative):
        return JointSearch(search, weights, language_model=language_model)
    return SequenceSearch(search, weights, load_syllable_ngram(syllables) if syllables else None)
