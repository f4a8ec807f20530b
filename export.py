"""Export a trained run as a bundle of models for other runtimes, each compared with the source model."""

from __future__ import annotations

from utils.command.entry import run_command

import argparse
import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from bundle.variants import (
    Format,
    Precision,
    Refusal,
    Variant,
    no_stream,
    offered,
    refusal,
)
from streaming.conversion.modes import Mode
from utils.backend.devices import hide_gpus
from utils.backend.quiet import silence_tensorflow
from utils.command.arguments import not_negative, positive
from utils.command.parser import CommandParser
from utils.errors import ConfigError, require
from utils.run_folder.run import RunFolder, open_run

if TYPE_CHECKING:
    from bundle.export.source import ExportSource
    from bundle.report import ArtefactResult

TASKS = ("keyword", "speech", "language")
FAILED, INCOMPLETE = 1, 3  # exit codes
FEATURES, SAMPLES = "features", "samples"  # inputs of a model
_UNAVAILABLE = "not available for this model"
COMMON_OPTIONS = ("--all", "--format", "--mode", "--precision", "--output", "--force")
EXAMPLES = f"""\
examples:
  python export.py runs/commands --all
  python export.py runs/dfcnn --all data.test=[datasets/thchs30/test.tsv]
  python export.py runs/transformer --format onnx litert --precision float dynamic
  python export.py runs/commands --format litert --mode stream_external --precision int8
  python export.py runs/commands --format litert onnx --mode stream_external --frames 2 --output bundles/two
  python export.py runs/commands --input samples --format onnx --precision float --mode stream_external
  python export.py runs/commands --all data.folder=/elsewhere/commands
  python export.py verify runs/commands/export

Defaults: format litert; modes non_stream and stream_external; precisions float and int8. Models of whole
utterances (all acoustic models except compact_streaming, and the converters transformer and cbhg) have only
non_stream artefacts.

Every artefact is run by its own runtime in its own process, compared with the source model on golden clips,
and measured on the test split; the table is in export.md of the bundle. verify repeats the comparison on any
machine, from the bundle alone. Exit code: {FAILED} if an artefact fails, {INCOMPLETE} if verify couldn't run
one because its runtime isn't installed or lacks operations. What is not available for the model is listed
with the reason; docs/export.md has a table.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line; export or verify."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == ["verify"]:
        return _verify(_verify_parser().parse_args(words[1:]).bundle)
    options, overrides = _parser().parse_known_args(words)
    for word in overrides:
        if "=" not in word or word.startswith("-"):
            _parser().error(f"unrecognised argument: {word}")
    return _export(options, overrides)


def _export(options: argparse.Namespace, overrides: Sequence[str]) -> int:
    task = str(open_run(options.run).config().get("task"))
    require(
        task in TASKS,
        f"a run of task '{task}' can't be exported",
        hint=f"use a run of one of: {', '.join(TASKS)}",
        where=options.run,
    )
    require(
        options.input != SAMPLES or task != "language",
        "a converter takes syllables",
        hint=f"leave out --input {SAMPLES}",
        where=options.run,
    )
    _load_tensorflow()
    from bundle.export.build import can_stream, export_bundle

    source = _source(task, options, overrides)
    variants = _offered(options, source, can_stream(source))
    output = options.output or RunFolder(options.run).export
    results = export_bundle(
        source,
        variants,
        output,
        frames_per_call=options.frames,
        force=options.force,
        allow_flex=options.allow_flex,
    )
    return _report(results, output)


def _load_tensorflow() -> None:
    """Load TensorFlow, which every export needs, without GPUs.

    On a machine with a GPU, Keras would write recurrent layers as operations of cuDNN, which no other runtime
    has, and the source model's outputs would be rounded to TF32.
    """
    silence_tensorflow()
    import keras

    backend = keras.backend.backend()
    require(
        backend == "tensorflow",
        f"export needs the TensorFlow backend, not '{backend}'",
        hint="KERAS_BACKEND=tensorflow python export.py ...; the run needs no change",
    )
    hide_gpus()


def _source(task: str, options: argparse.Namespace, overrides: Sequence[str]) -> ExportSource:
    given = (options.run, options.weights, overrides, options.test_clips)
    if task == "language":
        from bundle.export.language_source import language_source

        return language_source(*given)
    samples = options.input == SAMPLES
    if task == "speech":
        from bundle.export.speech_source import speech_source

        return speech_source(*given, samples=samples)
    from bundle.export.keyword_source import keyword_source

    return keyword_source(*given, samples=samples)


def _requested(options: argparse.Namespace, source: ExportSource) -> list[Variant]:
    """The variants that the options name."""
    if options.all:
        return offered()
    formats = options.format or [Format.LITERT]
    states = options.mode or (
        [Mode.NON_STREAM_INFERENCE]
        if source.row_stride
        else [Mode.NON_STREAM_INFERENCE, Mode.STREAM_EXTERNAL_STATE_INFERENCE]
    )
    precisions = options.precision or [Precision.FLOAT, Precision.INT8]
    return [
        Variant(Format(format_), Mode(state), Precision(precision))
        for format_, state, precision in product(formats, states, precisions)
    ]


def _offered(options: argparse.Namespace, source: ExportSource, obstacles: Sequence[str]) -> list[Variant]:
    """The requested variants that are offered; the others are printed with the reason.

    Args:
        options: the options of the command.
        source: the model.
        obstacles: why it can't stream; empty if it can.

    Raises:
        ConfigError: none is offered.
    """
    streams = no_stream(obstacles, source.kind) if obstacles else None
    accepted: list[Variant] = []
    refused: dict[Refusal, list[Variant]] = {}
    for variant in _requested(options, source):
        reason = streams if streams and variant.is_streaming else refusal(variant, source.raw)
        if reason:
            refused.setdefault(reason, []).append(variant)
        else:
            accepted.append(variant)
    for reason, variants in refused.items():
        names = ", ".join(map(str, variants))
        if not accepted:
            raise ConfigError(f"{_UNAVAILABLE}: {names}: {reason.reason}", hint=f"use {reason.instead}")
        print(f"note: {_UNAVAILABLE}: {names}: {reason}", file=sys.stderr)
    return accepted


def _report(results: Sequence[ArtefactResult], output: Path) -> int:
    """Print what failed, and return the exit code. What this model can't have is no failure."""
    for result in results:
        if names := result.measured.get("float_layers"):
            print(f"note: {result.variant} keeps {len(names)} layers in float: {', '.join(names)}")
        if result.unavailable:
            print(f"{_UNAVAILABLE}: {result.variant}: {result.unavailable}")
    made = [result for result in results if not result.unavailable]
    failed = [result for result in made if result.problems]
    for result in failed:
        print(f"FAILED {result.variant}: {'; '.join(result.problems)}")
    print(f"{len(made) - len(failed)} of {len(made)} artefacts passed: {output / 'export.md'}")
    return FAILED if failed else 0


