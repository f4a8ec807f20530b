"""Checks a run folder: missing and damaged files, unfit weights, and trainings that failed.

In twenty successful runs the dev error falls below 99 % within 3 epochs and 200 steps, and the training loss
never exceeds that of the first epoch.
"""

import csv
import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import h5py
import numpy as np

from model_keyword.loading import keyword_parts, load_keyword_model
from model_language.registry import language_parts, load_language_model
from model_speech.acoustic_model import acoustic_parts, load_acoustic_model
from model_speech.packed_run import is_packed
from preflight.findings import ERROR, WARNING, Finding
from training.run import RECIPES
from utils.config import build_config
from utils.errors import RunError, UserError, VocabularyError
from utils.files import read_arrays
from utils.run_folder import checksums
from utils.run_folder.run import LOWER_RATE, NOT_FINITE, NOT_OF_THE_RECIPE, RunFolder, arrays_not_finite
from utils.vocabulary import Vocabulary, acoustic_vocabulary

_PARTS = {"speech": acoustic_parts, "language": language_parts, "keyword": keyword_parts}
_LOADERS = {"speech": load_acoustic_model, "language": load_language_model, "keyword": load_keyword_model}
_NOT_FALLING = 0.98  # fraction of the first epoch's training loss; a last loss above it is an error
_COLLAPSED = 0.99  # least dev error of a model that outputs blanks only
# Shorter histories are not judged; nor is the dev error of an unfinished training before so many steps.
_EPOCHS_TO_JUDGE, _STEPS_TO_JUDGE = 3, 1000
_AGAIN = "copy the run folder again, or train again"


def unreadable_config(run: RunFolder) -> Iterator[Finding]:
    """A config.yaml that cannot be read."""
    try:
        run.config()
    except RunError as error:
        yield Finding(
            ERROR,
            str(run.config_file),
            "",
            problem="the config can't be read",
            advice=error.hint or _AGAIN,
            detail=error.message,
        )


def changed_file(run: RunFolder) -> Iterator[Finding]:
    """Files that have changed since the training."""
    accept = f"if it was changed on purpose: python inspect_model.py accept {run.path}"
    if not checksums.exist(run.path):
        yield Finding(
            WARNING,
            str(run.path),
            "",
            problem="a run without checksums: damage to its files can't be detected",
            advice=f"to add them: python inspect_model.py accept {run.path}",
        )
        return
    for name, state in checksums.differences(run.path).items():
        yield Finding(ERROR, str(run.path), name, problem=f"it is {state}", advice=f"{_AGAIN}; {accept}")


def missing_part(run: RunFolder) -> Iterator[Finding]:
    """Missing files of a run."""
    trained = run.history.is_file() or run.metrics.is_file() or not run.checkpoint.is_file()
    for path in _missing(run):
        if trained or path != run.best_weights:
            yield Finding(
                ERROR,
                str(run.path),
                str(path.relative_to(run.path)),
                problem="a part of the run is missing",
                advice=_AGAIN,
            )


def unknown_config(run: RunFolder) -> Iterator[Finding]:
    """A config that this version cannot build: a finished run can be used, but not resumed."""
    if is_packed(run):  # its config is not that of a training: without data, with settings of the search
        return
    config = {key: value for key, value in run.config().items() if key not in NOT_OF_THE_RECIPE}
    if config.get("task") not in RECIPES:
        problem, advice = f"a run of task '{config.get('task')}'", f"known: {', '.join(RECIPES)}"
        yield Finding(ERROR, str(run.config_file), "", problem=problem, advice=advice)
        return
    schema, variants, _ = RECIPES[config["task"]]
    try:
        build_config(schema, config, variants, where="")
    except UserError as error:
        yield Finding(
            WARNING if run.metrics.is_file() else ERROR,
            str(run.config_file),
            "",
            problem="not a config of this code",
            advice="to resume it, use the git revision in config.yaml",
            detail=error.message,
        )


def damaged_weights(run: RunFolder) -> Iterator[Finding]:
    """Weights files that cannot be read."""
    for path in _weights(run):
        try:
            _not_finite(path)
        except (OSError, RuntimeError, KeyError) as error:
            yield Finding(
                ERROR,
                str(run.path),
                path.name,
                problem="a damaged weights file",
                advice=_AGAIN,
                detail=str(error),
            )


