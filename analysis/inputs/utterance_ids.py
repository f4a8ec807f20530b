"""Matches the ids of a hypothesis file with those of the reference; adds the speakers of a list.

:mod:`analysis.inputs.hypothesis_files` calls these functions for the files that
:mod:`analysis.inputs.text_files` reads.
"""

from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path, PurePath

from analysis.inputs.text_files import Problem, TextFile
from analysis.inputs.transcript_files import CTM, SUBTITLES
from data.manifest import read_rows
from utils.errors import CorpusError

FOLDERS_COMPARED = 5  # at most: the last parts of a path that distinguish recordings of the same name


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
        hint = "give files with the same ids"
        if recordings:
            hint = (
                f"{recordings[0].path} ({recordings[0].format}) has one text for each whole recording, under "
                "its name: the other file must have the same"
            )
        raise CorpusError(message, where=hypothesis.path, hint=hint)
    effect = "left out" if leave_out else "every token counts as deleted"
    found = [
        Problem.of(hypothesis.path, "ids of the reference are missing", missing, effect),
        Problem.of(hypothesis.path, "ids that are not in the reference", extra, "left out", not missing),
    ]
    return [problem for problem in found if problem.count]


def with_speakers(listing: TextFile, path: str | Path) -> TextFile:
    """The same lines with the speakers of a Kaldi ``utt2spk`` (``id speaker``) file.

    Raises:
        CorpusError: the file cannot be read, or has no id in common.
    """
    fields = (" ".join(row).split() for _, row in read_rows(path))
    speakers = {words[0]: words[1] for words in fields if len(words) > 1}
    if not speakers.keys() & listing.lines.keys():
        raise CorpusError(f"no id in common with {listing.path}", where=path, hint="lines are 'id speaker'")
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
