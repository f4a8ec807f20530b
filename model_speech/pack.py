"""A finished speech run in; a folder with one byte per weight, which needs no framework, out.

    python -m model_speech.pack RUN FOLDER

The folder holds config.yaml, the vocabulary, the figures of the training and ``network.npz`` (see
:mod:`model_speech.byte_weights`). Every command takes it in place of a run.
"""

import argparse
import shutil
from collections.abc import Sequence
from pathlib import Path

from model_speech.acoustic_model import load_acoustic_model
from model_speech.byte_weights import byte_weights, save_byte_weights, weights_by_name
from model_speech.compact_numpy import NAME
from utils.errors import RunError, run_command
from utils.files import replacing_folder
from utils.run_folder import checksums
from utils.run_folder.run import RunFolder, open_run


def pack(source: Path, target: Path, weights: str = "best") -> None:
    """Write a speech run of `compact` with one byte per weight.

    Args:
        source: the run.
        target: the new folder; files that it has beside those of a run (a card) are kept.
        weights: ``best``, ``last``, or the path of a weights file.

    Raises:
        RunError: the run is not one of `compact`, or is damaged.
    """
    run = open_run(source, "speech")
    name = run.config().get("model", {}).get("name")
    if name != NAME:
        raise RunError(f"a run of '{name}'", where=run.path, hint=f"only '{NAME}' runs without a framework")
    model = load_acoustic_model(run.path, weights).model
    with replacing_folder(target) as folder:
        if target.is_dir():
            shutil.copytree(target, folder, dirs_exist_ok=True)
        for path in (run.config_file, run.vocabulary("acoustic.txt"), run.metrics):
            if path.is_file():
                copy = folder / path.relative_to(run.path)
                copy.parent.mkdir(exist_ok=True)
                shutil.copyfile(path, copy)
        save_byte_weights(byte_weights(RunFolder(folder)), weights_by_name(model))
        checksums.begin(folder)
        checksums.accept(folder)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command ``python -m model_speech.pack``."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path, help="a finished run of compact")
    parser.add_argument("folder", type=Path, help="the folder to write")
    parser.add_argument("--weights", default="best", help="best, last or a file (default: best)")
    options = parser.parse_args(arguments)
    pack(options.run, options.folder, options.weights)
    size = sum(path.stat().st_size for path in options.folder.rglob("*") if path.is_file())
    print(f"{options.folder}: {size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    run_command(main)
