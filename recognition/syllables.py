"""Reads the syllables of CTC hypotheses; without a joint search a converter then writes their hanzi."""

from collections.abc import Sequence

from model_language.converters.user_word_converter import AnyConverter
from utils.hypotheses.recognition import Alternative, Hypothesis
from utils.mandarin.output_units import read_tokens
from utils.vocabulary import Vocabulary


def spoken(
    hypothesis: Hypothesis, vocabulary: Vocabulary
) -> tuple[tuple[str, ...], tuple[int, ...], tuple[float, ...], str]:
    """The syllables of a hypothesis, their frames and posteriors, and their hanzi if these are the units.

    The space token is left out.
    """
    tokens = vocabulary.decode(hypothesis.tokens)
    pinyin, kept, hanzi = read_tokens(vocabulary.units, tokens)
    frames = tuple(hypothesis.frames[index] for index in kept)
    posteriors = tuple(hypothesis.posteriors[index] for index in kept)
    return pinyin, frames, posteriors, hanzi


def converted(
    utterances: Sequence[Sequence[Hypothesis]], vocabulary: Vocabulary, converter: AnyConverter | None
) -> list[list[Alternative]]:
    """The hypotheses of each utterance with their hanzi; of those with equal syllables and hanzi the first.

    Args:
        utterances: the hypotheses of each, the best first.
        vocabulary: the classes of their tokens.
        converter: writes hanzi where these are not the output units; None: there are none.
    """
    by_text: list[dict[tuple[tuple[str, ...], str], float]] = []
    for hypotheses in utterances:
        scores: dict[tuple[tuple[str, ...], str], float] = {}
        for hypothesis in hypotheses:
            pinyin, _, _, hanzi = spoken(hypothesis, vocabulary)
            scores.setdefault((pinyin, hanzi), hypothesis.score)
        by_text.append(scores)
    without = sorted({pinyin for scores in by_text for pinyin, hanzi in scores if not hanzi})
    written = converter.convert(without) if converter is not None else [""] * len(without)
    hanzi_of = dict(zip(without, written, strict=True))
    return [
        [Alternative(pinyin, hanzi or hanzi_of[pinyin], score) for (pinyin, hanzi), score in scores.items()]
        for scores in by_text
    ]
