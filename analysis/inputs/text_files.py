"""Reads a reference or hypothesis file of a known format: its texts by id, and its problems.

Known formats are lines of ``id text`` as Kaldi, ESPnet, WeNet and FunASR write them (hanzi or pinyin, spaces
or tabs, words or characters); CTM, TRN, SubRip, WebVTT and JSON (:mod:`analysis.inputs.transcript_files`);
and those of this project: manifests, and the ``hypotheses.tsv`` of ``test.py``.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path, PurePath

from analysis.inputs.normalisation import (
    RULES,
    changes,
    hanzi_tokens,
    looks_like_pinyin,
    normalise,
    pinyin_tokens,
)
from analysis.inputs.transcript_files import CTM, SUBTITLES, TranscriptFile, read_transcript_file
from analysis.inputs.utterance_results import HANZI, SYLLABLES
from data.manifest import COLUMNS, check_header, read_manifest, read_rows
from utils.errors import CorpusError, require
from utils.mandarin.pinyin import tone_of

# The first columns of hypotheses.tsv.
HYPOTHESES_COLUMNS = ("id", "reference_pinyin", "pinyin", "reference_hanzi", "hanzi")
EXAMPLES_KEPT = 5  # ids or tokens of a problem
LINES_EXAMINED = 200  # to distinguish hanzi from pinyin
MAX_TONELESS = 0.5  # fraction of the syllables without a tone; a file with more is reported
MAX_REPEATED = 0.5  # fraction of lines that give another text to an earlier id; more is an error


@dataclass(frozen=True, slots=True)
class TextEntry:
    """The entry of one utterance in a file; what the file does not contain is empty.

    Attributes:
        hanzi: the text as written.
        pinyin: the syllables as written, separated by spaces.
        speaker, seconds, spoken: fields of a manifest with these names (``spoken``: ``spoken_pinyin``).
    """

    hanzi: str = ""
    pinyin: str = ""
    speaker: str = ""
    seconds: float = 0.0
    spoken: tuple[str, ...] = ()


@dataclass(frozen=True)
class Problem:
    """A problem of the files that may affect the results.

    Attributes:
        file: path of the file that has the problem.
        description: the problem, without the file and the number.
        count: number of lines or tokens concerned.
        examples: a few of these ids or tokens.
        effect: what was done.
    """

    file: str
    description: str
    count: int
    examples: tuple[str, ...]
    effect: str


@dataclass(frozen=True)
class TextFile:
    """The contents of a file.

    Attributes:
        levels: ``syllables``, ``hanzi`` or both.
        lines: entry of each utterance id.
        problems: problems of the file.
        format: name of the file's format, for messages.
    """

    path: Path
    levels: tuple[str, ...]
    lines: Mapping[str, TextEntry]
    problems: tuple[Problem, ...] = field(default=())
    format: str = "text"


def read_text_file(path: str | Path) -> TextFile:
    """Read a file; its format is recognised from its content.

    Raises:
        CorpusError: the file cannot be read, is not UTF-8, is empty, is a damaged manifest, or has a format
            that cannot be scored.
    """
    path = Path(path)
    rows = read_rows(path)
    require(rows, "the file is empty", where=path, hint="lines of 'id text' are expected", error=CorpusError)
    header = tuple(rows[0][1])
    if header[: len(COLUMNS)] == COLUMNS:
        check_header(path, rows)
        return _manifest(path)
    if header[: len(HYPOTHESES_COLUMNS)] == HYPOTHESES_COLUMNS:
        items = [(row[0], TextEntry(row[4], row[2])) for _, row in rows[1:] if len(row) > 4]
        # `test.py speech` recognises no hanzi.
        levels = (HANZI, SYLLABLES) if any(entry.hanzi for _, entry in items) else (SYLLABLES,)
        return _text_file(path, levels, items)
    lines = ["\t".join(fields) for _, fields in rows]
    numbers = [number for number, _ in rows]
    after_blank = {index for index, (a, b) in enumerate(pairwise(numbers), start=1) if b > a + 1}
    if found := read_transcript_file(path, lines, after_blank):
        return _transcripts(path, found)
    return _plain(path, [(*line.strip().split(None, 1), "")[:2] for line in lines if line.strip()])


def tokens(line: TextEntry, level: str, rules: Sequence[str]) -> tuple[str, ...]:
    """The tokens of a line on a level, after normalisation by these rules."""
    if level == SYLLABLES:
        return pinyin_tokens(line.pinyin)[0]
    return hanzi_tokens(normalise(line.hanzi, rules))


def id_problems(reference: TextFile, hypothesis: TextFile, leave_out: bool) -> list[Problem]:
    """The problem that two files have different ids, if so.

    Args:
        reference, hypothesis: the files.
        leave_out: missing utterances are not scored; else they count as deleted.

    Raises:
        CorpusError: they have no id in common.
    """
    missing = [name for name in reference.lines if name not in hypothesis.lines]
    extra = [name for name in hypothesis.lines if name not in reference.lines]
    if len(missing) == len(reference.lines):
        message = (
            f"no id in common with {reference.path}: '{missing[0]}' there, '{next(iter(extra), '')}' here"
        )
        recordings = [file for file in (reference, hypothesis) if file.format in (CTM, SUBTITLES)]
        hint = "give files with the same ids"
        if recordings:
            hint = (
                f"{recordings[0].path} ({recordings[0].format}) has one text for each whole recording, under "
                "its name: the other file must have the same"
            )
        raise CorpusError(message, where=hypothesis.path, hint=hint)
    effect = "left out" if leave_out else "every token counts as deleted"
    found = [
        _problem(hypothesis.path, "ids of the reference are missing", missing, effect),
        _problem(hypothesis.path, "ids that are not in the reference", extra, "left out"),
    ]
    return [problem for problem in found if problem.count]


def rule_counts(listing: TextFile, ids: Iterable[str]) -> dict[str, int]:
    """The number of these lines that each rule of normalisation changes."""
    texts = [listing.lines[name].hanzi for name in ids if name in listing.lines]
    return {rule: sum(changes(text, rule) for text in texts) for rule in RULES}


def with_speakers(listing: TextFile, path: str | Path) -> TextFile:
    """The same lines with the speakers of a Kaldi ``utt2spk`` (``id speaker``) file.

    Raises:
        CorpusError: the file cannot be read, or has no id in common.
    """
    fields = (" ".join(row).split() for _, row in read_rows(path))
    speakers = {words[0]: words[1] for words in fields if len(words) > 1}
    if not speakers.keys() & listing.lines.keys():
        raise CorpusError(f"no id in common with {listing.path}", where=path, hint="lines are 'id speaker'")
    lines = {
        name: replace(line, speaker=speakers.get(name, line.speaker)) for name, line in listing.lines.items()
    }
    return replace(listing, lines=lines)


def with_ids_of(listing: TextFile, reference: TextFile) -> TextFile:
    """The same lines; if no id is in the reference, ids that are paths lose their folder and suffix.

    transcribe.py writes the paths of the recordings as ids.
    """
    if listing.lines.keys() & reference.lines.keys():
        return listing
    short = {PurePath(name).stem: line for name, line in listing.lines.items()}
    if len(short) < len(listing.lines) or not short.keys() & reference.lines.keys():
        return listing
    effect = "compared without folder and suffix"
    problem = _problem(listing.path, "ids that are file names", list(listing.lines), effect)
    return replace(listing, lines=short, problems=(*listing.problems, problem))


def _manifest(path: Path) -> TextFile:
    utterances = read_manifest(path)
    lines = {
        each.id: TextEntry(each.hanzi, " ".join(each.pinyin), each.speaker, each.seconds, each.spoken_pinyin)
        for each in utterances
    }
    return TextFile(path, (HANZI, SYLLABLES), lines)


def _transcripts(path: Path, found: TranscriptFile) -> TextFile:
    if any(each.pinyin for each in found.transcripts):
        levels = (HANZI, SYLLABLES) if any(each.text for each in found.transcripts) else (SYLLABLES,)
        items = [(each.id, TextEntry(each.text, each.pinyin)) for each in found.transcripts]
        listing = _text_file(path, levels, items)
    else:
        listing = _plain(path, [(each.id, each.text) for each in found.transcripts])
    problems = [
        _problem(path, description, ids, "left out") for description, ids in found.left_out.items() if ids
    ]
    return replace(listing, problems=(*listing.problems, *problems), format=found.format)


def _plain(path: Path, texts: Sequence[tuple[str, str]]) -> TextFile:
    """Texts with their ids, hanzi or pinyin."""
    if not looks_like_pinyin(text for _, text in texts[:LINES_EXAMINED]):
        return _text_file(path, (HANZI,), [(name, TextEntry(hanzi=text)) for name, text in texts])
    listing = _text_file(path, (SYLLABLES,), [(name, TextEntry(pinyin=text)) for name, text in texts])
    return replace(listing, problems=(*listing.problems, *_pinyin_problems(listing)))


def _text_file(path: Path, levels: tuple[str, ...], items: Sequence[tuple[str, TextEntry]]) -> TextFile:
    """Lines by id; of several lines with the same id the first is used.

    Raises:
        CorpusError: most lines repeat an id with another text, so the file does not have one text an id.
    """
    lines: dict[str, TextEntry] = {}
    same, different = [], []
    for name, line in items:
        first = lines.setdefault(name, line)
        if first is not line:
            (same if first == line else different).append(name)
    if len(different) > MAX_REPEATED * len(items):
        raise CorpusError(
            f"{len(different)} of {len(items)} lines have the id of an earlier line, with another text",
            where=path,
            hint="give one line of 'id text' for each utterance, or CTM, TRN, SubRip or JSON",
        )
    problems = [
        _problem(path, "ids that come twice with the same text", same, "the first is used"),
        _problem(path, "ids that come twice with different texts", different, "the first is used"),
        _problem(
            path,
            "ids without a text",
            [name for name, line in lines.items() if not (line.hanzi or line.pinyin)],
            "empty",
        ),
    ]
    return TextFile(path, levels, lines, tuple(problem for problem in problems if problem.count))


def _pinyin_problems(listing: TextFile) -> list[Problem]:
    strange: list[str] = []
    syllables = toneless = 0
    for line in listing.lines.values():
        found, unknown = pinyin_tokens(line.pinyin)
        strange += unknown
        syllables += len(found) - len(unknown)
        toneless += sum(not token.startswith("[") and tone_of(token) == 5 for token in found)
    problems = []
    if strange:
        problems.append(
            _problem(listing.path, "words that are not Mandarin syllables", strange, "kept in brackets")
        )
    if syllables and toneless > MAX_TONELESS * syllables:
        effect = "read as neutral tone: see the toneless rate"
        problems.append(
            Problem(str(listing.path), "syllables without a tone (more than half)", toneless, (), effect)
        )
    return problems


def _problem(path: Path, description: str, found: Sequence[str], effect: str) -> Problem:
    return Problem(str(path), description, len(found), tuple(dict.fromkeys(found))[:EXAMPLES_KEPT], effect)
