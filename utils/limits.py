"""Limits of settings: field types of config data classes (`Count`, `Fraction` …), checked on creation.

A field of type `Count` is a whole number of at least 1; ``Annotated[int, at_least(6)]`` has another limit.
In a tuple, ``tuple[Count, ...]``, the limit is that of each entry. A value beyond its limit raises a
ConfigError that names the setting.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from utils.errors import require, suggestion


@dataclass(frozen=True)
class Limit:
    """What a value may be: a description, which is the hint of the error, and a function that tests it."""

    requirement: str
    fits: Callable[[Any], bool]


def at_least(low: float) -> Limit:
    """The limit of a number that must be ``low`` or more."""
    return Limit(f"at least {low}", lambda value: value >= low)


def between(low: float, high: float) -> Limit:
    """The limit of a number from ``low`` to ``high``."""
    return Limit(f"{low:,} to {high:,}", lambda value: low <= value <= high)


Count = Annotated[int, at_least(1)]
Size = Annotated[int, at_least(0)]
NotNegative = Annotated[float, at_least(0)]
Positive = Annotated[float, Limit("above 0", lambda value: value > 0)]
Fraction = Annotated[float, Limit("at least 0 and below 1", lambda value: 0 <= value < 1)]


class Limited:
    """Base of a section of a config, with its name: ``class ModelConfig(Limited, section="model")``.

    Raises:
        ConfigError: a value is beyond the limit of its type; it is named as ``section.name``.
    """

    _section = ""

    def __init_subclass__(cls, section: str = "", **kwargs):
        super().__init_subclass__(**kwargs)
        cls._section = section or cls._section

    def __post_init__(self):
        for name, hint in get_type_hints(type(self), include_extras=True).items():
            _check_limits(f"{self._section}.{name}", hint, getattr(self, name))


def _check_limits(name: str, hint: Any, value: Any) -> None:
    """Check a value of the right type against the limit in the type ``hint`` of its field ``name``.

    Raises:
        ConfigError: the value is beyond the limit.
    """
    is_tuple = get_origin(hint) is tuple
    entry_hint = get_args(hint)[0] if is_tuple else hint
    for limit in getattr(entry_hint, "__metadata__", ()):
        fits = all(map(limit.fits, value if is_tuple else (value,)))
        require(fits, f"{name} is {value}", hint=limit.requirement)


def check_choice(config: Any, section: str, **known: Iterable[str | None]) -> None:
    """Check that values are among the known ones (None: no choice); for a ``__post_init__``.

    Raises:
        ConfigError: a value is not; it is named as ``section.name``.
    """
    for name, choices in known.items():
        value = getattr(config, name)
        hint = suggestion(value, list(filter(None, choices)))
        require(value in choices, f"unknown {section}.{name} '{value}'", hint=hint)


def check_multiple(config: Any, section: str, name: str, divisor: str, hint: str) -> None:
    """Check that one whole number is a multiple of another one; for a ``__post_init__``.

    Raises:
        ConfigError: it is not; both are named as ``section.name``.
    """
    value, by = getattr(config, name), getattr(config, divisor)
    require(
        value % by == 0, f"{section}.{name} {value} is not a multiple of {section}.{divisor} {by}", hint=hint
    )
