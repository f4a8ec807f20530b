"""A folder with a folder for each word → its recordings, each with word, speaker and split.

Three layouts are known, and told by what is there:

- split folders: ``train/WORD/…``, ``dev/WORD/…``, ``test/WORD/…``;
- lists: ``WORD/…``, and ``validation_list.txt`` and ``testing_list.txt`` name what doesn't train;
- neither: the rule of Speech Commands (Warden 2018, arXiv:1804.03209, section 5.5) splits by the name's hash.

Recordings are named ``SPEAKER_nohash_NUMBER.wav`` as in Speech Commands, or lie in a folder of their speaker
(``WORD/SPEAKER/….wav``); what has another name has no known speaker.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from utils.audio.formats import AUDIO_SUFFIXES, is_audio, is_unreadable_audio, note_unreadable
from utils.errors import CorpusError

SPLITS = ("train", "dev", "test")
NOISE_FOLDER = "_background_noise_"
DEV_LIST, TEST_LIST = "validation_list.txt", "testing_list.txt"

# Of the rule; what the hash is taken modulo, less one (Speech Commands' MAX_NUM_WAVS_PER_CLASS).
_LARGEST = 2**27 - 1
_SPEAKER_END = re.compile(r"_nohash_.*$")
_SPLIT_FOLDERS = {
    "train": ("train", "training"),
    "dev": ("dev", "validation", "valid", "val"),
    "test": ("test", "testing"),
}


@dataclass(frozen=True, slots=True)
class Recording:
    """One file of a folder for each word.

    Attributes:
        id: its path below the folder, with slashes.
        word: name of the folder it lies in.
        speaker: ``""`` if not known.
        split: ``train``, ``dev`` or ``test``.
    """

    id: str
    audio: Path
    word: str
    speaker: str
    split: str


def split_of_name(name: str, dev_percentage: float, test_percentage: float) -> str:
    """The split of a recording by the rule of Speech Commands: all of a speaker on one side.

    Args:
        name: of the file, with its ending; what follows ``_nohash_`` doesn't count.
        dev_percentage: of the speakers; the official lists were made with 10 and 10.
        test_percentage: likewise.

    Returns:
        ``train``, ``dev`` or ``test``. It depends on the name alone: a corpus that grows keeps its splits.
    """
    digest = hashlib.sha1(_SPEAKER_END.sub("", name).encode(), usedforsecurity=False).hexdigest()
    percentage = int(digest, 16) % (_LARGEST + 1) * (100.0 / _LARGEST)
    if percentage < dev_percentage:
        return "dev"
    return "test" if percentage < dev_percentage + test_percentage else "train"


def read_recordings(folder: str | Path, dev_percentage: float, test_percentage: float) -> list[Recording]:
    """All recordings below ``folder``, sorted by word and name; those of background noise are left out.

    Args:
        folder: of one of the three layouts.
        dev_percentage, test_percentage: for the rule; lists and split folders go before it.

    Raises:
        CorpusError: there is no such folder, no recording in it, a word's folder is empty, or a list can't
            be read or names what isn't there.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise CorpusError("no such folder of recordings", where=folder, hint="check the path (data.folder)")
    parts = _split_folders(folder)
    if parts:
        recordings = [
            Recording(f"{part.name}/{name}", part / name, word, speaker, split)
            for split, part in parts.items()
            for name, word, speaker in _files(part)
        ]
    else:
        files = list(_files(folder))
        splits = _splits(folder, files, dev_percentage, test_percentage)
        recordings = [
            Recording(name, folder / name, word, speaker, splits[name]) for name, word, speaker in files
        ]
    if not recordings:
        hint = f"it holds a folder for each word, with recordings ({', '.join(sorted(AUDIO_SUFFIXES))})"
        raise CorpusError("no recordings in this folder", where=folder, hint=hint)
    return recordings


def is_split_by_name(folder: str | Path) -> bool:
    """Whether neither lists nor split folders say what trains, so that names decide."""
    return not _split_folders(Path(folder)) and not (Path(folder) / DEV_LIST).is_file()


def _split_folders(folder: Path) -> dict[str, Path]:
    """Split → its folder, if there is one for training and another one, and words are inside of it."""
    found = {
        split: folder / name
        for split, names in _SPLIT_FOLDERS.items()
        for name in names
        if any(path.is_dir() for path in (folder / name).glob("[!.]*"))
    }
    return found if "train" in found and len(found) > 1 else {}


def _files(folder: Path) -> Iterator[tuple[str, str, str]]:
    """(path below the folder, word, speaker) of each recording, in the order of words and paths."""
    for place in sorted(path for path in folder.iterdir() if path.is_dir()):
        if place.name == NOISE_FOLDER or place.name.startswith("."):
            continue
        names = sorted(_audio_names(place))
        if not names:
            hint = "put recordings into it, or remove it"
            raise CorpusError("a word's folder holds no recordings", where=place, hint=hint)
        for name in names:
            inner, _, base = name.rpartition("/")
            speaker = inner.partition("/")[0] or _speaker(base)
            yield f"{place.name}/{name}", place.name, speaker


def _audio_names(folder: Path) -> Iterator[str]:
    """Audio files below a folder, relative to it; os.walk takes a tenth of the time of Path.rglob.

    Files of formats that can't be read are named on the standard error.
    """
    unreadable = []
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        inner = Path(place).relative_to(folder).as_posix()
        for name in names:
            if is_unreadable_audio(name):
                unreadable.append(Path(place, name))
            elif is_audio(name) and not name.startswith("."):
                yield name if inner == "." else f"{inner}/{name}"
    note_unreadable(folder, sorted(unreadable))


def _speaker(base: str) -> str:
    return _SPEAKER_END.sub("", base) if "_nohash_" in base else ""


def _splits(
    folder: Path, files: list[tuple[str, str, str]], dev_percentage: float, test_percentage: float
) -> dict[str, str]:
    """Path below the folder → split, by the lists, or else by the rule."""
    present = [name for name in (DEV_LIST, TEST_LIST) if (folder / name).is_file()]
    if not present:
        return {
            # A speaker's folder is what the rule is to keep together; else it's the beginning of the name.
            name: split_of_name(speaker or name.rpartition("/")[2], dev_percentage, test_percentage)
            for name, _, speaker in files
        }
    splits = dict.fromkeys((name for name, _, _ in files), "train")
    for name, split in ((DEV_LIST, "dev"), (TEST_LIST, "test")):
        if name not in present:
            hint = f"{present[0]} is there: write both (an empty file for no recordings), or remove both"
            raise CorpusError("one of the two lists of splits is missing", where=folder / name, hint=hint)
        listed = _listed(folder / name)
        words = {name.partition("/")[0] for name in splits}
        # A corpus of which somebody has removed words keeps its lists.
        gone = sorted(line for line in listed - splits.keys() if line.partition("/")[0] in words)
        if gone:
            what = f"{len(gone)} recordings of the list are not there, '{gone[0]}' for one"
            hint = "copy or unpack the corpus again, or take the lines out of the list"
            raise CorpusError(what, where=folder / name, hint=hint)
        for line in listed & splits.keys():
            if splits[line] != "train":
                hint = "a recording belongs to one split: take the line out of one of the lists"
                raise CorpusError(f"'{line}' is in both lists", where=folder / name, hint=hint)
            splits[line] = split
    return splits


def _listed(path: Path) -> set[str]:
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise CorpusError("this is not UTF-8 text", where=path, hint="save the list as UTF-8") from error
    return {line.strip().replace("\\", "/").removeprefix("./") for line in lines if line.strip()}
