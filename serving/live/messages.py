"""The JSON messages of a live stream: checks the first one of a client, formats all results."""

from collections.abc import Iterator
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from serving.endpoints.transcriptions import LONGEST_PROMPT
from serving.work.models import Search
from utils.hypotheses.recognition import Recognition
from utils.hypotheses.transcript_formats import segment_values
from utils.mandarin.punctuation import without_marks

ALTERNATIVES = 5
"""Hypotheses of a final, and hanzi of a character."""
Message = dict[str, Any]


class Start(BaseModel):
    """The first message of a client.

    Attributes:
        encoding: ``pcm_s16le`` (16-bit integers, little-endian, mono) or ``opus`` in WebM or Ogg; or
            ``file``, a recording in any format, which is recognised as an uploaded one when it is complete.
        rate: sample rate of PCM, in Hz.
        words: user words, as in a file of ``--words``.
        phrases: only these are recognised, as in a file of ``--phrases``.
        second_pass: whether the large model reads each utterance again when it has ended; false: the text of
            the streaming model is final.
        token: access token, for clients that can't send headers.
    """

    model_config = ConfigDict(extra="forbid")

    type: Literal["start"]
    encoding: Literal["pcm_s16le", "opus", "file"] = "pcm_s16le"
    rate: int = Field(16_000, ge=4_000, le=192_000)
    words: str = Field("", max_length=LONGEST_PROMPT)
    phrases: str = Field("", max_length=LONGEST_PROMPT)
    second_pass: bool = True
    token: str | None = None

    @property
    def search(self) -> Search:
        """What is to be recognised."""
        return Search(words="" if self.phrases else self.words, phrases=self.phrases, n_best=2 * ALTERNATIVES)


def partial_message(utterance: int, partial: Recognition) -> Message:
    """A partial result of an utterance; one without syllables withdraws those before."""
    return {
        "type": "partial",
        "utterance": utterance,
        "start": round(partial.start, 3),
        "end": round(partial.end, 3),
        "syllables": _syllables(partial.pinyin, partial.times, partial.confidence),
        "hanzi": partial.hanzi,
        "texts": list(partial.best.texts),
        "stable": partial.stable,
    }


def final_message(utterance: int, segment: Recognition) -> Message:
    """An utterance that has ended; it is never revised."""
    values = segment_values(segment)
    phrase = segment.phrase
    return {
        "type": "final",
        "utterance": utterance,
        "start": values["start"],
        "end": values["end"],
        "syllables": _syllables(segment.best.pinyin, segment.times, segment.confidence),
        "hanzi": segment.best.hanzi,
        "texts": list(segment.best.texts),
        "marks": [] if phrase else [text[len(without_marks(text)) :] for text in segment.syllable_texts()],
        "stable": len(segment.best.pinyin),
        "alternatives": [
            {
                "pinyin": list(hypothesis.pinyin),
                "hanzi": hypothesis.hanzi,
                "texts": list(hypothesis.texts),
                "score": round(hypothesis.score, 4),
            }
            for hypothesis in segment.n_best[:ALTERNATIVES]
        ],
        "word_starts": list(segment.word_starts),
        "characters": [] if phrase else list(_characters(segment)),
        "phrase": {name: values[name] for name in ("accepted", "phrases")} if phrase else None,
    }


def _syllables(pinyin: tuple[str, ...], times: Any, confidence: tuple[float, ...]) -> list[Message]:
    sure = confidence or [None] * len(pinyin)
    return [
        {"pinyin": syllable, "start": round(start, 3), "end": round(end, 3)}
        | ({} if p is None else {"confidence": round(p, 3)})
        for syllable, (start, end), p in zip(pinyin, times, sure, strict=True)
    ]


def _characters(segment: Recognition) -> Iterator[Message]:
    """Each hanzi with others that hypotheses of the same length have there, the most probable first."""
    written = [hypothesis.texts or tuple(hypothesis.hanzi) for hypothesis in segment.n_best]
    for index, character in enumerate(written[0]):
        others = dict.fromkeys(
            texts[index]
            for texts in written
            if len(texts) == len(written[0]) and texts[index] not in ("", character)
        )
        yield {"hanzi": character, "alternatives": list(others)[:ALTERNATIVES]}
