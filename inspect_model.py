"""Inspect models: contents, statistics, differences, pruning, attention. Convert them to new runs."""

from utils.command.entry import run_command

import argparse
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path

import numpy as np

from analysis.weights.attention import AttentionMaps, write_attention_page
from analysis.weights.differences import differences_text
from analysis.weights.file_contents import contents_text
from analysis.weights.layer_statistics import (
    find_layer,
    find_output,
    layer_values,
    own_vocabulary,
    summary_order,
    vocabulary_problem,
    weights_text,
)
from analysis.weights.significance import (
    THRESHOLD,
    channels_text,
    significance_text,
    significances,
)
from analysis.weights.weight_file import Layer, Weight, WeightFile, read_weight_file
from model_language.legacy_checkpoint import checkpoint_prefix, read_checkpoint
from model_speech.packed_run import is_packed
from model_speech.packed_weights import read_packed_weights
from utils.backend.quiet import silence_tensorflow
from utils.command.arguments import fraction
from utils.command.parser import CommandParser
from utils.errors import ConfigError, CorpusError, RunError, VocabularyError, require
from utils.mandarin.pinyin import hanzi_to_pinyin, is_hanzi, normalise_syllable
from utils.run_folder import checksums
from utils.run_folder.run import RunFolder, check_finite, find_run, open_run
from utils.vocabulary import Vocabulary, first_few

PACKED = "packed model, weights rounded to int8"
PICTURES = (".png", ".svg", ".pdf")
EXAMPLES = """\
examples:
  python inspect_model.py weights runs/trial
  python inspect_model.py weights old_project/model.h5 --vocabulary runs/full/vocabulary/acoustic.txt
  python inspect_model.py weights runs/trial --values logits
  python inspect_model.py weights old_project/model.h5 --datasets
  python inspect_model.py differences runs/trial runs/trial_fine_tuned
  python inspect_model.py significance runs/trial --output significance.png
  python inspect_model.py significance runs/trial --layer front_1_conv
  python inspect_model.py attention runs/transformer "wo3 men5 qu4 bei3 jing1" --output attention.html
  python inspect_model.py transfer runs/trial runs/trial_full --vocabulary runs/full/vocabulary/acoustic.txt
  python inspect_model.py transfer runs/thchs30 runs/both --vocabulary vocabulary/acoustic.txt
  python inspect_model.py accept runs/trial
  python inspect_model.py import old_project/model.h5 --tokens old_project/tokens.txt
  python inspect_model.py import old_project/model.h5 runs/old --tokens old_project/tokens.txt
  python inspect_model.py import old_project/lm.h5 --tokens pinyin.txt --hanzi hanzi.txt
  python inspect_model.py import old_project/logs_lm/model_20.index --tokens pinyin.txt --hanzi hanzi.txt

weights reads HDF5 files of Keras 2 and 3 (.h5, .weights.h5), .keras files, and runs, without TensorFlow. A
packed speech model (pretrained/audio_to_pinyin) is shown with the rounded weights that it computes with.
--datasets lists all that the file contains, with the state of the optimiser and the attributes of all groups;
of a run, the checkpoint too.

differences compares the weights of two runs or files: for each layer the norm of the difference, relative to
the norm of the first, and the largest change of a single value.

significance is the mean absolute kernel value of an output channel, divided by the largest in the layer. A
channel below --threshold has little effect and could be pruned. Classes of the output layer are never pruned.

attention shows the attention weights of a transformer between all positions of a sentence, for each head and
on average, as an interactive page.

transfer converts a speech run to another vocabulary. In the output layer, the weights of each token that is
in both vocabularies are moved to its new position; the other layers are copied. New tokens have untrained
weights: the outputs of the new run for them are meaningless. SOURCE_RUN is not changed.

accept is for files of a run that were edited on purpose: it lists the files that differ from the run's
checksums, and records their present checksums.

import makes a run from weights that an older project saved with Keras 2: of the published DFCNN with CTC on
the 200-bin spectrogram, or with --hanzi of the published transformer with learned positions. The lists have
one token per line, in the order of that project's vocabulary: the classes of the DFCNN with the blank '_'
last; the syllables and the hanzi of the transformer with the padding '<PAD>' first. The run works with
test.py, transcribe.py and export.py.
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line and run its command."""
    options = _parser().parse_args(arguments)
    options.command(options)


