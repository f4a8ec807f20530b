"""What the checks found → lines for people (equal findings counted, not repeated) or JSON for programs.

A check is a function from data to findings; its name is its command-line name, its docstring's first line is
what ``doctor.py --list`` says of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from preflight.listings import Line, Listing
from utils.errors import shorten

ERROR, WARNING = "error", "warning"
"""An error makes the training fail or its figures worthless; a warning is worth a look."""

_EXAMPLES = 3

Check = Callable[..., Iterable["Finding"]]


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong.

    Attributes:
        severity: ``ERROR`` or ``WARNING``.
        where: the file or folder.
        item: the line, utterance or part in it; ``""`` if the whole is meant.
        what: what is wrong, in words that are the same for all findings of the kind.
        advice: what to do about it.
        detail: the values of this one.
        check: name of the check that found it; :func:`apply` fills it in.
    """

    severity: str
    where: str
    item: str
    what: str
    advice: str
    detail: str = ""
    check: str = ""


def line_finding(
    severity: str, listing: Listing, line: Line, what: str, advice: str, detail: str = ""
) -> Finding:
    """A finding on one line of a manifest, or on a recording that stands for one."""
    place = f"line {line.number} ({line.id})" if line.number else line.id
    return Finding(severity, listing.path, place, what, advice, detail)


def check_name(check: Check) -> str:
    """The name of a check, as it is printed: ``unknown-syllable``."""
    return check.__name__.replace("_", "-")


def about(check: Check) -> str:
    """One line that says what a check looks for."""
    return (check.__doc__ or "").strip().partition("\n")[0].rstrip(".")


def apply(checks: Iterable[Check], *data: Any) -> list[Finding]:
    """Run each check on the same data; its findings get its name, and what they quote is shortened."""
    return [
        replace(
            finding,
            check=check_name(check),
            item=shorten(finding.item),
            detail=shorten(finding.detail),
        )
        for check in checks
        for finding in check(*data)
    ]


def format_findings(findings: Sequence[Finding], every: bool = False) -> list[str]:
    """One line a kind of finding in a place, errors first; with ``every`` one line a finding."""
    groups: dict[tuple[str, ...], list[Finding]] = {}
    for number, finding in enumerate(findings):
        kind = (finding.severity, finding.where, finding.check, finding.what, finding.advice)
        groups.setdefault((*kind, str(number)) if every else kind, []).append(finding)
    ordered = sorted(groups.values(), key=lambda group: group[0].severity != ERROR)
    return [_line(group) for group in ordered]


def count_line(findings: Sequence[Finding]) -> str:
    """How many there are: ``2 errors, 1 warning``."""
    severities = Counter(finding.severity for finding in findings)
    counts = [
        f"{severities[kind]:,} {kind}{'s' * (severities[kind] > 1)}"
        for kind in (ERROR, WARNING)
        if severities[kind]
    ]
    return ", ".join(counts) or "nothing found"


def has_errors(findings: Iterable[Finding]) -> bool:
    """Whether an error is among them."""
    return any(finding.severity == ERROR for finding in findings)


def as_json(findings: Sequence[Finding]) -> dict[str, Any]:
    """All findings one by one, and how many there are of each severity."""
    severities = Counter(finding.severity for finding in findings)
    return {
        "errors": severities[ERROR],
        "warnings": severities[WARNING],
        "findings": [asdict(finding) for finding in findings],
    }


def _line(group: Sequence[Finding]) -> str:
    first = group[0]
    if len(group) == 1:
        place = f"{first.where}: {first.item}" if first.item else first.where
        what = f"{first.what} ({first.detail})" if first.detail else first.what
    else:
        place = first.where
        shown = [f"{one.item}: {one.detail}" if one.detail else one.item for one in group[:_EXAMPLES]]
        more = "; …" if len(group) > _EXAMPLES else ""
        what = f"{first.what}, {len(group):,} times ({'; '.join(shown)}{more})"
    return f"{first.severity:7}  {place}  {what} — {first.advice}  [{first.check}]"
