"""Searches the logits of an utterance for the phrases of a list that fit best, with scores and confidences.

Bounds exclude most pronunciations, the others are searched by the Viterbi algorithm; an utterance is rejected
if probably no phrase of the list was spoken.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from model_speech.ctc.alignment import best_alignments
from model_speech.ctc.best_sequences import SequenceTable
from recognition.options import PHRASE_THRESHOLD, SearchOptions
from recognition.phrases.confidence import SHARPNESS, Evidence
from recognition.phrases.phrase_list import Phrase, read_phrases
from utils.arrays import log_sum_exp, softmax
from utils.errors import PhraseError, require
from utils.hypotheses.phrases import PhraseMatch, PhraseResult
from utils.hypotheses.recognition import syllable_times
from utils.vocabulary import SPACE, Vocabulary

# Of consecutive frames in which the blank is more probable than this, only the first one is searched: all
# other classes together have 1e-3 there. This saves 40 % of the time.
SILENT = 0.999
# A frame's probability of a class is at least this, so that a single frame does not exclude a phrase.
_LOWEST = 1e-5
# Phrases whose score is further below the best ones have no share in the probability.
_MARGIN = 4.0


@dataclass(frozen=True)
class Candidate:
    """A phrase, compared with a stretch of speech.

    Attributes:
        phrase: phrase of the list.
        pinyin: the pronunciation that fits best.
        frames: output frame in which each syllable peaks.
        evidence: how well it fits.
    """

    phrase: Phrase
    pinyin: tuple[str, ...]
    frames: tuple[int, ...]
    evidence: Evidence


class PhraseSearch:
    """Finds the phrase that was spoken. Only whole phrases count: no speech may precede or follow one.

    Args:
        phrases: see :func:`read_phrases`.
        vocabulary: the acoustic model's.
        threshold: minimum probability, 0 to 1, that a phrase of the list was spoken, for it to be accepted.
        n_best: phrases in each result.
        source: name of the file, for messages.

    Raises:
        PhraseError: the acoustic model does not know the syllables of a phrase.
        ConfigError: the threshold is outside 0 to 1.
    """

    def __init__(
        self,
        phrases: Sequence[Phrase],
        vocabulary: Vocabulary,
        threshold: float = PHRASE_THRESHOLD,
        n_best: int = 1,
        source: str = "phrases",
    ):
        require(0 <= threshold <= 1, f"a phrase threshold of {threshold}", hint="choose one from 0 to 1")
        self.phrases, self.threshold = tuple(phrases), threshold
        self._n_best = n_best
        self._vocabulary = vocabulary
        self._blank = vocabulary.blank_index
        self._sequences, owners = known_sequences(phrases, vocabulary, source)
        self._table = SequenceTable.build(self._sequences, owners)
        self._starts = np.flatnonzero(np.diff(owners, prepend=-1))  # (phrases,), first sequence of each

    def homophones(self) -> list[tuple[Phrase, Phrase]]:
        """Pairs of phrases with the same pronunciation, which cannot be distinguished: (later, first)."""
        first: dict[tuple[str, ...], Phrase] = {}
        pairs = []
        for phrase in self.phrases:
            others = [first.setdefault(pinyin, phrase) for pinyin in phrase.pronunciations]
            pairs += [(phrase, other) for other in others if other is not phrase][:1]
        return pairs

    def homophone_warnings(self, most: int = 10) -> list[str]:
        """A warning for each of the first ``most`` pairs of :meth:`homophones`, and how many there are."""
        pairs = self.homophones()
        warnings = [
            f"'{phrase.text}' (line {phrase.line}) sounds like '{first.text}' (line {first.line}), which is "
            "recognised instead"
            for phrase, first in pairs[:most]
        ]
        return warnings + [f"{len(pairs)} phrases sound like an earlier one"] * (len(pairs) > most)

    def search(
        self,
        logits: np.ndarray,
        frame_seconds: float,
        start: float = 0.0,
        lead_seconds: float = 0.0,
        seconds: float | None = None,
    ) -> PhraseResult:
        """Compare a stretch of speech with all phrases.

        Args:
            logits: (T, C) float, valid frames only, T ≥ 1.
            frame_seconds: seconds from one frame to the next.
            start: start of the stretch, in seconds from the start of the recording.
            lead_seconds: see :func:`utils.hypotheses.recognition.syllable_times`.
            seconds: length of the stretch; None: that of its frames.
        """
        found = self.candidates(logits)
        seconds = len(logits) * frame_seconds if seconds is None else seconds
        matches = tuple(
            PhraseMatch(
                text=candidate.phrase.text,
                line=candidate.phrase.line,
                slots=candidate.phrase.slots,
                pinyin=candidate.pinyin,
                times=tuple(syllable_times(candidate.frames, frame_seconds, seconds, start, lead_seconds)),
                score=candidate.evidence.ratio,
                confidence=candidate.evidence.confidence,
            )
            for candidate in found
        )
        return PhraseResult(matches, bool(found) and found[0].evidence.listed >= self.threshold)

    def candidates(self, logits: np.ndarray) -> list[Candidate]:
        """The phrases with the best paths through the logits (T, C), the best first."""
        normaliser = log_sum_exp(logits[None])[0]
        kept = self._frames_searched(logits, normaliser)
        log_probs = phrase_log_probs(logits[kept], normaliser[kept], self._vocabulary)
        scores = self._table.best(log_probs, self._blank, self._n_best, _MARGIN)
        by_phrase = np.maximum.reduceat(scores, self._starts)
        ranking = np.argsort(-by_phrase, kind="stable")[: self._n_best]
        if by_phrase.max() == -np.inf:
            return []
        shares = softmax(SHARPNESS * by_phrase)
        return [
            self._candidate(phrase, scores, float(shares[phrase]), log_probs, kept)
            for phrase in ranking.tolist()
            if by_phrase[phrase] > -np.inf
        ]

    def _frames_searched(self, logits: np.ndarray, normaliser: np.ndarray) -> np.ndarray:
        """Indices of the frames (T,) that are no silence, with the first one of each silence."""
        soundless = logits[:, _soundless(self._vocabulary)]
        no_sound = np.logaddexp.reduce(soundless, axis=1) - normaliser
        silent = no_sound > np.log(SILENT)
        silent[1:] &= silent[:-1]  # the first frame is kept: it separates equal syllables
        silent[:1] = False
        return np.flatnonzero(~silent)

    def _candidate(
        self, phrase: int, scores: np.ndarray, share: float, log_probs: np.ndarray, kept: np.ndarray
    ) -> Candidate:
        """A phrase with its best sequence and the evidence for it. ``kept``: the frames searched."""
        start = self._starts[phrase]
        end = self._starts[phrase + 1] if phrase + 1 < len(self._starts) else len(scores)
        sequence = int(start + scores[start:end].argmax())
        tokens, score = self._sequences[sequence], float(scores[sequence])
        lengths, row = np.array([len(log_probs)]), np.array([0])
        (alignment,) = best_alignments(log_probs[None], lengths, row, [tokens], self._blank)
        free = log_probs.max(axis=1)  # (T,), of the best free path
        evidence = Evidence(
            ratio=min(0.0, (score - float(free.sum())) / len(tokens)),
            worst=float((alignment.scores - free).min()),
            absolute=score / len(tokens),
            syllables=len(tokens),
            share=share,
        )
        frames = tuple(kept[list(alignment.frames)].tolist())
        return Candidate(self.phrases[phrase], tuple(self._vocabulary.decode(tokens)), frames, evidence)


def _soundless(vocabulary: Vocabulary) -> list[int]:
    """The classes that stand for no sound: the blank, and the space if there is one."""
    return [vocabulary.blank_index, *([vocabulary.index(SPACE)] if SPACE in vocabulary else [])]


def phrase_log_probs(logits: np.ndarray, normaliser: np.ndarray, vocabulary: Vocabulary) -> np.ndarray:
    """Log-probabilities with a lower limit; a space stands for no sound, like the blank.

    Args:
        logits: (T, C) float.
        normaliser: (T,) their log-sum-exp.
        vocabulary: the acoustic model's.

    Returns:
        (T, C), of the dtype of the logits.
    """
    blank, *spaces = _soundless(vocabulary)
    log_probs = logits - normaliser[:, None].astype(logits.dtype)
    log_probs[:, blank] = np.logaddexp.reduce(log_probs[:, [blank, *spaces]], axis=1)
    log_probs[:, spaces] = -np.inf
    return np.maximum(log_probs, np.log(_LOWEST), out=log_probs)


def load_phrases(search: SearchOptions, vocabulary: Vocabulary) -> PhraseSearch:
    """The search for the phrases of the file ``search.phrases``.

    Raises:
        PhraseError: the file is wrong, or the acoustic model does not know its syllables.
    """
    assert search.phrases
    phrases, source = read_phrases(search.phrases), str(search.phrases)
    return PhraseSearch(phrases, vocabulary, search.phrase_threshold, search.n_best, source)


def known_sequences(
    phrases: Sequence[Phrase], vocabulary: Vocabulary, source: str
) -> tuple[list[list[int]], list[int]]:
    """The token sequences of all pronunciations that an acoustic model knows, and the phrase of each.

    Raises:
        PhraseError: it knows no pronunciation of a phrase.
    """
    sequences: list[list[int]] = []
    owners: list[int] = []
    for index, phrase in enumerate(phrases):
        known = [ways for ways in phrase.pronunciations if all(syllable in vocabulary for syllable in ways)]
        if not known:
            raise _unknown_syllables(phrase, vocabulary, f"{source}:{phrase.line}")
        sequences += [vocabulary.encode(ways).tolist() for ways in known]
        owners += [index] * len(known)
    return sequences, owners


def _unknown_syllables(phrase: Phrase, vocabulary: Vocabulary, where: str) -> PhraseError:
    unknown = sorted({name for name in phrase.pronunciations[0] if name not in vocabulary})
    return PhraseError(
        f"the acoustic model does not know {', '.join(unknown)} of '{phrase.text}'",
        where=where,
        hint="it was trained with a small vocabulary: use another one, or another word",
    )
