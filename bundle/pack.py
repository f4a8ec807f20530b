"""Packs a finished run into a small folder, with which ONNX Runtime recognises without TensorFlow.

    python -m bundle.pack RUN FOLDER

The run is a speech run, or one of a punctuation network or of a network over candidate hanzi. A weight takes
one byte. The folder holds config.yaml without the paths of the data, the vocabulary, the metrics of training
and ``network.onnx`` (see
:mod:`bundle.export.packed_network`). Commands that load such a run take it instead.
"""

from utils.command.entry import run_command

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from model_language.networks.punctuation_config import NAME as PUNCTUATION
from model_language.registry import CANDIDATE_NETWORKS, read_model_config
from utils.backend.onnx_session import open_session
from utils.backend.quiet import silence_tensorflow
from utils.command.arguments import finite_number
from utils.command.parser import CommandParser
from utils.config import save_yaml
from utils.errors import RunError, require
from utils.files import replacing_folder
from utils.run_folder import checksums
from utils.run_folder.run import SEARCH, RunFolder, open_run

CARD = "README.md"  # of the model, written by its author: stays in the folder
_SEARCH = ("language_weight", "joint_bonus", "rescoring_weight")
"""Settings of :mod:`model_language.search.joint` that may be stored."""
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
) -> None:
    """Write a run with one byte per weight.

    Args:
        source: the run.
        target: the new folder. Of an earlier packed model, files that are none of a run (a card) are kept;
            those of the model (calibration, thresholds, weights) are removed.
        weights: ``best``, ``last``, or the path of a weights file.
        search: weights for this model of the search for syllables and hanzi together
            (:mod:`model_language.search.joint`), chosen on dev speakers; keys ``language_weight``,
            ``joint_bonus`` and ``rescoring_weight``.

    Raises:
        RunError: the run is damaged, or ``target`` has something else than a packed model.
        BundleError: the model can't be converted to ONNX.
    """
    run = open_run(source)
    name = "" if run.config().get("task") == "speech" else read_model_config(run).name
    require(
        name in ("", PUNCTUATION, *CANDIDATE_NETWORKS),
        "only speech runs, punctuation networks and networks over candidates can be packed",
        where=run.path,
        hint="other language runs are used as they are",
        error=RunError,
    )
    is_new = not target.exists() or (target.is_dir() and {each.name for each in target.iterdir()} <= {CARD})
    require(
        is_new or (RunFolder(target).packed_network.is_file() and target.resolve() != run.path.resolve()),
        "this is not a folder of a packed model, which could be replaced",
        where=target,
        hint="choose a new folder",
        error=RunError,
    )
    silence_tensorflow()  # the next lines load Keras
    from bundle.export.packed_network import packed_network, packed_text_network
    from model_language.registry import load_network
    from model_speech.acoustic_model import load_acoustic_model

    if name:
        network = packed_text_network(load_network(run.path, weights)[0])
        files = ["hanzi.txt"]
        if name != PUNCTUATION:
            files = sorted(path.name for path in run.vocabulary("").iterdir())
    else:
        network = packed_network(load_acoustic_model(run.path, weights), run)
        files = ["acoustic.txt"]
    with replacing_folder(target) as folder:
        if target.is_dir():
            shutil.copytree(target, folder, dirs_exist_ok=True)
            for name in checksums.covered_files(folder):
                (folder / name).unlink()
        new = RunFolder(folder)
        config = _without_local_paths(run.config())
        if search:
            config[SEARCH] = {**config.get(SEARCH, {}), **search}
        save_yaml(new.config_file, config)
        new.vocabulary("").mkdir(exist_ok=True)
        for file in map(run.vocabulary, files):
            shutil.copyfile(file, new.vocabulary(file.name))
        if run.metrics.is_file():
            shutil.copyfile(run.metrics, new.metrics)
        new.packed_network.write_bytes(network.SerializeToString(deterministic=True))
        checksums.begin(folder)
        checksums.accept(folder)
        open_session(new.packed_network)  # ONNX Runtime may lack an operation


def _without_local_paths(config: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in config.items() if key not in _LOCAL_SECTIONS}
    for section, settings in _LOCAL_SETTINGS.items():
        if section in kept:
            kept[section] = {key: value for key, value in kept[section].items() if key not in settings}
    return kept


def main(arguments: Sequence[str] | None = None) -> int:
    """The command ``python -m bundle.pack``."""
    options = _parser().parse_args(arguments)
    search = {name: value for name in _SEARCH if (value := getattr(options, name)) is not None}
    pack(options.run, options.folder, options.weights, search)
    size = sum(path.stat().st_size for path in options.folder.rglob("*") if path.is_file())
    print(f"{options.folder}: {size / 1e6:.1f} MB")
    if RunFolder(options.folder).config().get("task") == "speech":
        calibrate = f"python -m recognition.calibrate {options.folder} --manifest dev.tsv"
        print(f"Its confidences have to be fitted: {calibrate}")
    return 0


def _parser() -> CommandParser:
    parser = CommandParser(description=__doc__)
    parser.add_argument("run", type=Path, help="a finished run")
    parser.add_argument("folder", type=Path, help="the folder to write")
    parser.add_argument("--weights", default="best", help="best, last or a file (default: best)")
    for name in _SEARCH:
        option = f"--{name.replace('_', '-')}"
        parser.add_argument(option, type=finite_number, metavar="W", help="setting of the joint search")
    return parser


if __name__ == "__main__":
    run_command(main)
