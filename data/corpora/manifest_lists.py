"""Prepares a corpus of the user's own, which comes with lists in the format of manifests: checks and cleans.

Each ``*.tsv`` in the folder with the header ``id audio seconds speaker pinyin hanzi`` is a split; a
``manifest.tsv`` that repeats them is left out, and lists of another kind are skipped and named. Texts may be
raw: punctuation and full-width letters are cleaned, an empty pinyin column is filled by pypinyin, and
unreadable texts and pinyin without tones are rejected with the reason.
"""

from utils.command.entry import run_command

from collections.abc import Iterator
from pathlib import Path

from data.corpora.tools.command import corpus_command
from data.corpora.tools.preparation import Candidate, Corpus, Problem, clean_text
from data.corpora.tools.transcripts import WRONG_FIELDS, make_candidate
from data.manifest import audio_path, check_header, find_lists, print_skipped, read_rows
from utils.errors import CorpusError
from utils.mandarin.pinyin import is_syllable, is_tone_written

TONELESS = "pinyin without tones"


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
    print_skipped(others)
    lists = [path for path in lists if path.stem != "manifest"] or lists
    if not lists:
        raise CorpusError("no list (*.tsv) in this folder", where=root, hint="give the folder of the lists")
    for path in lists:
        rows = read_rows(path)
        columns = check_header(path, rows)
        for line, fields in rows[1:]:
            yield _candidate(path, line, fields, columns)


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