def not_finite(run: RunFolder) -> Iterator[Finding]:
    """Weights that are NaN or infinite."""
    for path in _weights(run):
        try:
            bad = _not_finite(path)
        except (OSError, RuntimeError, KeyError):
            continue  # reported by damaged_weights
        if bad:
            yield Finding(
                ERROR,
                str(run.path),
                path.name,
                problem="weights that are NaN or infinite",
                advice=f"{LOWER_RATE}, or in float32",
                detail=f"{len(bad)} arrays, e.g. {bad[0]}",
            )


def damaged_checkpoint(run: RunFolder) -> Iterator[Finding]:
    """A checkpoint from which the training cannot be resumed."""
    if not run.checkpoint.is_file():
        return
    name = str(run.checkpoint.relative_to(run.path))
    try:
        saved = read_arrays(run.checkpoint)
        json.loads(str(saved.pop("state")))
        bad = arrays_not_finite(saved)
    except RunError:
        return  # reported by changed_file
    except (OSError, ValueError, KeyError) as error:
        yield Finding(
            ERROR,
            str(run.path),
            name,
            problem="a damaged checkpoint",
            advice="delete it to start again; best.weights.h5 is kept",
            detail=str(error),
        )
        return
    if bad:
        yield Finding(
            ERROR,
            str(run.path),
            name,
            problem="a checkpoint with NaN or infinite values",
            advice=LOWER_RATE,
            detail=f"{len(bad)} variables, e.g. {bad[0]}",
        )


def odd_vocabulary(run: RunFolder) -> Iterator[Finding]:
    """An acoustic vocabulary that is damaged or has an unusual order."""
    path = run.vocabulary("acoustic.txt")
    if not path.is_file():
        return
    name = str(path.relative_to(run.path))
    try:
        vocabulary = Vocabulary.load(path)
    except VocabularyError as error:
        yield Finding(
            ERROR, str(run.path), name, problem="a damaged vocabulary", advice=_AGAIN, detail=error.message
        )
        return
    except RunError:
        return  # reported by changed_file
    if "transfer" in run.config():  # to any list of tokens
        return
    usual = acoustic_vocabulary(vocabulary.tokens)
    if vocabulary != usual:
        pairs = zip(vocabulary.tokens, usual.tokens, strict=False)
        index, pair = next(((n, pair) for n, pair in enumerate(pairs) if pair[0] != pair[1]), (0, ("", "")))
        yield Finding(
            ERROR,
            str(run.path),
            name,
            problem="the order or tokens of the vocabulary differ from what a training writes",
            advice="use the file that was written with the weights; with this one classes have the wrong "
            "tokens",
            detail=f"class {index} is '{pair[0]}', usually '{pair[1]}'; hash {vocabulary.hash}",
        )


def unfit_weights(run: RunFolder) -> Iterator[Finding]:
    """Weights that do not fit config and vocabulary."""
    if _missing(run):
        return
    try:
        _LOADERS[run.config()["task"]](run.path)
    except UserError as error:
        hint = error.hint or "config.yaml, vocabulary/ and weights must come from one training"
        yield Finding(
            ERROR,
            str(run.path),
            "",
            problem="the run can't be loaded",
            advice=" ".join(hint.split()),
            detail=" ".join(error.message.split()),
        )


def loss_not_falling(run: RunFolder) -> Iterator[Finding]:
    """A training loss that does not fall, rises again, or is NaN."""
    losses = [value for row in _history(run) if (value := row.get("train_loss")) is not None]
    advice = "check the learning rate and the transcripts; doctor.py RUN --overfit shows which is wrong"
    if not all(map(math.isfinite, losses)):
        yield Finding(ERROR, str(run.history), "", problem="the training loss is not finite", advice=advice)
    elif len(losses) >= _EPOCHS_TO_JUDGE and losses[-1] > _NOT_FALLING * losses[0]:
        yield Finding(
            ERROR,
            str(run.history),
            "",
            problem="the training loss doesn't fall",
            advice=advice,
            detail=f"{losses[0]:.4g} in epoch 1, {losses[-1]:.4g} in epoch {len(losses)}",
        )


