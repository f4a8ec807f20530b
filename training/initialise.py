"""Initialises a model with the weights of another run, freezes layers, mixes initial and trained weights.

Layers are identified by their names in ``model_summary.txt``. Weights of tokens (embedding, output layer) are
copied token by token, so vocabularies may differ; all others keep their values. Two shapes may differ: a
dense layer on frames side by side becomes a convolution, and the convolution over time of a block that sees
the frames on both sides becomes that of a streaming block. A layer that does not fit is an error unless the
config excludes it by name.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

import keras
import numpy as np

from model_speech.vocabulary_transfer import match_tokens, move_tokens
from utils.errors import ConfigError, RunError, require, suggestion
from utils.files import read_arrays, replacing
from utils.run_folder.run import RunFolder
from utils.vocabulary import Vocabulary, first_few

log = logging.getLogger("train")


@dataclass(frozen=True)
class TokenLayer:
    """A layer with weights for each token of a vocabulary.

    Attributes:
        source: vocabulary of the other run.
        new: vocabulary of this run.
        axis: token axis of the weights: 0 in an embedding, -1 in an output layer.
    """

    source: Vocabulary
    new: Vocabulary
    axis: int = -1


def take_weights(
    model: keras.Model,
    source: keras.Model,
    source_run: str,
    token_layers: Mapping[str, TokenLayer],
    excepted: Sequence[str] = (),
    names: tuple[str, str] = ("", ""),
) -> None:
    """Copy the weights of each layer of ``source`` to the layer of the same name in ``model``.

    Layers and tokens that only ``source`` has are ignored. Tokens that only ``model`` has keep their initial
    values.

    Args:
        model: newly built.
        source: the model of the run to start from, with its weights.
        source_run: folder of that run, for messages.
        token_layers: layers with token weights, by name; names that ``model`` does not have are ignored.
        excepted: patterns (``fnmatch``) of layers that keep their initial values.
        names: ``model.name`` of ``source`` and of ``model``, for messages; ``""`` if not known.

    Raises:
        ConfigError: a layer is missing in ``source`` or has other shapes there, or a pattern matches none.
    """
    layers, source_layers = named_layers(model), named_layers(source)
    excluded = _matching(layers, excepted, "initialise_except", "takes all layers")
    copied = [name for name in layers if name not in excluded]
    require(copied, "initialise_except leaves nothing to take", where=f"initialise_from={source_run}")
    arrays, mismatches = {}, {}
    for name in copied:
        try:
            arrays[name] = _fitting_weights(
                layers[name], source_layers.get(name), token_layers.get(name), _frames_ahead(model, name)
            )
        except ValueError as error:
            mismatches[name] = str(error)
    if mismatches:
        shown = "; ".join(f"layer '{name}' {reason}" for name, reason in list(mismatches.items())[:4])
        raise ConfigError(
            f"{len(mismatches)} of {len(layers)} layers don't fit: {shown}{'; …' * (len(mismatches) > 4)}",
            where=f"initialise_from={source_run}",
            hint=_advice(list(mismatches), len(arrays), *names),
        )
    for name, weights in arrays.items():
        layers[name].set_weights(weights)
    _log_initialisation(
        source_run,
        copied,
        excluded,
        [name for name in source_layers if name not in layers],
        token_layers,
    )


def _advice(mismatches: Sequence[str], fitting: int, theirs: str, ours: str) -> str:
    """What to do if layers don't fit; ``initialise_except`` is of no use if hardly any layer does."""
    if theirs != ours and fitting < len(mismatches):
        return f"that run has model.name={theirs}: give a run with model.name={ours}, or no initialise_from"
    settings = "take the model settings of that run's config.yaml"
    if not fitting:
        return f"{settings}, or leave initialise_from out"
    excepted = ",".join(mismatches)
    return f"{settings}, or leave these layers at their initial values: initialise_except=[{excepted}]"


