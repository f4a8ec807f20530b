"""Formats the segments of a recording as a response of OpenAI's interface: JSON, text, SRT, VTT, events."""

import itertools
import json
import math
import zlib
from collections.abc import AsyncIterator, Sequence
from operator import itemgetter
from typing import Any

from recognition.no_speech import no_speech_probability
from utils.hypotheses.recognition import Ending, Recognition
from utils.hypotheses.transcript_formats import FORMATS, cues

LANGUAGE = "chinese"
MEDIA_TYPES = {
    "json": "application/json",
    "verbose_json": "application/json",
    "diarized_json": "application/json",
    "text": "text/plain; charset=utf-8",
    "srt": "application/x-subrip; charset=utf-8",
    "vtt": "text/vtt; charset=utf-8",
}
"""Formats and their content types."""
_LEAST = 1e-6  # lowest confidence, so that its logarithm is finite
_ROUNDED = 4  # digits after the point


def text_of(segment: Recognition) -> str:
    """The text of a segment: hanzi, or syllables where there are none."""
    return "".join(segment.syllable_texts()) or " ".join(segment.best.pinyin)


def whole_text(segments: Sequence[Recognition]) -> str:
    """The text of a recording: as that of ``transcribe.py --format json``."""
    return "".join(map(text_of, segments))


def response_body(
    form: str,
    segments: Sequence[Recognition],
    seconds: float,
    granularities: Sequence[str] = (),
    temperature: float = 0.0,
    log_probabilities: bool = False,
) -> str:
    """The body of a response.

    Args:
        form: one of :data:`MEDIA_TYPES`.
        segments: segments of the recording.
        seconds: length of the recording.
        granularities: lists of ``verbose_json``: ``segment`` (the default), ``word``.
        temperature: value of the request, which is only repeated; there is no randomness here.
        log_probabilities: whether ``json`` has that of each character.
    """
    if form in ("text", "srt", "vtt"):
        return "".join(FORMATS[form].write("", [*segments, Ending(seconds)]))
    found: dict[str, Any] = {"text": whole_text(segments)}
    if form == "diarized_json":
        found = {
            "task": "transcribe",
            "duration": round(seconds, 3),
            **found,
            "segments": _speakers(segments),
        }
    elif form == "verbose_json":
        found = {"task": "transcribe", "language": LANGUAGE, "duration": round(seconds, 3), **found}
        if "segment" in granularities or not granularities:
            found["segments"] = _segments(segments, temperature)
        if "word" in granularities:
            words = itertools.chain.from_iterable(map(_words, segments))
            found["words"] = sorted(words, key=itemgetter("start"))  # channels overlap
    elif log_probabilities:
        found["logprobs"] = list(itertools.chain.from_iterable(map(_log_probabilities, segments)))
    return json.dumps({**found, "usage": _usage(seconds)}, ensure_ascii=False)


async def events(
    segments: AsyncIterator[Recognition | Ending], log_probabilities: bool = False
) -> AsyncIterator[dict[str, Any]]:
    """Server-sent events: ``transcript.text.delta`` for each segment, then ``transcript.text.done``."""
    whole: list[str] = []
    all_logs: list[dict[str, Any]] = []
    async for segment in segments:
        if isinstance(segment, Ending):
            logs = {"logprobs": all_logs} if log_probabilities else {}
            yield {
                "type": "transcript.text.done",
                "text": "".join(whole),
                **logs,
                "usage": _usage(segment.seconds),
            }
        elif text := text_of(segment):
            whole.append(text)
            logs = _log_probabilities(segment)
            all_logs += logs
            yield {
                "type": "transcript.text.delta",
                "delta": text,
                **({"logprobs": logs} if log_probabilities else {}),
            }


def _usage(seconds: float) -> dict[str, Any]:
    return {"type": "duration", "seconds": math.ceil(seconds)}


def _segments(segments: Sequence[Recognition], temperature: float) -> list[dict[str, Any]]:
    """A segment for each subtitle: a stretch of speech between pauses."""
    found: list[dict[str, Any]] = []
    for segment in segments:
        texts, no_speech = segment.syllable_texts(), no_speech_probability(segment)
        for first, end in cues(segment):
            pinyin = segment.best.pinyin[first:end]
            text = "".join(texts[first:end]) or " ".join(pinyin)
            confidence = segment.confidence[first:end]
            logs = [math.log(max(p, _LEAST)) for p in confidence]
            found.append(
                {
                    "seek": round(segment.start * 100),
                    "start": round(segment.times[first][0], 3),
                    "end": round(segment.times[end - 1][1], 3),
                    "text": text,
                    "tokens": [],
                    "temperature": temperature,
                    "avg_logprob": round(sum(logs) / len(logs), _ROUNDED) if logs else 0.0,
                    "compression_ratio": round(_compression_ratio(text), _ROUNDED),
                    "no_speech_prob": round(no_speech, _ROUNDED),
                    "pinyin": " ".join(pinyin),
                    **({"channel": segment.channel} if segment.channel else {}),
                }
            )
    found.sort(key=itemgetter("start"))  # those of several channels overlap
    return [{"id": number, **each} for number, each in enumerate(found)]


def _speakers(segments: Sequence[Recognition]) -> list[dict[str, Any]]:
    """The segments of separate channels, whose names are the speakers."""
    return [
        {
            "type": "transcript.text.segment",
            "id": f"seg_{number}",
            "start": round(segment.times[0][0], 3),
            "end": round(segment.times[-1][1], 3),
            "text": text_of(segment),
            "speaker": segment.channel or "1",
        }
        for number, segment in enumerate(each for each in segments if each.times)
    ]


def _compression_ratio(text: str) -> float:
    """How much smaller zlib makes a text, which indicates repetitions."""
    raw = text.encode()
    return len(raw) / len(zlib.compress(raw)) if raw else 1.0


def _words(segment: Recognition) -> list[dict[str, Any]]:
    """A word for each character or number in digits; a number is as certain as its least certain syllable."""
    return [
        {
            "word": word.text,
            "start": round(word.start, 3),
            "end": round(word.end, 3),
            "pinyin": " ".join(word.pinyin),
        }
        | ({} if word.confidence is None else {"confidence": round(word.confidence, 3)})
        for word in segment.words
    ]


def _log_probabilities(segment: Recognition) -> list[dict[str, Any]]:
    if not segment.confidence or not segment.best.hanzi:
        return []
    found = []
    for word in segment.words:
        log_probability = math.log(max(word.confidence or 0.0, _LEAST))
        found.append(
            {
                "token": word.text,
                "logprob": round(log_probability, _ROUNDED),
                "bytes": list(word.text.encode()),
            }
        )
    return found
