"""AISHELL-1 as it is distributed → unpacked speakers and manifests, pinyin by pypinyin in its word context.

The corpus (Bu et al., 2017, https://www.openslr.org/33/) is ``data_aishell/{wav,transcript}``: one archive a
speaker, ``wav/S0002.tar.gz`` with ``train/S0002/*.wav`` inside, and one list of all texts cut into words,
``BAC009S0002W0122 而 对 楼市 成交``. It has no pinyin of its own:
what :func:`utils.mandarin.pinyin.hanzi_to_pinyin` gives is the citation reading, but for some phrases with 一
and 不.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from data.corpora.tools.archives import ENDING, SpeakerArchive, find_in_speaker_folders
from data.corpora.tools.command import corpus_command, corpus_parser
from data.corpora.tools.download import Archive
from data.corpora.tools.preparation import Candidate, Corpus
from data.corpora.tools.transcripts import read_transcripts
from utils.errors import CorpusError, run_command

SPLITS = ("train", "dev", "test")

ARCHIVE = Archive(
    url="https://www.openslr.org/resources/33/data_aishell.tgz",
    # As several public recipes check it (PaddleSpeech among them); openslr itself publishes none.
    md5="2f494334227864a8a8fec932999db9d8",
    folder="data_aishell",
    unpacked=2.6,  # the speakers' archives are as large as the whole, their recordings 1.5 times
)

_TRANSCRIPT = Path("transcript", "aishell_transcript_v0.8.txt")
# The transcribers wrote 余 in its older form 馀, which no other corpus and no text does.
_VARIANTS = str.maketrans("馀", "余")


def find_utterances(root: Path, workers: int) -> Iterator[Candidate]:
    """Unpack the speakers that are not unpacked yet and give all recordings and transcripts.

    Args:
        root: ``data_aishell`` or the folder that holds it.
        workers: archives unpacked at a time.

    Raises:
        CorpusError: the folders of the corpus are not there, or the disk is full.
    """
    corpus = _corpus_folder(root)
    texts = {
        name: text.translate(_VARIANTS) if isinstance(text, str) else text
        for name, text in read_transcripts(corpus / _TRANSCRIPT).items()
    }
    folder = corpus / "wav"
    # BAC009 S0002 W0122
    yield from find_in_speaker_folders(
        folder, SPLITS, _archives(folder), texts, lambda name: name[6:11], workers
    )


def _archives(folder: Path) -> list[SpeakerArchive]:
    """``S0002.tar.gz`` … hold ``train/S0002``; which split it is only the archive tells."""
    return [
        SpeakerArchive(path, {f"{split}/{speaker}": folder / split / speaker for split in SPLITS})
        for path in sorted(folder.glob(f"[!.]*{ENDING}"))
        for speaker in [path.name.removesuffix(ENDING)]
    ]


def _corpus_folder(root: Path) -> Path:
    for folder in (root, root / "data_aishell"):
        if (folder / "wav").is_dir() and (folder / _TRANSCRIPT).is_file():
            return folder
    hint = f"python -m data.corpora.aishell1 download {root}"
    raise CorpusError(
        f"no AISHELL-1 here: data_aishell/wav and {_TRANSCRIPT} expected", where=root, hint=hint
    )


CORPUS = Corpus("aishell1", SPLITS, find_utterances)
_ABOUT = "AISHELL-1: 178 hours of read speech, 400 speakers"


def main(argv: list[str] | None = None) -> int:
    """The command ``python -m data.corpora.aishell1``."""
    return corpus_command(CORPUS, ARCHIVE, _parser().parse_args(argv))


def _parser() -> argparse.ArgumentParser:
    return corpus_parser(CORPUS, ARCHIVE, _ABOUT)


if __name__ == "__main__":
    run_command(main)
