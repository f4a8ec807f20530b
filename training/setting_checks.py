"""Finds misspelt settings of a recipe and wrong values before Keras is loaded, which takes seconds.

The config classes stand beside tasks and models, whose modules need Keras. So the names and types of their
fields are read from the source. :func:`utils.config.load_config` checks later what depends on several values.
"""

import ast
import re
import typing
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from model_keyword.layers import layer_settings
from utils import limits
from utils.config import BY_MODEL_NAME, check_value, flatten, read_yaml, suggestion, with_overrides
from utils.errors import ConfigError

TASKS = ("speech", "language", "keyword")
_ROOT = Path(__file__).parents[1]
_CLASS_NAME = re.compile(r"\b\w*(?:Config|Settings|Recipe|Rate|Stage)\b")
_SOURCES = ("training", "data", "model_speech", "model_language", "model_keyword", "utils/features")
_TYPES = {**vars(typing), **vars(layer_settings), **vars(limits), "Path": Path}


def check_settings(task: str | None, recipe: Path, overrides: Sequence[str]) -> None:
    """Refuse names of settings that no recipe of the task has, and values that no setting of a name can have.

    Args:
        task: one of :data:`TASKS`; None: any, that with the fewest unknown names.
        recipe: the config file.
        overrides: ``key=value``.

    Raises:
        ConfigError: a name is unknown, a value is wrong, the file can't be read, or an override is none.
    """
    values = with_overrides(read_yaml(recipe), overrides)
    values.pop(BY_MODEL_NAME, None)
    given = flatten(values)
    unknown = {each: _unknown(each, given) for each in ([task] if task else TASKS)}
    task = min(unknown, key=lambda each: len(unknown[each]))
    types, where = setting_types(task), f"{recipe} {' '.join(overrides)}".strip()
    for key in sorted(unknown[task]):
        if key in types:
            hint = suggestion(given[key], model_names(task))
            raise ConfigError(f"unknown {key} '{given[key]}'", where=where, hint=hint)
        name = key.rpartition(".")[2]
        same_name = [other for other in types if other.rpartition(".")[2] == name]
        hint = f"did you mean '{same_name[0]}'?" if same_name else suggestion(key, list(types))
        raise ConfigError(f"unknown key '{key}'", where=where, hint=hint)
    for key, value in given.items():
        _check_one_of(types[key], value, key, where)


def _unknown(task: str, given: Mapping[str, Any]) -> set[str]:
    """The names of settings that the task does not have, and ``model.name`` if it has no such model."""
    wrong_model = {"model.name"} if given.get("model.name") not in (None, *model_names(task)) else set()
    return (given.keys() - setting_types(task).keys()) | wrong_model


def _check_one_of(annotations: Sequence[str], value: Any, key: str, where: str) -> None:
    """Raise the ConfigError of a value that fits none of the types; a type that needs Keras fits all."""
    wrong: ConfigError | None = None
    for annotation in annotations:
        try:
            check_value(eval(annotation, dict(_TYPES)), value, key, where)
        except NameError:
            return
        except ConfigError as error:
            wrong = error
        else:
            return
    if wrong:
        raise wrong


@cache
def setting_types(task: str) -> dict[str, tuple[str, ...]]:
    """The dotted names of all settings of a task, with those of all its models → their types, as written."""
    types: dict[str, tuple[str, ...]] = {}
    for name, kind in _names(f"{task.title()}Config", f"model_{task}", ""):
        types[name] = tuple(dict.fromkeys([*types.get(name, ()), kind]))
    return types


def model_names(task: str) -> list[str]:
    """The values of ``model.name``: the defaults of the models' config classes."""
    defaults = [_defaults(name).get("name") for name in _models(f"model_{task}", "training")]
    return [name for name in defaults if name]


def _names(config: str, models: str, prefix: str) -> Iterator[tuple[str, str]]:
    for field, kind in _fields(config).items():
        yield prefix + field, kind
        inner = _models(models) if prefix + field == "model" else _CLASS_NAME.findall(kind)
        for name in inner:
            yield from _names(name, models, f"{prefix}{field}.")


def _models(*packages: str) -> list[str]:
    """The config classes of models: those with a name."""
    return [
        name for name, (package, *_) in _classes().items() if package in packages and "name" in _fields(name)
    ]


def _fields(config: str) -> dict[str, str]:
    """Field → annotation of a class and its bases."""
    return {name: ast.unparse(item.annotation) for name, item in _items(config).items()}


def _defaults(config: str) -> dict[str, Any]:
    """Field → default of a class and its bases, if that is a literal or a constant of the module."""
    _, _, constants = _classes()[config]
    known = {
        name: constants.get(item.value.id, item.value) if isinstance(item.value, ast.Name) else item.value
        for name, item in _items(config).items()
    }
    return {name: value.value for name, value in known.items() if isinstance(value, ast.Constant)}


def _items(config: str) -> dict[str, ast.AnnAssign]:
    if config not in _classes():
        return {}
    _, found, _ = _classes()[config]
    inherited: dict[str, ast.AnnAssign] = {}
    for base in found.bases:
        inherited |= _items(ast.unparse(base))
    own = [item for item in found.body if isinstance(item, ast.AnnAssign)]
    return inherited | {ast.unparse(item.target): item for item in own}


@cache
def _classes() -> dict[str, tuple[str, ast.ClassDef, dict[str, ast.expr]]]:
    """Name of a config class → its package, its syntax tree, and the constants of its module."""
    classes = {}
    for folder in _SOURCES:
        for file in sorted((_ROOT / folder).rglob("*.py")):
            text = file.read_text(encoding="utf-8")
            body = ast.parse(text).body if _CLASS_NAME.search(text) else []
            constants = {
                ast.unparse(item.targets[0]): item.value for item in body if isinstance(item, ast.Assign)
            }
            for item in body:
                if isinstance(item, ast.ClassDef) and _CLASS_NAME.fullmatch(item.name):
                    classes[item.name] = (folder, item, constants)
    return classes
