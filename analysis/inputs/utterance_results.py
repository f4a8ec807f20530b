"""What a test gives for one utterance: filled by recognisers and hypothesis files, read by all analysis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from analysis.inputs.normalisation import hanzi_tokens
from utils.hypotheses.recognition import Alternative
from utils.mandarin.pinyin import is_hanzi

SPEECH, LANGUAGE, PIPELINE, KEYWORD = "speech", "language", "pipeline", "keyword"
SYLLABLES, HANZI = "syllables", "hanzi"
LEVELS = (SYLLABLES, HANZI)


@dataclass(frozen=True, slots=True)
class Scores:
    """Log-probabilities that one stage gives to what it should have written and to what it wrote."""

    reference: float
    output: float


@dataclass(frozen=True, slots=True)
class UtteranceResult:
    """One utterance's truth and what came out; what a task doesn't have is empty.

    Attributes:
        id, speaker, seconds: of the recording; ``""`` and 0.0 where there is none.
        reference_pinyin, pinyin: canonical syllables, spoken and recognised.
        reference_hanzi, hanzi: the text, true and recognised: a character a token (a string will do), but a
            Latin word or a number is one token.
        gold_hanzi: what the second stage makes of ``reference_pinyin``; empty if it wasn't asked.
        spoken_pinyin: what was really said, where the corpus notes it and it isn't the citation reading.
        n_best: readings from the best on; empty if only one was asked for.
        audio: the recording's path; ``""`` if there is none.
        times: (start, end) in seconds of each recognised syllable; empty if not known.
        snr: estimated signal-to-noise ratio in dB (:mod:`analysis.inputs.noise`); None if not known.
        speech_scores: of the syllables, by the first stage; None if not known.
        language_scores: of ``reference_hanzi`` and ``gold_hanzi`` for ``reference_pinyin``, by the second
            stage; None if not known, or if they are equal.
    """

    id: str
    speaker: str
    seconds: float
    reference_pinyin: tuple[str, ...]
    pinyin: tuple[str, ...]
    reference_hanzi: Sequence[str]
    hanzi: Sequence[str]
    gold_hanzi: Sequence[str] = ""
    spoken_pinyin: tuple[str, ...] = ()
    n_best: tuple[Alternative, ...] = ()
    audio: str = ""
    times: tuple[tuple[float, float], ...] = ()
    snr: float | None = None
    speech_scores: Scores | None = None
    language_scores: Scores | None = None


@dataclass(frozen=True)
class SystemOutput:
    """A system's output, to be explained.

    Attributes:
        name: of the system.
        utterances: of every utterance.
        automatic: its syllables are pypinyin's reading of its hanzi.
    """

    name: str
    utterances: Sequence[UtteranceResult]
    automatic: bool = False


def as_text(tokens: Sequence[str]) -> str:
    """Hanzi tokens written as one text: no spaces, but between two neighbours that aren't hanzi."""
    if isinstance(tokens, str):
        return tokens
    written: list[str] = []
    for token in tokens:
        if written and not is_hanzi(token) and not is_hanzi(written[-1]):
            written.append(" ")
        written.append(token)
    return "".join(written)


def as_tokens(text: Sequence[str]) -> Sequence[str]:
    """Hanzi as they are counted: a string is split into hanzi, Latin words and numbers; tokens stay."""
    return hanzi_tokens(text) if isinstance(text, str) else text


def resampled_by(utterances: Sequence[UtteranceResult]) -> tuple[Callable[[UtteranceResult], str], str]:
    """Return the function that gives an utterance's group for resampling, and what a group is called.

    Every interval of an error rate is resampled by these groups (:mod:`analysis.intervals.bootstrap`).
    Utterances of one speaker err alike, and so do readings of one sentence. Groups are speakers where all of
    them are known, else sentences. They are sentences too where all syllables are the true ones: such output
    is that of a language model on the reference syllables, to which the speaker makes no difference.
    """
    given = [one for one in utterances if one.reference_pinyin]
    from_reference = bool(given) and all(one.pinyin == one.reference_pinyin for one in given)
    if not from_reference and all(one.speaker for one in utterances):
        return (lambda one: one.speaker), "speaker"
    return (lambda one: as_text(one.reference_hanzi) or " ".join(one.reference_pinyin)), "sentence"


def tokens_of(utterance: UtteranceResult, level: str) -> tuple[Sequence[str], Sequence[str]]:
    """(reference, hypothesis) on the level of syllables or of hanzi."""
    if level == SYLLABLES:
        return utterance.reference_pinyin, utterance.pinyin
    return as_tokens(utterance.reference_hanzi), as_tokens(utterance.hanzi)
