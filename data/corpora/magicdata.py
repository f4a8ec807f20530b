"""Downloads and prepares MAGICDATA Mandarin Read Speech: manifests in its own splits, pinyin by pypinyin.

The corpus (Magic Data Technology, 2019, https://www.openslr.org/68/, CC BY-NC-ND 4.0: not for commercial use)
is three archives: ``{train,dev,test}/38_5716/38_5716_20170914202211.wav`` and, in each, ``TRANS.txt`` with
the header ``UtteranceID SpeakerID Transcription``, separated by tabs: 755 hours read by 1,080 speakers into
mobile phones. The marks FIL and SPK (noises of the speaker) are removed from the texts, and counted.
"""

from utils.command.entry import run_command

import re
from collections.abc import Iterator
from pathlib import Path

from data.corpora.tools.command import corpus_command
from data.corpora.tools.download import Archive
from data.corpora.tools.preparation import Candidate, Corpus, Problem, missing_corpus
from data.corpora.tools.transcripts import (
    MISSING,
    NO_AUDIO,
    NOT_UTF8,
    WRONG_FIELDS,
    make_candidate,
    utf8_lines,
)
from data.manifest import SPLITS

# Bytes as Kaldi's multi_cn recipe checks them; it has no MD5 sums, nor have the recipes of ESPnet and Lhotse.
_SIZES = {"train": 52_627_842_921, "dev": 1_035_537_823, "test": 2_201_936_013}
ARCHIVES = tuple(
    Archive(
        url=f"https://www.openslr.org/resources/68/{split}_set.tar.gz",
        size=size,
        folder=split,
        unpacked=1.7,
    )
    for split, size in _SIZES.items()
)

_TRANSCRIPT = "TRANS.txt"
_HEADER = ("UtteranceID", "SpeakerID", "Transcription")
_NOISE = re.compile(r"(?<![A-Za-z])(?:FIL|SPK)(?![A-Za-z])")
_MARKS = re.compile(r"[`/\\\[\]]")  # punctuation that clean_text leaves
# Left out by the recipes of Kaldi and Lhotse: bad recordings.
_BAD = {"16_4013_20170819121429", "18_1565_20170712000170"}


def find_utterances(root: Path, output: Path, workers: int) -> Iterator[Candidate]:
    """Yield all recordings and transcripts of the splits that are there.

    Raises:
        CorpusError: no split is there.
    """
    splits = [split for split in SPLITS if (root / split / _TRANSCRIPT).is_file()]
    if not splits:
        raise missing_corpus(CORPUS, root, f"{{train,dev,test}}/{_TRANSCRIPT}")
    for split in splits:
        yield from _find_in_split(root / split)


def _find_in_split(folder: Path) -> Iterator[Candidate]:
    texts = _read_transcripts(folder / _TRANSCRIPT)
    for audio in sorted(folder.glob("[!.]*/[!.]*.wav")):
        yield _candidate(audio, texts.pop(audio.stem, Problem(MISSING)))
    for name, text in sorted(texts.items()):
        problem = text if isinstance(text, Problem) else Problem(NO_AUDIO, f"{name}.wav")
        yield Candidate(name, folder.name, folder, problem=problem)


def _read_transcripts(path: Path) -> dict[str, str | Problem]:
    """Read the text of each utterance, or what is wrong with its line."""
    texts: dict[str, str | Problem] = {}
    for number, line, readable in utf8_lines(path):
        fields = line.split("\t")
        if tuple(fields) == _HEADER:
            continue
        name = fields[0].strip().removesuffix(".wav")
        if len(fields) != len(_HEADER):
            texts[name] = Problem(WRONG_FIELDS, f"{len(fields)} in {path.name}:{number}")
        elif name in texts:
            texts[name] = Problem("duplicate transcript", f"line {number}")
        else:
            texts[name] = fields[2] if readable else Problem(NOT_UTF8, f"line {number}")
    return texts


def _candidate(audio: Path, text: str | Problem) -> Candidate:
    split, speaker, note = audio.parent.parent.name, audio.parent.name, ""
    if audio.stem in _BAD:
        text = Problem("known to be a bad recording", "left out by other recipes too")
    elif isinstance(text, str):
        text, noises = _NOISE.subn(" ", _MARKS.sub(" ", text))
        note = "noise marks left out" if noises else ""
    return make_candidate(audio.stem, split, audio, speaker, text, note)


CORPUS = Corpus(
    "magicdata",
    "MAGICDATA: 755 hours of read speech, 1,080 speakers (CC BY-NC-ND: not for commercial use)",
    find_utterances,
    SPLITS,
    ARCHIVES,
)

main = corpus_command(CORPUS)


if __name__ == "__main__":
    run_command(main)