def _weights(options: argparse.Namespace) -> None:
    file, run = _read_weights(options.source)
    if options.datasets:
        checkpoint = [run.checkpoint] if run and options.source.is_dir() and run.checkpoint.is_file() else []
        print("\n".join(map(contents_text, [file.path, *checkpoint])), end="")
        return
    if options.values:
        layer = find_layer(file, options.values)
        print(layer_values(layer))
        return
    output = find_output(file)
    problem = vocabulary_problem(output, run, options.vocabulary) if output else None
    print(weights_text(file), end="")
    fitting = options.vocabulary or (own_vocabulary(run) if run else None)
    if output and fitting and not problem:
        print(f"vocabulary:   {fitting}, {output.classes} tokens: it fits")
    if options.vocabulary and not output:
        raise RunError("this file has no output layer to compare with a vocabulary", where=file.path)
    if problem:
        raise VocabularyError(problem)


def _read_weights(source: Path) -> tuple[WeightFile, RunFolder | None]:
    """A weights file, or a run's best weights (without these, the last or the packed ones), and the run."""
    if not source.is_dir():
        return read_weight_file(source), find_run(source)
    run = open_run(source)
    path = next((path for path in (run.best_weights, run.last_weights) if path.is_file()), None)
    if path is None and run.config().get("task") == "speech" and is_packed(run):
        return _packed_weights(run.packed_network), run
    if path is None:
        raise RunError(
            "the run has no weights file of Keras",
            where=source,
            hint="give a run in which train.py has trained a network, or a packed speech model; n-gram "
            "models and the shipped language models have no such file",
        )
    return read_weight_file(path).in_order_of(summary_order(run)), run


def _packed_weights(path: Path) -> WeightFile:
    """The weights of a packed run, rounded to int8 with a scale for each output channel, as float32."""
    arrays = read_packed_weights(path)
    layers = []
    for name, paths in groupby(arrays, key=lambda path: path.rpartition("/")[0]):
        weights = tuple(Weight(each.rpartition("/")[2], each, arrays[each]) for each in paths)
        # Depthwise convolutions over time alone have kernels (frames, channels, 1).
        is_depthwise = any(weight.array.ndim == 3 and weight.array.shape[-1] == 1 for weight in weights)
        layers.append(Layer(name, name, "depthwise_conv1d" if is_depthwise else "", weights))
    return WeightFile(path, PACKED, {}, tuple(layers), ordered=True, state_values=0)


def _differences(options: argparse.Namespace) -> None:
    (first, _), (second, _) = map(_read_weights, (options.first, options.second))
    print(differences_text(first, second), end="")


def _significance(options: argparse.Namespace) -> None:
    file, run = _read_weights(options.source)
    found = significances(file)
    if options.layer:
        layer = find_layer(file, options.layer)
        found = [kernel for kernel in found if kernel.layer == layer.name]
        require(found, f"no kernel in layer '{layer.name}'", where=file.path, error=RunError)
    if options.output:
        _check_suffix(options.output, PICTURES)
        from analysis.weights.significance_plot import draw_significance  # here: matplotlib loads slowly

        draw_significance(found, options.threshold, str(file.path), options.output)
    if options.layer:
        vocabulary = own_vocabulary(run) if run else None
        names = Vocabulary.load(vocabulary).tokens if vocabulary else ()
        tables = [
            channels_text(kernel, names if kernel.is_output and len(kernel.values) == len(names) else None)
            for kernel in found
        ]
        print("\n".join(tables), end="")
    else:
        print(significance_text(found, options.threshold), end="")


def _check_suffix(path: Path, known: Sequence[str]) -> None:
    if path.suffix.lower() not in known:
        raise ConfigError(
            f"{path} cannot be drawn as '{path.suffix}'", hint=f"known suffixes: {', '.join(known)}"
        )


