"""Defines and checks the command-line options of a keyword test. Loads no model."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from data.keywords.clips import KeywordDataConfig
from utils.config import build_config
from utils.run_folder.run import open_run


def add_keyword_options(command: argparse.ArgumentParser) -> None:
    """Add the options that only keyword tests have: weights, shifts in time, a long recording."""
    command.add_argument("--weights", help="best (default), last, or a weights file")
    command.add_argument(
        "--shift-ms",
        type=int,
        nargs="+",
        default=(),
        metavar="MS",
        help="also test the clips moved in time by these milliseconds (later; -100: earlier)",
    )
    command.add_argument("--recording", type=Path, help="a long recording for the stream of the run's export")
    command.add_argument(
        "--spoken",
        type=Path,
        help="list of its keywords: start, end, keyword; without it all detections are false alarms",
    )


def settle_keyword_options(options: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """Refuse options for clips together with ``--recording``, and ``--spoken`` without it; set defaults."""
    if options.spoken and not options.recording:
        parser.error("--spoken is the list of keywords in a --recording: give both")
    given = {
        "--manifest": options.manifest,
        "--weights": options.weights,
        "--split": options.split,
        "--shift-ms": options.shift_ms,
    }
    unused = [*(name for name, value in given.items() if value), *options.overrides]
    if options.recording and unused:
        parser.error(f"--recording is tested with the run's export: leave out {', '.join(unused)}")
    options.split, options.weights = options.split or "test", options.weights or "best"


def read_data_config(run: str | Path, overrides: Sequence[str]) -> KeywordDataConfig:
    """The settings of the data of a keyword run, such as ``data.folder=…`` if the recordings have moved.

    Raises:
        RunError: this is no keyword run.
        ConfigError: an override is wrong, or not of ``data``.
    """
    folder = open_run(run, "keyword")
    where = f"{folder.config_file} with {' '.join(overrides)}"
    return build_config(KeywordDataConfig, folder.data_section(overrides), where=where)
