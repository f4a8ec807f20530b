"""Prepares a corpus of the user's own, which comes with lists in the format of manifests: checks and cleans.

Each ``*.tsv`` in the folder with the header ``id audio seconds speaker pinyin hanzi`` is a split; a
``manifest.tsv`` that repeats them is left out, and lists of another kind are skipped and named. Texts may be
raw: punctuation and full-width letters are cleaned, an empty pinyin column is filled by pypinyin, and
unreadable texts and pinyin without tones are rejected with the reason.

A list without a header whose lines are ``audio pinyin hanzi`` (``.txt`` or ``.tsv``), as older projects
have them for several corpora in one folder, is a split too. Its paths are relative to its folder or to the
one above.
"""

from utils.command.entry import run_command

from collections.abc import Iterator
from pathlib import Path

from data.corpora.tools.command import corpus_command
from data.corpora.tools.preparation import Candidate, Corpus, Problem, clean_text
from data.corpora.tools.transcripts import WRONG_FIELDS, make_candidate
from data.manifest import audio_path, check_header, find_lists, print_skipped, read_rows
from utils.audio.folders import AUDIO_SUFFIXES
from utils.errors import CorpusError
from utils.mandarin.pinyin import is_syllable, is_tone_written

TONELESS = "pinyin without tones"
_PLAIN_COLUMNS = 3


def find_utterances(root: Path, output: Path, workers: int) -> Iterator[Candidate]:
    """Yield all lines of the lists in ``root``.

    Raises:
        CorpusError: there is no list, one that is named after a split has another header, or ``output`` is
            ``root``: the checked lists would replace these, and what they refuse would be lost.
    """
    if output.resolve() == root.resolve():
        raise CorpusError(
            "the checked lists would replace your own, without the lines that are refused",
            where=output,
            hint="choose another folder: --output",
        )
    lists, others = find_lists(root)
    plain = [path for path in sorted([*root.glob("*.txt"), *lists, *others]) if _is_plain(path)]
    print_skipped([path for path in others if path not in plain])
    lists = [path for path in lists if path not in plain]
    lists = [path for path in lists if path.stem != "manifest"] or lists
    if not lists and not plain:
        raise CorpusError("no list (*.tsv) in this folder", where=root, hint="give the folder of the lists")
    for path in plain:
        yield from _plain_candidates(path)
    for path in lists:
        rows = read_rows(path)
        columns = check_header(path, rows)
        for line, fields in rows[1:]:
            yield _candidate(path, line, fields, columns)


def _is_plain(path: Path) -> bool:
    """Whether the first line is ``audio pinyin hanzi``, separated by tabs."""
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        fields = file.readline().rstrip("\n").split("\t")
    return len(fields) == _PLAIN_COLUMNS and Path(fields[0]).suffix.lower() in AUDIO_SUFFIXES


def _plain_candidates(path: Path) -> Iterator[Candidate]:
    rows = read_rows(path)
    folder = path.parent
    if not (folder / rows[0][1][0]).is_file() and (folder.parent / rows[0][1][0]).is_file():
        folder = folder.parent
    for line, fields in rows:
        if len(fields) == _PLAIN_COLUMNS:
            audio, pinyin, hanzi = fields
            yield _candidate(path, line, [Path(audio).stem, str(folder / audio), "", "", pinyin, hanzi], 6)
        else:
            yield _candidate(path, line, fields, _PLAIN_COLUMNS)


def _candidate(path: Path, line: int, fields: list[str], columns: int) -> Candidate:
    if len(fields) != columns:
        problem = Problem(WRONG_FIELDS, f"{len(fields)} in {path.name}:{line}")
        return Candidate(fields[0], path.stem, path, problem=problem)
    name, audio, _, speaker, pinyin, hanzi = fields[:6]
    recording = (name, path.stem, Path(audio_path(str(path.parent), audio)), speaker)
    syllables = tuple(syllable for syllable in pinyin.split() if clean_text(syllable))
    if not syllables:
        return make_candidate(*recording, hanzi)
    if len(syllables) > 1 and all(is_syllable(each) and not is_tone_written(each) for each in syllables):
        # One unmarked syllable may be neutral (de); a whole text is not.
        problem = Problem(TONELESS, "write digits (ni3 hao3), or leave the column empty")
        return Candidate(*recording, clean_text(hanzi), syllables, problem=problem)
    spoken_pinyin = tuple(fields[6].split()) if columns > 6 else ()
    return Candidate(*recording, clean_text(hanzi), syllables, spoken_pinyin)


CORPUS = Corpus("manifest_lists", "Recordings with lists in the form of manifests.", find_utterances)

main = corpus_command(CORPUS)


if __name__ == "__main__":
    run_command(main)
