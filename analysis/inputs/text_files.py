"""Reference and hypothesis files of any system in; their texts by id, and what is wrong with the files, out.

Read are lines of ``id text`` as Kaldi, ESPnet, WeNet and FunASR write them (hanzi or pinyin, spaces or tabs,
words or characters); CTM, TRN, SubRip, WebVTT and JSON (:mod:`analysis.inputs.transcript_files`); and our
own: manifests, and the ``hypotheses.tsv`` of ``test.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
from utils.errors import CorpusError
from utils.mandarin.pinyin import tone_of

OURS = ("id", "reference_pinyin", "pinyin", "reference_hanzi", "hanzi")
EXAMPLES_KEPT = 5
LINES_LOOKED_AT = 200  # to tell hanzi from pinyin
MOSTLY_TONELESS = 0.5
MOST_REPEATED = 0.5  # of the lines may have the id of an earlier one with another text


@dataclass(frozen=True, slots=True)
class Line:
    """What a file says of one utterance; what it doesn't say is empty.

    Attributes:
        hanzi: as written.
        pinyin: likewise, syllables separated by spaces.
        speaker, seconds, spoken: as in a manifest.
    """

    hanzi: str = ""
    pinyin: str = ""
    speaker: str = ""
    seconds: float = 0.0
    spoken: tuple[str, ...] = ()


@dataclass(frozen=True)
class Problem:
    """Something about the files that may make figures wrong.

    Attributes:
        file: the one it is in.
        what: in words.
        count: of lines or tokens.
        examples: a few ids or tokens.
        effect: what was done about it.
    """

    file: str
    what: str
    count: int
    examples: tuple[str, ...]
    effect: str


@dataclass(frozen=True)
class Listing:
    """A file that was read.

    Attributes:
        levels: ``syllables``, ``hanzi`` or both.
        lines: by id.
        problems: of the file.
        format: its name, for messages.
    """

    path: Path
    levels: tuple[str, ...]
    lines: Mapping[str, Line]
    problems: tuple[Problem, ...] = field(default=())
    format: str = "text"


def read_listing(path: str | Path) -> Listing:
    """Read a file; its format is seen from its content.

    Raises:
        CorpusError: it can't be read, isn't UTF-8, holds no line, is a damaged manifest, or has a format that
            can't be scored.
    """
    path = Path(path)
    rows = read_rows(path)
    if not rows:
        raise CorpusError("the file is empty", where=path, hint="lines of 'id text' are expected")
    header = tuple(rows[0][1])
    if header[: len(COLUMNS)] == COLUMNS:
        check_header(path, rows)
        return _manifest(path)
    if header[: len(OURS)] == OURS:
        table = [row for _, row in rows[1:]]
        return _gather(
            path, (HANZI, SYLLABLES), [(row[0], Line(row[4], row[2])) for row in table if len(row) > 4]
        )
    lines = ["\t".join(fields) for _, fields in rows]
    if found := read_transcript_file(path, lines):
        return _transcripts(path, found)
    return _plain(path, [(*line.strip().split(None, 1), "")[:2] for line in lines if line.strip()])


def tokens(line: Line, level: str, rules: Sequence[str]) -> tuple[str, ...]:
    """The tokens of a line on a level, after these rules."""
    if level == SYLLABLES:
        return pinyin_tokens(line.pinyin)[0]
    return hanzi_tokens(normalise(line.hanzi, rules))


def id_problems(reference: Listing, hypothesis: Listing, leave_out: bool) -> list[Problem]:
    """Ids that only one of two files has.

    Args:
        reference, hypothesis: the files.
        leave_out: missing utterances are not scored; else they count as deleted.

    Raises:
        CorpusError: they have no id in common.
    """
    missing = [name for name in reference.lines if name not in hypothesis.lines]
    extra = [name for name in hypothesis.lines if name not in reference.lines]
    if len(missing) == len(reference.lines):
        what = f"no id in common with {reference.path}: '{missing[0]}' there, '{next(iter(extra), '')}' here"
        recordings = [one for one in (reference, hypothesis) if one.format in (CTM, SUBTITLES)]
        hint = "give files with the same ids"
        if recordings:
            hint = (
                f"{recordings[0].path} ({recordings[0].format}) has a text for each whole recording, by its "
            )
            hint += "name: the other file needs the same"
        raise CorpusError(what, where=hypothesis.path, hint=hint)
    effect = "left out" if leave_out else "every token counts as deleted"
    found = [
        _problem(hypothesis.path, "ids of the reference are missing", missing, effect),
        _problem(hypothesis.path, "ids that the reference doesn't have", extra, "left out"),
    ]
    return [one for one in found if one.count]


def rule_counts(listing: Listing, ids: Iterable[str]) -> dict[str, int]:
    """How many of these lines have something for each rule of normalisation to do."""
    texts = [listing.lines[name].hanzi for name in ids if name in listing.lines]
    return {rule: sum(changes(text, rule) for text in texts) for rule in RULES}


def with_speakers(listing: Listing, path: str | Path) -> Listing:
    """The same lines with the speakers of a Kaldi ``utt2spk`` (``id speaker``) file.

    Raises:
        CorpusError: the file can't be read, or has none of the ids.
    """
    fields = (" ".join(row).split() for _, row in read_rows(path))
    speakers = {words[0]: words[1] for words in fields if len(words) > 1}
    if not speakers.keys() & listing.lines.keys():
        raise CorpusError(f"no id in common with {listing.path}", where=path, hint="lines are 'id speaker'")
    lines = {
        name: replace(line, speaker=speakers.get(name, line.speaker)) for name, line in listing.lines.items()
    }
    return replace(listing, lines=lines)


def with_ids_of(listing: Listing, reference: Listing) -> Listing:
    """The same lines; if no id is the reference's, those that are file names lose folder and ending.

    transcribe.py names recordings by their paths.
    """
    if listing.lines.keys() & reference.lines.keys():
        return listing
    short = {PurePath(name).stem: line for name, line in listing.lines.items()}
    if len(short) < len(listing.lines) or not short.keys() & reference.lines.keys():
        return listing
    effect = "compared without folder and ending"
    problem = _problem(listing.path, "ids that are names of files", list(listing.lines), effect)
    return replace(listing, lines=short, problems=(*listing.problems, problem))


def _manifest(path: Path) -> Listing:
    utterances = read_manifest(path)
    lines = {
        one.id: Line(one.hanzi, " ".join(one.pinyin), one.speaker, one.seconds, one.spoken_pinyin)
        for one in utterances
    }
    return Listing(path, (HANZI, SYLLABLES), lines)


def _transcripts(path: Path, found: TranscriptFile) -> Listing:
    if any(one.pinyin for one in found.transcripts):
        levels = (HANZI, SYLLABLES) if any(one.text for one in found.transcripts) else (SYLLABLES,)
        listing = _gather(path, levels, [(one.id, Line(one.text, one.pinyin)) for one in found.transcripts])
    else:
        listing = _plain(path, [(one.id, one.text) for one in found.transcripts])
    problems = [_problem(path, what, ids, "left out") for what, ids in found.left_out.items() if ids]
    return replace(listing, problems=(*listing.problems, *problems), format=found.format)


def _plain(path: Path, texts: Sequence[tuple[str, str]]) -> Listing:
    """Texts with their ids, hanzi or pinyin."""
    if not looks_like_pinyin(text for _, text in texts[:LINES_LOOKED_AT]):
        return _gather(path, (HANZI,), [(name, Line(hanzi=text)) for name, text in texts])
    listing = _gather(path, (SYLLABLES,), [(name, Line(pinyin=text)) for name, text in texts])
    return replace(listing, problems=(*listing.problems, *_pinyin_problems(listing)))


def _gather(path: Path, levels: tuple[str, ...], items: Sequence[tuple[str, Line]]) -> Listing:
    """Lines by id; of an id that comes twice the first line counts.

    Raises:
        CorpusError: most lines repeat an id with another text: these are not a text for each id.
    """
    lines: dict[str, Line] = {}
    same, different = [], []
    for name, line in items:
        first = lines.setdefault(name, line)
        if first is not line:
            (same if first == line else different).append(name)
    if len(different) > MOST_REPEATED * len(items):
        what = f"{len(different)} of {len(items)} lines have the id of an earlier line, with another text"
        hint = "give one line of 'id text' for each utterance, or CTM, TRN, SubRip or JSON"
        raise CorpusError(what, where=path, hint=hint)
    problems = [
        _problem(path, "ids that come twice with the same text", same, "the first counts"),
        _problem(path, "ids that come twice with different texts", different, "the first counts"),
        _problem(
            path,
            "ids without a text",
            [n for n, one in lines.items() if not (one.hanzi or one.pinyin)],
            "empty",
        ),
    ]
    return Listing(path, levels, lines, tuple(one for one in problems if one.count))


def _pinyin_problems(listing: Listing) -> list[Problem]:
    strange: list[str] = []
    syllables = toneless = 0
    for line in listing.lines.values():
        found, unknown = pinyin_tokens(line.pinyin)
        strange += unknown
        syllables += len(found) - len(unknown)
        toneless += sum(not one.startswith("[") and tone_of(one) == 5 for one in found)
    problems = []
    if strange:
        problems.append(
            _problem(
                listing.path, "words that are no Mandarin syllable", strange, "kept as they are, in brackets"
            )
        )
    if syllables and toneless > MOSTLY_TONELESS * syllables:
        what = "syllables without a tone (more than half)"
        problems.append(
            Problem(str(listing.path), what, toneless, (), "taken as neutral: see the rate without tones")
        )
    return problems


def _problem(path: Path, what: str, found: Sequence[str], effect: str) -> Problem:
    return Problem(str(path), what, len(found), tuple(dict.fromkeys(found))[:EXAMPLES_KEPT], effect)
