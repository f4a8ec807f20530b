"""The findings of checks, and their formatting as lines of text (equal ones are counted) or as JSON.

A check is a function from data to findings; :func:`line_check` makes one of a function that examines a single
line. ``doctor.py --list`` prints the name of the function and the first line of its docstring.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import wraps
from typing import Any

from preflight.listings import Line, Listing
from utils.errors import printable, shorten

ERROR, WARNING = "error", "warning"
"""An error makes the training fail or its results meaningless; a warning may be harmless."""

_EXAMPLES = 3  # in a line for several equal findings

Check = Callable[..., Iterable["Finding"]]


@dataclass(frozen=True)
class Finding:
    """A problem that a check has found in data, a recipe or a run.

    Attributes:
        severity: ``ERROR`` or ``WARNING``.
        where: the file or folder.
        item: the line, utterance or part of it; ``""`` for the whole file or folder.
        problem: in the same words for all findings of the kind.
        advice: what the user can do.
        detail: the values of this finding.
        check: name of the check; set by :func:`apply`.
    """

    severity: str
    where: str
    item: str
    problem: str
    advice: str
    detail: str = ""
    check: str = ""


def line_finding(
    severity: str, listing: Listing, line: Line, problem: str, advice: str, detail: str = ""
) -> Finding:
    """A finding on a line of a manifest, or on a recording without a manifest."""
    return Finding(severity, listing.path, _line_name(line), problem, advice, detail)


def _line_name(line: Line) -> str:
    return f"line {line.number} ({line.id})" if line.number else line.id


def line_check(
    severity: str,
    problem: str,
    advice: str,
    lines: Callable[..., Iterable[tuple]] | None = None,
) -> Callable[[Callable[..., str | None]], Check]:
    """Make a check of a function that returns the detail of a finding on one line, or None.

    Args:
        severity, problem, advice: fields of the findings.
        lines: the arguments of the check → those of each call of the function, the line first; by default
            all lines of the listing, with the same data for each.
    """

    def make_check(detail_of: Callable[..., str | None]) -> Check:
        @wraps(detail_of)
        def check(listing: Listing, *data: Any) -> Iterator[Finding]:
            for line, *known in lines(listing, *data) if lines else ((line, *data) for line in listing.lines):
                if (detail := detail_of(line, *known)) is not None:
                    yield line_finding(severity, listing, line, problem, advice, detail)

        return check

    return make_check


def repeated_lines(
    listing: Listing,
    keys: Iterable[tuple[Hashable, Line]],
    same_text: tuple[str, str],
    other_text: tuple[str, str],
    already_found: Callable[[Line, Line], bool],
    relation: str = "also in",
) -> Iterator[Finding]:
    """Findings on lines with the key of an earlier line.

    Args:
        listing: the manifest of the lines.
        keys: (key, line) of each.
        same_text: the problem of a line with the text of the earlier one, and what the user can do.
        other_text: the same for a line with another text, which is an error.
        already_found: (line, earlier line) → whether another check reports it.
        relation: relation of the line to the earlier one, for the detail.
    """
    groups: dict[Hashable, list[Line]] = defaultdict(list)
    for key, line in keys:
        groups[key].append(line)
    for first, *others in groups.values():
        for line in others:
            if not already_found(line, first):
                same = line.pinyin == first.pinyin
                problem, advice = same_text if same else other_text
                severity, detail = WARNING if same else ERROR, f"{relation} {_line_name(first)}"
                yield line_finding(severity, listing, line, problem, advice, detail)


def check_name(check: Check) -> str:
    """The printed name of a check: ``unknown-syllable``."""
    return check.__name__.replace("_", "-")


def about(check: Check) -> str:
    """One line that describes a check."""
    return (check.__doc__ or "").strip().partition("\n")[0].rstrip(".")


def apply(checks: Iterable[Check], *data: Any) -> list[Finding]:
    """Run checks on the same data; add their names to the findings, make texts short and printable."""
    return [
        replace(
            finding,
            check=check_name(check),
            where=printable(finding.where),
            item=shorten(finding.item),
            detail=shorten(finding.detail),
        )
        for check in checks
        for finding in check(*data)
    ]


def format_findings(findings: Sequence[Finding]) -> list[str]:
    """One line for each kind of finding and file, errors first."""
    groups: dict[tuple[str, ...], list[Finding]] = defaultdict(list)
    for finding in findings:
        kind = (finding.severity, finding.where, finding.check, finding.problem, finding.advice)
        groups[kind].append(finding)
    ordered = sorted(groups.values(), key=lambda group: group[0].severity != ERROR)
    return [_line(group) for group in ordered]


def count_line(findings: Sequence[Finding]) -> str:
    """The number of findings: ``2 errors, 1 warning``."""
    severities = Counter(finding.severity for finding in findings)
    counts = [
        f"{severities[kind]:,} {kind}{'s' * (severities[kind] > 1)}"
        for kind in (ERROR, WARNING)
        if severities[kind]
    ]
    return ", ".join(counts) or "nothing found"


def has_errors(findings: Iterable[Finding]) -> bool:
    """Whether one of the findings is an error."""
    return any(finding.severity == ERROR for finding in findings)


def as_json(findings: Sequence[Finding]) -> dict[str, Any]:
    """All findings, and their number by severity, as JSON values."""
    severities = Counter(finding.severity for finding in findings)
    return {
        "errors": severities[ERROR],
        "warnings": severities[WARNING],
        "findings": [asdict(finding) for finding in findings],
    }


def _line(group: Sequence[Finding]) -> str:
    first = group[0]
    if len(group) == 1:
        where = f"{first.where}: {first.item}" if first.item else first.where
        problem = f"{first.problem} ({first.detail})" if first.detail else first.problem
    else:
        where = first.where
        shown = [
            f"{finding.item}: {finding.detail}" if finding.detail else finding.item
            for finding in group[:_EXAMPLES]
        ]
        more = "; …" if len(group) > _EXAMPLES else ""
        problem = f"{first.problem}, {len(group):,} times ({'; '.join(shown)}{more})"
    return f"{first.severity:7}  {where}  {problem} — {first.advice}  [{first.check}]"
