"""A model and another run's weights → the model's first values, by layer and token name; frozen layers.

A layer is known by its name in ``model_summary.txt``. Its weights are taken whole, those that belong to
tokens (embedding, output layer) token by token, so vocabularies may differ. Nothing is guessed: a layer that
doesn't fit is an error unless the config leaves it out by name.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import keras
import numpy as np

from model_speech.vocabulary_transfer import match_tokens, move_tokens
from utils.errors import ConfigError
from utils.vocabulary import Vocabulary, first_few

log = logging.getLogger("train")


@dataclass(frozen=True)
class TokenLayer:
    """A layer that has weights for each token of a vocabulary.

    Attributes:
        source: the other run's vocabulary.
        new: this run's.
        axis: of its weights, counting tokens: 0 of an embedding, -1 of an output layer.
    """

    source: Vocabulary
    new: Vocabulary
    axis: int = -1


def check_initialise(initialise_from: str, initialise_except: Sequence[str]) -> None:
    """For a recipe's ``__post_init__``: exceptions make sense only from something.

    Raises:
        ConfigError: layers are excepted, but no run is named.
    """
    if initialise_except and not initialise_from:
        raise ConfigError("initialise_except without initialise_from", hint="name a run: initialise_from=RUN")


def take_weights(
    model: keras.Model,
    source: keras.Model,
    source_run: str,
    token_layers: Mapping[str, TokenLayer],
    excepted: Sequence[str] = (),
) -> None:
    """Give every layer of ``model`` the weights of the layer of the same name in ``source``.

    Layers that only ``source`` has are left behind; so are tokens that only its vocabulary has. Tokens that
    are new here keep their initial values.

    Args:
        model: newly made.
        source: of the run to start from, its weights loaded.
        source_run: its folder, for messages.
        token_layers: by name; one that ``model`` doesn't have is of no importance.
        excepted: patterns (``fnmatch``) of layers that keep their initial values.

    Raises:
        ConfigError: a layer is missing in ``source`` or has other shapes there, or a pattern fits none.
    """
    layers, theirs = named_layers(model), named_layers(source)
    left_out = _matching(layers, excepted, "initialise_except")
    wanted = [name for name in layers if name not in left_out]
    if not wanted:
        raise ConfigError("initialise_except leaves nothing to take", where=f"initialise_from={source_run}")
    arrays, misfits = {}, {}
    for name in wanted:
        try:
            arrays[name] = _fitted(layers[name], theirs.get(name), token_layers.get(name))
        except ValueError as error:
            misfits[name] = str(error)
    if misfits:
        shown = "; ".join(f"layer '{name}' {why}" for name, why in list(misfits.items())[:4])
        names = ",".join(misfits)
        raise ConfigError(
            f"{len(misfits)} of {len(layers)} layers don't fit: {shown}{'; …' if len(misfits) > 4 else ''}",
            where=f"initialise_from={source_run}",
            hint="take the model settings of that run's config.yaml, or leave these layers at their initial "
            f"values: initialise_except=[{names}]",
        )
    for name, weights in arrays.items():
        layers[name].set_weights(weights)
    _report(source_run, wanted, left_out, [name for name in theirs if name not in layers], token_layers)


def freeze_layers(model: keras.Model, patterns: Sequence[str]) -> None:
    """Keep some layers as they are: no gradient, no weight decay, no new statistics of normalisation.

    Args:
        model: its ``trainable_variables`` are fewer afterwards; to be called before an optimiser is made.
        patterns: of layer names (``fnmatch``: ``conv2d*``, ``dense_[0-3]``).

    Raises:
        ConfigError: a pattern fits no layer with weights, or nothing is left to train.
    """
    layers = named_layers(model)
    frozen = _matching(layers, patterns, "freeze")
    for name in frozen:
        layers[name].trainable = False
    if not model.trainable_variables:
        raise ConfigError("freeze leaves nothing to train", hint=f"there are: {', '.join(layers)}")
    if frozen:
        parameters = sum(layers[name].count_params() for name in frozen)
        shown = f"{parameters:,} of {model.count_params():,} parameters"
        log.info("frozen: %d of %d layers, %s: %s", len(frozen), len(layers), shown, ", ".join(frozen))


def named_layers(model: keras.Model) -> dict[str, keras.layers.Layer]:
    """The layers with weights, in their order, by names that depend on the model alone.

    Keras numbers the names that it makes itself (``dense``, ``dense_1`` …) through all models of a process;
    here each model begins anew, as it does in the first model that a process builds.
    """
    made: dict[str, list[int]] = {}  # numbers that Keras gave, by the name before them
    for layer in model.layers:
        base, number = _made_name(layer)
        if base:
            made.setdefault(base, []).append(number)
    named = {}
    for layer in model.layers:
        base, number = _made_name(layer)
        place = sorted(made[base]).index(number) if base else 0  # layers stand in another order than made
        name = (f"{base}_{place}" if place else base) or layer.name
        if layer.weights:
            named[name] = layer
    return named


def _made_name(layer: keras.layers.Layer) -> tuple[str, int]:
    """Base and number of a name that Keras made (``dense_3``: dense and 3); none of one that we gave."""
    base, number = re.fullmatch(r"(.*?)(?:_(\d+))?", layer.name).groups()
    by_class = base.replace("_", "") == type(layer).__name__.lower()
    return (base, int(number or 0)) if by_class else ("", 0)


def _matching(layers: Mapping[str, Any], patterns: Sequence[str], key: str) -> list[str]:
    """Names that fit one of the patterns, in the model's order."""
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in layers):
            raise ConfigError(
                f"{key}: no layer is called '{pattern}'", hint=f"there are: {', '.join(layers)}"
            )
    return [name for name in layers if any(fnmatchcase(name, pattern) for pattern in patterns)]


