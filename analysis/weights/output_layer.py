"""A weights file and a vocabulary in; whether the output layer fits, and if not why and what helps, out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from analysis.weights.weight_file import Layer, WeightFile
from utils.run_folder.run import RunFolder
from utils.vocabulary import BLANK, Vocabulary, explain_mismatch, transfer_command

OUTPUT_NAME = "logits"  # every model of ours calls its output layer so
ACOUSTIC, HANZI = "acoustic.txt", "hanzi.txt"


@dataclass(frozen=True)
class Output:
    """The layer that scores the classes.

    Attributes:
        layer: its name.
        classes: its outputs.
        guessed: neither its name nor its place says so: it is only the likeliest.
    """

    layer: str
    classes: int
    guessed: bool


def find_output(file: WeightFile) -> Output | None:
    """The output layer: the one called ``logits``, else the last one, else the dense one numbered last."""
    candidates = [(layer, classes) for layer in file.layers if (classes := _outputs(layer))]
    named = [one for one in candidates if one[0].name.rpartition("/")[2] == OUTPUT_NAME]
    dense = [one for one in candidates if one[0].kind == "dense" and "/" not in one[0].name]
    likeliest = named or (not file.ordered and dense) or candidates
    if not likeliest:
        return None
    layer, classes = likeliest[-1]
    return Output(layer.name, classes, guessed=not named and not file.ordered)


def _outputs(layer: Layer) -> int | None:
    """The last dimension of a layer's kernel, (width, classes) or a convolution's; None without a kernel."""
    return next(
        (one.array.shape[-1] for one in layer.weights if one.name == "kernel" and one.array.ndim > 1), None
    )


def own_vocabulary(run: RunFolder) -> Path | None:
    """The vocabulary of a run's output layer; None where the run holds none."""
    return next((path for name in (ACOUSTIC, HANZI) if (path := run.vocabulary(name)).is_file()), None)


def vocabulary_problem(output: Output, run: RunFolder | None, wanted: Path | None = None) -> str | None:
    """Why the output layer doesn't fit a vocabulary, and the command that helps; None if it fits.

    Args:
        output: of the weights.
        run: the run folder that they lie in, if they do.
        wanted: the vocabulary that they are to serve; None: that of the run.

    Raises:
        VocabularyError: a vocabulary file can't be read.
    """
    own = own_vocabulary(run) if run else None
    path = wanted or own
    if path is None:
        return None
    ours, theirs = Vocabulary.load(path), Vocabulary.load(own) if own else None
    head = f"the output layer '{output.layer}' has {output.classes} classes, {path} has {len(ours)} tokens"
    if theirs and len(theirs) != output.classes:
        return f"{head}\n{_mixed_up(own, len(theirs), output)}"
    if len(ours) == output.classes and theirs in (None, ours):
        return None
    if theirs:
        return f"{head}\n{explain_mismatch(ours, theirs)}\n{_way_out(run, own, path, ours)}"
    return f"{head}\n{_tokens_unknown(ours, output, path)}"


def _way_out(run: RunFolder, own: Path, wanted: Path, ours: Vocabulary) -> str:
    """How the weights of a run come to serve another vocabulary."""
    if own.name != ACOUSTIC:
        return f"train a language model with that vocabulary from these weights: initialise_from={run.path}"
    source = run.path if run.path.name not in ("", "..") else run.path.resolve()
    command = transfer_command(source, source.with_name(f"{source.name}_transferred"), wanted)
    advice = f"to move the weights of the shared tokens over, into a run of their own:\n  {command}"
    return (
        advice if BLANK in ours else f"first add the CTC blank, a last line '{BLANK}', to {wanted}; {advice}"
    )


def _mixed_up(own: Path, tokens: int, output: Output) -> str:
    command = transfer_command("WEIGHTS_RUN", f"{own.parent.parent.name}_transferred", own)
    return (
        f"the vocabulary beside the weights has {tokens} tokens: it is of another training than they are\n"
        "put the two that belong together into one folder; then, to move the shared tokens over, with that "
        f"folder in place of WEIGHTS_RUN:\n  {command}"
    )


def _tokens_unknown(ours: Vocabulary, output: Output, wanted: Path) -> str:
    """What to do where the weights come without the list of their tokens."""
    lines = []
    if output.classes == len(ours) + 1 and BLANK not in ours:
        lines.append(f"one class more than tokens: the file may lack the CTC blank, a last line '{BLANK}'")
    command = transfer_command("WEIGHTS_RUN", "WEIGHTS_RUN_transferred", wanted)
    lines += [
        "the two come from trainings with different vocabularies (part of a corpus, or another corpus); the "
        "weights can't be loaded into a model of this vocabulary",
        "which token a class stands for isn't written in the weights, but in the vocabulary of their "
        "training: take that run folder whole, and to move the shared tokens over, put it in place of "
        f"WEIGHTS_RUN:\n  {command}",
    ]
    return "\n".join(lines)
