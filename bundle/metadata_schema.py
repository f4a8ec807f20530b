"""The schema of bundle.json: checks that it has the required keys, with values of the right types.

``folder`` calls it. The checksum of bundle.json finds any damage, but bundles of format 1 have none: their
damaged values must be found before they are used.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bundle.variants import ArtefactMode, Format, Precision, Variant

# Required key → the type of its value, and the type's name in messages.
_REQUIRED = {
    "kind": (str, "a text"),
    "features": (dict, "an object"),
    "features_hash": (str, "a text"),
    "labels_hash": (str, "a text"),
    "decoding": (dict, "an object"),
    "stream": (dict | None, "an object or null"),
    "artefacts": (dict, "an object"),
    "files": (dict, "an object"),
}


def schema_fault(metadata: Mapping[str, Any]) -> str | None:
    """The first violation of the schema by the contents of bundle.json; None if there is none.

    It does not check values that only their hash or the artefact itself can confirm.
    """
    if missing := [name for name in _REQUIRED if name not in metadata]:
        return f"no {', '.join(missing)}"
    for name, (kind, text) in _REQUIRED.items():
        if not isinstance(metadata[name], kind):
            return f"'{name}' is not {text}"
    tables = metadata.get("tables", [])  # older bundles have none
    if not isinstance(tables, list) or not all(_is_path(name) for name in tables):
        return "'tables' is not a list of file names"
    for name, digest in metadata["files"].items():
        if not (_is_path(name) and isinstance(digest, str)):
            return f"'files' has an entry that is not a path in the bundle and its SHA-256: {name}"
    for name, value in (metadata["stream"] or {}).items():
        if not _is_number(value):
            return f"'{name}' of 'stream' is not a number"
    if not metadata["artefacts"]:
        return "it lists no artefact"
    faults = (_artefact_fault(name, facts) for name, facts in metadata["artefacts"].items())
    return next(filter(None, faults), None)


def variant_of(properties: Mapping[str, Any]) -> Variant:
    """Format, mode and precision of an artefact, from its entry in bundle.json.

    Raises:
        KeyError, ValueError: an entry is missing or is none of the possible values.
    """
    return Variant(
        Format(properties["format"]), ArtefactMode(properties["state"]), Precision(properties["precision"])
    )


def _artefact_fault(name: str, properties: object) -> str | None:
    if not isinstance(properties, dict):
        return f"the entry of artefact {name} is not an object"
    try:
        variant = variant_of(properties)
    except KeyError as error:
        return f"the entry of artefact {name} has no {error}"
    except ValueError as error:
        return f"the entry of artefact {name}: {error}"
    if variant.path != name:
        return f"the entry of artefact {name} describes {variant.path}"
    shape = properties.get("input_shape")
    if not isinstance(shape, list) or not all(size is None or _is_number(size) for size in shape):
        return f"'input_shape' of artefact {name} is not a list of numbers"
    if not isinstance(properties.get("passed"), bool):
        return f"'passed' of artefact {name} is not true or false"
    flex = properties.get("flex", [])
    if not isinstance(flex, list) or not all(isinstance(operation, str) for operation in flex):
        return f"'flex' of artefact {name} is not a list of operations"
    return None


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_path(name: object) -> bool:
    """Whether a name can be that of a file in the folder, and not of one outside it."""
    return (
        isinstance(name, str)
        and "\0" not in name
        and not Path(name).is_absolute()
        and ".." not in Path(name).parts
    )
