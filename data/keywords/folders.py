"""Reads a folder with a subfolder for each word: finds word, speaker and split of every recording.

The splits are found in one of three ways:

- split folders: ``train/WORD/…``, ``dev/WORD/…``, ``test/WORD/…``;
- lists: ``WORD/…``; ``validation_list.txt`` and ``testing_list.txt`` name the recordings that are not for
  training;
- neither: a hash of the name decides, as in Speech Commands (Warden 2018, arXiv:1804.03209, section 5.5).

The speaker is known if the file is named ``SPEAKER_nohash_NUMBER.wav`` as in Speech Commands, or is in a
folder of the speaker (``WORD/SPEAKER/….wav``).
"""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from utils.audio.folders import note_left_out, recording_names
from utils.errors import CorpusError, is_utf8

NOISE_FOLDER = "_background_noise_"
DEV_LIST, TEST_LIST = "validation_list.txt", "testing_list.txt"

_LARGEST_HASH = 2**27 - 1  # Speech Commands' MAX_NUM_WAVS_PER_CLASS
_HELD_OUT_PERCENTAGE = 10  # of the speakers in dev, and in test, as in the official lists
_RENAME = "rename, e.g. with convmv -f gbk -t utf8"
_SPEAKER_END = re.compile(r"_nohash_.*$")
_SPLIT_FOLDERS = {
    "train": ("train", "training"),
    "dev": ("dev", "validation", "valid", "val"),
    "test": ("test", "testing"),
}


@dataclass(frozen=True, slots=True)
class KeywordClip:
    """One example: a recording, or a segment of one, and its label.

    Attributes:
        id: unique among the clips that are read together; in a folder the path below it, with slashes.
        audio: the recording; None for generated silence.
        label: a word, ``_silence_`` or ``_unknown_``.
        speaker: ``""`` if unknown.
        start_seconds: start of the segment.
        seconds: length of the segment; 0: up to the end of the recording.
        split: ``train``, ``dev`` or ``test`` for a recording in a folder, else ``""``.
    """

    id: str
    audio: Path | None
    label: str
    speaker: str = ""
    start_seconds: float = 0.0
    seconds: float = 0.0
    split: str = ""


def split_of_name(name: str) -> str:
    """``train``, ``dev`` or ``test`` by the rule of Speech Commands; a speaker is in one split only.

    The split depends only on the name of the file, with its ending and without ``_nohash_`` and what follows:
    a growing corpus keeps its splits.
    """
    digest = hashlib.sha1(_SPEAKER_END.sub("", name).encode(), usedforsecurity=False).hexdigest()
    percentage = int(digest, 16) % (_LARGEST_HASH + 1) * (100.0 / _LARGEST_HASH)
    if percentage < _HELD_OUT_PERCENTAGE:
        return "dev"
    return "test" if percentage < 2 * _HELD_OUT_PERCENTAGE else "train"


def read_recordings(folder: str | Path) -> list[KeywordClip]:
    """All recordings in ``folder`` except those of background noise, sorted by word and name.

    Args:
        folder: a folder in one of the three layouts.

    Raises:
        CorpusError: the folder does not exist, holds no recording, or has a word without recordings; or a
            list can't be read, or names recordings that don't exist.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise CorpusError("no such folder of recordings", where=folder, hint="check the path (data.folder)")
    split_folders = _split_folders(folder)
    if split_folders:
        recordings = [
            KeywordClip(f"{part.name}/{name}", part / name, word, speaker, split=split)
            for split, part in split_folders.items()
            for name, word, speaker in _files(part)
        ]
    else:
        files = list(_files(folder))
        splits = _splits(folder, files)
        recordings = [
            KeywordClip(name, folder / name, word, speaker, split=splits[name])
            for name, word, speaker in files
        ]
    if not recordings:
        raise CorpusError(
            "no recordings in this folder",
            where=folder,
            hint="it holds a folder for each word, with recordings",
        )
    return recordings


def _split_folders(folder: Path) -> dict[str, Path]:
    """Split → its folder, if there is one for training and another, and they hold folders of words."""
    found = {
        split: folder / name
        for split, names in _SPLIT_FOLDERS.items()
        for name in names
        if any(path.is_dir() for path in (folder / name).glob("[!.]*"))
    }
    return found if "train" in found and len(found) > 1 else {}


def _files(folder: Path) -> Iterator[tuple[str, str, str]]:
    """(path below the folder, word, speaker) of each recording, sorted by word and path."""
    for word_folder in sorted(path for path in folder.iterdir() if path.is_dir()):
        word = word_folder.name
        if word == NOISE_FOLDER or word.startswith("."):
            continue
        if not is_utf8(word):
            raise CorpusError("the name of a word's folder is not UTF-8", where=word_folder, hint=_RENAME)
        names = _usable_names(word_folder)
        if not names:
            raise CorpusError(
                "a word's folder holds no recordings",
                where=word_folder,
                hint="put recordings into it, or remove it",
            )
        for name in names:
            inner, _, base = name.rpartition("/")
            speaker = inner.partition("/")[0] or (_SPEAKER_END.sub("", base) if "_nohash_" in base else "")
            yield f"{word}/{name}", word, speaker


def _usable_names(folder: Path) -> list[str]:
    """Paths of the audio files in a folder, relative to it, sorted.

    Files whose names are not UTF-8 (ids must be) and files of formats that can't be read are left out, and
    reported on the standard error.
    """
    names = sorted(recording_names(folder))
    undecodable = [folder / name for name in names if not is_utf8(name)]
    note_left_out(folder, undecodable, "their names are not UTF-8", _RENAME)
    return [name for name in names if is_utf8(name)]


def _splits(folder: Path, files: list[tuple[str, str, str]]) -> dict[str, str]:
    """Path below the folder → split, by the lists, or else by the names."""
    present = [name for name in (DEV_LIST, TEST_LIST) if (folder / name).is_file()]
    if not present:
        return {
            # The name of a speaker's folder is hashed if there is one, so that the speaker is in one split.
            name: split_of_name(speaker or name.rpartition("/")[2])
            for name, _, speaker in files
        }
    splits = dict.fromkeys((name for name, _, _ in files), "train")
    words = {word for _, word, _ in files}
    for list_name, split in ((DEV_LIST, "dev"), (TEST_LIST, "test")):
        path = folder / list_name
        if list_name not in present:
            raise CorpusError(
                "one of the two lists of splits is missing",
                where=path,
                hint=f"{present[0]} exists: write both (an empty file for no recordings), or remove both",
            )
        listed = _read_list(path)
        # Words that were removed from the corpus may still be in the lists.
        missing = sorted(name for name in listed - splits.keys() if name.partition("/")[0] in words)
        if missing:
            raise CorpusError(
                f"{len(missing)} recordings of the list don't exist, for example '{missing[0]}'",
                where=path,
                hint="copy or unpack the corpus again, or remove the lines from the list",
            )
        for name in listed & splits.keys():
            if splits[name] != "train":
                raise CorpusError(
                    f"'{name}' is in both lists",
                    where=path,
                    hint="a recording belongs to one split: remove the line from one of the lists",
                )
            splits[name] = split
    return splits


def _read_list(path: Path) -> set[str]:
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise CorpusError("this is not UTF-8 text", where=path, hint="save the list as UTF-8") from error
    return {line.strip().replace("\\", "/").removeprefix("./") for line in lines if line.strip()}
