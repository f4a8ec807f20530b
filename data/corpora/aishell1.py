"""Downloads and prepares AISHELL-1: unpacks its speakers and writes manifests, with pinyin by pypinyin.

The corpus (Bu et al., 2017, https://www.openslr.org/33/) is ``data_aishell/{wav,transcript}``: one archive
per speaker, ``wav/S0002.tar.gz`` with ``train/S0002/*.wav`` inside, and one list of all transcripts, divided
into words: ``BAC009S0002W0122 而 对 楼市 成交``. It has no pinyin:
:func:`utils.mandarin.pinyin.hanzi_to_pinyin` gives the citation reading, except in some phrases with 一 and
不.
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
    url="https://www.openslr.org/resources/33/data_aishell.tgz",
    # As several public recipes check it (PaddleSpeech among them); openslr itself publishes none.
    checksum="2f494334227864a8a8fec932999db9d8",
    folder="data_aishell",
    unpacked=2.6,  # the speakers' archives are as large as the whole, their recordings 1.5 times
)

_TRANSCRIPT = "transcript/aishell_transcript_v0.8.txt"
# The transcripts have 余 in its older form 馀, which no other corpus and no text has.
_VARIANTS = str.maketrans("馀", "余")


def find_utterances(root: Path, output: Path, workers: int) -> Iterator[Candidate]:
    """Unpack the speakers that are not yet unpacked and yield all recordings and transcripts.

    Raises:
        CorpusError, OSError: see `find_corpus_folder` and `find_in_speaker_archives`.
    """
    corpus = find_corpus_folder(root, CORPUS, ("wav", _TRANSCRIPT))
    texts = {
        name: text.translate(_VARIANTS) if isinstance(text, str) else text
        for name, text in read_transcript_list(corpus / _TRANSCRIPT).items()
    }
    yield from find_in_speaker_archives(corpus / "wav", texts, workers)


CORPUS = Corpus(
    "aishell1", "AISHELL-1: 178 hours of read speech, 400 speakers", find_utterances, SPLITS, (ARCHIVE,)
)

main = corpus_command(CORPUS)


if __name__ == "__main__":
    run_command(main)