def _attention(options: argparse.Namespace) -> None:
    run, syllables = open_run(options.run, "language"), _syllables(options.sentence)
    _check_suffix(options.output, (".html",))
    silence_tensorflow()
    from model_language.converters.neural import NeuralConverter  # here: see utils.backend.quiet
    from model_language.networks.transformer import attend
    from model_language.registry import MODELS, load_network, read_model_config

    name = read_model_config(run).name
    message, hint = f"a model '{name}' has no attention", "give a run of a transformer"
    require(MODELS[name].exported, message, where=run.path, hint=hint, error=RunError)
    model, symbols = load_network(run.path)
    weights = attend(model, symbols.encode(syllables)).weights
    hanzi = NeuralConverter(model, symbols).convert([syllables])[0]
    maps = AttentionMaps(f"Attention of {run.path}", syllables, hanzi, weights)
    print(f"{' '.join(syllables)}\n{hanzi}")
    write_attention_page(maps, options.output)
    print(f"written: {options.output}")


def _syllables(sentence: str) -> list[str]:
    """The syllables of a sentence in pinyin or in hanzi."""
    words = sentence.split()
    require(words, "the sentence has no syllable", hint='write it like "ni3 hao3"', error=CorpusError)
    if is_hanzi("".join(words)):
        return hanzi_to_pinyin("".join(words))
    return [normalise_syllable(word) for word in words]


def _transfer(options: argparse.Namespace) -> None:
    source = open_run(options.source_run, "speech")
    classes = len(Vocabulary.load(options.vocabulary))
    silence_tensorflow()
    from model_speech.vocabulary_transfer import transfer_run  # here: see utils.backend.quiet

    match = transfer_run(source.path, options.new_run, options.vocabulary)
    print(f"classes: {len(match.kept) + len(match.dropped)} in the source run, {classes} in the new run")
    print(f"kept:    {len(match.kept)}")
    print(f"dropped: {len(match.dropped)} ({first_few(match.dropped)})")
    print(f"new:     {len(match.new)} ({first_few(match.new)})")
    print(f"written: {options.new_run}")


def _accept(options: argparse.Namespace) -> None:
    run = RunFolder(options.run)
    if not run.config_file.is_file():
        run.config()  # raises, and names the runs nearby
    try:
        found = checksums.differences(run.path) if checksums.exist(run.path) else {}
    except RunError as error:
        found = {checksums.CHECKSUMS: error.message}
    for name, state in found.items():
        print(f"{name}: {state}")
    checksums.accept(run.path)
    print(f"recorded: {len(checksums.covered_files(run.path))} files in {run.checksums}")


def _import(options: argparse.Namespace) -> None:
    silence_tensorflow()
    layers = _published_layers(options.weights)
    arrays = {f"{layer}/{name}": array for layer, _, weights in layers for name, array in weights.items()}
    check_finite(arrays, options.weights)
    new_run = options.new_run or Path("runs") / options.weights.stem
    if options.hanzi:
        from model_language.legacy_import import import_transformer  # here: see utils.backend.quiet

        filled = [weights for *_, weights in layers if weights]
        symbols = import_transformer(filled, options.weights, options.tokens, options.hanzi, new_run)
        classes = f"{len(symbols.hanzi)} hanzi of {len(symbols.pinyin)} syllables, <unk> among both"
    else:
        from model_speech.legacy_import import import_dfcnn  # here: see utils.backend.quiet

        kinds = [(kind, weights) for _, kind, weights in layers]
        vocabulary = import_dfcnn(kinds, options.weights, options.tokens, new_run)
        classes = f"{len(vocabulary)} ({first_few(vocabulary.tokens, 3)}; the last is the blank)"
    print(f"layers:  {len(layers)}, {sum(array.size for array in arrays.values()):,} parameters")
    print(f"classes: {classes}")
    print(f"written: {new_run}")


