"""aidatatang_200zh as it was distributed → unpacked speakers and manifests, pinyin in its word context.

The corpus (Beijing DataTang, 2019, CC BY-NC-ND 4.0: not for commercial use) is
``aidatatang_200zh/{corpus/{train,dev,test}/G0013.tar.gz,transcript/aidatatang_200_zh_transcript.txt}``: 200
hours read to telephones by 600 speakers; in an archive ``G0013/T0055G0013S0001.wav``, in the list of texts
``T0055G0013S0001 今天 什么 日子``. Its owner has withdrawn it from https://www.openslr.org/62/: who has a
copy can prepare it, nobody can download it.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from data.corpora.tools.archives import ENDING, SpeakerArchive, find_in_speaker_folders
from data.corpora.tools.command import corpus_command, corpus_parser
from data.corpora.tools.download import ByHand
from data.corpora.tools.preparation import Candidate, Corpus
from data.corpora.tools.transcripts import read_transcripts
from utils.errors import CorpusError, run_command

NAME = "aidatatang"
FOLDER = "aidatatang_200zh"
SPLITS = ("train", "dev", "test")

SOURCE = ByHand(
    reason="the owner of aidatatang_200zh has withdrawn it from OpenSLR, so it can't be downloaded any more",
    # The sum is what PaddleSpeech's recipe checks.
    steps=(
        "unpack your own copy of aidatatang_200zh.tgz there (MD5 6e0f4f39cd5f667a7ee53c397c8d0949), "
        "then: prepare"
    ),
)

_TRANSCRIPT = Path("transcript", "aidatatang_200_zh_transcript.txt")


def find_utterances(root: Path, workers: int) -> Iterator[Candidate]:
    """Unpack the speakers that are not unpacked yet and give all recordings and transcripts.

    Args:
        root: ``aidatatang_200zh`` or the folder that holds it.
        workers: archives unpacked at a time.

    Raises:
        CorpusError: the folders of the corpus are not there, or the disk is full.
    """
    corpus = _corpus_folder(root)
    folder = corpus / "corpus"
    texts = read_transcripts(corpus / _TRANSCRIPT)
    # T0055 G0013 S0001
    yield from find_in_speaker_folders(
        folder, SPLITS, _archives(folder), texts, lambda name: name[5:10], workers
    )


def _archives(folder: Path) -> list[SpeakerArchive]:
    return [
        SpeakerArchive(path, {speaker: path.parent / speaker})
        for split in SPLITS
        for path in sorted((folder / split).glob(f"[!.]*{ENDING}"))
        for speaker in [path.name.removesuffix(ENDING)]
    ]


def _corpus_folder(root: Path) -> Path:
    for folder in (root, root / FOLDER):
        if (folder / "corpus").is_dir() and (folder / _TRANSCRIPT).is_file():
            return folder
    what = f"no aidatatang_200zh here: {FOLDER}/corpus/{{train,dev,test}} and {_TRANSCRIPT} expected"
    raise CorpusError(what, where=root, hint="give the folder that holds aidatatang_200zh")


CORPUS = Corpus(NAME, SPLITS, find_utterances)
_ABOUT = "aidatatang_200zh: 200 hours, 600 speakers (CC BY-NC-ND: not for commercial use; withdrawn)"


def main(argv: list[str] | None = None) -> int:
    """The command ``python -m data.corpora.aidatatang``."""
    return corpus_command(CORPUS, SOURCE, _parser().parse_args(argv))


def _parser() -> argparse.ArgumentParser:
    return corpus_parser(CORPUS, SOURCE, _ABOUT)


if __name__ == "__main__":
    run_command(main)
