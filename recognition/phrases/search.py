"""Searches the logits of an utterance for the phrases of a list that fit best, with scores and confidences.

All pronunciations share one prefix tree, which is searched by the Viterbi algorithm; a phrase whose
confidence is too low is refused.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from model_speech.ctc.alignment import best_alignments
from model_speech.ctc.greedy import log_sum_exp
from model_speech.ctc.prefix_tree import PrefixTree
from recognition.options import PHRASE_THRESHOLD
from recognition.phrases.confidence import Evidence, confidence
from recognition.phrases.phrase_list import Phrase
from utils.errors import ConfigError, PhraseError
from utils.hypotheses.phrases import PhraseMatch, PhraseResult
from utils.hypotheses.recognition import syllable_times
from utils.vocabulary import SPACE, Vocabulary

# Of consecutive frames in which the blank is more probable than this, only the first one is searched: all
# other classes together have 1e-3 there. This saves 40 % of the time.
SILENT = 0.999


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
    """Finds the phrase that was said. Only whole phrases count: nothing may be said before or after one.

    Args:
        phrases: see :func:`read_phrases`.
        vocabulary: the acoustic model's.
        threshold: least confidence of a phrase that is accepted, 0 to 1.
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
        if not 0 <= threshold <= 1:
            raise ConfigError(f"a phrase threshold of {threshold}", hint="choose one from 0 to 1")
        self.phrases, self.threshold = tuple(phrases), threshold
        self._n_best = n_best
        self._vocabulary = vocabulary
        self._blank, self._space = vocabulary.blank_index, vocabulary.index(SPACE)
        sequences, owners = [], []
        for index, phrase in enumerate(phrases):
            known = [
                ways for ways in phrase.pronunciations if all(syllable in vocabulary for syllable in ways)
            ]
            if not known:
                raise _unknown_syllables(phrase, vocabulary, f"{source}:{phrase.line}")
            sequences += map(vocabulary.encode, known)
            owners += [index] * len(known)
        self._tree = PrefixTree.build(sequences)
        self._sequences = sequences
        self._starts = np.flatnonzero(np.diff(owners, prepend=-1))  # (phrases,), first sequence of each

    def homophones(self) -> list[tuple[Phrase, Phrase]]:
        """Pairs of phrases that sound the same and can't be told apart: (a later one, the first one)."""
        first: dict[int, Phrase] = {}
        ends = np.split(self._tree.ends, self._starts[1:])
        pairs = []
        for phrase, nodes in zip(self.phrases, ends, strict=True):
            others = [first.setdefault(node, phrase) for node in nodes.tolist()]
            pairs += [(phrase, other) for other in others if other is not phrase][:1]
        return pairs

    def search(self, logits: np.ndarray, frame_seconds: float, start: float = 0.0) -> PhraseResult:
        """Compare a stretch of speech with all phrases.

        Args:
            logits: (T, C) float, valid frames only, T ≥ 1.
            frame_seconds: seconds from one frame to the next.
            start: start of the stretch, in seconds from the start of the recording.
        """
        matches = []
        for candidate in self.candidates(logits):
            match = PhraseMatch(
                text=candidate.phrase.text,
                line=candidate.phrase.line,
                slots=candidate.phrase.slots,
                pinyin=candidate.pinyin,
                times=tuple(
                    syllable_times(candidate.frames, frame_seconds, len(logits) * frame_seconds, start)
                ),
                score=candidate.evidence.ratio,
                confidence=confidence(candidate.evidence),
            )
            matches.append(match)
        return PhraseResult(tuple(matches), bool(matches) and matches[0].confidence >= self.threshold)

    def candidates(self, logits: np.ndarray) -> list[Candidate]:
        """The phrases with the best paths through the logits (T, C), the best first."""
        log_probs = logits - log_sum_exp(logits[None])[0, :, None].astype(logits.dtype)
        # The space stands for no sound, like the blank.
        log_probs[:, self._blank] = np.logaddexp(log_probs[:, self._blank], log_probs[:, self._space])
        log_probs[:, self._space] = -np.inf
        silent = log_probs[:, self._blank] > np.log(SILENT)
        silent[1:] &= silent[:-1]  # the first frame of a silence is kept: it separates equal syllables
        silent[:1] = False
        kept = np.flatnonzero(~silent)
        log_probs = log_probs[kept]
        node_scores = self._tree.path_scores(log_probs, self._blank)
        return [
            self._candidate(phrase, sequence, log_probs, kept, node_scores)
            for phrase, sequence in self._best_phrases(node_scores[self._tree.ends])
        ]

    def _best_phrases(self, scores: np.ndarray) -> list[tuple[int, int]]:
        """The best phrases, each with its best sequence, from the scores (S,) of the sequences."""
        by_phrase = np.maximum.reduceat(scores, self._starts)
        count = min(self._n_best, len(by_phrase))
        chosen = np.argpartition(-by_phrase, count - 1)[:count]
        chosen = chosen[np.lexsort((chosen, -by_phrase[chosen]))]
        ends = [*self._starts[1:], len(scores)]
        return [
            (phrase, int(self._starts[phrase] + scores[self._starts[phrase] : ends[phrase]].argmax()))
            for phrase in chosen.tolist()
            if by_phrase[phrase] > -np.inf
        ]

    def _candidate(
        self, phrase: int, sequence: int, log_probs: np.ndarray, kept: np.ndarray, node_scores: np.ndarray
    ) -> Candidate:
        """A phrase with its best sequence; what tells it from other speech. ``kept``: frames searched."""
        tokens, score = self._sequences[sequence], float(node_scores[self._tree.ends[sequence]])
        lengths, row = np.array([len(log_probs)]), np.array([0])
        (alignment,) = best_alignments(log_probs[None], lengths, row, [tokens], self._blank)
        free = log_probs.max(axis=1)  # (T,), of the best free path
        following = self._starts[phrase + 1] if phrase + 1 < len(self._starts) else len(self._tree.ends)
        others = node_scores.copy()
        others[self._tree.ends[self._starts[phrase] : following]] = -np.inf
        evidence = Evidence(
            ratio=min(0.0, (score - float(free.sum())) / len(tokens)),
            worst=float((alignment.scores - free).min()),
            margin=score - float(others[self._tree.ends].max()),
            absolute=score / len(tokens),
            syllables=len(tokens),
        )
        frames = tuple(kept[list(alignment.frames)].tolist())
        return Candidate(self.phrases[phrase], tuple(self._vocabulary.decode(tokens)), frames, evidence)


def _unknown_syllables(phrase: Phrase, vocabulary: Vocabulary, where: str) -> PhraseError:
    unknown = sorted({name for name in phrase.pronunciations[0] if name not in vocabulary})
    what = f"the acoustic model does not know {', '.join(unknown)} of '{phrase.text}'"
    hint = "it was trained with a small vocabulary: use another one, or another word"
    return PhraseError(what, where=where, hint=hint)
