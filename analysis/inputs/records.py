"""Reads transcripts from tables with a header and from JSON: each row or object is an utterance's record.

The columns of a table and the keys of an object have the names that corpora and recognisers give them, such
as ``text`` or ``sentence`` (:data:`_NAMES`). Manifests and the ``hypotheses.tsv`` of ``test.py`` are such
tables; the JSON of ``transcribe.py``, Whisper and FunASR, and the lists of WeNet and NeMo have such objects.
"""

import csv
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis.inputs.normalisation import looks_like_pinyin
from utils.errors import CorpusError

# Field of a text entry → names of its column or key in lower case, the preferred one first.
_NAMES = {
    "id": ("id", "key", "utt", "utt_id", "uttid", "utterance_id", "utteranceid"),
    "audio": ("audio", "audio_filepath", "path", "wav", "file", "filename", "source"),
    "hanzi": ("hanzi", "text", "txt", "sentence", "transcript", "transcription", "target"),
    "pinyin": ("pinyin",),
    "speaker": ("speaker", "speaker_id", "speakerid", "spk", "client_id"),
    "seconds": ("seconds", "duration"),
    "spoken": ("spoken_pinyin",),
}
# Names that only one side has, before the others: the same file may have the texts of both.
_OF_REFERENCE = {"hanzi": ("reference_hanzi",), "pinyin": ("reference_pinyin",)}
_OF_HYPOTHESIS = {"hanzi": ("pred_text",)}
_FILE_NAME = re.compile(r".*\.[A-Za-z]\w{2,4}")


@dataclass(frozen=True, slots=True)
class TextEntry:
    """The entry of one utterance in a file; what the file does not contain is empty.

    Attributes:
        hanzi: the text as written.
        pinyin: the syllables as written, separated by spaces.
        speaker, seconds, spoken, audio: speaker, length in seconds, syllables as pronounced, and path of the
            recording.
    """

    hanzi: str = ""
    pinyin: str = ""
    speaker: str = ""
    seconds: float = 0.0
    spoken: tuple[str, ...] = ()
    audio: str = ""


Items = list[tuple[str, TextEntry]]  # ids and entries in the order of a file


def read_table(path: Path, lines: Sequence[str], numbers: Sequence[int], is_reference: bool) -> Items | None:
    """Read tab- or comma-separated lines whose first line names the columns, or lists of three columns.

    Without a header, a list has ids, then pinyin or the paths of recordings, then hanzi.

    Args:
        path: path of the file, for messages.
        lines: its lines.
        numbers: number of each line in the file, from 1.
        is_reference: whether to take the reference's texts of a table that also has hypotheses.

    Returns:
        Entries with their ids; None for a file that is no table.

    Raises:
        CorpusError: a row has no id, or another number of columns than the header.
    """
    names = _names(is_reference)
    rows = [line.split("\t") for line in lines]
    if _is_header(lines[0].split(","), names):
        rows = _comma_separated(path, lines)
    header = _columns_without_header(rows)
    if _is_header(rows[0], names):
        header, rows, numbers = _lower(rows[0]), rows[1:], numbers[1:]
    if header is None:
        return None
    items = []
    for number, row in zip(numbers, rows, strict=False):
        if len(row) != len(header):
            message = f"{len(row)} columns instead of {len(header)}"
            raise CorpusError(
                message, where=f"{path}:{number}", hint="every line has a value for each column"
            )
        items.append(_item(dict(zip(header, row, strict=True)), names, path, f"line {number}"))
    return items


def read_json(
    path: Path, name: str, lines: Sequence[str], numbers: Sequence[int], is_reference: bool
) -> Items | None:
    """Read a JSON object, an array of objects, or one object a line.

    Args:
        path: path of the file, for messages.
        name: id of an object that has none and is the only one.
        lines: lines of the file.
        numbers: number of each line in the file, from 1.
        is_reference: whether to take the reference's texts of a file that also has hypotheses.

    Returns:
        Entries with their ids; None for a file that is not JSON.

    Raises:
        CorpusError: the file is named ``.json`` or ``.jsonl`` and is not JSON; it has figures, not texts; or
            an object has no id or no text, or a number in place of it.
    """
    objects = _json_objects(path, lines, numbers)
    if objects is None:
        return None
    names = _names(is_reference)
    ids, texts = {*names["id"], *names["audio"]}, {*names["hanzi"], *names["pinyin"], "segments"}
    items = []
    for number, item in enumerate(objects, start=1):
        record = {key.lower(): value for key, value in item.items()} if isinstance(item, dict) else {}
        if len(objects) == 1:
            _reject_figures(path, record)
            record = record if ids & record.keys() else {"id": name} | record
        title = f"object {number} of this JSON"
        if not texts & record.keys():
            raise CorpusError(
                f"{title} has no text",
                where=path,
                hint="each object needs an 'id', and 'hanzi', 'text' or 'pinyin', as transcribe.py writes",
            )
        for keys in (names["hanzi"], names["pinyin"]):
            key = next((key for key in keys if record.get(key) not in (None, "")), "")
            if isinstance(record.get(key), int | float):
                raise CorpusError(f"'{key}' of {title} is not a text", where=path, hint="write it in quotes")
        items.append(_item(record, names, path, title))
    return items


