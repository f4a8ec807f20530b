"""What every HTML page shares: figures in, how they are written out; the templates, data inside a page."""

from __future__ import annotations

import json
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

TEMPLATES = Path(__file__).parent / "templates"
THIN = "\u202f"  # a narrow space that doesn't break


def page_environment() -> Environment:
    """Templates of ``analysis/page/templates``: everything escaped, an unknown name is an error."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"percent": percent, "duration": duration, "number": number, "embedded": embedded}
    return environment


def percent(rate: float, digits: int = 1) -> str:
    """``0.0534`` → ``5.3 %`` (with a narrow space that doesn't break)."""
    return f"{100 * rate:.{digits}f}{THIN}%"


def duration(seconds: float) -> str:
    """``374.2`` → ``6 min 14 s``; from an hour on ``1 h 5 min``."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole}{THIN}s" if seconds >= 9.95 else f"{seconds:.1f}{THIN}s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes}{THIN}min {rest}{THIN}s"
    return f"{minutes // 60}{THIN}h {minutes % 60}{THIN}min"


def number(count: int) -> str:
    """``12345`` → ``12,345``."""
    return f"{count:,}"


def embedded(value: object) -> Markup:
    """A value as JSON for a ``<script type="application/json">``, which no text in it can end."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("<", "\\u003c"))
