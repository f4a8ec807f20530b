"""Finds the output layer in a weights file, and advises if it does not fit a vocabulary."""

from dataclasses import dataclass
from pathlib import Path

from analysis.weights.weight_file import Layer, WeightFile
from utils.run_folder.run import RunFolder
from utils.vocabulary import Vocabulary, explain_mismatch, transfer_command

OUTPUT_NAME = "logits"  # name of the output layer in all models of this project
ACOUSTIC, HANZI = "acoustic.txt", "hanzi.txt"  # vocabularies in a run folder


@dataclass(frozen=True)
class Output:
    """The layer that scores the classes.

    Attributes:
        layer: name of the layer.
        classes: number of its outputs.
        guessed: whether neither its name nor its position identifies it: it is only the likeliest layer.
    """

    layer: str
    classes: int
    guessed: bool


def find_output(file: WeightFile) -> Output | None:
    """The output layer: the layer named ``logits``, else the last one, else the dense layer numbered last."""
    candidates = [(layer, classes) for layer in file.layers if (classes := _outputs(layer))]
    named = [each for each in candidates if each[0].name.rpartition("/")[2] == OUTPUT_NAME]
    dense = [each for each in candidates if each[0].kind == "dense" and "/" not in each[0].name]
    likeliest = named or (not file.ordered and dense) or candidates
    if not likeliest:
        return None
    layer, classes = likeliest[-1]
    return Output(layer.name, classes, guessed=not named and not file.ordered)


def _outputs(layer: Layer) -> int | None:
    """The last dimension of a layer's kernel, (width, classes) or a convolution's; None without a kernel."""
    return next(
        (
            weight.array.shape[-1]
            for weight in layer.weights
            if weight.name == "kernel" and weight.array.ndim > 1
        ),
        None,
    )


def own_vocabulary(run: RunFolder) -> Path | None:
    """The vocabulary of a run's output layer; None if the run has none."""
    return next((path for name in (ACOUSTIC, HANZI) if (path := run.vocabulary(name)).is_file()), None)


def vocabulary_problem(
    output: Output, run: RunFolder | None, vocabulary_path: Path | None = None
) -> str | None:
    """Why the output layer does not fit a vocabulary, and a command that helps; None if it fits.

    Args:
        output: the output layer of the weights.
        run: the run folder of the weights, if known.
        vocabulary_path: the vocabulary to compare with; None: that of the run.

    Raises:
        VocabularyError: a vocabulary file cannot be read.
    """
    own = own_vocabulary(run) if run else None
    path = vocabulary_path or own
    if path is None:
        return None
    ours, theirs = Vocabulary.load(path), Vocabulary.load(own) if own else None
    head = f"the output layer '{output.layer}' has {output.classes} classes, {path} has {len(ours)} tokens"
    if theirs and len(theirs) != output.classes:
        return (
            f"{head}\nthe vocabulary beside the weights has {len(theirs)} tokens: it is not that of their "
            "training; put the weights and their own vocabulary into one run folder"
        )
    if len(ours) == output.classes and theirs in (None, ours):
        return None
    if theirs:
        return f"{head}\n{explain_mismatch(ours, theirs)}\n{_transfer_advice(run, own, path)}"
    return (
        f"{head}\nthe weights cannot be loaded into a model of this vocabulary; the tokens of their classes "
        "are in the vocabulary of their training: give the whole run folder"
    )


def _transfer_advice(run: RunFolder, own: Path, vocabulary_path: Path) -> str:
    """How to use the weights of a run with another vocabulary."""
    if own.name != ACOUSTIC:
        return f"train a language model with that vocabulary from these weights: initialise_from={run.path}"
    source = run.path if run.path.name not in ("", "..") else run.path.resolve()
    command = transfer_command(source, source.with_name(f"{source.name}_transferred"), vocabulary_path)
    return f"to transfer the weights of the shared tokens to a new run:\n  {command}"