def _names(is_reference: bool) -> dict[str, tuple[str, ...]]:
    own = _OF_REFERENCE if is_reference else _OF_HYPOTHESIS
    return {field: (*own.get(field, ()), *names) for field, names in _NAMES.items()}


def _is_header(columns: Sequence[str], names: Mapping[str, Sequence[str]]) -> bool:
    """Whether columns name an id or a recording, and a text."""
    found = set(_lower(columns))
    return bool(found & {*names["id"], *names["audio"]} and found & {*names["hanzi"], *names["pinyin"]})


def _columns_without_header(rows: Sequence[Sequence[str]]) -> list[str] | None:
    if any(len(row) != 3 for row in rows):
        return None
    second = [row[1] for row in rows]
    if all(len(pinyin.split()) == len(hanzi) for _, pinyin, hanzi in rows) and looks_like_pinyin(second):
        return ["id", "pinyin", "hanzi"]
    return ["id", "audio", "hanzi"] if all(map(_FILE_NAME.fullmatch, second)) else None


def _comma_separated(path: Path, lines: Sequence[str]) -> list[list[str]]:
    try:
        return list(csv.reader(lines))
    except csv.Error as error:
        raise CorpusError(f"a damaged table ({error})", where=path, hint="check its quotes") from error


def _lower(columns: Sequence[str]) -> list[str]:
    return [column.strip(' "').lower() for column in columns]


def _item(
    record: Mapping[str, Any], names: Mapping[str, Sequence[str]], path: Path, title: str
) -> tuple[str, TextEntry]:
    """Id and entry of a record.

    Raises:
        CorpusError: it has no id, or its seconds are no number.
    """
    values = {field: _first(record, keys) for field, keys in names.items()}
    id = values.pop("id") or values["audio"]
    if not id:
        raise CorpusError(f"{title} has no id", where=path, hint="give each utterance an 'id' or its 'audio'")
    given, spoken = values.pop("seconds"), tuple(values.pop("spoken").split())
    segments = record.get("segments", record.get("transcription"))
    # WhisperX and whisper.cpp write no whole text.
    if not (values["hanzi"] or values["pinyin"]) and isinstance(segments, list):
        texts = (_first(segment, names["hanzi"]) for segment in segments if isinstance(segment, dict))
        values["hanzi"] = " ".join(texts)
    try:
        seconds = float(given or 0)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise CorpusError(f"'{given}' of {title} is not a number of seconds", where=path)
    return id, TextEntry(**values, seconds=seconds, spoken=spoken)


def _first(record: Mapping[str, Any], keys: Iterable[str]) -> str:
    """The value under the first of these keys that has one, a text or number."""
    values = (record.get(key) for key in keys)
    return next(
        (str(value).strip() for value in values if isinstance(value, (str, int, float)) and value != ""), ""
    )


def _json_objects(path: Path, lines: Sequence[str], numbers: Sequence[int]) -> list[Any] | None:
    """The object of a file, or the objects of its array or of its lines; None if it is not JSON."""
    try:
        whole = json.loads("\n".join(lines))
        return whole if isinstance(whole, list) else [whole]
    except (ValueError, RecursionError) as error:
        fault, index = error, getattr(error, "lineno", 1) - 1
    objects: list[Any] = []
    try:
        for line in lines:
            objects.append(json.loads(line))
    except (ValueError, RecursionError) as error:
        if objects or path.suffix == ".jsonl":  # one object a line; else the fault is that of the whole file
            fault, index = error, len(objects)
    else:
        return objects
    if path.suffix.startswith(".json"):
        reason = f"{fault.msg}, column {fault.colno}" if isinstance(fault, json.JSONDecodeError) else fault
        where, hint = f"{path}:{numbers[index]}", "write the file again"
        raise CorpusError(f"this is not JSON ({reason})", where=where, hint=hint) from fault
    return None


def _reject_figures(path: Path, found: Mapping[str, Any]) -> None:
    content, hint = "", ""
    if "task" in found and "split" in found:
        content, hint = "the results.json of test.py", "give the hypotheses.tsv beside it"
    if "systems" in found and "version" in found:
        content, hint = "the JSON of a report", "give the hypothesis files of that report"
    if content:
        raise CorpusError(
            f"this is {content} (figures, not hypotheses), which cannot be scored", where=path, hint=hint
        )
