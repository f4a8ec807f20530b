"""AISHELL-1 as it is distributed → unpacked speakers and manifests, pinyin by pypinyin in its word context.

The corpus (Bu et al., 2017, https://www.openslr.org/33/) is ``data_aishell/{wav,transcript}``: one archive a
speaker, ``wav/S0002.tar.gz`` with ``train/S0002/*.wav`` inside, and one list of all texts cut into words,
``BAC009S0002W0122 而 对 楼市 成交``. It has no pinyin of its own:
what :func:`utils.pinyin.hanzi_to_pinyin` gives is the citation reading, but for some phrases with 一 and 不.
"""

from __future__ import annotations

import errno
import shutil
import tarfile
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tqdm import tqdm

from data.corpora.command import corpus_command
from data.corpora.download import Archive, check_space, extract
from data.corpora.preparation import Candidate, Corpus, Problem, clean_text
from utils.errors import CorpusError, run_command
from utils.pinyin import hanzi_to_pinyin, is_hanzi

SPLITS = ("train", "dev", "test")

ARCHIVE = Archive(
    url="https://www.openslr.org/resources/33/data_aishell.tgz",
    # As several public recipes check it (PaddleSpeech among them); openslr itself publishes none.
    md5="2f494334227864a8a8fec932999db9d8",
    folder="data_aishell",
    unpacked=2.6,  # the speakers' archives are as large as the whole, their recordings 1.5 times
)

_TRANSCRIPT = Path("transcript", "aishell_transcript_v0.8.txt")
_UNPACKED = 1.6  # bytes of recordings for one byte of a speaker's archive, a generous estimate
# Not the archive's fault, so no reason to reject the speaker.
_DISK_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS}
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
    damaged = unpack_speakers(corpus / "wav", workers)
    for speaker, reason in sorted(damaged.items()):
        archive = corpus / "wav" / f"{speaker}.tar.gz"
        yield Candidate(speaker, "", archive, problem=Problem("speaker's archive is damaged", reason))
    texts = _read_transcript(corpus / _TRANSCRIPT)
    recordings = [
        path for split in SPLITS for path in sorted((corpus / "wav" / split).glob("[!.]*/[!.]*.wav"))
    ]
    for audio in recordings:
        words = texts.get(audio.stem, Problem("transcript missing"))
        yield _candidate(audio.stem, audio.parent.parent.name, audio, words)
    for name in sorted(texts.keys() - {audio.stem for audio in recordings}):
        speaker = name[6:11]  # BAC009 S0002 W0122
        reason = "recording in a damaged archive" if speaker in damaged else "no such audio file"
        yield Candidate(name, "", corpus / "wav", speaker, problem=Problem(reason))


def unpack_speakers(folder: Path, workers: int) -> dict[str, str]:
    """Unpack ``S0002.tar.gz`` … into ``{train,dev,test}/S0002``, each speaker whole or not at all.

    A speaker whose folder is there is left alone, so a broken-off run goes on where it was.

    Returns:
        The damaged or unsafe archives: speaker → what is wrong.
    """
    there = {path.name for split in SPLITS for path in (folder / split).glob("*")}
    archives = sorted(path for path in folder.glob("*.tar.gz") if path.name[:-7] not in there)
    if not archives:
        return {}
    check_space(folder, round(_UNPACKED * sum(path.stat().st_size for path in archives)))
    with ThreadPoolExecutor(workers) as pool:
        reasons = tqdm(pool.map(_unpack_speaker, archives), "unpacking", len(archives), disable=None)
        return {path.name[:-7]: reason for path, reason in zip(archives, reasons, strict=True) if reason}


def _unpack_speaker(archive: Path) -> str:
    """Unpack one archive; what is wrong with it, or ``""``."""
    speaker = archive.name[:-7]
    temporary = archive.with_name(f".{speaker}.unpacking")
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        extract(archive, temporary)
        folders = [temporary / split / speaker for split in SPLITS if (temporary / split / speaker).is_dir()]
        for folder in folders:
            target = archive.parent / folder.parent.name / speaker
            target.parent.mkdir(exist_ok=True)
            folder.replace(target)
        return "" if folders else f"no {{train,dev,test}}/{speaker} inside"
    except (tarfile.TarError, EOFError, zlib.error, OSError) as error:
        if getattr(error, "errno", None) in _DISK_ERRORS:
            hint = "free some space or change the rights, then run the command again: it goes on here"
            raise CorpusError(f"can't unpack ({error.strerror})", where=archive, hint=hint) from error
        return f"{type(error).__name__}: {error}"
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _corpus_folder(root: Path) -> Path:
    for folder in (root, root / "data_aishell"):
        if (folder / "wav").is_dir() and (folder / _TRANSCRIPT).is_file():
            return folder
    hint = f"python -m data.corpora.aishell1 download {root}"
    raise CorpusError(
        f"no AISHELL-1 here: data_aishell/wav and {_TRANSCRIPT} expected", where=root, hint=hint
    )


def _read_transcript(path: Path) -> dict[str, list[str] | Problem]:
    """The words of each utterance, or what is wrong with its line."""
    texts: dict[str, list[str] | Problem] = {}
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        name, _, text = line.strip().partition(b" ")
        if not name:
            continue
        key = name.decode("ascii", errors="replace")
        try:
            words: list[str] | Problem = text.decode("utf-8").split()
        except UnicodeDecodeError:
            words = Problem("transcript is not UTF-8", f"line {number}")
        texts[key] = Problem("transcript comes twice", f"line {number}") if key in texts else words
    return texts


def _candidate(name: str, split: str, audio: Path, words: list[str] | Problem) -> Candidate:
    speaker = audio.parent.name
    if isinstance(words, Problem):
        return Candidate(name, split, audio, speaker, problem=words)
    cleaned = [clean_text(word).translate(_VARIANTS) for word in words]
    cleaned = [word for word in cleaned if word]
    hanzi = "".join(cleaned)
    if not hanzi or not is_hanzi(hanzi):  # the check says which characters
        return Candidate(name, split, audio, speaker, hanzi)
    try:
        return Candidate(name, split, audio, speaker, hanzi, tuple(hanzi_to_pinyin(hanzi, cleaned)))
    except CorpusError as error:
        return Candidate(name, split, audio, speaker, hanzi, problem=Problem("no reading", error.what))


CORPUS = Corpus("aishell1", SPLITS, find_utterances)


def main(argv: list[str] | None = None) -> int:
    """The command ``python -m data.corpora.aishell1``."""
    return corpus_command(CORPUS, ARCHIVE, "AISHELL-1: 178 hours of read speech, 400 speakers", argv)


if __name__ == "__main__":
    run_command(main)
