"""Rearrange a run's model: a speech run and a vocabulary in, a run with these classes out."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from utils.errors import run_command
from utils.quiet import silence_tensorflow
from utils.run import open_run
from utils.vocabulary import Vocabulary, first_few

EXAMPLES = """\
examples:
  python inspect_model.py transfer runs/trial runs/trial_full --vocabulary runs/full/vocabulary/acoustic.txt
  python inspect_model.py transfer runs/thchs30 runs/both --vocabulary vocabulary/acoustic.txt

transfer moves a speech run to another vocabulary: in the output layer each token that both vocabularies have
takes its weights along, wherever it stands; the other layers are copied. New tokens start untrained: what the
new run outputs for them means nothing. SOURCE_RUN stays as it is.
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line and do what it asks."""
    options = _parser().parse_args(arguments)
    options.command(options)


def _transfer(options: argparse.Namespace) -> None:
    source = open_run(options.source_run, "speech")
    classes = len(Vocabulary.load(options.vocabulary))
    silence_tensorflow()
    from model_speech.transfer import transfer_run  # here: see utils.quiet

    match = transfer_run(source.path, options.new_run, options.vocabulary)
    print(f"classes: {len(match.kept) + len(match.dropped)} in the source run, {classes} in the new one")
    print(f"kept:    {len(match.kept)}")
    print(f"dropped: {len(match.dropped)} ({first_few(match.dropped)})")
    print(f"new:     {len(match.new)} ({first_few(match.new)})")
    print(f"written: {options.new_run}")


def _parser() -> argparse.ArgumentParser:
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, epilog=EXAMPLES, formatter_class=form)
    commands = parser.add_subparsers(required=True, metavar="{transfer}")
    text = "move a speech run to another vocabulary, token by token"
    transfer = commands.add_parser(
        "transfer", help=text, description=text, epilog=EXAMPLES, formatter_class=form
    )
    transfer.set_defaults(command=_transfer)
    transfer.add_argument("source_run", type=Path, help="speech run whose weights are moved")
    transfer.add_argument("new_run", type=Path, help="run folder to make; must not exist")
    transfer.add_argument(
        "--vocabulary",
        type=Path,
        required=True,
        metavar="FILE",
        help="classes of the new run, one token a line: another run's vocabulary/acoustic.txt, or what "
        "data.vocabularies wrote",
    )
    return parser


if __name__ == "__main__":
    run_command(main)
