"""Config files: YAML plus ``key=value`` overrides → frozen data classes, checked by name and type.

A config's shape is a frozen data class beside the code that uses it. A section that depends on a choice
(``model: {name: compact, …}``) is declared by the caller as a *variant*: its name picks the data class.
"""

from __future__ import annotations

import dataclasses
import difflib
import typing
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import yaml
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from utils.errors import ConfigError
from utils.files import write_text

Config = TypeVar("Config")
Variants = Mapping[str, Mapping[str, type]]


def load_config(
    schema: type[Config],
    path: str | Path | None = None,
    overrides: Sequence[str] = (),
    variants: Variants | None = None,
) -> Config:
    """Read a config file, apply ``key=value`` overrides, check all, and build ``schema``.

    Args:
        schema: a frozen data class; nested data classes are sections.
        path: YAML file, or None for the defaults of ``schema``.
        overrides: such as ``["model.width=256", "seed=3"]``; values are YAML.
        variants: ``{section: {name: data class}}``; the section's ``name`` key picks its data class.

    Raises:
        ConfigError: the file is missing or not YAML, a key is unknown (the nearest known one is
            suggested), a value has the wrong type.
    """
    where = str(path) if path else "defaults"
    given = OmegaConf.merge(_read_yaml(path) if path else {}, _read_overrides(overrides))
    return build_config(schema, OmegaConf.to_container(given), variants, where)


def build_config(
    schema: type[Config], values: Mapping[str, Any], variants: Variants | None = None, where: str = "config"
) -> Config:
    """Check plain nested ``values`` against ``schema`` and build it (see :func:`load_config`)."""
    sections = {name: _variant(name, choices, values, where) for name, choices in (variants or {}).items()}
    _check_keys(schema, values, sections, "", where)
    plain = {key: value for key, value in values.items() if key not in sections}
    base = _typed(schema, plain, where)
    built = {
        name: _typed(section, {k: v for k, v in (values.get(name) or {}).items()}, where, f"{name}.")
        for name, section in sections.items()
    }
    return dataclasses.replace(base, **built)


def to_plain(config: Any) -> dict[str, Any]:
    """A data class as nested plain dictionaries and lists, ready for YAML or JSON."""
    return yaml.safe_load(yaml.safe_dump(_plain(config), allow_unicode=True))


def save_yaml(path: str | Path, values: Mapping[str, Any]) -> None:
    """Write nested plain values as YAML, keys in their order, whole or not at all."""
    write_text(path, yaml.safe_dump(dict(values), allow_unicode=True, sort_keys=False))


def flatten(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested dictionaries as one, with dotted keys: ``{"model": {"width": 8}}`` → ``{"model.width": 8}``."""
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            flat.update(flatten(value, f"{prefix}{key}."))
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, Path) else value


def _read_yaml(path: str | Path) -> Mapping[str, Any]:
    path = Path(path)
    if not path.is_file():
        siblings = ", ".join(sorted(str(p) for p in path.parent.glob("*.yaml"))) or "none in that folder"
        raise ConfigError("no such config file", where=path, hint=f"there are: {siblings}")
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"not readable as YAML ({error})", where=path) from error
    if not isinstance(values, dict):
        raise ConfigError("a config file is a mapping of keys to values", where=path)
    return values


def _read_overrides(overrides: Sequence[str]) -> Mapping[str, Any]:
    for override in overrides:
        if "=" not in override:
            raise ConfigError(f"'{override}' is not an override", hint="write key=value, e.g. seed=3")
    try:
        return OmegaConf.from_dotlist(list(overrides))
    except (OmegaConfBaseException, yaml.YAMLError) as error:
        raise ConfigError(f"the overrides can't be read ({error})", hint="write key=value") from error


def _variant(section: str, choices: Mapping[str, type], values: Mapping[str, Any], where: str) -> type:
    name = (values.get(section) or {}).get("name")
    if name not in choices:
        nearest = difflib.get_close_matches(str(name), choices, n=1)
        hint = f"did you mean '{nearest[0]}'?" if nearest else f"choose one of: {', '.join(choices)}"
        raise ConfigError(f"unknown {section}.name '{name}'", where=where, hint=hint)
    return choices[name]


def _check_keys(
    schema: type, values: Mapping[str, Any], sections: Mapping[str, type], prefix: str, where: str
) -> None:
    fields = {field.name: field for field in dataclasses.fields(schema)}
    for key, value in values.items():
        if key not in fields:
            nearest = difflib.get_close_matches(str(key), fields, n=1)
            hint = f"did you mean '{prefix}{nearest[0]}'?" if nearest else f"known keys: {', '.join(fields)}"
            raise ConfigError(f"unknown key '{prefix}{key}'", where=where, hint=hint)
        inner = sections.get(key) or _section_type(schema, key)
        if inner and isinstance(value, Mapping):
            _check_keys(inner, value, {}, f"{prefix}{key}.", where)


def _section_type(schema: type, key: str) -> type | None:
    kind = typing.get_type_hints(schema)[key]
    return kind if dataclasses.is_dataclass(kind) else None


def _typed(schema: type, values: Mapping[str, Any], where: str, prefix: str = "") -> Any:
    try:
        merged = OmegaConf.merge(OmegaConf.structured(schema), values)
        return OmegaConf.to_object(merged)
    except OmegaConfBaseException as error:
        key = f"{prefix}{getattr(error, 'full_key', '') or ''}"
        reason = str(error).splitlines()[0]
        raise ConfigError(f"'{key}': {reason}", where=where, hint="see the comments in configs/") from error
    except (ValueError, TypeError) as error:
        raise ConfigError(str(error), where=where) from error
