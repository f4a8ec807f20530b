"""Says in plain words which field of a request Pydantic refuses, what its limit is, and what to do.

HTTP requests and the first message of a live stream are checked by Pydantic; what was sent is not repeated.
"""

from collections.abc import Mapping, Sequence
from typing import Any

# By type of Pydantic's error: what is wrong with a field, with the limits as Pydantic names them, and advice.
_PROBLEMS = {
    "missing": ("is missing", "send this field"),
    "extra_forbidden": ("is not a known field", "check the spelling, or leave it out"),
    "string_too_long": ("has more than {max_length:,} characters", "send at most {max_length:,}"),
    "string_too_short": ("is empty", "send a text"),
    "greater_than_equal": ("is less than {ge:,g}", "send {ge:,g} or more"),
    "less_than_equal": ("is more than {le:,g}", "send {le:,g} or less"),
    "literal_error": ("is not {expected}", "send one of these values"),
    "finite_number": ("is not a finite number", "send a number"),
    "string_type": ("is not a string", "send a text in quotation marks"),
}
_NUMBERS = {
    "int": ("is not a whole number", "send a whole number"),
    "float": ("is not a number", "send a number"),
    "bool": ("is neither true nor false", "send true or false"),
}


def field_name(location: Sequence[str | int]) -> str | None:
    """The name of the field at a location of Pydantic, without positions in a list; None for the whole."""
    return ".".join(part for part in location if isinstance(part, str)) or None


def field_problem(error: Mapping[str, Any]) -> tuple[str, str | None]:
    """What is wrong with a field, to be written after its name, and what to do about it.

    Args:
        error: one of the errors that Pydantic lists.

    Returns:
        The advice is None, and the problem in Pydantic's words, for a kind of error that no field of the
        service has.
    """
    kind = error["type"]
    found = _PROBLEMS.get(kind) or _NUMBERS.get(kind.partition("_")[0])
    if found is None:
        return f"can't be used: {error['msg']}", None
    problem, advice = (text.format(**error.get("ctx", {})) for text in found)
    return problem, advice
