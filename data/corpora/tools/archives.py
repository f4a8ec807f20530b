"""Unpacks corpora with one archive per speaker, and matches the recordings with a list of transcripts.

AISHELL-1 and aidatatang_200zh are distributed like this: ``S0002.tar.gz`` … are unpacked to
``{train,dev,test}/S0002/*.wav``, each speaker completely or not at all.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tqdm import tqdm

from data.array_store import require_space
from data.corpora.tools.download import unpack
from data.corpora.tools.preparation import Candidate, Problem
from data.corpora.tools.transcripts import MISSING, NO_AUDIO, make_candidate
from data.manifest import SPLITS
from utils.processes import thread_pool

_ENDING = ".tar.gz"
_UNPACKED = 1.6  # bytes of recordings per byte of a speaker's archive, a generous estimate
_HINT = (
    "extract this file again from the archive of the whole corpus, or move the corpus's folder away and "
    "download it again"
)


def find_in_speaker_archives(
    folder: Path, texts: Mapping[str, str | Problem], workers: int
) -> Iterator[Candidate]:
    """Unpack the archives that are not yet unpacked and yield all recordings and transcripts.

    Args:
        folder: holds the archives, directly or in a folder for each split; the recordings are or will be
            ``{split}/{speaker}/{id}.wav`` in it.
        texts: id → transcript, or what is wrong with it.
        workers: number of archives unpacked at a time.

    Raises:
        CorpusError: an archive is damaged or unsafe.
        CacheError, OSError: the disk is full or not writable.
    """
    _unpack_all(folder, workers)
    without_recording = set(texts)
    for split in SPLITS:
        for audio in sorted((folder / split).glob("[!.]*/[!.]*.wav")):
            without_recording.discard(audio.stem)
            yield make_candidate(
                audio.stem, split, audio, audio.parent.name, text=texts.get(audio.stem, Problem(MISSING))
            )
    for name in sorted(without_recording):
        yield Candidate(name, "", folder, problem=Problem(NO_AUDIO))


def _unpack_all(folder: Path, workers: int) -> None:
    """Unpack the archives of all speakers whose folder does not exist: an interrupted run continues."""
    folders = (folder, *(folder / split for split in SPLITS))
    archives = [path for parent in folders for path in sorted(parent.glob(f"[!.]*{_ENDING}"))]
    packed = [path for path in archives if not any((path.parent / name).is_dir() for name in _contents(path))]
    if not packed:
        return
    require_space(folder, _UNPACKED * sum(path.stat().st_size for path in packed), "recordings")
    with thread_pool(workers) as pool:
        list(tqdm(pool.map(_unpack, packed), "unpacking", len(packed), disable=None))


def _unpack(archive: Path) -> None:
    """Unpack an archive beside itself."""
    unpack(archive, archive.parent, _contents(archive), hint=_HINT)


def _contents(archive: Path) -> Sequence[str]:
    """The folders that the archive of a speaker may hold; the split is known from the archive alone."""
    speaker = archive.name.removesuffix(_ENDING)
    return (speaker, *(f"{split}/{speaker}" for split in SPLITS))
