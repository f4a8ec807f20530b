"""Builds the config of a command, a frozen data class, from a YAML file and ``key=value`` overrides.

The data class is the schema and stands beside the code that uses it; a nested data class is a section. A
section that depends on a choice (``model: {name: compact, …}``) is a *variant*: its ``name`` selects the data
class. OmegaConf reads and merges the values; unknown keys and wrong types are found here, because OmegaConf
supports neither frozen data classes nor tuples.
"""

import dataclasses
import math
import sys
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import yaml
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from utils.errors import ConfigError, require, suggestion
from utils.files import write_text

Config = TypeVar("Config")
Variants = Mapping[str, Mapping[str, type]]

_BY_MODEL_NAME = "by_model_name"  # key of a table of the values in which several models differ
_WHOLE_VALUE = "~, ${…} and ??? are not replaced: write the whole path or value"


class ConfigClasses(Mapping[str, type]):
    """The config classes of a registry of models by name; models that are registered later are included.

    Args:
        registry: name → entry with the attribute ``config``.
    """

    def __init__(self, registry: Mapping[str, Any]):
        self._registry = registry

    def __getitem__(self, name: str) -> type:
        return self._registry[name].config

    def __iter__(self) -> Iterator[str]:
        return iter(self._registry)

    def __len__(self) -> int:
        return len(self._registry)


def load_config(
    schema: type[Config],
    path: str | Path | None = None,
    overrides: Sequence[str] = (),
    variants: Variants | None = None,
) -> Config:
    """Read a config file, apply ``key=value`` overrides, check all values, and build ``schema``.

    Args:
        schema: a frozen data class; nested data classes are sections.
        path: YAML file, or None for the defaults of ``schema``. Its table ``by_model_name`` maps names to
            nested values: those of the selected ``model.name`` replace the values of the file.
        overrides: such as ``["model.width=256", "seed=3"]``; values are YAML and replace those of the file.
        variants: ``{section: {name: data class}}``; the section's ``name`` key selects its data class.

    Raises:
        ConfigError: the file is missing or not YAML, a key is unknown (the hint suggests the nearest known
            key), or a value has the wrong type, or is to be replaced (``~/…``, ``${…}``, ``???``).
    """
    given = with_overrides(_with_row_of_model(read_yaml(path), overrides) if path else {}, overrides)
    where = " with ".join(filter(None, [str(path or "defaults"), " ".join(overrides)]))
    for key, value in flatten(given).items():
        for text in filter(_is_unreplaced, value if isinstance(value, list) else [value]):
            raise ConfigError(f"'{key}' is '{text}'", where=where, hint=_WHOLE_VALUE)
    return build_config(schema, given, variants, where)


def with_overrides(values: Mapping[str, Any], overrides: Sequence[str]) -> dict[str, Any]:
    """Nested plain values with ``key=value`` overrides applied.

    Raises:
        ConfigError: an override does not have this form.
    """
    merged = dict(values)
    for override in overrides:
        merged = _merged(
            merged,
            _read_overrides([override]),
            problem=f"'{override}' doesn't fit the config",
            hint="a list is replaced as a whole (optimiser.stages=[…]), a section by its values",
        )
    return merged


def build_config(
    schema: type[Config], values: Mapping[str, Any], variants: Variants | None = None, where: str = "config"
) -> Config:
    """Check plain nested ``values`` against ``schema`` and build it (see :func:`load_config`)."""
    variants = variants or {}
    return _Builder(variants, where, dotted_names(schema, variants)).section(schema, values, "", None)


def read_yaml(path: str | Path) -> dict[str, Any]:
    """Nested plain values of a YAML file; ``1e-3`` is a number.

    Raises:
        ConfigError: there is no such file, it is not YAML, has a key twice, or is not a mapping.
    """
    path = Path(path)
    if not path.is_file():
        siblings = ", ".join(sorted(str(p) for p in path.parent.glob("*.yaml")))
        hint = f"there are: {siblings}" if siblings else "the project's recipes are in configs/"
        raise ConfigError("no such config file", where=path, hint=hint)
    try:
        values = OmegaConf.to_container(OmegaConf.load(path))
    # PyYAML raises ValueError for a value that is not of its tag (`!!int x`).
    except (yaml.YAMLError, ValueError, RecursionError, OSError, OmegaConfBaseException) as error:
        reason = " ".join(str(error).split())
        raise ConfigError(
            f"not readable as YAML ({reason})", where=path, hint="see configs/ for examples"
        ) from error
    if not isinstance(values, dict):
        raise ConfigError("a config file maps keys to values", where=path, hint="see configs/ for examples")
    return {str(key): value for key, value in values.items()}


def save_yaml(path: str | Path, values: Mapping[str, Any]) -> None:
    """Write nested plain values as YAML, keys in their order, completely or not at all."""
    write_text(path, yaml.safe_dump(dict(values), allow_unicode=True, sort_keys=False))


