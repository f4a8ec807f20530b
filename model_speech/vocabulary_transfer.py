"""Makes a new speech run for another vocabulary, with the weights of an existing run moved token by token.

A class of the output layer belongs to a token: its weights move to the index that the token has in the new
vocabulary. ``inspect_model.py transfer`` calls this.
"""

from dataclasses import dataclass
from pathlib import Path

import keras
import numpy as np

from model_speech.acoustic_model import build_acoustic_model, load_acoustic_model
from utils.backend.weights import save_weights
from utils.errors import RunError, VocabularyError
from utils.files import replacing_folder
from utils.run_folder.run import create_run, open_run, require_new_run
from utils.vocabulary import BLANK, SPACE, Vocabulary

OUTPUT_LAYER = "logits"  # in every model


@dataclass(frozen=True)
class TokenMatch:
    """Tokens of two vocabularies, each group in the order of its vocabulary.

    Attributes:
        kept: tokens in both vocabularies; their weights are moved.
        dropped: tokens only in the source vocabulary; the new model can't output them.
        new: tokens only in the new vocabulary; they start untrained.
    """

    kept: tuple[str, ...]
    dropped: tuple[str, ...]
    new: tuple[str, ...]


def transfer_run(source_run: str | Path, new_run: str | Path, vocabulary_file: str | Path) -> TokenMatch:
    """Write a run of ``source_run``'s model with other classes; the folder appears complete or not at all.

    Both weights files are converted (``best`` twice if the source has no ``last``). The new config is that of
    the source, with a section ``transfer`` that records the origin of the weights.

    Args:
        source_run: a speech run.
        new_run: the folder to create.
        vocabulary_file: the new model's classes, such as another run's ``vocabulary/acoustic.txt``.

    Raises:
        RunError: ``new_run`` exists, or ``source_run`` is not a complete speech run.
        VocabularyError: the vocabulary can't be read, has no blank or other output units, or shares no token
            but blank and space.
    """
    source, new_run = open_run(source_run, "speech"), Path(new_run)
    require_new_run(new_run)
    best = load_acoustic_model(source.path, "best")
    last = load_acoustic_model(source.path, "last") if source.last_weights.is_file() else best
    vocabulary = Vocabulary.load(vocabulary_file)
    match = match_tokens(best.vocabulary, vocabulary)
    _check(match, best.vocabulary, vocabulary, vocabulary_file)
    model = build_acoustic_model(source, vocabulary).model
    _make_folder(new_run.parent)
    with replacing_folder(new_run) as folder:
        transfer = {
            "source_run": str(source.path),
            "source_vocabulary": best.vocabulary.hash,
            "kept": len(match.kept),
            "dropped": len(match.dropped),
            "new": len(match.new),
        }
        run = create_run(folder, {**source.config(), "transfer": transfer})
        vocabulary.save(run.vocabulary("acoustic.txt"))
        for acoustic, path in ((best, run.best_weights), (last, run.last_weights)):
            move_weights(acoustic.model, acoustic.vocabulary, model, vocabulary)
            save_weights(model, path)
    return match


def match_tokens(source: Vocabulary, new: Vocabulary) -> TokenMatch:
    """Group the tokens of two vocabularies into kept, dropped and new."""
    return TokenMatch(
        kept=tuple(token for token in new.tokens if token in source),
        dropped=tuple(token for token in source.tokens if token not in new),
        new=tuple(token for token in new.tokens if token not in source),
    )


def move_weights(
    source: keras.Model, source_vocabulary: Vocabulary, new: keras.Model, new_vocabulary: Vocabulary
) -> None:
    """Copy the weights of ``source`` to ``new``, a model that differs only in its classes.

    The output layer's kernel (width, classes) and bias (classes,) are copied by token. Tokens that ``source``
    lacks keep the initial values of ``new``.
    """
    for source_layer, new_layer in zip(source.layers, new.layers, strict=True):
        weights = source_layer.get_weights()
        if new_layer.name == OUTPUT_LAYER:
            weights = [
                move_tokens(source_array, source_vocabulary, new_array, new_vocabulary)
                for source_array, new_array in zip(weights, new_layer.get_weights(), strict=True)
            ]
        new_layer.set_weights(weights)


def move_tokens(
    source: np.ndarray, source_vocabulary: Vocabulary, new: np.ndarray, new_vocabulary: Vocabulary, axis=-1
) -> np.ndarray:
    """A copy of ``new`` with the values of ``source`` for every token in both vocabularies.

    Args:
        source: weights with one entry per token of ``source_vocabulary`` along ``axis``.
        source_vocabulary: vocabulary of ``source``.
        new: weights of the same shape except for ``axis``, which has the tokens of ``new_vocabulary``.
        new_vocabulary: vocabulary of ``new``; it may lack tokens, add tokens, and have them in any order.
        axis: -1 for an output layer's kernel (width, classes) or bias (classes,), 0 for an embedding.
    """
    kept = match_tokens(source_vocabulary, new_vocabulary).kept
    moved = np.moveaxis(new.copy(), axis, 0)  # a view: (tokens, …)
    kept_values = np.moveaxis(source, axis, 0)[[source_vocabulary.index(token) for token in kept]]
    moved[[new_vocabulary.index(token) for token in kept]] = kept_values
    return np.moveaxis(moved, 0, axis)


def _check(match: TokenMatch, source: Vocabulary, vocabulary: Vocabulary, file: str | Path) -> None:
    if BLANK not in vocabulary:
        raise VocabularyError(
            f"the vocabulary has no blank '{BLANK}'",
            where=file,
            hint="use an acoustic one: a run's vocabulary/acoustic.txt, or the output of data.vocabularies",
        )
    if vocabulary.units != source.units:
        raise VocabularyError(
            f"a vocabulary of {vocabulary.units}, and the source run has {source.units}",
            where=file,
            hint="the other layers can be kept: train.py speech with initialise_from=SOURCE_RUN and "
            f"vocabulary.units={vocabulary.units}",
        )
    if set(match.kept) <= {BLANK, SPACE}:
        raise VocabularyError(
            "the vocabulary shares no token but blank and space with the source run's",
            where=file,
            hint="there are no weights to move: train a new model with this vocabulary",
        )


def _make_folder(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise RunError(
            "this is a file, not a folder for runs", where=path, hint="choose another folder"
        ) from error
