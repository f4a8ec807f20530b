"""The Jinja environment of all HTML pages, with filters that format rates, durations, counts and JSON."""

import json
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

TEMPLATES = Path(__file__).parent / "templates"
THIN = "\u202f"  # narrow no-break space


def page_environment() -> Environment:
    """The environment of ``analysis/page/templates``: all values are escaped, unknown names are errors."""
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
    """``0.0534`` → ``5.3 %`` (with a narrow no-break space)."""
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
    """A value as JSON for ``<script type="application/json">``; no text in it can close the element."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("<", "\\u003c"))
