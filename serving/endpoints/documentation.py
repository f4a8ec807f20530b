"""Shows the OpenAPI document of the service as a page that fetches nothing from elsewhere: ``/docs``."""

import html
import json
from collections.abc import Iterator, Mapping
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

router = APIRouter(include_in_schema=False)
_POLICY = "default-src 'none'; base-uri 'none'; frame-ancestors 'none'; form-action 'none'"
_HEADERS = {"Content-Security-Policy": _POLICY, "X-Content-Type-Options": "nosniff"}
_METHODS = ("get", "post")


@router.get("/docs")
async def documentation(request: Request) -> HTMLResponse:
    """The requests of the service, with the types, defaults and examples of all fields."""
    document = request.app.openapi()
    parts = [
        '<!doctype html><html lang="en"><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{_text(document['info']['title'])}</title><main><h1>{_text(document['info']['title'])}</h1>",
        '<p>For programs: <a href="openapi.json">openapi.json</a>.</p>',
    ]
    for path, operations in document["paths"].items():
        for method in filter(operations.__contains__, _METHODS):
            parts += _operation(method, path, operations[method], document)
    return HTMLResponse("\n".join([*parts, "</main></html>"]), headers=_HEADERS)


def _operation(
    method: str, path: str, operation: Mapping[str, Any], document: Mapping[str, Any]
) -> Iterator[str]:
    yield f"<h2><code>{method.upper()} {_text(path)}</code> {_text(operation.get('summary', ''))}</h2>"
    yield f"<p>{_text(operation.get('description', ''))}</p>"
    for kind, content in operation.get("requestBody", {}).get("content", {}).items():
        schema = _resolved(content["schema"], document)
        yield f"<p>Fields, sent as <code>{_text(kind)}</code>:</p><dl>"
        for name, field in schema.get("properties", {}).items():
            needed = (
                "needed" if name in schema.get("required", ()) else f"default {_json(field.get('default'))}"
            )
            yield f"<dt><code>{_text(name)}</code>, {_text(_kind(field, document))}, {needed}</dt>"
            examples = ", ".join(f"<code>{_json(example)}</code>" for example in field.get("examples", ()))
            shown = f" Example: {examples}" if examples else ""
            yield f"<dd>{_text(field.get('description', ''))}{shown}</dd>"
        yield "</dl>"
    for status, response in operation.get("responses", {}).items():
        for content in response.get("content", {}).values():
            if "example" in content:
                example = json.dumps(content["example"], ensure_ascii=False, indent=2)
                yield f"<p>Response {_text(status)}, for example:</p><pre>{_text(example)}</pre>"


def _kind(field: Mapping[str, Any], document: Mapping[str, Any]) -> str:
    """The type of a field in words, with its choices and limits."""
    field = _resolved(field, document)
    if "enum" in field or "const" in field:
        return " or ".join(field.get("enum") or [field["const"]])
    if field.get("type") == "array":
        return f"any number of: {_kind(field['items'], document)}"
    limits = [
        f"{word} {field[key]:g}"
        for key, word in (("minimum", "from"), ("maximum", "to"), ("maxLength", "characters at most"))
        if key in field
    ]
    is_file = field.get("format") == "binary" or "contentMediaType" in field
    return " ".join(["file" if is_file else str(field.get("type", "value")), *limits])


def _resolved(schema: Mapping[str, Any], document: Mapping[str, Any]) -> Mapping[str, Any]:
    name = schema.get("$ref", "").removeprefix("#/components/schemas/")
    return document["components"]["schemas"][name] if name else schema


def _json(value: Any) -> str:
    return _text(json.dumps(value, ensure_ascii=False))


def _text(value: object) -> str:
    return html.escape(str(value))
