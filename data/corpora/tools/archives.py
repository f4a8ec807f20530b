"""A corpus of one archive a speaker and one list of texts → unpacked folders and candidates.

AISHELL-1 and aidatatang_200zh are made so: ``S0002.tar.gz`` … become ``{train,dev,test}/S0002/*.wav``, each
speaker whole or not there at all.
"""

from __future__ import annotations

import errno
import shutil
import tarfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tqdm import tqdm

from data.corpora.tools.download import check_space, extract
from data.corpora.tools.preparation import Candidate, Problem
from data.corpora.tools.transcripts import MISSING, candidate_of
from utils.errors import CorpusError
from utils.processes import thread_pool

ENDING = ".tar.gz"
_UNPACKED = 1.6  # bytes of recordings for one byte of a speaker's archive, a generous estimate
# Not the archive's fault, so no reason to reject the speaker.
_DISK_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS}


@dataclass(frozen=True)
class SpeakerArchive:
    """One speaker's archive.

    Attributes:
        path: ``….tar.gz``.
        folders: folder inside the archive → where it belongs; at least one must be inside.
    """

    path: Path
    folders: Mapping[str, Path]

    @property
    def speaker(self) -> str:
        """The speaker, by the archive's name."""
        return self.path.name.removesuffix(ENDING)


def find_in_speaker_folders(
    folder: Path,
    splits: Sequence[str],
    archives: Sequence[SpeakerArchive],
    texts: Mapping[str, str | Problem],
    speaker_of: Callable[[str], str],
    workers: int,
) -> Iterator[Candidate]:
    """Unpack what is not unpacked yet and give all recordings and transcripts.

    Args:
        folder: where the recordings are or will be, ``{split}/{speaker}/{id}.wav``.
        splits: their names.
        archives: of the speakers.
        texts: id → transcript, or what is wrong with it.
        speaker_of: id → speaker.
        workers: archives unpacked at a time.

    Raises:
        CorpusError: the disk is full or forbidden.
    """
    damaged = set()
    for archive, reason in unpack_speakers(archives, workers):
        damaged.add(archive.speaker)
        problem = Problem("speaker's archive is damaged", reason)
        yield Candidate(archive.speaker, "", archive.path, problem=problem)
    without_recording = set(texts)
    for split in splits:
        for audio in sorted((folder / split).glob("[!.]*/[!.]*.wav")):
            without_recording.discard(audio.stem)
            text = texts.get(audio.stem, Problem(MISSING))
            yield candidate_of(audio.stem, split, audio, audio.parent.name, text)
    for name in sorted(without_recording):
        speaker = speaker_of(name)
        reason = "recording in a damaged archive" if speaker in damaged else "no such audio file"
        yield Candidate(name, "", folder, speaker, problem=Problem(reason))


def unpack_speakers(archives: Sequence[SpeakerArchive], workers: int) -> list[tuple[SpeakerArchive, str]]:
    """Unpack the speakers; one whose folder is there is left alone, so a broken-off run goes on where it was.

    Args:
        archives: of one corpus, on one disk.
        workers: archives unpacked at a time.

    Returns:
        The damaged or unsafe archives, each with what is wrong.

    Raises:
        CorpusError: the disk is full or forbidden.
    """
    todo = [one for one in archives if not any(folder.is_dir() for folder in one.folders.values())]
    if not todo:
        return []
    check_space(todo[0].path.parent, round(_UNPACKED * sum(one.path.stat().st_size for one in todo)))
    with thread_pool(workers) as pool:
        reasons = tqdm(pool.map(_unpack, todo), "unpacking", len(todo), disable=None)
        return [(one, reason) for one, reason in zip(todo, reasons, strict=True) if reason]


def _unpack(archive: SpeakerArchive) -> str:
    """Unpack one archive; what is wrong with it, or ``""``."""
    temporary = archive.path.with_name(f".{archive.speaker}.unpacking")
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        extract(archive.path, temporary)
        inside = {name: folder for name, folder in archive.folders.items() if (temporary / name).is_dir()}
        for name, folder in inside.items():
            folder.parent.mkdir(exist_ok=True)
            (temporary / name).replace(folder)
        return "" if inside else f"no folder {' or '.join(archive.folders)} inside"
    except (tarfile.TarError, EOFError, zlib.error, OSError) as error:
        if getattr(error, "errno", None) in _DISK_ERRORS:
            hint = "free some space or change the rights, then run the command again: it goes on here"
            raise CorpusError(f"can't unpack ({error.strerror})", where=archive.path, hint=hint) from error
        return f"{type(error).__name__}: {error}"
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
