"""A trained run in; a bundle of models for other runtimes out, each compared with the source and measured."""

from __future__ import annotations

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
    State,
    Variant,
    matrix_text,
    offered,
    refusal,
    whole_utterances,
)
from utils.backend.quiet import silence_tensorflow
from utils.cli import not_negative, positive
from utils.errors import ConfigError, run_command
from utils.run_folder.run import open_run

if TYPE_CHECKING:
    from bundle.export.source import ExportSource
    from bundle.report import Made

FAILED, INCOMPLETE = 1, 3  # exit codes
EXAMPLES = f"""\
examples:
  python export.py runs/commands --all
  python export.py runs/dfcnn --all data.test=[datasets/thchs30/test.tsv]
  python export.py runs/transformer --format onnx litert --precision float dynamic
  python export.py runs/commands --format litert --mode stream_external --precision int8
  python export.py runs/commands --format litert onnx --mode stream_external --frames 2 --output bundles/two
  python export.py runs/commands --all data.folder=/elsewhere/commands
  python export.py verify runs/commands/export

Without --all, --format, --mode or --precision: LiteRT, non_stream and stream_external, float and int8. A
model that needs whole utterances (all acoustic models but compact_streaming, and the converters transformer
and cbhg) has non_stream artefacts only.

Every artefact is opened in a process of its own by its own runtime, compared with the source model on
golden clips and measured on the test split; export.md in the bundle has the table. verify does it again, on
any machine, from the bundle alone. Exit code: {FAILED} if an artefact fails, {INCOMPLETE} if one couldn't be
run for want of its runtime.

{matrix_text()}"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line and export, or verify."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == ["verify"]:
        return _verify(_verify_parser().parse_args(words[1:]).bundle)
    options, overrides = _parser().parse_known_args(words)
    for word in overrides:
        if "=" not in word or word.startswith("-"):
            _parser().error(f"unrecognised argument: {word}")
    return _export(options, overrides)


def _export(options: argparse.Namespace, overrides: Sequence[str]) -> int:
    task = open_run(options.run).config().get("task")
    if task not in ("keyword", "speech", "language"):
        hint = "keyword, speech or language"
        raise ConfigError(f"a run of task '{task}' can't be exported", hint=hint, where=options.run)
    silence_tensorflow()
    from bundle.export.build import can_stream, export_bundle  # loads TensorFlow

    source = _source(task, options, overrides)
    variants = _asked(options, source)
    if options.all and (obstacles := can_stream(source)):
        variants = [variant for variant in variants if not variant.streams]
        print("note: no streams, the model can't stream:", *obstacles, sep="\n  ", file=sys.stderr)
    output = options.output or options.run / "export"
    made = export_bundle(
        source,
        variants,
        output,
        frames_per_call=options.frames,
        force=options.force,
        allow_flex=options.allow_flex,
    )
    return _tell(made, output)


def _source(task: str, options: argparse.Namespace, overrides: Sequence[str]) -> ExportSource:
    if task == "speech":
        from bundle.export.speech_source import speech_source

        return speech_source(options.run, options.weights, overrides, options.test_clips)
    if task == "language":
        from bundle.export.language_source import language_source

        return language_source(options.run, options.weights, overrides, options.test_clips)
    from bundle.export.keyword_source import keyword_source

    return keyword_source(options.run, options.weights, overrides, options.test_clips)


def _asked(options: argparse.Namespace, source: ExportSource) -> list[Variant]:
    """The variants asked for; refused ones among others are told, alone they are an error."""
    if options.all:
        return offered(source.raw)
    formats = options.format or [Format.LITERT]
    states = options.mode or ([State.NON_STREAM] if source.row_stride else [State.NON_STREAM, State.EXTERNAL])
    precisions = options.precision or [Precision.FLOAT, Precision.INT8]
    asked = [
        Variant(*map_)
        for map_ in product(map(Format, formats), map(State, states), map(Precision, precisions))
    ]
    refused = {variant: found for variant in asked if (found := _refusal(variant, source))}
    if len(refused) == len(asked):
        variant, found = next(iter(refused.items()))
        raise ConfigError(f"{variant} isn't offered: {found.reason}", hint=f"take {found.instead}")
    for variant, found in refused.items():
        print(f"note: {variant} isn't offered: {found.reason}; instead: {found.instead}", file=sys.stderr)
    return [variant for variant in asked if variant not in refused]


def _refusal(variant: Variant, source: ExportSource) -> Refusal | None:
    if variant.streams and source.row_stride:
        return whole_utterances(source.obstacles, source.kind)
    return refusal(variant, source.raw)


def _tell(made: Sequence[Made], output: Path) -> int:
    for one in made:
        if names := one.found.get("float_layers"):
            print(f"note: {one.variant} keeps {len(names)} layers in float: {', '.join(names)}")
    failed = [one for one in made if one.problems]
    for one in failed:
        print(f"FAILED {one.variant}: {'; '.join(one.problems)}")
    print(f"{len(made) - len(failed)} of {len(made)} artefacts passed: {output / 'export.md'}")
    return FAILED if failed else 0


def _verify(bundle: Path) -> int:
    from bundle.check.verification import Outcome, verify_bundle

    outcomes = []
    for checked in verify_bundle(bundle):
        print(f"{checked.outcome:8} {checked.artefact}: {checked.why}", flush=True)
        outcomes.append(checked.outcome)
    counts = ", ".join(f"{outcomes.count(one)} {one}" for one in Outcome)
    print(counts)
    if Outcome.FAILED in outcomes:
        return FAILED
    return INCOMPLETE if Outcome.NOT_RUN in outcomes else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path, help="run folder of a keyword, speech or language model")
    parser.add_argument("--all", action="store_true", help="every artefact that is offered")
    parser.add_argument("--format", nargs="+", choices=list(Format))
    parser.add_argument("--mode", nargs="+", choices=list(State), help="a clip a time, or a stream")
    parser.add_argument("--precision", nargs="+", choices=list(Precision))
    parser.add_argument(
        "--frames",
        type=not_negative,
        default=0,
        help="frames a call of a stream (default: the fewest possible)",
    )
    parser.add_argument("--output", type=Path, help="folder of the bundle (default: RUN/export)")
    parser.add_argument("--force", action="store_true", help="replace a folder that is there")
    parser.add_argument("--weights", default="best", help="best, last or a path (default: best)")
    parser.add_argument(
        "--test-clips", type=positive, default=1000, metavar="N", help="test clips at most (default: 1000)"
    )
    parser.add_argument(
        "--allow-flex", action="store_true", help="let LiteRT files need TensorFlow's operations"
    )
    return parser


def _verify_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="export.py verify", description="Run a bundle's proof again.")
    parser.add_argument("bundle", type=Path)
    return parser


if __name__ == "__main__":
    run_command(main)