def to_plain(config: Any) -> Any:
    """A data class as nested plain dictionaries and lists, ready for YAML or JSON."""
    if dataclasses.is_dataclass(config):
        return {field.name: to_plain(getattr(config, field.name)) for field in dataclasses.fields(config)}
    if isinstance(config, Mapping):
        return {key: to_plain(item) for key, item in config.items()}
    if isinstance(config, list | tuple):
        return [to_plain(item) for item in config]
    return str(config) if isinstance(config, Path) else config


def flatten(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """One dictionary with dotted keys: ``{"model": {"width": 8}}`` → ``{"model.width": 8}``."""
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            flat.update(flatten(value, f"{prefix}{key}."))
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def _is_unreplaced(value: Any) -> bool:
    """Whether a value is a text that a shell or OmegaConf would replace; nothing does so here."""
    return isinstance(value, str) and (value.startswith("~/") or "${" in value or value == "???")


def _with_row_of_model(values: dict[str, Any], overrides: Sequence[str]) -> dict[str, Any]:
    """Values of a config file, merged with the row of its table ``by_model_name`` for the selected model."""
    table = values.pop(_BY_MODEL_NAME, None) or {}
    model = with_overrides(values, overrides).get("model")
    require(
        isinstance(table, Mapping) and all(isinstance(row, Mapping) for row in table.values()),
        f"'{_BY_MODEL_NAME}' must map names of models to sections, not {table!r}",
    )
    row = table.get(str(model.get("name")), {}) if isinstance(model, Mapping) else {}
    return _merged(
        values,
        row,
        problem=f"'{_BY_MODEL_NAME}' doesn't fit the other values",
        hint="a row has the sections of the config",
    )


def _merged(values: Mapping[str, Any], others: Mapping[str, Any], problem: str, hint: str) -> dict[str, Any]:
    """Nested values with those of ``others``; a list in place of a section, or the reverse, is an error."""
    try:
        merged: Any = OmegaConf.to_container(OmegaConf.merge(values, others))
        return merged
    except OmegaConfBaseException as error:
        reason = str(error).strip().splitlines()[0]
        raise ConfigError(f"{problem} ({reason})", hint=hint) from error


def _read_overrides(overrides: Sequence[str]) -> Mapping[str, Any]:
    for override in overrides:
        require(
            override.partition("=")[0].strip() and "=" in override,
            f"'{override}' is not an override",
            hint="write key=value, e.g. seed=3",
        )
    try:
        return OmegaConf.from_dotlist(list(overrides))
    except (OmegaConfBaseException, yaml.YAMLError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise ConfigError(
            f"'{' '.join(overrides)}' can't be read ({reason})", hint="put the value in quotes"
        ) from error


@dataclasses.dataclass(frozen=True)
class _Builder:
    """Builds data classes from plain nested values.

    Attributes:
        variants: as in :func:`load_config`.
        where: shown in every error.
        known: all dotted keys, for suggestions.
    """

    variants: Variants
    where: str
    known: Sequence[str]

    def section(self, schema: Any, values: Any, prefix: str, base: Any) -> Any:
        """Build ``schema`` from ``values``; missing values come from ``base`` or the defaults."""
        if not isinstance(values, Mapping):
            raise self._error(f"'{prefix[:-1]}' is a section with keys, not {values!r}")
        fields = {field.name: field for field in dataclasses.fields(schema)}
        self._check_keys(schema, values, prefix)
        kinds = typing.get_type_hints(schema)
        if base == _default_instance(schema):
            # Fields that depend on others (a frequency on the sample rate) are then computed again.
            base = None
        arguments = {}
        for name, field in fields.items():
            default = _default(field) if base is None else getattr(base, name)
            key = f"{prefix}{name}"
            if key in self.variants:
                arguments[name] = self._variant(self.variants[key], values.get(name), key, default)
            elif name in values:
                arguments[name] = self.value(kinds[name], values[name], key, default)
            elif default is dataclasses.MISSING:
                raise self._error(f"'{key}' is missing")
            else:
                arguments[name] = default
        try:
            return schema(**arguments)
        except (TypeError, ValueError, OverflowError, ConfigError) as error:
            message, hint = (
                (error.message, error.hint) if isinstance(error, ConfigError) else (str(error), None)
            )
            raise self._error(f"'{prefix[:-1]}': {message}" if prefix else message, hint) from error

    def value(self, kind: Any, value: Any, key: str, default: Any = None) -> Any:
        """Check one value against the type ``kind`` of its field, and convert it if necessary."""
        if isinstance(kind, type) and dataclasses.is_dataclass(kind):
            base = default if isinstance(default, kind) else None
            return self.section(kind, {} if value is None else value, f"{key}.", base)
        origin, inner = typing.get_origin(kind), typing.get_args(kind)
        if origin is typing.Annotated:
            return self.value(inner[0], value, key, default)
        if origin in (typing.Union, types.UnionType):
            return self._union(inner, value, key, default)
        if origin is tuple:
            return self._tuple(inner, value, key)
        if origin is typing.Literal:
            if value in inner:
                return value
            raise self._error(f"unknown {key} '{value}'", suggestion(value, [str(i) for i in inner]))
        if origin is dict and isinstance(value, Mapping):
            return {str(name): self.value(inner[1], item, f"{key}.{name}") for name, item in value.items()}
        if kind in (Any, object):
            return value
        largest, hint = _LARGEST.get(kind, (math.inf, None))
        if isinstance(value, int | float) and abs(value) > largest:
            raise self._error(f"'{key}' is {value}", hint)
        name, convert = _LEAVES.get(kind, (str(kind), lambda _: None))
        converted = convert(value)
        if converted is None:
            raise self._error(f"'{key}' must be {name}, not {value!r}")
        return converted

    def _union(self, kinds: Sequence[Any], value: Any, key: str, default: Any) -> Any:
        if value is None and types.NoneType in kinds:
            return None
        kinds = [kind for kind in kinds if kind is not types.NoneType]
        for kind in kinds[:-1]:
            try:
                return self.value(kind, value, key, default)
            except ConfigError:
                continue
        return self.value(kinds[-1], value, key, default)

    def _tuple(self, kinds: Sequence[Any], value: Any, key: str) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple):
            raise self._error(f"'{key}' must be a list, not {value!r}", f"write [{value}]")
        if kinds[-1] is Ellipsis:
            kinds = [kinds[0]] * len(value)
        if len(kinds) != len(value):
            raise self._error(f"'{key}' must have {len(kinds)} entries, not {len(value)}: {value!r}")
        entries = zip(kinds, value, strict=True)
        return tuple(self.value(kind, item, f"{key}[{i}]") for i, (kind, item) in enumerate(entries))

    def _variant(self, choices: Mapping[str, type], values: Any, key: str, default: Any) -> Any:
        """Build the data class that the section's ``name`` selects; without a name, that of the default."""
        if values is None and dataclasses.is_dataclass(default):
            return default
        if values is not None and not isinstance(values, Mapping):
            raise self._error(f"'{key}' is a section, not {values!r}", f"write {key}.name={values}")
        name = (values or {}).get("name", getattr(default, "name", None))
        if str(name) not in choices:
            raise self._error(
                f"unknown {key}.name '{name}'" if name else f"'{key}.name' is missing",
                suggestion(name, list(choices)),
            )
        base = default if type(default) is choices[name] else None
        return self.section(choices[name], values, f"{key}.", base)

    def _check_keys(self, schema: Any, values: Mapping[str, Any], prefix: str) -> None:
        siblings = [field.name for field in dataclasses.fields(schema)]
        for key in values:
            if key not in siblings:
                elsewhere = [name for name in self.known if name.rpartition(".")[2] == key]
                if f"{prefix}{key}" in elsewhere:  # a key of another variant
                    hint = f"{prefix}name={schema.name} has: {', '.join(siblings)}"
                elif elsewhere:
                    hint = f"did you mean '{elsewhere[0]}'?"
                else:
                    hint = suggestion(key, siblings, prefix)
                raise self._error(f"unknown key '{prefix}{key}'", hint)

    def _error(self, message: str, hint: str | None = None) -> ConfigError:
        return ConfigError(message, where=self.where, hint=hint)


def dotted_names(schema: Any, variants: Variants, prefix: str = "") -> list[str]:
    """All keys of ``schema`` and its variants, as they are written in an override."""
    names = []
    for name, kind in typing.get_type_hints(schema).items():
        key = f"{prefix}{name}"
        names.append(key)
        sections = [kind, *typing.get_args(kind), *variants.get(key, {}).values()]
        for section in filter(dataclasses.is_dataclass, sections):
            names += dotted_names(section, variants, f"{key}.")
    return names


def _default_instance(schema: type) -> Any:
    """An instance with all defaults; None if a field has none."""
    try:
        return schema()
    except (TypeError, ConfigError):
        return None


def _default(field: dataclasses.Field) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default


def _whole_number(value: Any) -> int | None:
    # Large counts are often written as 1e4, which YAML reads as a float.
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _number(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and not math.isnan(value) else None


def _instance_of(kind: type) -> Callable[[Any], Any]:
    return lambda value: value if isinstance(value, kind) else None


# The type of a field → its largest absolute value, and a hint. The whole number is the largest seed of Keras;
# no other setting needs a larger one.
_LARGEST: dict[Any, tuple[float, str]] = {
    int: (2**32 - 1, f"at most {2**32 - 1:,}"),
    float: (sys.float_info.max, "give a finite number"),
}
# The type of a field → its name in messages, and a conversion (returns None if it is impossible).
_LEAVES: dict[Any, tuple[str, Callable[[Any], Any]]] = {
    int: ("a whole number", _whole_number),
    float: ("a number", _number),
    bool: ("true or false", _instance_of(bool)),
    str: ("text (in quotes, if it looks like a number or is yes, no, on, off)", _instance_of(str)),
    Path: ("a path", lambda value: Path(value) if isinstance(value, str | Path) else None),
}
