"""The fields that every recipe (training config) has, and the preparation of a built model for training.

Preparation copies initial weights, freezes layers and writes ``model_summary.txt``.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import keras

from training.initialise import TokenLayer, freeze_layers, take_weights
from training.loop import TrainingConfig
from training.optimiser import OptimiserConfig
from utils.backend.model_cost import summary_text
from utils.errors import require
from utils.files import write_text
from utils.run_folder.run import ENVIRONMENT, RunFolder

DATA_HASHES = "data_hashes"
"""Key in the environment of config.yaml: name of a part of the training data → its hash."""
# A trained model, and its layers with weights for each token, by layer name.
SourceModel = tuple[keras.Model, Mapping[str, TokenLayer]]


@dataclass(frozen=True)
class Recipe:
    """The fields of every recipe; a task adds its own, such as ``data``.

    Attributes:
        task: ``speech``, ``language`` or ``keyword``.
        seed: seed of all random choices of the training.
        initialise_from: run of the same task with the initial weights, those of tokens by name; empty: none.
            It is read once, before the first step.
        initialise_except: patterns of layers that keep their initial values.
        freeze: patterns of layers that are not trained.
        model: settings of the named model, an instance of its config class.
        optimiser: algorithm and learning-rate schedule.
        training: duration and precision.
    """

    task: str = ""
    seed: int = 0
    initialise_from: str = ""
    initialise_except: tuple[str, ...] = ()
    freeze: tuple[str, ...] = ()
    model: Any = None
    optimiser: OptimiserConfig = field(default_factory=OptimiserConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)

    def __post_init__(self):
        require(self.seed >= 0, f"seed is {self.seed}", hint="at least 0")
        require(
            self.initialise_from or not self.initialise_except,
            "initialise_except without initialise_from",
            hint="name a run: initialise_from=RUN",
        )


def prepare_model(
    model: keras.Model,
    recipe: Recipe,
    run: RunFolder,
    load_source: Callable[[str], SourceModel] | None = None,
) -> None:
    """Freeze layers; copy initial weights, unless the training is resumed; write ``model_summary.txt``.

    Args:
        model: newly built.
        recipe: names the run with the initial weights and the layers to freeze.
        run: the run folder.
        load_source: ``initialise_from`` → the trained model and its layers of tokens; None if the task can't
            start from another run.

    Raises:
        ConfigError: the weights don't fit, or a pattern of layers matches none.
    """
    freeze_layers(model, recipe.freeze)
    if load_source and recipe.initialise_from and not run.checkpoint.is_file():
        source, token_layers = load_source(recipe.initialise_from)
        theirs = (RunFolder(Path(recipe.initialise_from)).config().get("model") or {}).get("name", "")
        names = theirs, getattr(recipe.model, "name", "")
        take_weights(model, source, recipe.initialise_from, token_layers, recipe.initialise_except, names)
    write_text(run.model_summary, summary_text(model))


def changed_data(run: RunFolder, hashes: Mapping[str, str]) -> list[str]:
    """Record hashes of the data of a new run, by name; return the names that have changed since it began."""
    recorded = run.config()[ENVIRONMENT].get(DATA_HASHES)
    if recorded is None:
        run.record(DATA_HASHES, dict(hashes))
        return []
    return [name for name, found in hashes.items() if recorded.get(name, found) != found]