class InitialWeights:
    """The values of a model's variables before its training, to be mixed into the trained ones.

    The straight line between two trained models is better than both ends where the one forgets and the other
    does not know the new data (WiSE-FT: Wortsman et al., "Robust fine-tuning of zero-shot models", 2022).

    Args:
        run: keeps the values in its ``checkpoint/`` for a resumed training.
        variables: variables with their initial values, unless the run has these.
        fraction: weight of the initial values in the mean; 0: nothing is kept or mixed.

    Raises:
        RunError: a training is resumed whose initial values are missing.
    """

    def __init__(self, run: RunFolder, variables: Sequence[keras.Variable], fraction: float):
        self._variables, self._fraction = variables, fraction
        path = run.checkpoint.with_name("initial.npz")
        if not fraction:
            return
        if path.is_file():
            self._initial = list(read_arrays(path).values())
            return
        if run.checkpoint.is_file():  # the present values are trained ones, or random
            raise RunError(
                "the initial weights of this run are missing",
                where=path,
                hint="copy the whole checkpoint folder, or start again in another --run",
            )
        self._initial = [keras.ops.convert_to_numpy(variable) for variable in variables]
        with replacing(path) as temporary:
            np.savez(temporary, *self._initial)

    @contextmanager
    def mixed_in(self) -> Iterator[None]:
        """Inside the block, the variables hold the mean of their initial and their present values."""
        if not self._fraction:
            yield
            return
        trained = [keras.ops.convert_to_numpy(variable) for variable in self._variables]
        for variable, initial, value in zip(self._variables, self._initial, trained, strict=True):
            variable.assign(self._fraction * initial + (1 - self._fraction) * value)
        try:
            yield
        finally:
            for variable, value in zip(self._variables, trained, strict=True):
                variable.assign(value)


def moving_statistics(model: keras.Model) -> list[keras.Variable]:
    """The moving means and variances of normalisation that the training changes.

    Like weights they belong to what a model has learnt: weights that are mixed need statistics that are.
    """
    changing = (layer.non_trainable_variables for layer in model.layers if layer.trainable)
    return [variable for own in changing for variable in own if variable.name.startswith("moving_")]


def freeze_layers(model: keras.Model, patterns: Sequence[str]) -> None:
    """Exclude layers from training: no gradient, no weight decay, no new statistics of normalisation.

    Args:
        model: loses some of its ``trainable_variables``; call this before an optimiser is created.
        patterns: patterns of layer names (``fnmatch``: ``block_*``, ``logits``).

    Raises:
        ConfigError: a pattern matches no layer with weights, or nothing is left to train.
    """
    layers = named_layers(model)
    frozen = _matching(layers, patterns, "freeze", "trains all layers")
    for name in frozen:
        layers[name].trainable = False
    require(
        model.trainable_variables, "freeze leaves nothing to train", hint=f"there are: {', '.join(layers)}"
    )
    if frozen:
        parameters = sum(layers[name].count_params() for name in frozen)
        shown = f"{parameters:,} of {model.count_params():,} parameters"
        log.info("frozen: %d of %d layers, %s: %s", len(frozen), len(layers), shown, ", ".join(frozen))


def named_layers(model: keras.Model) -> dict[str, keras.layers.Layer]:
    """The layers with weights, in their order, by name."""
    return {layer.name: layer for layer in model.layers if layer.weights}


def _matching(layers: Mapping[str, Any], patterns: Sequence[str], key: str, without: str) -> list[str]:
    """Names that match one of the patterns, in the order of the model; ``without``: what no pattern does."""
    advice = f"set {key}=[…] for this model, {key}=[] {without}; "
    for pattern in patterns:
        require(
            any(fnmatchcase(name, pattern) for name in layers),
            f"{key}: no layer is called '{pattern}'",
            hint=suggestion(pattern, list(layers), advice=advice),
        )
    return [name for name in layers if any(fnmatchcase(name, pattern) for pattern in patterns)]


