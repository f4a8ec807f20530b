"""Prepares a corpus of the user's own, which comes with lists: checks and cleans them.

Each ``*.tsv`` in the folder with the header ``id audio seconds speaker pinyin hanzi`` is a split; a
``manifest.tsv`` that repeats them is left out, and lists of another kind are skipped and named. Texts may be
raw: punctuation and full-width letters are cleaned, an empty pinyin column is filled by pypinyin, and
unreadable texts and pinyin without tones are rejected with the reason.

A list without a header whose lines are ``audio pinyin hanzi`` (``tools/lists.py``), as older projects have
them for several corpora in one folder, is a split too.
"""

from utils.command.entry import run_command

from collections.abc import Iterator
from pathlib import Path

from data.corpora.tools.command import corpus_command
from data.corpora.tools.lists import candidates_of, find_lists
from data.corpora.tools.preparation import Candidate, Corpus
from utils.errors import CorpusError


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
    lists = find_lists(root)
    lists = [path for path in lists if path.name != "manifest.tsv"] or lists
    if not lists:
        raise CorpusError(
            "no list (*.tsv, *.txt) in this folder",
            where=root,
            hint="give the folder of the lists; their columns are separated by tabs",
        )
    for path in lists:
        yield from candidates_of(path)


CORPUS = Corpus("manifest_lists", "Recordings with lists in the form of manifests.", find_utterances)

main = corpus_command(CORPUS)


if __name__ == "__main__":
    run_command(main)
