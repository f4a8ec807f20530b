"""Reads manifest files for the checks: all lines, also faulty ones.

``data.manifest.read_manifest`` stops at the first faulty line. Here all lines with the right number of fields
are kept, so that one run of the checks finds all faults.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from data.corpora.tools.lists import find_lists, is_plain_list, read_utterances
from data.manifest import (
    COLUMNS,
    Utterance,
    audio_path,
    check_header,
    folder_of,
    read_rows,
    split_of_file,
)
from utils.errors import CorpusError
from utils.features.settings import FeatureConfig, frame_count
from utils.mandarin.output_units import tokens_of
from utils.mandarin.pinyin import normalise_syllable
from utils.processes import bar_if_long


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a manifest, not checked.

    Attributes:
        number: number of the line in its file, from 1; 0 if there is none, or it is a plain list.
        id: id of the utterance.
        audio: absolute path of the recording.
        seconds: duration; NaN if the field is not a number.
        speaker: name of the speaker; ``""`` if not known.
        pinyin: syllables in canonical form, or as written if they are not pinyin.
        hanzi: the text.
        spoken: ``spoken_pinyin`` in the same form, if the corpus has it.
    """

    number: int
    id: str
    audio: str
    seconds: float
    speaker: str
    pinyin: tuple[str, ...]
    hanzi: str
    spoken: tuple[str, ...] = ()

    @property
    def has_length(self) -> bool:
        """Whether ``seconds`` is a positive number."""
        return 0 < self.seconds < float("inf")

    def frames(self, features: FeatureConfig, speed: float = 1.0) -> int:
        """Number of feature frames, for a recording that is played ``speed`` times as fast."""
        return frame_count(round(self.seconds / speed * features.sample_rate), features)

    def tokens(self, units: str) -> tuple[str, ...]:
        """The tokens of the text in these output units, without syllables that are not pinyin."""
        return tokens_of(units, tuple(filter(canonical, self.pinyin)), self.hanzi)

    def utterance(self) -> Utterance:
        """The line as an utterance of a manifest."""
        return Utterance(self.id, Path(self.audio), self.seconds, self.speaker, self.pinyin, self.hanzi)


@dataclass(frozen=True)
class Listing:
    """A manifest.

    Attributes:
        path: path as given by the user.
        role: ``train``, ``dev``, ``test``, or ``""`` if neither config nor file name gives one.
        lines: lines with the right number of fields.
        misshapen: line number and number of fields of all other lines.
        columns: right number of fields.
    """

    path: str
    role: str
    lines: tuple[Line, ...]
    misshapen: tuple[tuple[int, int], ...] = ()
    columns: int = len(COLUMNS)


def read_listing(path: str | Path, role: str | None = None) -> Listing:
    """Read a manifest or the usable lines of a plain list; without ``role``, the file name gives the role.

    Raises:
        CorpusError: the file is missing or neither of them.
    """
    role = split_of_file(Path(path)) if role is None else role
    if is_plain_list(path):
        return Listing(str(path), role, tuple(map(_line_of, read_utterances(path))))
    rows = read_rows(path)
    columns = check_header(path, rows)
    folder = folder_of(path)
    shown = bar_if_long(rows[1:], f"reading {Path(path).name}", " lines")
    lines = [_line(number, fields, folder) for number, fields in shown if len(fields) == columns]
    misshapen = [(number, len(fields)) for number, fields in rows[1:] if len(fields) != columns]
    return Listing(str(path), role, tuple(lines), tuple(misshapen), columns)


def find_manifests(folder: Path) -> list[Path]:
    """The manifests in a folder, without those whose utterances are all in the splits.

    A corpus often has a list of all utterances besides those of its splits. Lists of other kinds are printed
    to standard error.
    """
    found = find_lists(folder)
    ids = {path: {fields[0] for _, fields in read_rows(path)[not is_plain_list(path) :]} for path in found}
    splits = [path for path in found if split_of_file(path)]
    in_splits = set().union(*(ids[path] for path in splits))
    return [path for path in found if path in splits or not ids[path] or not ids[path] <= in_splits]


@cache
def canonical(syllable: str) -> str | None:
    """A syllable in canonical form; None if it is not pinyin."""
    try:
        return normalise_syllable(syllable)
    except CorpusError:
        return None


def of_role(listings: Iterable[Listing], role: str) -> list[Listing]:
    """The listings of one split."""
    return [listing for listing in listings if listing.role == role]


def lines_of(listings: Sequence[Listing]) -> list[Line]:
    """The lines of several listings."""
    return [line for listing in listings for line in listing.lines]


def _line_of(utterance: Utterance) -> Line:
    fields = (utterance.seconds, utterance.speaker, utterance.pinyin, utterance.hanzi)
    return Line(0, utterance.id, str(utterance.audio), *fields)


def _line(number: int, fields: Sequence[str], folder: str) -> Line:
    name, audio, length, speaker, pinyin, hanzi = fields[:6]
    try:
        seconds = float(length)
    except ValueError:
        seconds = float("nan")
    spoken = _syllables(fields[6]) if len(fields) > 6 else ()
    return Line(number, name, audio_path(folder, audio), seconds, speaker, _syllables(pinyin), hanzi, spoken)


def _syllables(pinyin: str) -> tuple[str, ...]:
    return tuple(canonical(syllable) or syllable for syllable in pinyin.split())