def _verify(bundle: Path) -> int:
    from bundle.check.measuring import Outcome, verify_bundle

    outcomes = []
    for result in verify_bundle(bundle):
        print(f"{result.outcome:8} {result.artefact}: {result.detail}", flush=True)
        outcomes.append(result.outcome)
    print(", ".join(f"{outcomes.count(outcome)} {outcome}" for outcome in Outcome))
    if Outcome.FAILED in outcomes:
        return FAILED
    return INCOMPLETE if Outcome.NOT_RUN in outcomes else 0


def _parser() -> CommandParser:
    parser = CommandParser(description=__doc__, epilog=EXAMPLES, common=COMMON_OPTIONS)
    parser.add_argument("run", type=Path, help="run folder of a keyword, speech or language model")
    parser.add_argument("--all", action="store_true", help="all artefacts that are offered for the model")
    parser.add_argument(
        "--format", nargs="+", choices=[*map(str, Format)], help="file formats (default: litert)"
    )
    parser.add_argument("--mode", nargs="+", choices=[*map(str, Mode)], help="whole clips, or a stream")
    parser.add_argument(
        "--precision", nargs="+", choices=[*map(str, Precision)], help="of weights and arithmetic"
    )
    parser.add_argument(
        "--input",
        choices=[FEATURES, SAMPLES],
        default=FEATURES,
        help="samples: the model computes its features itself (default: features, as it was trained)",
    )
    parser.add_argument(
        "--frames",
        type=not_negative,
        default=0,
        help="frames per call of a stream (default: the minimum)",
    )
    parser.add_argument("--output", type=Path, help="folder of the bundle (default: RUN/export)")
    parser.add_argument("--force", action="store_true", help="replace an existing bundle")
    parser.add_argument("--weights", default="best", help="best, last or a path (default: best)")
    parser.add_argument(
        "--test-clips",
        type=positive,
        default=1000,
        metavar="N",
        help="maximum number of test clips (default: 1000)",
    )
    parser.add_argument(
        "--allow-flex",
        action="store_true",
        help="allow TensorFlow operations in LiteRT files, which then can't be checked",
    )
    return parser


def _verify_parser() -> CommandParser:
    parser = CommandParser(prog="export.py verify", description="Check all artefacts of a bundle again.")
    parser.add_argument("bundle", type=Path)
    return parser


if __name__ == "__main__":
    run_command(main)
