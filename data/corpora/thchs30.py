"""THCHS-30 in its own folders → manifests: words, citation pinyin and, from the phones, what was said.

The corpus (Wang and Zhang, 2015, https://www.openslr.org/18/) is ``data_thchs30/{data,train,dev,test}``.
``data/A11_0.wav.trn`` has three lines: words, pinyin, phones. In the split folders ``A11_0.wav.trn`` is a
text file that holds ``../data/A11_0.wav.trn``, or a link; some copies have the recordings like that too.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

from data.corpora.tools.command import corpus_command, corpus_parser
from data.corpora.tools.download import Archive
from data.corpora.tools.preparation import Candidate, Corpus, Problem, clean_text
from utils.errors import CorpusError, run_command
from utils.mandarin.pinyin import Syllable, normalise_syllable

SPLITS = ("train", "dev", "test")

ARCHIVE = Archive(
    url="https://www.openslr.org/resources/18/data_thchs30.tgz",
    # As several public recipes check it (PaddleSpeech among them); openslr itself publishes none.
    md5="2d2252bde5c8429929e1841d4cb95e90",
    folder="data_thchs30",
    unpacked=1.4,
)

# Phones: the initials, with a dummy for each zero initial (aa ai4 = ai4, ii ian1 = yan1, uu uo3 = wo3,
# vv ve4 = yue4), and finals whose i is split into ix (zhi chi shi ri), iy and iz (zi ci si).
_DUMMIES = {"aa", "ee", "ii", "oo", "uu", "vv"}
_INITIALS = _DUMMIES | {*"bpmfdtnlgkhjqxrzcs", "zh", "ch", "sh"}
_FINALS = {"ix": "i", "iy": "i", "iz": "i", "iu": "iou", "ui": "uei", "un": "uen"}
_SILENCE = {"sil", "sp", "#"}
_POINTER = re.compile(rb"\s*(?:\.\./)*data/([\w-]+\.wav(?:\.trn)?)\s*")
_POINTER_BYTES = 200


def find_utterances(root: Path, workers: int) -> Iterator[Candidate]:
    """All recordings and transcripts below ``root`` (``data_thchs30`` or the folder that holds it).

    Raises:
        CorpusError: the folders of the corpus are not there.
    """
    corpus = _corpus_folder(root)
    listed: set[str] = set()
    for split in SPLITS:
        names = _names(corpus / split)
        listed.update(names)
        for name in sorted(names):
            yield _candidate(corpus, split, name)
    for name in sorted(_names(corpus / "data") - listed):
        yield Candidate(name, "", corpus / "data" / f"{name}.wav")


def syllables_of_phones(line: str) -> tuple[str, ...]:
    """Join a line of THCHS-30 phones to syllables: ``l v4 sh ix4 ii iang2`` → ``lv4 shi4 yang2``.

    Raises:
        CorpusError: a phone or a combination is unknown.
    """
    syllables, initial = [], None
    for phone in line.split():
        if phone in _SILENCE:
            continue
        if phone in _INITIALS and initial is None:
            initial = phone
            continue
        match = re.fullmatch(r"([a-z]+)([0-5]?)", phone)
        if not match or phone in _INITIALS:
            raise CorpusError(f"'{phone}' is not a final after '{initial or 'nothing'}'")
        final = _FINALS.get(match[1], match[1])
        syllable = Syllable("" if initial in _DUMMIES else initial or "", final, int(match[2] or 5))
        syllables.append(normalise_syllable(str(syllable)))
        initial = None
    if initial is not None:
        raise CorpusError(f"the initial '{initial}' has no final")
    return tuple(syllables)


def _corpus_folder(root: Path) -> Path:
    for folder in (root, root / "data_thchs30"):
        if (folder / "data").is_dir() and any((folder / split).is_dir() for split in SPLITS):
            return folder
    hint = f"python -m data.corpora.thchs30 download {root}"
    raise CorpusError("no THCHS-30 here: data_thchs30/{data,train,dev,test} expected", where=root, hint=hint)


def _names(folder: Path) -> set[str]:
    """The utterances of a folder, by recording or by transcript: one of the two may be missing."""
    files = [path.name for path in folder.glob("[!.]*.wav*")]
    return {name.split(".wav")[0] for name in files if name.endswith((".wav", ".wav.trn"))}


def _candidate(corpus: Path, split: str, name: str) -> Candidate:
    audio = _follow(corpus, split, f"{name}.wav")
    found = {"id": name, "split": split, "audio": audio, "speaker": name.split("_")[0]}
    transcript = _follow(corpus, split, f"{name}.wav.trn")
    try:
        lines = transcript.read_bytes().decode("utf-8-sig").strip().splitlines()
    except FileNotFoundError:
        return Candidate(**found, problem=Problem("transcript missing", str(transcript)))
    except UnicodeDecodeError as error:
        return Candidate(
            **found, problem=Problem("transcript is not UTF-8", f"byte {error.start} of {transcript}")
        )
    if len(lines) != 3:
        return Candidate(
            **found, problem=Problem("transcript has not 3 lines", f"{len(lines)} in {transcript}")
        )
    words, pinyin, phones = lines
    found |= {"hanzi": clean_text(words), "pinyin": tuple(pinyin.split())}
    try:
        spoken = syllables_of_phones(phones)
    except CorpusError:
        return Candidate(**found, note="phones not readable: no spoken reading")
    if len(spoken) != len(found["pinyin"]):
        return Candidate(**found, note="phones and pinyin differ in number: no spoken reading")
    return Candidate(**found, spoken=spoken)


def _follow(corpus: Path, split: str, name: str) -> Path:
    """Where a file of a split really is: itself, where its text points to, or else in ``data``."""
    path = corpus / split / name
    if not path.is_file():
        return corpus / "data" / name
    if path.stat().st_size < _POINTER_BYTES and (match := _POINTER.fullmatch(path.read_bytes())):
        return corpus / "data" / match[1].decode()
    return path


CORPUS = Corpus("thchs30", SPLITS, find_utterances)
_ABOUT = "THCHS-30: 30 hours of read news, 60 speakers"


def main(argv: list[str] | None = None) -> int:
    """The command ``python -m data.corpora.thchs30``."""
    return corpus_command(CORPUS, ARCHIVE, _parser().parse_args(argv))


def _parser() -> argparse.ArgumentParser:
    return corpus_parser(CORPUS, ARCHIVE, _ABOUT)


if __name__ == "__main__":
    run_command(main)
