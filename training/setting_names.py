"""Finds misspelt settings of a recipe before Keras is loaded, which takes seconds.

The config classes stand beside tasks and models, whose modules need Keras. So the names of their fields are
read from the source. :func:`utils.config.load_config` checks the values later.
"""

import ast
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from utils.config import BY_MODEL_NAME, flatten, read_yaml, suggestion, with_overrides
from utils.errors import ConfigError

TASKS = ("speech", "language", "keyword")
_ROOT = Path(__file__).parents[1]
_CLASS_NAME = re.compile(r"\b\w*(?:Config|Settings|Recipe|Rate|Stage)\b")
_SOURCES = ("training", "data", "model_speech", "model_language", "model_keyword", "utils/features")


def check_setting_names(task: str | None, recipe: Path, overrides: Sequence[str]) -> None:
    """Refuse names of settings that no recipe of the task has.

    Args:
        task: one of :data:`TASKS`; None: any, that with the fewest unknown names.
        recipe: the config file.
        overrides: ``key=value``.

    Raises:
        ConfigError: a name is unknown, the file can't be read, or an override is none.
    """
    values = with_overrides(read_yaml(recipe), overrides)
    values.pop(BY_MODEL_NAME, None)
    unknown = {each: flatten(values).keys() - setting_names(each) for each in ([task] if task else TASKS)}
    task = min(unknown, key=lambda each: len(unknown[each]))
    for key in sorted(unknown[task]):
        known, name = setting_names(task), key.rpartition(".")[2]
        same_name = [other for other in known if other.rpartition(".")[2] == name]
        hint = f"did you mean '{same_name[0]}'?" if same_name else suggestion(key, known)
        raise ConfigError(f"unknown key '{key}'", where=f"{recipe} {' '.join(overrides)}", hint=hint)


@cache
def setting_names(task: str) -> tuple[str, ...]:
    """The dotted names of all settings of a task, with those of all its models."""
    return tuple(dict.fromkeys(_names(f"{task.title()}Config", f"model_{task}", "")))


def _names(config: str, models: str, prefix: str) -> Iterator[str]:
    for field, kind in _fields(config).items():
        yield prefix + field
        inner = _CLASS_NAME.findall(kind)
        if prefix + field == "model":
            inner = [
                name
                for name, (package, _) in _classes().items()
                if package == models and "name" in _fields(name)
            ]
        for name in inner:
            yield from _names(name, models, f"{prefix}{field}.")


def _fields(config: str) -> dict[str, str]:
    """Field → annotation of a class and its bases."""
    if config not in _classes():
        return {}
    _, found = _classes()[config]
    inherited: dict[str, str] = {}
    for base in found.bases:
        inherited |= _fields(ast.unparse(base))
    own = [item for item in found.body if isinstance(item, ast.AnnAssign)]
    return inherited | {ast.unparse(item.target): ast.unparse(item.annotation) for item in own}


@cache
def _classes() -> dict[str, tuple[str, ast.ClassDef]]:
    """Name of a config class → its package and its syntax tree."""
    classes = {}
    for folder in _SOURCES:
        for file in sorted((_ROOT / folder).rglob("*.py")):
            text = file.read_text(encoding="utf-8")
            for item in ast.parse(text).body if _CLASS_NAME.search(text) else ():
                if isinstance(item, ast.ClassDef) and _CLASS_NAME.fullmatch(item.name):
                    classes[item.name] = (folder, item)
    return classes
