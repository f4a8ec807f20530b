"""Reads a reference file and the hypothesis file of each system, and matches them by utterance id.

Returns the output of each system after text normalisation, and the problems of the files.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path, PurePath

from tqdm import tqdm

from analysis.inputs.normalisation import automatic_pinyin
from analysis.inputs.records import TextEntry
from analysis.inputs.text_files import (
    Problem,
    TextFile,
    read_text_file,
    tokens,
)
from analysis.inputs.transcript_files import CTM, SUBTITLES
from analysis.inputs.utterance_results import (
    HANZI,
    OUTPUT,
    REFERENCE,
    SYLLABLES,
    SystemOutput,
    UtteranceResult,
    same_reading,
)
from data.manifest import read_rows
from utils.errors import CorpusError

NO_ENTRY = TextEntry()  # stands for an utterance that a file lacks
FOLDERS_COMPARED = 5  # at most: the last parts of a path that distinguish recordings of the same name

Tokens = tuple[tuple[str, ...], tuple[str, ...]]  # syllables and hanzi of an utterance


@dataclass(frozen=True)
class HypothesisFiles:
    """The contents of the hypothesis files.

    Attributes:
        systems: output of a system for each hypothesis file.
        levels: levels (syllables, hanzi) on which all systems are compared.
        problems: problems of the files.
    """

    systems: tuple[SystemOutput, ...]
    levels: tuple[str, ...]
    problems: tuple[Problem, ...]


def read_systems(
    reference: TextFile, paths: Sequence[str | Path], rules: Sequence[str], leave_out: bool = False
) -> HypothesisFiles:
    """Read hypothesis files for the utterances of a reference.

    Hanzi are compared if all files have them. Syllables are always compared: for files without syllables they
    are pypinyin's reading (``automatic_pinyin``). If the reference or the hypothesis has none, a hanzi that
    equals the reference's has its syllable.

    Args:
        reference: the reference texts.
        paths: one file a system.
        rules: rules of normalisation, applied to the hanzi of all files.
        leave_out: leave an utterance that a file lacks out of all systems; else it counts as deleted.

    Raises:
        CorpusError: a file cannot be read, has no id in common with the reference, or with ``leave_out`` no
            utterance is in all files.
    """
    files = [with_ids_of(read_text_file(path), reference) for path in paths]
    problems = [*reference.problems]
    for file in files:
        problems += [*file.problems, *id_problems(reference, file, leave_out)]
    ids = [name for name in reference.lines if not leave_out or all(name in file.lines for file in files)]
    if not ids:
        raise CorpusError(
            "no utterance is in all of these files",
            where=", ".join(str(file.path) for file in files),
            hint="compare them one by one, or without --missing left-out",
        )
    hanzi = all(HANZI in file.levels for file in (reference, *files))
    levels = (SYLLABLES, HANZI) if hanzi else (SYLLABLES,)
    truth = [_tokens(reference, name, rules) for name in tqdm(ids, "reading", disable=None, leave=False)]
    names = system_names([file.path for file in files])
    systems = []
    for name, file in zip(names, files, strict=True):
        sides = ((REFERENCE, reference), (OUTPUT, file))
        automatic = tuple(side for side, each in sides if SYLLABLES not in each.levels)
        utterances = []
        for id, true_tokens in zip(tqdm(ids, name, disable=None, leave=False), truth, strict=True):
            pinyin, written = _tokens(file, id, rules)
            if automatic:
                pinyin = same_reading(pinyin, written, *true_tokens)
            utterances.append(_utterance(id, reference.lines[id], true_tokens, (pinyin, written), levels))
        systems.append(SystemOutput(name, utterances, automatic))
    return HypothesisFiles(tuple(systems), levels, tuple(problems))


def system_names(paths: Sequence[Path]) -> list[str]:
    """A short, distinct name for each file: its name with as many parent folders as needed."""
    for depth in range(1, max(len(path.resolve().parts) for path in paths) + 1):
        names = ["/".join(path.resolve().with_suffix("").parts[-depth:]) for path in paths]
        if len(set(names)) == len(names):
            return names
    return [f"{path.stem} ({number})" for number, path in enumerate(paths, start=1)]


def _tokens(listing: TextFile, name: str, rules: Sequence[str]) -> Tokens:
    """The tokens of an utterance; both empty if the file lacks it."""
    line = listing.lines.get(name, NO_ENTRY)
    hanzi = tokens(line, HANZI, rules) if HANZI in listing.levels else ()
    has_syllables = SYLLABLES in listing.levels
    return tokens(line, SYLLABLES, rules) if has_syllables else automatic_pinyin(hanzi), hanzi


def _utterance(
    id: str, line: TextEntry, reference: Tokens, hypothesis: Tokens, levels: Sequence[str]
) -> UtteranceResult:
    return UtteranceResult(
        id=id,
        speaker=line.speaker,
        seconds=line.seconds,
        reference_pinyin=reference[0],
        pinyin=hypothesis[0],
        reference_hanzi=reference[1] if HANZI in levels else (),
        hanzi=hypothesis[1] if HANZI in levels else (),
        spoken_pinyin=line.spoken,
    )


def id_problems(reference: TextFile, hypothesis: TextFile, leave_out: bool) -> list[Problem]:
    """The problem that two files have different ids, if so.

    Args:
        reference, hypothesis: the files.
        leave_out: missing utterances are not scored; else they count as deleted.

    Raises:
        CorpusError: they have no id in common.
    """
    missing = [name for name in reference.lines if name not in hypothesis.lines]
    extra = [name for name in hypothesis.lines if name not in reference.lines]
    if len(missing) == len(reference.lines):
        message = (
            f"no id in common with {reference.path}: '{missing[0]}' there, '{next(iter(extra), '')}' here"
        )
        recordings = [file for file in (reference, hypothesis) if file.format in (CTM, SUBTITLES)]
        hint = "give files with the same ids, or a folder with a file for each recording"
        if recordings:
            hint = (
                f"{recordings[0].path} ({recordings[0].format}) has one text for each whole recording, under "
                "its name: the other file must have the same"
            )
        raise CorpusError(message, where=hypothesis.path, hint=hint)
    effect = "left out" if leave_out else "every token counts as deleted"
    found = [
        Problem.of(hypothesis.path, "ids of the reference that are missing", missing, effect),
        Problem.of(hypothesis.path, "ids that are not in the reference", extra, "left out", not missing),
    ]
    return [problem for problem in found if problem.count]


def with_speakers(listing: TextFile, path: str | Path) -> TextFile:
    """The same lines with the speakers of a Kaldi ``utt2spk`` (``id speaker``) file.

    Raises:
        CorpusError: the file cannot be read, has texts in place of speakers, or has no id in common.
    """
    hint = "lines are 'id speaker', as in Kaldi's utt2spk"
    speakers = {}
    for number, row in read_rows(path):
        name, *words = " ".join(row).split() or [""]
        if len(words) != 1 or words[0] == listing.lines.get(name, NO_ENTRY).hanzi:
            raise CorpusError("not an id and its speaker", where=f"{path}:{number}", hint=hint)
        speakers[name] = words[0]
    if not speakers.keys() & listing.lines.keys():
        raise CorpusError(f"no id in common with {listing.path}", where=path, hint=hint)
    lines = {
        name: replace(line, speaker=speakers.get(name, line.speaker)) for name, line in listing.lines.items()
    }
    return replace(listing, lines=lines)


def with_ids_of(listing: TextFile, reference: TextFile) -> TextFile:
    """The same lines with the ids of the reference, where no id is in both.

    Then the ids or the paths of the recordings are compared, without suffix and with as many of the last
    folders as distinguish them. Two files of subtitles belong together whatever their names.
    """
    if listing.lines.keys() & reference.lines.keys():
        return listing
    ids = _same_recordings(listing, reference)
    if SUBTITLES in (listing.format, reference.format) and len(listing.lines) == len(reference.lines) == 1:
        ids = dict(zip(listing.lines, reference.lines, strict=True))
    lines = {ids.get(id, id): line for id, line in listing.lines.items()}
    if not ids or len(lines) < len(listing.lines):
        return listing
    effect = "compared by the names of the recordings"
    problem = Problem.of(listing.path, "ids in another form than the reference's", list(ids), effect, True)
    return replace(listing, lines=lines, problems=(*listing.problems, problem))


def _same_recordings(listing: TextFile, reference: TextFile) -> dict[str, str]:
    """Id in a file → id of the same recording in the reference."""
    for ours, theirs in product(*(_recording_names(file) for file in (listing, reference))):
        for depth in range(1, FOLDERS_COMPARED + 1):
            names, true_names = _by_end_of_path(ours, depth), _by_end_of_path(theirs, depth)
            if (
                len(names) == len(ours)
                and len(true_names) == len(theirs)
                and names.keys() & true_names.keys()
            ):
                return {id: true_names[name] for name, id in names.items() if name in true_names}
    return {}


def _recording_names(file: TextFile) -> tuple[dict[str, str], dict[str, str]]:
    """Name → id: the ids themselves, and the paths of the recordings."""
    return {id: id for id in file.lines}, {line.audio or id: id for id, line in file.lines.items()}


def _by_end_of_path(names: Mapping[str, str], depth: int) -> dict[str, str]:
    """The last parts of each path without its suffix → id."""
    paths = ((PurePath(name.replace("\\", "/")), id) for name, id in names.items())
    return {"/".join((*path.parent.parts, path.stem)[-depth:]): id for path, id in paths}
