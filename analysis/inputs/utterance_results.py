"""The result of one utterance (:class:`UtteranceResult`): reference, syllables, hanzi, n-best and scores.

Tests of models and files of any recogniser give these results; all of the analysis reads them. The first
stage recognises syllables, the second converts them to hanzi.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from rapidfuzz.distance import Levenshtein

from analysis.inputs.normalisation import hanzi_tokens
from utils.hypotheses.recognition import Alternative
from utils.mandarin.pinyin import is_hanzi

SPEECH, LANGUAGE, PIPELINE, KEYWORD = "speech", "language", "pipeline", "keyword"
SYLLABLES, HANZI = "syllables", "hanzi"
LEVELS = (SYLLABLES, HANZI)
REFERENCE, OUTPUT = "reference", "output"
TASK_LEVELS = {SPEECH: (SYLLABLES,), LANGUAGE: (HANZI,), PIPELINE: LEVELS}


@dataclass(frozen=True, slots=True)
class Scores:
    """The log-probabilities that one stage gives to the reference and to its own output."""

    reference: float
    output: float


@dataclass(frozen=True, slots=True)
class UtteranceResult:
    """Reference and output of one utterance; what a task does not have is empty.

    Attributes:
        id, speaker, seconds: id, speaker and duration of the recording; ``""`` and 0.0 without one.
        reference_pinyin, pinyin: canonical syllables, of the reference and recognised.
        reference_hanzi, hanzi: of the reference and recognised, as tokens or as one string; each character is
            a token, but a Latin word or a number is one token.
        gold_hanzi: output of the second stage for ``reference_pinyin``; empty without this gold pass.
        spoken_pinyin: the syllables as pronounced, where the corpus gives them and they differ from the
            citation reading.
        n_best: alternatives, the best first; empty if only one was computed.
        audio: path of the recording; ``""`` without one.
        times: (start, end) in seconds of each recognised syllable; empty if not known.
        snr: estimated signal-to-noise ratio in dB (:mod:`analysis.inputs.sound`); None if not known.
        pitch: median of the voice in Hz (:mod:`analysis.inputs.sound`); None if not known.
        speech_scores: scores of ``reference_pinyin`` and ``pinyin`` by the first stage; None if not known.
        language_scores: of ``reference_hanzi`` and ``gold_hanzi`` given ``reference_pinyin``, by the second
            stage; None if not known, or if both are equal.
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
    pitch: float | None = None
    speech_scores: Scores | None = None
    language_scores: Scores | None = None


@dataclass(frozen=True)
class SystemOutput:
    """The output of one system for a whole test set.

    Attributes:
        name: name of the system.
        utterances: results of all utterances.
        automatic_pinyin: ``reference``, ``output`` or both, whose syllables are pypinyin's reading of their
            hanzi. A correct hanzi then has the syllable of the reference (:func:`same_reading`).
    """

    name: str
    utterances: Sequence[UtteranceResult]
    automatic_pinyin: tuple[str, ...] = ()


def as_text(tokens: Sequence[str]) -> str:
    """Hanzi tokens as one text, with spaces only between two neighbours that are not hanzi."""
    if isinstance(tokens, str):
        return tokens
    written: list[str] = []
    for token in tokens:
        if written and not is_hanzi(token) and not is_hanzi(written[-1]):
            written.append(" ")
        written.append(token)
    return "".join(written)


def as_tokens(text: Sequence[str]) -> Sequence[str]:
    """The tokens of a text: hanzi, Latin words and numbers; a sequence of tokens is returned unchanged."""
    return hanzi_tokens(text) if isinstance(text, str) else text


def by_token(utterance: UtteranceResult) -> UtteranceResult:
    """The same utterance with its hanzi as tokens and one syllable, or gold hanzi, for each token.

    Where there are as many of them as hanzi, a Latin word or a number has ``""``. Where the numbers differ,
    nothing says which belongs to which token: there are none.
    """
    reference, hypothesis = tokens_of(utterance, HANZI)
    return replace(
        utterance,
        reference_hanzi=reference,
        hanzi=hypothesis,
        reference_pinyin=one_per_token(utterance.reference_pinyin, reference),
        spoken_pinyin=one_per_token(utterance.spoken_pinyin, reference),
        gold_hanzi=one_per_token(as_tokens(utterance.gold_hanzi), reference),
        pinyin=one_per_token(utterance.pinyin, hypothesis),
    )


def resampled_by(utterances: Sequence[UtteranceResult]) -> tuple[Callable[[UtteranceResult], str], str]:
    """Return the function that gives an utterance's group for resampling, and what a group is called.

    Every interval of an error rate is resampled by these groups (:mod:`analysis.intervals.bootstrap`),
    because the errors of one speaker are correlated, as are those of repetitions of one sentence. Groups are
    speakers if all speakers are known, else sentences. They are also sentences if all syllables equal the
    reference: such output is that of a language model alone, for which the speaker makes no difference.
    """
    with_pinyin = [utterance for utterance in utterances if utterance.reference_pinyin]
    from_reference = bool(with_pinyin) and all(each.pinyin == each.reference_pinyin for each in with_pinyin)
    if not from_reference and all(utterance.speaker for utterance in utterances):
        return (lambda utterance: utterance.speaker), "speaker"
    return (lambda each: as_text(each.reference_hanzi) or " ".join(each.reference_pinyin)), "sentence"


def tokens_of(utterance: UtteranceResult, level: str) -> tuple[Sequence[str], Sequence[str]]:
    """(reference, hypothesis) on the level of syllables or of hanzi."""
    if level == SYLLABLES:
        return utterance.reference_pinyin, utterance.pinyin
    return as_tokens(utterance.reference_hanzi), as_tokens(utterance.hanzi)


def one_per_token(items: Sequence[str], tokens: Sequence[str]) -> tuple[str, ...]:
    """Items, such as syllables, with one for each token, as :func:`by_token` describes."""
    if len(items) == len(tokens):
        return tuple(items)
    if len(items) != sum(map(is_hanzi, tokens)):
        return ()
    remaining = iter(items)
    return tuple(next(remaining) if is_hanzi(token) else "" for token in tokens)


def same_reading(
    pinyin: Sequence[str], hanzi: Sequence[str], true_pinyin: Sequence[str], true_hanzi: Sequence[str]
) -> tuple[str, ...]:
    """The syllables of an output; a hanzi that equals the aligned one of the reference has its syllable.

    For two texts of which pypinyin reads one or both: if it reads the same hanzi differently, that is no
    error of the recogniser.
    """
    syllables, true_syllables = one_per_token(pinyin, hanzi), one_per_token(true_pinyin, true_hanzi)
    if not syllables or not true_syllables:
        return tuple(pinyin)
    shared = list(syllables)
    for position, other in equal_tokens(true_hanzi, hanzi):
        shared[other] = true_syllables[position]
    return tuple(filter(None, shared))


def equal_tokens(reference: Sequence[str], hypothesis: Sequence[str]) -> Iterator[tuple[int, int]]:
    """The positions in both texts of the tokens that are aligned and equal."""
    for block in Levenshtein.opcodes(reference, hypothesis):
        if block.tag == "equal":
            references = range(block.src_start, block.src_end)
            yield from zip(references, range(block.dest_start, block.dest_end), strict=True)
