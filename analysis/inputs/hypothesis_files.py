"""A reference file and hypothesis files in; systems to explain, and what is wrong with the files, out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rapidfuzz.distance import Levenshtein
from tqdm import tqdm

from analysis.inputs.normalisation import RULES, TRADITIONAL, can_convert_traditional, read_aloud
from analysis.inputs.text_files import (
    Line,
    Listing,
    Problem,
    id_problems,
    read_listing,
    rule_counts,
    tokens,
    with_ids_of,
)
from analysis.inputs.utterance_results import HANZI, SYLLABLES, SystemOutput, UtteranceResult

NOTHING = Line()


@dataclass(frozen=True)
class Normalisation:
    """What a rule of normalisation would change.

    Attributes:
        rule: its name.
        applied: whether it was.
        lines: by file, in how many lines there is something for it to do.
        errors_otherwise: hanzi errors of each system, had it been the other way; None where it can't be told.
    """

    rule: str
    applied: bool
    lines: dict[str, int]
    errors_otherwise: dict[str, int | None]


@dataclass(frozen=True)
class HypothesisFiles:
    """What files say of some systems.

    Attributes:
        systems: one for each hypothesis file.
        levels: on which all files can be compared.
        problems: of the files.
        normalisation: what was made alike, and what might have been.
    """

    systems: tuple[SystemOutput, ...]
    levels: tuple[str, ...]
    problems: tuple[Problem, ...]
    normalisation: tuple[Normalisation, ...]


def read_systems(
    reference: Listing, paths: Sequence[str | Path], rules: Sequence[str], leave_out: bool = False
) -> HypothesisFiles:
    """Read hypothesis files and hold them against a reference.

    Hanzi are compared where all files have them. Syllables always: pypinyin reads those files that have none,
    and the system's ``automatic`` says so.

    Args:
        reference: what is true.
        paths: one file a system.
        rules: of normalisation, to apply to hanzi on both sides.
        leave_out: utterances that a file lacks are left out, from all systems; else they count as deleted.

    Raises:
        CorpusError: a file can't be read, or has no id in common with the reference.
    """
    files = [with_ids_of(read_listing(path), reference) for path in paths]
    problems = [*reference.problems]
    for file in files:
        problems += [*file.problems, *id_problems(reference, file, leave_out)]
    ids = [name for name in reference.lines if not leave_out or all(name in file.lines for file in files)]
    hanzi = all(HANZI in file.levels for file in (reference, *files))
    levels = (SYLLABLES, HANZI) if hanzi else (SYLLABLES,)
    truth = [
        _tokens(reference, name, levels, rules) for name in tqdm(ids, "reading", disable=None, leave=False)
    ]
    names = system_names([file.path for file in files])
    systems = []
    for name, file in zip(names, files, strict=True):
        utterances = [
            _outcome(one, reference.lines[one], said, _tokens(file, one, levels, rules))
            for one, said in zip(tqdm(ids, name, disable=None, leave=False), truth, strict=True)
        ]
        systems.append(SystemOutput(name, utterances, automatic=SYLLABLES not in file.levels))
    normalisation = _normalisation(reference, files, names, ids, rules) if hanzi else []
    return HypothesisFiles(tuple(systems), levels, tuple(problems), tuple(normalisation))


def system_names(paths: Sequence[Path]) -> list[str]:
    """A short name for each file, unlike the others: its own, with as many of its folders as it takes."""
    for depth in range(1, max(len(path.resolve().parts) for path in paths) + 1):
        names = ["/".join(path.resolve().with_suffix("").parts[-depth:]) for path in paths]
        if len(set(names)) == len(names):
            return names
    return [f"{path.stem} ({number})" for number, path in enumerate(paths, start=1)]


def _tokens(
    listing: Listing, name: str, levels: Sequence[str], rules: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(syllables, hanzi) of an utterance; what the file lacks is nothing on both levels."""
    line = listing.lines.get(name, NOTHING)
    hanzi = tokens(line, HANZI, rules) if HANZI in listing.levels else ()
    pinyin = tokens(line, SYLLABLES, rules) if SYLLABLES in listing.levels else read_aloud(hanzi)
    return pinyin, hanzi if HANZI in levels else ()


def _outcome(
    name: str,
    line: Line,
    said: tuple[tuple[str, ...], tuple[str, ...]],
    heard: tuple[tuple[str, ...], tuple[str, ...]],
) -> UtteranceResult:
    return UtteranceResult(
        id=name,
        speaker=line.speaker,
        seconds=line.seconds,
        reference_pinyin=said[0],
        pinyin=heard[0],
        reference_hanzi=said[1],
        hanzi=heard[1],
        spoken_pinyin=line.spoken,
    )


def _normalisation(
    reference: Listing,
    files: Sequence[Listing],
    names: Sequence[str],
    ids: Sequence[str],
    rules: Sequence[str],
) -> list[Normalisation]:
    """Of each rule, how many lines it concerns and how many errors there would be with or without it."""
    titles = ["reference", *names]
    counts = {title: rule_counts(file, ids) for title, file in zip(titles, (reference, *files), strict=True)}
    found = []
    for rule in RULES:
        other = [one for one in RULES if (one in rules) != (one == rule)]
        lines = {title: counts[title][rule] for title in titles}
        possible = rule != TRADITIONAL or can_convert_traditional()
        errors = {
            name: _errors(reference, file, ids, other) if possible and any(lines.values()) else None
            for name, file in zip(names, files, strict=True)
        }
        found.append(Normalisation(rule, rule in rules, lines, errors))
    return found


def _errors(reference: Listing, file: Listing, ids: Sequence[str], rules: Sequence[str]) -> int:
    return sum(
        Levenshtein.distance(
            tokens(reference.lines[name], HANZI, rules), tokens(file.lines.get(name, NOTHING), HANZI, rules)
        )
        for name in ids
    )