def _published_layers(path: Path) -> list[tuple[str, str, Mapping[str, np.ndarray]]]:
    """Name, kind and arrays of each layer of a Keras 2 file or a TensorFlow 1 checkpoint."""
    if prefix := checkpoint_prefix(path):
        return [(f"layer {n}", "", arrays) for n, arrays in enumerate(read_checkpoint(prefix), start=1)]
    return [
        (layer.name, layer.kind, {weight.name: weight.array for weight in layer.weights})
        for layer in read_weight_file(path).layers
    ]


def _parser() -> CommandParser:
    parser = CommandParser(description=__doc__, epilog=EXAMPLES)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, text, command, add_arguments in (
        ("weights", "list layers, shapes and statistics; compare with a vocabulary", _weights, _add_weights),
        ("differences", "what differs in the weights of two runs, by layer", _differences, _add_differences),
        (
            "significance",
            "the significance of each output channel, and what could be pruned",
            _significance,
            _add_significance,
        ),
        ("attention", "the attention weights of a transformer for a sentence", _attention, _add_attention),
        ("transfer", "convert a speech run to another vocabulary, token by token", _transfer, _add_transfer),
        ("accept", "record the checksums of files that were edited on purpose", _accept, _add_accept),
        ("import", "make a run from weights that an older project saved", _import, _add_import),
    ):
        added = commands.add_parser(name, help=text, description=text, epilog=EXAMPLES)
        added.set_defaults(command=command)
        add_arguments(added)
    return parser


def _add_weights(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "source", type=Path, help="a weights file (.h5, .weights.h5, .keras) or a run folder"
    )
    command.add_argument(
        "--vocabulary",
        type=Path,
        metavar="FILE",
        help="compare the output layer with this vocabulary; default: the run's own",
    )
    command.add_argument("--values", metavar="LAYER", help="print only the values of this layer")
    command.add_argument(
        "--datasets", action="store_true", help="print only the contents of the file: datasets and attributes"
    )


def _add_differences(command: argparse.ArgumentParser) -> None:
    for name in ("first", "second"):
        command.add_argument(name, type=Path, help="a run folder or a weights file")


def _add_significance(command: argparse.ArgumentParser) -> None:
    command.add_argument("source", type=Path, help="a run folder or a weights file")
    command.add_argument(
        "--threshold",
        type=fraction,
        default=THRESHOLD,
        help=f"channels below it, 0 to 1, are insignificant (default: {THRESHOLD:g})",
    )
    command.add_argument("--layer", help="list the channels of this layer, the weakest first")
    command.add_argument("--output", type=Path, metavar="FILE", help="write a chart: .png, .svg or .pdf")


def _add_attention(command: argparse.ArgumentParser) -> None:
    command.add_argument("run", type=Path, help="language run with a transformer")
    command.add_argument("sentence", help="syllables with tone digits, in one pair of quotes, or hanzi")
    command.add_argument("--output", type=Path, metavar="FILE", required=True, help="the page, .html")


def _add_transfer(command: argparse.ArgumentParser) -> None:
    command.add_argument("source_run", type=Path, help="speech run to convert")
    command.add_argument("new_run", type=Path, help="run folder to create; must not exist")
    command.add_argument(
        "--vocabulary",
        type=Path,
        required=True,
        metavar="FILE",
        help="classes of the new run, one token per line: vocabulary/acoustic.txt of another run, or a file "
        "written by data.vocabularies",
    )


def _add_accept(command: argparse.ArgumentParser) -> None:
    command.add_argument("run", type=Path, help="run folder")


def _add_import(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "weights", type=Path, help="HDF5 file of Keras 2 (.h5), or TensorFlow 1 checkpoint (.index)"
    )
    text = "run folder to create; must not exist (default: runs/ and the file's name)"
    command.add_argument("new_run", type=Path, nargs="?", help=text)
    command.add_argument(
        "--tokens",
        type=Path,
        required=True,
        metavar="FILE",
        help="for a DFCNN its classes, the blank last; for a transformer its syllables, padding first",
    )
    command.add_argument(
        "--hanzi", type=Path, metavar="FILE", help="for a transformer: its hanzi, one per line, padding first"
    )


if __name__ == "__main__":
    run_command(main)
