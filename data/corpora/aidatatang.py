"""Prepares aidatatang_200zh: unpacks its speakers and writes manifests, with pinyin by pypinyin.

The corpus (Beijing DataTang, 2019, CC BY-NC-ND 4.0: not for commercial use) is
``aidatatang_200zh/{corpus/{train,dev,test}/G0013.tar.gz,transcript/aidatatang_200_zh_transcript.txt}``: 200
hours read by 600 speakers into mobile phones. An archive holds ``G0013/T0055G0013S0001.wav``, the list of
transcripts ``T0055G0013S0001 今天 什么 日子``. Its owner has withdrawn it from https://www.openslr.org/62/:
existing copies can be prepared (MD5 of the archive, as PaddleSpeech checks it:
6e0f4f39cd5f667a7ee53c397c8d0949), but it can't be downloaded.
"""

from utils.command.entry import run_command

from collections.abc import Iterator
from pathlib import Path

from data.corpora.tools.archives import find_in_speaker_archives
from data.corpora.tools.command import corpus_command
from data.corpora.tools.download import Archive
from data.corpora.tools.preparation import Candidate, Corpus, find_corpus_folder
from data.corpora.tools.transcripts import read_transcript_list
from data.manifest import SPLITS

ARCHIVE = Archive(
    url="https://www.openslr.org/resources/62/aidatatang_200zh.tgz",  # withdrawn
    folder="aidatatang_200zh",
    unpacked=2.6,  # the speakers' archives are as large as the whole, their recordings 1.6 times
)
WITHDRAWN = (
    "its owner has withdrawn it from OpenSLR; with your own copy: python -m data.corpora.aidatatang prepare "
    "--archive aidatatang_200zh.tgz --unpack-to {root}"
)
_TRANSCRIPT = "transcript/aidatatang_200_zh_transcript.txt"


def find_utterances(root: Path, output: Path, workers: int) -> Iterator[Candidate]:
    """Unpack the speakers that are not yet unpacked and yield all recordings and transcripts.

    Raises:
        CorpusError, OSError: see `find_corpus_folder` and `find_in_speaker_archives`.
    """
    corpus = find_corpus_folder(root, CORPUS, ("corpus", _TRANSCRIPT))
    texts = read_transcript_list(corpus / _TRANSCRIPT)
    yield from find_in_speaker_archives(corpus / "corpus", texts, workers)


CORPUS = Corpus(
    "aidatatang",
    "aidatatang_200zh: 200 hours, 600 speakers (CC BY-NC-ND: not for commercial use; withdrawn)",
    find_utterances,
    SPLITS,
    (ARCHIVE,),
    WITHDRAWN,
)

main = corpus_command(CORPUS)


if __name__ == "__main__":
    run_command(main)
