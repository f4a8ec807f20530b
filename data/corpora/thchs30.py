"""Downloads and prepares THCHS-30: manifests with hanzi, citation pinyin and, from its phones, spoken pinyin.

The corpus (Wang and Zhang, 2015, https://www.openslr.org/18/) is ``data_thchs30/{data,train,dev,test}``.
``data/A11_0.wav.trn`` has three lines: words, pinyin, phones. In the split folders ``A11_0.wav.trn`` is a
link, or a text file that holds the path ``../data/A11_0.wav.trn``; in some copies of the corpus this is also
true of the recordings.
"""

from utils.command.entry import run_command

import re
from collections.abc import Iterator
from pathlib import Path

from data.corpora.tools.command import corpus_command
from data.corpora.tools.download import Archive
from data.corpora.tools.preparation import Candidate, Corpus, Problem, clean_text, find_corpus_folder
from data.corpora.tools.transcripts import read_transcript_file
from data.manifest import SPLITS
from utils.errors import CorpusError, require
from utils.mandarin.pinyin import INITIALS, Syllable, normalise_syllable

ARCHIVE = Archive(
    url="https://www.openslr.org/resources/18/data_thchs30.tgz",
    # As several public recipes check it (PaddleSpeech among them); openslr itself publishes none.
    checksum="2d2252bde5c8429929e1841d4cb95e90",
    folder="data_thchs30",
    unpacked=1.4,
)

# Phones: the initials, with a dummy for each zero initial (aa ai4 = ai4, ii ian1 = yan1, uu uo3 = wo3,
# vv ve4 = yue4), and finals whose i is written ix (in zhi chi shi ri), iy or iz (in zi ci si).
_DUMMIES = {"aa", "ee", "ii", "oo", "uu", "vv"}
_INITIALS = _DUMMIES | INITIALS
_FINALS = {"ix": "i", "iy": "i", "iz": "i", "iu": "iou", "ui": "uei", "un": "uen"}
_SILENCE = {"sil", "sp", "#"}
_POINTER = re.compile(rb"\s*(?:\.\./)*data/([\w-]+\.wav(?:\.trn)?)\s*")
_POINTER_BYTES = 200


def find_utterances(root: Path, output: Path, workers: int) -> Iterator[Candidate]:
    """Yield all recordings and transcripts in ``root`` (``data_thchs30`` or the folder that holds it).

    Raises:
        CorpusError: the corpus is not there.
    """
    corpus = find_corpus_folder(root, CORPUS, ("data/*.wav*",))
    in_splits: set[str] = set()
    for split in SPLITS:
        names = _utterance_names(corpus / split)
        in_splits.update(names)
        for name in sorted(names):
            yield _candidate(corpus, split, name)
    for name in sorted(_utterance_names(corpus / "data") - in_splits):
        yield Candidate(name, "", corpus / "data" / f"{name}.wav")


def syllables_of_phones(line: str) -> tuple[str, ...]:
    """Join THCHS-30 phones to syllables: ``l v4 sh ix4 ii iang2`` → ``lv4 shi4 yang2``.

    Raises:
        CorpusError: a phone or a combination of phones is unknown.
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
    require(initial is None, f"the initial '{initial}' has no final", error=CorpusError)
    return tuple(syllables)


def _utterance_names(folder: Path) -> set[str]:
    """The utterances of a folder; either the recording or the transcript may be missing."""
    files = [path.name for path in folder.glob("[!.]*.wav*")]
    return {name.split(".wav")[0] for name in files if name.endswith((".wav", ".wav.trn"))}


def _candidate(corpus: Path, split: str, name: str) -> Candidate:
    recording = (name, split, _resolve(corpus, split, f"{name}.wav"), name.split("_")[0])
    transcript = _resolve(corpus, split, f"{name}.wav.trn")
    lines = read_transcript_file(transcript)
    if isinstance(lines, Problem):
        return Candidate(*recording, problem=lines)
    if len(lines) != 3:
        problem = Problem("transcript does not have 3 lines", f"{len(lines)} in {transcript}")
        return Candidate(*recording, problem=problem)
    words, pinyin, phones = lines
    text = (clean_text(words), tuple(pinyin.split()))
    try:
        spoken_pinyin = syllables_of_phones(phones)
    except CorpusError:
        return Candidate(*recording, *text, note="phones not readable: no spoken reading")
    if len(spoken_pinyin) != len(text[1]):
        return Candidate(*recording, *text, note="phones and pinyin differ in number: no spoken reading")
    return Candidate(*recording, *text, spoken_pinyin)


def _resolve(corpus: Path, split: str, name: str) -> Path:
    """The location of a file of a split: the file itself, the path that it holds, or a file in ``data``."""
    path = corpus / split / name
    if not path.is_file():
        return corpus / "data" / name
    if path.stat().st_size < _POINTER_BYTES and (match := _POINTER.fullmatch(path.read_bytes())):
        return corpus / "data" / match[1].decode()
    return path


CORPUS = Corpus(
    "thchs30", "THCHS-30: 30 hours of read news, 60 speakers", find_utterances, SPLITS, (ARCHIVE,)
)

main = corpus_command(CORPUS)


if __name__ == "__main__":
    run_command(main)
