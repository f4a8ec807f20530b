"""Packs a finished speech run into a folder with small weights, which recognises without a framework.

    python -m model_speech.pack RUN FOLDER

A weight takes one byte, or two in the layers that see the features. The folder holds config.yaml without the
paths of the data, the vocabulary, the metrics of training and ``network.npz`` (see
:mod:`model_speech.int8_weights`). Commands that load a speech run take it instead.
"""

from utils.command.entry import run_command

import argparse
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from model_speech import compact_numpy, compact_streaming_numpy
from model_speech.ensemble import MemberConfig
from model_speech.int8_weights import int8_weights_file, save_int8_weights, weights_by_name
from utils.backend.quiet import silence_tensorflow
from utils.command.arguments import finite_number
from utils.config import build_config, save_yaml, to_plain, with_overrides
from utils.errors import RunError
from utils.files import replacing_folder
from utils.run_folder import checksums
from utils.run_folder.run import SEARCH, RunFolder, open_run

_PACKED = (compact_numpy.NAME, compact_streaming_numpy.NAME)
_SEARCH = ("language_weight", "joint_bonus", "rescoring_weight")
"""Settings of :mod:`model_language.search.joint` that may be stored."""
# Rounded to a byte, the layers that see the features change the most syllables.
_HALF_PRECISION = "front"
# What config.yaml says about the training with local paths: whole sections, and settings of others.
_LOCAL_SECTIONS = ("data", "environment", "initialise_from", "initialise_except", "imported")
_LOCAL_SETTINGS = {
    "augment": ("noise_folder", "room_folder"),
    "distillation": ("teacher",),
    "transfer": ("source_run",),
}


def pack(
    source: Path,
    target: Path,
    weights: str = "best",
    search: Mapping[str, float] | None = None,
    members: Sequence[MemberConfig] = (),
    hop_ms: float | None = None,
) -> None:
    """Write a speech run of `compact` or `compact_streaming` with one or two bytes per weight.

    Args:
        source: the run.
        target: the new folder. Of an existing one, files that are none of a run (a card) are kept; those of
            the earlier model (calibration, thresholds, weights) are removed.
        weights: ``best``, ``last``, or the path of a weights file.
        search: weights for this model of the search for syllables and hanzi together
            (:mod:`model_language.search.joint`), chosen on dev speakers; keys ``language_weight``,
            ``joint_bonus`` and ``rescoring_weight``.
        members: further models of an ensemble (:mod:`model_speech.ensemble`).
        hop_ms: time from one feature frame to the next, if dev speakers are recognised better with another
            one than that of the training: with a shorter one speech looks slower to the model.

    Raises:
        RunError: the run is of another model, is damaged, or is ``target`` itself.
        ConfigError: ``hop_ms`` is not above 0.
    """
    run = open_run(source, "speech")
    if target.resolve() == run.path.resolve():
        raise RunError("a run can't be packed into itself", where=target, hint="choose another folder")
    name = run.config().get("model", {}).get("name")
    if name not in _PACKED:
        raise RunError(
            f"a run of '{name}'", where=run.path, hint=f"only {' and '.join(_PACKED)} run without a framework"
        )
    silence_tensorflow()  # the next line loads Keras
    from model_speech.acoustic_model import load_acoustic_model, trained_settings

    model = load_acoustic_model(run.path, weights).model
    with replacing_folder(target) as folder:
        if target.is_dir():
            shutil.copytree(target, folder, dirs_exist_ok=True)
            for name in checksums.covered_files(folder):
                (folder / name).unlink()
        new = RunFolder(folder)
        config = _without_local_paths(run.config())
        if hop_ms is not None:
            config["features"] = to_plain(replace(trained_settings(run)[0], hop_ms=hop_ms))
        if search:
            config[SEARCH] = {**config.get(SEARCH, {}), **search}
        if members:
            given = (to_plain(member).items() for member in members)
            config["ensemble"] = [{key: value for key, value in each if value is not None} for each in given]
        save_yaml(new.config_file, config)
        new.vocabulary("").mkdir(exist_ok=True)
        shutil.copyfile(run.vocabulary("acoustic.txt"), new.vocabulary("acoustic.txt"))
        if run.metrics.is_file():
            shutil.copyfile(run.metrics, new.metrics)
        save_int8_weights(int8_weights_file(new), weights_by_name(model), _HALF_PRECISION)
        checksums.begin(folder)
        checksums.accept(folder)


def _without_local_paths(config: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in config.items() if key not in _LOCAL_SECTIONS}
    for section, settings in _LOCAL_SETTINGS.items():
        if section in kept:
            kept[section] = {key: value for key, value in kept[section].items() if key not in settings}
    return kept


def main(arguments: Sequence[str] | None = None) -> int:
    """The command ``python -m model_speech.pack``."""
    options = _parser().parse_args(arguments)
    search = {name: value for name in _SEARCH if (value := getattr(options, name)) is not None}
    members = [build_config(MemberConfig, with_overrides({}, settings)) for settings in options.member]
    pack(options.run, options.folder, options.weights, search, members, options.hop_ms)
    size = sum(path.stat().st_size for path in options.folder.rglob("*") if path.is_file())
    print(f"{options.folder}: {size / 1e6:.1f} MB")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path, help="a finished run of compact or compact_streaming")
    parser.add_argument("folder", type=Path, help="the folder to write")
    parser.add_argument("--weights", default="best", help="best, last or a file (default: best)")
    for name in _SEARCH:
        option = f"--{name.replace('_', '-')}"
        parser.add_argument(option, type=finite_number, metavar="W", help="setting of the joint search")
    parser.add_argument(
        "--hop-ms", type=float, metavar="MS", help="hop of the features (default: that of the training)"
    )
    parser.add_argument(
        "--member", nargs="+", action="append", default=[], metavar="NAME=VALUE",
        help="member of an ensemble, e.g. weight=0.3 hop_ms=9, or weight=0.3 run=../other; may be repeated",
    )  # fmt: skip
    return parser


if __name__ == "__main__":
    run_command(main)