def _fitted(
    layer: keras.layers.Layer, source: keras.layers.Layer | None, tokens: TokenLayer | None
) -> list[np.ndarray]:
    """The weights for ``layer``; a ValueError says why ``source`` has none."""
    if source is None:
        raise ValueError("isn't there")
    old, new = source.get_weights(), layer.get_weights()
    fitted = [_fit(*pair, tokens) for pair in zip(old, new, strict=False)]
    if len(old) != len(new) or any(array is None for array in fitted):
        there, here = ([array.shape for array in arrays] for arrays in (old, new))
        raise ValueError(f"has the shapes {there} there, {here} here")
    return fitted


def _fit(old: np.ndarray, new: np.ndarray, tokens: TokenLayer | None) -> np.ndarray | None:
    """``old`` where the shapes are the same, by token where it counts tokens; None if it doesn't fit."""
    if tokens and old.ndim == new.ndim:
        counts = (old.shape[tokens.axis], new.shape[tokens.axis])
        others = [np.delete(array.shape, tokens.axis).tolist() for array in (old, new)]
        if counts == (len(tokens.source), len(tokens.new)) and others[0] == others[1]:
            return move_tokens(old, tokens.source, new, tokens.new, tokens.axis)
    return old if old.shape == new.shape else None


def _report(
    source_run: str,
    taken: Sequence[str],
    left_out: Sequence[str],
    left_behind: Sequence[str],
    token_layers: Mapping[str, TokenLayer],
) -> None:
    log.info("initialised from %s: %d layers taken: %s", source_run, len(taken), ", ".join(taken))
    if left_out:
        log.info("at their initial values: %s", ", ".join(left_out))
    if left_behind:
        log.info("layers of %s that this model doesn't have: %s", source_run, ", ".join(left_behind))
    for name in taken:
        tokens = token_layers.get(name)
        if tokens and tokens.source != tokens.new:
            match = match_tokens(tokens.source, tokens.new)
            groups = [f"{len(match.kept)} tokens kept"]
            groups += [f"{len(match.dropped)} dropped ({first_few(match.dropped)})"] * bool(match.dropped)
            groups += [f"{len(match.new)} new, untrained ({first_few(match.new)})"] * bool(match.new)
            log.info("%s, another vocabulary: %s", name, ", ".join(groups))
