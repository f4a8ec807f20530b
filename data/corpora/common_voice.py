"""Common Voice zh-CN as it is downloaded → manifests in its own splits, and the rest of the validated clips.

The corpus (Mozilla, https://commonvoice.mozilla.org/, CC0-1.0; its users agree not to identify speakers, and
not to pass copies on) is ``cv-corpus-…/zh-CN/{clips/*.mp3,train.tsv,dev.tsv,test.tsv,validated.tsv}``. The
three official lists take each sentence once; ``validated.tsv`` has many more clips that two listeners found
right. Those that share neither a speaker nor a sentence with dev or test become a fourth manifest,
``validated``, to train on as well. The sentences come from many hands: punctuation is cleaned away; digits,
Latin letters and traditional characters are refused, each for its own reason. A speaker is a ``client_id``,
cut to 16 characters.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from data.corpora.tools.command import corpus_command, corpus_parser
from data.corpora.tools.download import ByHand
from data.corpora.tools.preparation import Candidate, Corpus, Problem, clean_text
from data.corpora.tools.transcripts import NOT_UTF8, candidate_of, utf8_lines
from utils.errors import CorpusError, run_command
from utils.mandarin.pinyin import is_hanzi

NAME = "common_voice"
SPLITS = ("train", "dev", "test")
REST = "validated"

SOURCE = ByHand(
    reason="Common Voice is given only to who accepts its terms on its own site",
    steps=(
        "get 'Chinese (China)', zh-CN, from https://datacollective.mozillafoundation.org or "
        "https://commonvoice.mozilla.org/datasets, unpack cv-corpus-*-zh-CN.tar.gz there, then: prepare"
    ),
)

_COLUMNS = ("client_id", "path", "sentence")
# Forms that GB 2312 has for surnames and the like, but that a text writes only if it is traditional.
_TRADITIONAL_IN_GB2312 = set("於後麽")


@dataclass(frozen=True)
class Clip:
    """A line of a list: the recording's name, who speaks, and the text or what is wrong with the line."""

    file: str
    speaker: str
    sentence: str | Problem


def find_utterances(root: Path, workers: int) -> Iterator[Candidate]:
    """The clips of the official splits, and the validated ones that are in none of them.

    Raises:
        CorpusError: the corpus is not there, is there twice, or a list has not the columns it should have.
    """
    corpus = _corpus_folder(root)
    listed = {split: list(_read_list(corpus / f"{split}.tsv")) for split in SPLITS}
    for split, clips in listed.items():
        for clip in clips:
            yield _candidate(corpus, split, clip)
    if not (corpus / f"{REST}.tsv").is_file():
        return
    names = {clip.file for clips in listed.values() for clip in clips}
    held_out = [clip for split in ("dev", "test") for clip in listed[split]]
    speakers = {clip.speaker for clip in held_out}
    sentences = {clean_text(clip.sentence) for clip in held_out if isinstance(clip.sentence, str)}
    for clip in _read_list(corpus / f"{REST}.tsv"):
        if clip.file not in names:
            yield _candidate(corpus, REST, _keep_apart(clip, speakers, sentences))


def _corpus_folder(root: Path) -> Path:
    places = [root, root / "zh-CN", *sorted(root.glob("cv-corpus-*/zh-CN"))]
    found = [place for place in places if all((place / f"{split}.tsv").is_file() for split in SPLITS)]
    if not found:
        what = "no Common Voice zh-CN here: cv-corpus-*/zh-CN/{clips,train.tsv,dev.tsv,test.tsv} expected"
        raise CorpusError(what, where=root, hint=SOURCE.steps)
    if len(found) > 1:
        names = ", ".join(str(place.relative_to(root)) for place in found)
        raise CorpusError(f"several releases here: {names}", where=root, hint="give the folder of one")
    return found[0]


def _read_list(path: Path) -> Iterator[Clip]:
    """The clips of a list; its columns differ between releases and are found by their names."""
    lines = utf8_lines(path)
    header = next(lines, (1, "", True))[1].split("\t")
    if not set(_COLUMNS) <= set(header):
        what = f"the columns {', '.join(_COLUMNS)} are not all there"
        raise CorpusError(what, where=f"{path}:1", hint="take the list from the original archive")
    speaker, file, sentence = map(header.index, _COLUMNS)
    for number, line, readable in lines:
        fields = line.split("\t")
        place = f"{path.name}:{number}"
        if len(fields) != len(header):
            text: str | Problem = Problem("wrong number of fields", f"{len(fields)} in {place}")
            yield Clip(fields[file] if len(fields) > file else place, "", text)
            continue
        text = fields[sentence].replace("\\", "") if readable else Problem(NOT_UTF8, place)
        yield Clip(fields[file], fields[speaker][:16], text)


def _keep_apart(clip: Clip, speakers: set[str], sentences: set[str]) -> Clip:
    """Refuse a clip that would let a model see in training who or what it is tested with."""
    if isinstance(clip.sentence, Problem):
        return clip
    if clip.speaker in speakers:
        return Clip(
            clip.file, clip.speaker, Problem("validated, but its speaker is in dev or test", clip.speaker)
        )
    if clean_text(clip.sentence) in sentences:
        problem = Problem("validated, but its sentence is in dev or test", clip.sentence)
        return Clip(clip.file, clip.speaker, problem)
    return clip


def _candidate(corpus: Path, split: str, clip: Clip) -> Candidate:
    file = clip.file if clip.file.endswith(".mp3") else f"{clip.file}.mp3"
    text = clip.sentence
    if isinstance(text, str) and Path(file).name != file:
        text = Problem("not a file name", clip.file)
    elif isinstance(text, str) and (foreign := _not_simplified(text)):
        text = Problem("traditional or rare characters", foreign)
    return candidate_of(file.removesuffix(".mp3"), split, corpus / "clips" / file, clip.speaker, text)


def _not_simplified(text: str) -> str:
    """The hanzi that simplified text in daily use doesn't write: what is not in GB 2312."""
    return "".join(
        character
        for character in text
        if is_hanzi(character) and (character in _TRADITIONAL_IN_GB2312 or not _in_gb2312(character))
    )


def _in_gb2312(character: str) -> bool:
    try:
        character.encode("gb2312")
    except UnicodeEncodeError:
        return character == "〇"
    return True


CORPUS = Corpus(NAME, (), find_utterances)
_ABOUT = (
    "Common Voice zh-CN: sentences read by volunteers (CC0). Beside the official train, dev and test,\n"
    "the manifest 'validated' has the other clips, without the speakers and sentences of dev and test."
)


def main(argv: list[str] | None = None) -> int:
    """The command ``python -m data.corpora.common_voice``."""
    return corpus_command(CORPUS, SOURCE, _parser().parse_args(argv))


def _parser() -> argparse.ArgumentParser:
    return corpus_parser(CORPUS, SOURCE, _ABOUT)


if __name__ == "__main__":
    run_command(main)
