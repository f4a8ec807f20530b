"""A speech run and another vocabulary → a new run that keeps, token by token, what the first has learnt.

A class of the output layer belongs to a token, not to a number: its weights go where the new vocabulary has
that token.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

import keras
import numpy as np

from model_speech.acoustic_model import build_acoustic_model, load_acoustic_model
from utils.backend.weights import save_weights
from utils.errors import RunError, VocabularyError
from utils.run_folder.run import RunFolder, create_run, open_run
from utils.vocabulary import BLANK, Vocabulary

OUTPUT_LAYER = "logits"  # every model of ours calls it so


@dataclass(frozen=True)
class TokenMatch:
    """What becomes of the tokens, each group in the order of its vocabulary.

    Attributes:
        kept: in both vocabularies; their weights are moved over.
        dropped: only in the source's; the new model can't output them.
        new: only in the new one; they start untrained.
    """

    kept: tuple[str, ...]
    dropped: tuple[str, ...]
    new: tuple[str, ...]


def transfer_run(source_run: str | Path, new_run: str | Path, vocabulary_file: str | Path) -> TokenMatch:
    """Make a run folder of ``source_run``'s model with other classes; whole or not at all.

    Both weights files are moved over (``last`` is ``best`` again where the source has no other). The new
    config is the source's, with a section ``transfer`` that says where the weights come from.

    Args:
        source_run: a speech run.
        new_run: the folder to make.
        vocabulary_file: the new model's classes, such as another run's ``vocabulary/acoustic.txt``.

    Raises:
        RunError: ``new_run`` exists, or ``source_run`` is no whole speech run.
        VocabularyError: the vocabulary can't be read, has no blank, or shares nothing but the blank.
    """
    source, new_run = open_run(source_run, "speech"), Path(new_run)
    if new_run.exists() or new_run.is_symlink():
        raise RunError("the new run exists already", where=new_run, hint="choose another name for it")
    best = load_acoustic_model(source.path, "best")
    last = load_acoustic_model(source.path, "last") if source.last_weights.is_file() else best
    vocabulary = Vocabulary.load(vocabulary_file)
    match = match_tokens(best.vocabulary, vocabulary)
    _check(match, vocabulary, vocabulary_file)
    model = build_acoustic_model(source, vocabulary).model
    _make_folder(new_run.parent)
    with tempfile.TemporaryDirectory(dir=new_run.parent, prefix=f".{new_run.name}.") as unfinished:
        config = {**source.config(), "transfer": _note(source, best.vocabulary, match)}
        folder = create_run(Path(unfinished) / "run", config)
        vocabulary.save(folder.vocabulary("acoustic.txt"))
        for acoustic, path in ((best, folder.best_weights), (last, folder.last_weights)):
            move_weights(acoustic.model, acoustic.vocabulary, model, vocabulary)
            save_weights(model, path)
        folder.path.rename(new_run)
    return match


def match_tokens(source: Vocabulary, new: Vocabulary) -> TokenMatch:
    """Sort the tokens of two vocabularies into kept, dropped and new."""
    return TokenMatch(
        kept=tuple(token for token in new.tokens if token in source),
        dropped=tuple(token for token in source.tokens if token not in new),
        new=tuple(token for token in new.tokens if token not in source),
    )


def move_weights(
    source: keras.Model, source_vocabulary: Vocabulary, new: keras.Model, new_vocabulary: Vocabulary
) -> None:
    """Give ``new`` the weights of ``source``, a model that differs in its classes only.

    Those of the output layer, kernel (width, classes) and bias (classes,), go by token. Where ``new`` has a
    token that ``source`` lacks, its own values stay: as the model initialised them.
    """
    for old_layer, new_layer in zip(source.layers, new.layers, strict=True):
        weights = old_layer.get_weights()
        if new_layer.name == OUTPUT_LAYER:
            weights = [
                move_tokens(old_array, source_vocabulary, new_array, new_vocabulary)
                for old_array, new_array in zip(weights, new_layer.get_weights(), strict=True)
            ]
        new_layer.set_weights(weights)


def move_tokens(
    source: np.ndarray, source_vocabulary: Vocabulary, new: np.ndarray, new_vocabulary: Vocabulary, axis=-1
) -> np.ndarray:
    """A copy of ``new`` that has of ``source`` whatever belongs to a token of both vocabularies.

    Args:
        source: weights whose ``axis`` counts the tokens of ``source_vocabulary``.
        source_vocabulary: of ``source``.
        new: weights of the same shape but for ``axis``, which counts the tokens of ``new_vocabulary``.
        new_vocabulary: of ``new``; a part of ``source_vocabulary`` in any order, a larger one, or both.
        axis: -1 of an output layer's kernel (width, classes) or bias (classes,), 0 of an embedding.
    """
    kept = match_tokens(source_vocabulary, new_vocabulary).kept
    old_places = [source_vocabulary.index(token) for token in kept]
    new_places = [new_vocabulary.index(token) for token in kept]
    moved = np.moveaxis(new.copy(), axis, 0)  # a view: (tokens, …)
    moved[new_places] = np.moveaxis(source, axis, 0)[old_places]
    return np.moveaxis(moved, 0, axis)


def _check(match: TokenMatch, vocabulary: Vocabulary, file: str | Path) -> None:
    if BLANK not in vocabulary:
        hint = "give an acoustic one: a speech run's vocabulary/acoustic.txt, or what data.vocabularies wrote"
        raise VocabularyError(f"the vocabulary has no blank '{BLANK}'", where=file, hint=hint)
    if set(match.kept) <= {BLANK}:
        hint = "there is nothing to move: train anew with this vocabulary"
        raise VocabularyError("the vocabulary shares no token with the source run's", where=file, hint=hint)


def _make_folder(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise RunError(
            "this is a file, no folder for runs", where=path, hint="choose another place"
        ) from error


def _note(source: RunFolder, vocabulary: Vocabulary, match: TokenMatch) -> dict[str, object]:
    """For the reader of config.yaml; nothing reads it."""
    return {
        "source_run": str(source.path),
        "source_vocabulary": vocabulary.hash,
        "kept": len(match.kept),
        "dropped": len(match.dropped),
        "new": len(match.new),
    }
