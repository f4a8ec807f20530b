"""Reads transcripts as corpora write them, cleans them and adds pinyin; says what is wrong with the others.

The modules of the corpora use this to make candidates (:class:`data.corpora.tools.preparation.Candidate`).
"""

import re
import unicodedata
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

from data.corpora.tools.preparation import Candidate, Problem, clean_text
from utils.errors import CorpusError, unreadable
from utils.files import conversion_hint
from utils.mandarin.pinyin import NAME_DOTS, hanzi_to_pinyin, is_hanzi
from utils.mandarin.simplified import simplified

NOT_UTF8 = "transcript is not UTF-8"
MISSING = "transcript missing"
NO_AUDIO = "no such audio file"
WRONG_FIELDS = "wrong number of fields"
_CHECKED_BYTES = 1 << 14  # of a list, by which its encoding is known

BRACKETS = "text in brackets, spoken or not"
UNKNOWN_WORDS = "words that the transcriber did not understand"

# What annotators write between the words: <noise>, [笑声], 【音乐】, {sil}, <|zh|>, (laugh), (笑).
_TAG = re.compile(r"<[^<>]*>|\[+[^\[\]]*\]+|【[^【】]*】|\{[^{}]*\}|\([^()]*\)")
_SOUNDS = re.compile("[哈笑哭咳嗽喷嚏叹气喘呼吸清嗓掌鼓音乐噪杂静铃停顿声了的]+")
_UNKNOWN_TAG = re.compile(
    r"unk|oov|spn|spoken|unclear|inaudible|unintell|x{2,}|听不|不清|未知|无法|\?", re.IGNORECASE
)
_PAUSE = re.compile(rf"[、，。；：？！…,.;:?!{NAME_DOTS}]+")


def make_candidate(
    name: str, split: str, audio: Path, speaker: str, text: str | Problem, note: str = ""
) -> Candidate:
    """Clean a transcript and add its pinyin.

    Punctuation and the dots in names separate clauses, which are read one by one. Spaces separate words: no
    phrase of pypinyin's dictionary is looked up across them, unless the text is written one character at a
    time. Tags such as ``<noise>`` and ``[笑声]`` are left out, unless they stand for words. Traditional
    characters stay in the transcript and are read as the simplified ones. A text with digits or letters gets
    no pinyin and is rejected by the check, because their pronunciation is unknown.

    Args:
        name: the utterance's id.
        split: as in :class:`Candidate`.
        audio: the recording.
        speaker: the speaker's name.
        text: the transcript as written, or why there is none.
        note: as in :class:`Candidate`.
    """
    if isinstance(text, Problem):
        return Candidate(name, split, audio, speaker, problem=text)
    spoken = _without_tags(unicodedata.normalize("NFKC", text))
    if isinstance(spoken, Problem):
        return Candidate(name, split, audio, speaker, problem=spoken)
    note = note or ("tags left out of the transcript" if spoken.tags else "")
    clauses = [_words(clause) for clause in _PAUSE.split(spoken.text)]
    words = list(chain.from_iterable(clauses))
    hanzi = "".join(words)
    if not is_hanzi(hanzi):  # empty, or the check names the characters
        return Candidate(name, split, audio, speaker, hanzi)
    segmented = len(words) < len(hanzi)
    try:
        read = [
            hanzi_to_pinyin("".join(clause), clause if segmented and len(clause) > 1 else None)
            for clause in map(_simplified_words, clauses)
        ]
    except CorpusError as error:
        return Candidate(name, split, audio, speaker, hanzi, problem=Problem("no reading", error.message))
    return Candidate(name, split, audio, speaker, hanzi, tuple(chain.from_iterable(read)), note=note)


class _Spoken(NamedTuple):
    text: str
    tags: int


def _without_tags(text: str) -> _Spoken | Problem:
    """A text without the tags in it, and their number, or why it can't be known what is spoken."""
    for tag in _TAG.findall(text):
        content = clean_text(tag)
        if _UNKNOWN_TAG.search(content) or not content:
            return Problem(UNKNOWN_WORDS, tag)
        if not content.isascii() and not _SOUNDS.fullmatch(content):
            return Problem(BRACKETS, tag)
    text, tags = _TAG.subn("，", text)
    return Problem(BRACKETS, text) if set(text) & set("<>[]【】{}()") else _Spoken(text, tags)


def _simplified_words(words: list[str]) -> list[str]:
    """The same words in simplified characters, which they are read by."""
    text = iter(simplified("".join(words)))
    return ["".join(islice(text, len(word))) for word in words]


def _words(clause: str) -> list[str]:
    return [word for word in map(clean_text, clause.split()) if word]


def utf8_lines(path: Path) -> Iterator[tuple[int, str, bool]]:
    """Yield line numbers from 1, lines without their ends, and whether the line is UTF-8; no empty lines.

    In a line that is not UTF-8, ``�`` replaces what can't be decoded, so that its id is still known.

    Raises:
        CorpusError: the file can't be read, or its first lines are all in another encoding.
    """
    try:
        with path.open("rb") as file:
            first = file.readlines(_CHECKED_BYTES)
            if any(b"\0" in line for line in first[:1]) or (len(first) > 1 and not any(map(_is_utf8, first))):
                hint = conversion_hint(path, b"".join(first))
                raise CorpusError("this list is not UTF-8", where=path, hint=hint)
            file.seek(0)
            for number, line in enumerate(file, start=1):
                if number == 1:
                    line = line.removeprefix(b"\xef\xbb\xbf")
                text = line.decode("utf-8", errors="replace").rstrip("\r\n")
                if not text.strip():  # also of spaces that only Unicode knows, such as U+0085
                    continue
                # U+FFFD itself is never meant in a transcript: an earlier conversion wrote it.
                yield number, text, "\ufffd" not in text
    except OSError as error:
        raise unreadable(CorpusError, "can't read the list", path, error) from error


def _is_utf8(line: bytes) -> bool:
    return "\ufffd" not in line.decode("utf-8", errors="replace")


def read_transcript_list(path: Path) -> dict[str, str | Problem]:
    """Read lines of ``id text …`` (AISHELL's, Kaldi's ``text``): id → its text, or what is wrong with it.

    Raises:
        CorpusError: the file can't be read.
    """
    texts: dict[str, str | Problem] = {}
    for number, line, readable in utf8_lines(path):
        name, text = (*line.split(None, 1), "")[:2]
        if name in texts:
            texts[name] = Problem("duplicate transcript", f"line {number}")
        else:
            texts[name] = text if readable else Problem(NOT_UTF8, f"line {number}")
    return texts


def read_transcript_file(path: Path) -> list[str] | Problem:
    """Read the lines of a file that holds one transcript, or report what is wrong with it."""
    try:
        return path.read_bytes().decode("utf-8-sig").strip().splitlines()
    except FileNotFoundError:
        return Problem(MISSING, str(path))
    except UnicodeDecodeError as error:
        return Problem(NOT_UTF8, f"byte {error.start} of {path}")
