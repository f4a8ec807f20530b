"""Averages the weights of several training runs of one acoustic model (stochastic weight averaging).

    python -m model_speech.average_weights runs/seventh runs/eighth runs/ninth --output runs/mean

If each run is initialised with the weights of the one before, the model with the mean of their weights often
has fewer errors than the last one alone, at the same cost (Izmailov et al., arXiv:1803.05407). The result is
a new run with the config and the vocabulary of the last one; ``averaged.json`` lists all. It is tested,
packed and exported as any other. The last run may have more residual blocks than the others.
"""

from __future__ import annotations

from utils.command.entry import run_command

import argparse
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from model_speech.int8_weights import is_packed
from utils.backend.quiet import silence_tensorflow
from utils.errors import RunError, require
from utils.files import replacing_folder, write_json
from utils.run_folder import checksums
from utils.run_folder.run import RunFolder, open_run, require_new_run

if TYPE_CHECKING:
    from model_speech.acoustic_model import AcousticModel

_RECORD = "averaged.json"
_BLOCK = re.compile(r"(front_\w+_)?block_\d+_")  # path of a weight of a residual block
_SCALE_AND_OFFSET = ("gamma", "beta")


def average(sources: Sequence[Path], target: Path, weights: str = "last") -> None:
    """Write a run with the mean of the weights, statistics of the normalisation included.

    Args:
        sources: two or more runs of the same model with the same vocabulary; the last one gives the config,
            and may have more residual blocks.
        target: the new run.
        weights: ``best`` or ``last`` weights of each run; averaged and packed runs have only one set.

    Raises:
        RunError: ``target`` exists, a run is missing or damaged, or two runs are of different models or
            vocabularies.
    """
    require(len(sources) > 1, "a mean needs several runs", hint="name two or more", error=RunError)
    require_new_run(target)
    silence_tensorflow()
    from model_speech.acoustic_model import load_acoustic_model  # here: see utils.backend.quiet
    from utils.backend.weights import save_weights

    *others, last = [
        load_acoustic_model(source, "best" if _has_one_set(source) else weights) for source in sources
    ]
    for source, other in zip(sources, others, strict=False):
        _check(source, other, sources[-1], last)
    columns = zip(*(_weights_of(acoustic, last) for acoustic in (*others, last)), strict=True)
    last.model.set_weights([_mean(arrays) for arrays in columns])
    run = open_run(sources[-1], "speech")
    with replacing_folder(target) as folder:
        new = RunFolder(folder)
        shutil.copyfile(run.config_file, new.config_file)
        shutil.copytree(run.vocabulary(""), new.vocabulary(""))
        write_json(folder / _RECORD, {"runs": [str(source) for source in sources], "weights": weights})
        save_weights(last.model, new.best_weights)
        checksums.begin(folder)
        checksums.accept(folder)


def _has_one_set(source: Path) -> bool:
    return (source / _RECORD).is_file() or is_packed(RunFolder(source))


def _mean(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """The mean of float arrays; the last one of integer arrays, such as the states of random generators."""
    return np.mean(arrays, axis=0) if np.issubdtype(arrays[-1].dtype, np.floating) else arrays[-1]


def _weights_of(acoustic: AcousticModel, last: AcousticModel) -> list[np.ndarray]:
    """The weights of a model in the order of those of ``last``, which may have more residual blocks.

    A missing block is replaced by one without effect: it has the weights of ``last``, except that scale and
    offset of its normalisation are zero. Averaged with the block of ``last`` it has half of its effect.
    """
    own = _floating(acoustic)
    weights = zip(last.model.weights, last.model.get_weights(), strict=True)
    return [
        own.get(variable.path, np.zeros_like(value) if variable.name in _SCALE_AND_OFFSET else value)
        for variable, value in weights
    ]


def _check(source: Path, other: AcousticModel, reference: Path, last: AcousticModel) -> None:
    found, expected = _floating(other), _floating(last)
    blocks = {path for path in expected if path not in found and _BLOCK.match(path)}
    fits = found.keys() == expected.keys() - blocks
    fits = fits and all(found[path].shape == expected[path].shape for path in found)
    if not fits or other.vocabulary.tokens != last.vocabulary.tokens:
        difference = "another vocabulary" if fits else "another model"
        raise RunError(
            f"{difference} than that of {reference}",
            where=source,
            hint="only runs of one model have a mean; the last one may have more residual blocks",
        )


def _floating(acoustic: AcousticModel) -> dict[str, np.ndarray]:
    """All weights but the states of random generators, by their paths."""
    pairs = zip(acoustic.model.weights, acoustic.model.get_weights(), strict=True)
    return {variable.path: value for variable, value in pairs if np.issubdtype(value.dtype, np.floating)}


def main(arguments: Sequence[str] | None = None) -> int:
    """The command ``python -m model_speech.average_weights``."""
    options = _parser().parse_args(arguments)
    average(options.runs, options.output, options.weights)
    print(f"{options.output}: the mean of {len(options.runs)} runs")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", type=Path, nargs="+", help="runs, the one that gives the config last")
    parser.add_argument("--output", type=Path, required=True, metavar="RUN", help="the new run")
    parser.add_argument("--weights", choices=("best", "last"), default="last", help="default: last")
    return parser


if __name__ == "__main__":
    run_command(main)
