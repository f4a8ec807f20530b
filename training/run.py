"""Trains the recipe (config file) of a model into a run folder; returns the metrics of the best epoch.

This is what ``train.py`` calls. The config and its overrides are checked before anything is computed; each
task has a function that trains it. An interrupted run is resumed; a finished run is not trained again.
"""

import json
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from training.distributed.distribution import distributed, run_path_of
from training.failures import memory_errors_explained
from training.history import logging_to
from training.tasks import keyword, language, language_config, speech
from training.tasks.adaptation import initial_search, with_initial_settings
from training.tasks.recipe import changed_data
from utils.config import Variants, load_config, to_plain
from utils.errors import RunError, UserError, require
from utils.files import remove_leftovers, remove_path
from utils.run_folder.checksum_files import file_hash
from utils.run_folder.checksums import verified
from utils.run_folder.run import RunFolder, locked, start_run

log = logging.getLogger("train")

RECIPES: dict[str, tuple[type, Variants, Callable[..., dict[str, float]]]] = {
    "speech": (speech.SpeechConfig, speech.VARIANTS, speech.train_speech),
    "language": (language_config.LanguageConfig, language_config.VARIANTS, language.train_language),
    "keyword": (keyword.KeywordConfig, keyword.VARIANTS, keyword.train_keyword),
}


def train_from_config(
    task: str,
    config_file: Path,
    overrides: Sequence[str],
    run_path: Path,
    check: Callable[[Any], None] | None = None,
    distribute: str | None = None,
    virtual_devices: int = 0,
) -> dict[str, float]:
    """Train the recipe in ``config_file`` into ``run_path``; a finished run is not trained again.

    Args:
        task: ``speech``, ``language`` or ``keyword``.
        config_file: the recipe.
        overrides: ``key=value``, with precedence over the file.
        run_path: the run folder to create or to resume.
        check: called with the config before anything is computed; raises an error to prevent the training.
        distribute: ``mirrored``, ``multi_worker`` or None, see
            :func:`training.distributed.distribution.distributed`.
        virtual_devices: number of virtual CPU devices, with ``mirrored``.

    Returns:
        The best epoch's metrics.

    Raises:
        UserError: config, data or run folder cannot be used; see the message.
    """
    *_, train_task = RECIPES[task]
    recipe = _read_recipe(task, config_file, overrides)
    config = with_initial_settings(recipe, RunFolder(run_path))
    plain = to_plain(config)
    with (
        distributed(distribute, virtual_devices) as distribution,
        run_path_of(distribution, run_path) as path,
    ):
        distribution.check_same("config", plain)
        is_new = not RunFolder(path).config_file.is_file()
        with locked(RunFolder(path)):
            search = {} if RunFolder(path).config_file.is_file() else initial_search(recipe)
            run = start_run(path, plain, search)
            remove_leftovers(run.path)
            distribution.copy_run(run)
            with logging_to(run.log), _removed_if_unused(run, is_new):
                if task == "language" and distribution.chief:
                    _check_texts(run, config.data.train)
                if run.metrics.is_file():
                    log.info("this run is finished: %s", run.path)
                    return _best_metrics(run)
                if distribute:
                    log.info("%s: %s", distribute, distribution.describe())
                if check:
                    check(config)
                with memory_errors_explained(task, config):
                    return train_task(config, run, distribution)


def _read_recipe(task: str, config_file: Path, overrides: Sequence[str]) -> Any:
    schema, variants, _ = RECIPES[task]
    recipe: Any = load_config(schema, config_file, [f"task={task}", *overrides], variants)
    require(
        recipe.task == task,
        f"task={recipe.task} in a training of the task {task}",
        where=config_file,
        hint=f"leave it out, or train.py {recipe.task} with a recipe of that task",
    )
    return recipe


def _check_texts(run: RunFolder, texts: Sequence[str]) -> None:
    """Refuse to resume a language run, or to call it finished, if a text that is still there changed."""
    hashes = {text: file_hash(text) for text in texts if Path(text).is_file()}
    if changed := changed_data(run, hashes):
        raise RunError(
            f"the run was trained on another content of {', '.join(changed)}",
            where=run.path,
            hint="choose another --run, or delete the folder to start anew",
        )


@contextmanager
def _removed_if_unused(run: RunFolder, is_new: bool) -> Iterator[None]:
    """After an error of the user in the block, remove a new run in which nothing was computed."""
    try:
        yield
    except UserError:
        if is_new:
            _remove_unused(run)
        raise


def _remove_unused(run: RunFolder) -> None:
    """Remove a run, if nothing was computed: then the corrected command can use its name."""
    summary = run.model_summary
    small = {run.config_file, run.checksums, run.log, run.labels, run.lock, summary}
    small |= set(run.vocabulary("").glob("*"))
    if small.issuperset(path for path in run.path.rglob("*") if path.is_file()):
        remove_path(run.path)


def _best_metrics(run: RunFolder) -> dict[str, float]:
    try:
        return dict(json.loads(verified(run.metrics).read_text(encoding="utf-8"))["best"])
    except (ValueError, KeyError, TypeError) as error:
        raise RunError(
            "the metrics of the run are damaged",
            where=run.metrics,
            hint="delete it: the same command then writes it again",
        ) from error