def _frames_ahead(model: keras.Model, name: str) -> int:
    """Frames that a block's convolution over time (``…_time``) sees ahead: its input is late by as many."""
    late = [layer for layer in model.layers if layer.name == f"{name.removesuffix('_time')}_late"]
    return late[0].cropping[1] if late else 0


def _fitting_weights(
    layer: keras.layers.Layer,
    source: keras.layers.Layer | None,
    tokens: TokenLayer | None,
    ahead: int,
) -> list[np.ndarray]:
    """The weights of ``source`` for ``layer``; raises ValueError with the reason if they do not fit.

    ``ahead``: frames that a streaming block with ``layer`` looks ahead.
    """
    if source is None:
        raise ValueError("isn't there")
    old, new = source.get_weights(), layer.get_weights()
    whole = ahead and getattr(source, "padding", "") == "same"
    fit = partial(_taps_seen, ahead=ahead) if whole else partial(_fit, tokens=tokens)
    tried = [fit(*pair) for pair in zip(old, new, strict=False)]
    fitted = [array for array in tried if array is not None]
    if not len(old) == len(new) == len(fitted):
        there, here = ([array.shape for array in arrays] for arrays in (old, new))
        raise ValueError(f"has the shapes {there} there, {here} here")
    return fitted


def _fit(old: np.ndarray, new: np.ndarray, tokens: TokenLayer | None) -> np.ndarray | None:
    """``old`` if the shapes are equal, matched by token for token layers; None if it does not fit."""
    if tokens and old.ndim == new.ndim:
        counts = (old.shape[tokens.axis], new.shape[tokens.axis])
        others = [np.delete(array.shape, tokens.axis).tolist() for array in (old, new)]
        if counts == (len(tokens.source), len(tokens.new)) and others[0] == others[1]:
            return move_tokens(old, tokens.source, new, tokens.new, tokens.axis)
    if old.shape == new.shape:
        return old
    # Frames side by side: `front` is a dense layer in `compact`, a strided convolution in
    # `compact_streaming`.
    joins = new.ndim == 3 and (old.ndim == 2 or (old.ndim == 3 and new.shape[0] == 1))
    fits = joins and old.size == new.size and old.shape[-1] == new.shape[-1]
    return old.reshape(new.shape) if fits else None


def _taps_seen(old: np.ndarray, new: np.ndarray, ahead: int) -> np.ndarray | None:
    """Of a kernel for a window around a frame, the taps for the frames that a streaming block sees.

    It has none for frames later than ``ahead``, and zeros for those before the window.
    """
    after = len(old) // 2
    seen = old[: len(old) - max(after - ahead, 0)]
    more = (len(new) - len(seen) - max(ahead - after, 0), max(ahead - after, 0))
    if more[0] < 0 or old.shape[1:] != new.shape[1:]:
        return None
    return np.pad(seen, [more, *[(0, 0)] * (old.ndim - 1)])


def _log_initialisation(
    source_run: str,
    copied: Sequence[str],
    excluded: Sequence[str],
    ignored: Sequence[str],
    token_layers: Mapping[str, TokenLayer],
) -> None:
    log.info("initialised from %s: %d layers taken: %s", source_run, len(copied), ", ".join(copied))
    if excluded:
        log.info("at their initial values: %s", ", ".join(excluded))
    if ignored:
        log.info("layers of %s that this model doesn't have: %s", source_run, ", ".join(ignored))
    for name in copied:
        tokens = token_layers.get(name)
        if tokens and tokens.source != tokens.new:
            match = match_tokens(tokens.source, tokens.new)
            groups = [f"{len(match.kept)} tokens kept"]
            groups += [f"{len(match.dropped)} dropped ({first_few(match.dropped)})"] * bool(match.dropped)
            groups += [f"{len(match.new)} new, untrained ({first_few(match.new)})"] * bool(match.new)
            log.info("%s, another vocabulary: %s", name, ", ".join(groups))