def diverged(run: RunFolder) -> Iterator[Finding]:
    """A training that has diverged: dev figures are NaN, or it ended with such an error."""
    bad = [
        f"{name} in epoch {row.get('epoch', number):.0f}"
        for number, row in enumerate(_history(run), 1)
        for name, value in row.items()
        if name.startswith("dev_") and not math.isfinite(value)
    ]
    last = run.last_logged()
    if bad:
        where, problem, detail = run.history, "dev figures are not finite", ", ".join(bad[:3])
    elif NOT_FINITE in last:
        where, problem, detail = run.log, "the training has ended because of a value that is not finite", last
    else:
        return
    yield Finding(ERROR, str(where), "", problem=problem, advice=LOWER_RATE, detail=detail)


def collapsed(run: RunFolder) -> Iterator[Finding]:
    """A dev error that stays at 100 %: the model outputs blanks only."""
    rows = _history(run)
    errors = [row["dev_syllable_error_rate"] for row in rows if "dev_syllable_error_rate" in row]
    if len(errors) < _EPOCHS_TO_JUDGE or min(errors) < _COLLAPSED:
        return
    if rows[-1].get("step", 0) >= _STEPS_TO_JUDGE or run.metrics.is_file():
        yield Finding(
            ERROR,
            str(run.history),
            "",
            problem="the dev error stays at 100 %: the model outputs blanks only",
            advice="check transcripts and learning rate (doctor.py RUN --overfit), or train longer",
            detail=f"{min(errors):.1%} after {len(errors)} epochs, {rows[-1].get('step', 0):.0f} steps",
        )


def foreign_vocabulary(run: RunFolder, syllables: Sequence[str]) -> Iterator[Finding]:
    """A vocabulary that does not match the run's manifests.

    Args:
        run: a speech run.
        syllables: syllables of its train and dev manifests.
    """
    path = run.vocabulary("acoustic.txt")
    if not path.is_file() or "transfer" in run.config():
        return
    try:
        saved = Vocabulary.load(path)
    except VocabularyError:
        return  # reported by odd_vocabulary
    expected = acoustic_vocabulary(syllables)
    if set(saved.tokens) != set(expected.tokens):
        only = sorted(set(saved.tokens) ^ set(expected.tokens))
        yield Finding(
            WARNING,
            str(run.path),
            str(path.relative_to(run.path)),
            problem="the vocabulary does not match the run's manifests",
            advice="harmless if the manifests have changed since the training; else the file is of another "
            "run",
            detail=f"hash {saved.hash}, theirs {expected.hash}; not in both: {', '.join(only[:5])}",
        )


def _weights(run: RunFolder) -> list[Path]:
    return [path for path in (run.best_weights, run.last_weights) if path.is_file()]


def _missing(run: RunFolder) -> list[Path]:
    """Missing files of a run of this kind."""
    try:
        parts = _PARTS[run.config().get("task")](run)
    except (KeyError, UserError):  # an unknown task or model: reported by unknown_config
        return []
    return [path for path in parts if not path.is_file()]


def _not_finite(path: Path) -> list[str]:
    """Names of the arrays in a weights file with NaN or infinite values."""
    bad: list[str] = []

    def visit(name: str, item: h5py.Dataset | h5py.Group) -> None:
        if isinstance(item, h5py.Dataset):
            bad.extend(arrays_not_finite({name: np.asarray(item)}))

    with h5py.File(path) as file:
        file.visititems(visit)
    return bad


def _history(run: RunFolder) -> list[dict[str, float]]:
    """Figures of each epoch, without values that are not numbers."""
    if not run.history.is_file():
        return []
    with run.history.open(encoding="utf-8", errors="replace") as file:
        return [_numbers(row) for row in csv.DictReader(file)]


def _numbers(row: dict[str | None, str | None]) -> dict[str, float]:
    numbers = {}
    for key, value in row.items():
        try:
            numbers[str(key)] = float(value or "")
        except (TypeError, ValueError):
            continue
    return numbers


OPENED = (unreadable_config,)
"""Checks that all others need."""
RUN = (
    changed_file,
    missing_part,
    unknown_config,
    damaged_weights,
    not_finite,
    damaged_checkpoint,
    odd_vocabulary,
    loss_not_falling,
    diverged,
    collapsed,
)
"""Checks of the files of a run."""
LOADED = (unfit_weights,)
"""Checks that load the model; only for complete runs."""
