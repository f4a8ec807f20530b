"""Prepares Common Voice zh-CN: writes manifests of its official splits and of the other validated clips.

The corpus (Mozilla, https://commonvoice.mozilla.org/, CC0-1.0; its users agree not to identify speakers and
not to pass copies on) is ``cv-corpus-…/zh-CN/{clips/*.mp3,train.tsv,dev.tsv,test.tsv,validated.tsv}``. Each
sentence is once in the three official lists; ``validated.tsv`` has many more clips, approved by two
listeners. Those that share neither a speaker nor a sentence with dev or test become a fourth manifest,
``validated``, as additional training data. Punctuation is removed; sentences with digits, Latin letters or
traditional characters are rejected, with the reason. A speaker is a ``client_id``, truncated to 16
characters.
"""

from utils.command.entry import run_command

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from data.corpora.tools.command import corpus_command
from data.corpora.tools.preparation import Candidate, Corpus, Problem, clean_text, missing_corpus
from data.corpora.tools.transcripts import NOT_UTF8, WRONG_FIELDS, make_candidate, utf8_lines
from data.manifest import SPLITS
from utils.errors import CorpusError
from utils.mandarin.pinyin import is_hanzi

VALIDATED = "validated"  # the manifest of validated clips that are in no official split
SOURCE = (
    "accept its terms and get 'Chinese (China)', zh-CN, from https://datacollective.mozillafoundation.org or "
    "https://commonvoice.mozilla.org/datasets; then: tar xf cv-corpus-*-zh-CN.tar.gz -C {root}; "
    "python -m data.corpora.common_voice prepare {root}"
)

_COLUMNS = ("client_id", "path", "sentence")
# Forms that GB 2312 has for surnames and the like, but that only traditional texts use.
_TRADITIONAL_IN_GB2312 = set("於後麽")


@dataclass(frozen=True)
class Clip:
    """A line of a list: the recording's name, the speaker, and the text or what is wrong with the line."""

    file: str
    speaker: str
    sentence: str | Problem


def find_utterances(root: Path, output: Path, workers: int) -> Iterator[Candidate]:
    """Yield the clips of the official splits, and the validated ones that are in none of them.

    Raises:
        CorpusError: the corpus is not there, is there twice, or a list lacks a column.
    """
    corpus = _corpus_folder(root)
    lists = {split: list(_read_list(corpus / f"{split}.tsv")) for split in SPLITS}
    for split, clips in lists.items():
        for clip in clips:
            yield _candidate(corpus, split, clip)
    if not (corpus / f"{VALIDATED}.tsv").is_file():
        return
    official = {clip.file for clips in lists.values() for clip in clips}
    held_out = [*lists["dev"], *lists["test"]]
    speakers = {clip.speaker for clip in held_out}
    sentences = {clean_text(clip.sentence) for clip in held_out if isinstance(clip.sentence, str)}
    for clip in _read_list(corpus / f"{VALIDATED}.tsv"):
        if clip.file not in official:
            yield _candidate(corpus, VALIDATED, _keep_apart(clip, speakers, sentences))


def _corpus_folder(root: Path) -> Path:
    folders = [root, root / "zh-CN", *sorted(root.glob("cv-corpus-*/zh-CN"))]
    found = [folder for folder in folders if all((folder / f"{split}.tsv").is_file() for split in SPLITS)]
    if not found:
        raise missing_corpus(CORPUS, root, "cv-corpus-*/zh-CN/{clips,train.tsv,dev.tsv,test.tsv}")
    if len(found) > 1:
        names = ", ".join(str(folder.relative_to(root)) for folder in found)
        raise CorpusError(f"several releases here: {names}", where=root, hint="give the folder of one")
    return found[0]


def _read_list(path: Path) -> Iterator[Clip]:
    """Yield the clips of a list; its columns differ between releases and are found by their names."""
    lines = utf8_lines(path)
    header = next(lines, (1, "", True))[1].split("\t")
    if not set(_COLUMNS) <= set(header):
        raise CorpusError(
            f"one of the columns {', '.join(_COLUMNS)} is missing",
            where=f"{path}:1",
            hint="take the list from the original archive",
        )
    speaker, file, sentence = map(header.index, _COLUMNS)
    for number, line, readable in lines:
        fields = line.split("\t")
        where = f"{path.name}:{number}"
        if len(fields) != len(header):
            problem = Problem(WRONG_FIELDS, f"{len(fields)} in {where}")
            yield Clip(fields[file] if len(fields) > file else where, "", problem)
            continue
        text = fields[sentence].replace("\\", "") if readable else Problem(NOT_UTF8, where)
        yield Clip(fields[file], fields[speaker][:16], text)


def _keep_apart(clip: Clip, speakers: set[str], sentences: set[str]) -> Clip:
    """Reject a clip whose speaker or sentence would be in training and in a test."""
    if isinstance(clip.sentence, Problem):
        return clip
    if clip.speaker in speakers:
        return replace(clip, sentence=Problem("validated, but its speaker is in dev or test", clip.speaker))
    if clean_text(clip.sentence) in sentences:
        return replace(clip, sentence=Problem("validated, but its sentence is in dev or test", clip.sentence))
    return clip


def _candidate(corpus: Path, split: str, clip: Clip) -> Candidate:
    file = clip.file if clip.file.endswith(".mp3") else f"{clip.file}.mp3"
    text = clip.sentence
    if isinstance(text, str) and Path(file).name != file:
        text = Problem("not a file name", clip.file)
    elif isinstance(text, str) and (unusual := "".join(filter(_is_traditional_or_rare, text))):
        text = Problem("traditional or rare characters", unusual)
    return make_candidate(file.removesuffix(".mp3"), split, corpus / "clips" / file, clip.speaker, text)


def _is_traditional_or_rare(character: str) -> bool:
    """Whether everyday simplified text does not use a hanzi: it is not in GB 2312."""
    if not is_hanzi(character) or character == "〇":
        return False
    try:
        character.encode("gb2312")
    except UnicodeEncodeError:
        return True
    return character in _TRADITIONAL_IN_GB2312


CORPUS = Corpus(
    "common_voice",
    "Common Voice zh-CN: sentences read by volunteers (CC0). Beside the official train, dev and test,\n"
    "the manifest 'validated' has the other clips, without the speakers and sentences of dev and test.",
    find_utterances,
    by_hand=SOURCE,
)

main = corpus_command(CORPUS)


if __name__ == "__main__":
    run_command(main)
