"""Recognises recordings: segments with syllables, times, hanzi and alternatives.

A recording of any length is read block by block and cut at pauses. The acoustic model computes logits of many
pieces in batches of similar length, a CTC search (greedy, beam, with a syllable model, joint with the
converter, or over a list of phrases) decodes them, and a converter writes the hanzi. The results come out in
the order of the recordings.
"""

import heapq
import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass
from operator import attrgetter

import numpy as np

from model_language.converters.base import Converter
from model_language.search.joint import JointHypothesis, JointSearch
from model_speech.acoustic_logits import AcousticLogits
from model_speech.ctc.decoder import Decoder, Submit, decoding
from model_speech.ctc.forward_backward import sequence_score
from model_speech.ctc.greedy import Hypothesis
from model_speech.ctc.posteriors import confusion_network
from model_speech.ctc.shallow_fusion import Fusion
from recognition.confidence import (
    FEATURES,
    JOINT,
    JOINT_NGRAM,
    PLAIN,
    Calibration,
    frame_entropy,
    log_odds,
    syllable_features,
)
from recognition.phrases.search import PhraseSearch
from recognition.phrases.segments import phrase_segments
from recognition.pieces import WINDOW_SECONDS, Piece, Source, batches_of, read_parts, windows
from recognition.voice_activity import speech_stretches
from utils.arrays import softmax
from utils.errors import AudioError, ConfigError, RunError
from utils.hypotheses.confusion_network import ConfusionNetwork
from utils.hypotheses.recognition import Alternative, Ending, Inspection, Recognition, Segment, syllable_times
from utils.vocabulary import SPACE

OnError = Callable[[str, AudioError], None]


@dataclass(frozen=True, eq=False)
class _Decoded:
    """A piece of a recording after the first stage, with what the second stage needs.

    Attributes:
        start, seconds, padding: see :class:`~recognition.pieces.Piece`.
        hypotheses: of the CTC search, the best first.
        entropy: of each frame; None with phrases.
        logits: (T', C), for a search for phrases.
        network: the alternatives, for a joint search.
    """

    start: float
    seconds: float
    padding: float
    hypotheses: Sequence[Hypothesis]
    entropy: np.ndarray | None
    logits: np.ndarray | None = None
    network: ConfusionNetwork | None = None


class Recognizer:
    """Recordings → :class:`Segment` by segment, or one :class:`Recognition` each.

    Args:
        acoustic: first stage.
        converter: second stage; None gives syllables only.
        beam: prefixes kept by the beam search; 1 decodes greedily.
        n_best: hypotheses of each segment and of each recording.
        fusion: a language model of syllables for the beam search (:func:`recognition.loading.load_fusion`).
        joint: a search over syllables and hanzi together, in the confusion network of the best hypothesis.
        phrases: a list of phrases: only these are recognised, and there is no converter.
        workers: processes that decode; 0: this process decodes.
        window_seconds: audio that is collected before it is recognised; 0 recognises each piece at once.
        calibration: calibration of syllable confidences; None: none are computed.
        minimum_confidence: a segment with a lower mean confidence of its syllables has no text.

    Raises:
        ConfigError: ``n_best`` is larger than the beam, there is fusion without a beam, phrases together with
            a second stage, or a minimum confidence without a calibration.
    """

    def __init__(
        self,
        acoustic: AcousticLogits,
        converter: Converter | None = None,
        *,
        beam: int = 1,
        n_best: int = 1,
        fusion: Fusion | None = None,
        joint: JointSearch | None = None,
        workers: int = 0,
        window_seconds: float = WINDOW_SECONDS,
        phrases: PhraseSearch | None = None,
        calibration: Calibration | None = None,
        minimum_confidence: float = 0.0,
    ):
        self._kind = (JOINT_NGRAM if joint.has_ngrams else JOINT) if joint else PLAIN
        self.calibration = calibration or Calibration({})
        self._minimum_confidence = minimum_confidence
        if minimum_confidence and not self.calibration.covers(self._kind):
            raise ConfigError(
                "a minimum confidence needs a calibrated acoustic model",
                hint="python -m recognition.calibrate RUN --manifest dev.tsv calibrates it",
            )
        if phrases and (converter or joint):
            raise ConfigError("phrases need no converter and no joint search", hint="leave these out")
        if not 1 <= n_best <= (n_best if joint or phrases else beam):
            raise ConfigError(
                f"{n_best} hypotheses from a beam of {beam}", hint=f"use a beam of at least {n_best}"
            )
        if fusion and beam == 1:
            raise ConfigError("a language model of syllables needs a beam", hint="e.g. --beam 10")
        self.sample_rate = acoustic.features.sample_rate  # Hz
        self.acoustic, self.converter = acoustic, converter
        self.phrases, self._joint, self._n_best = phrases, joint, n_best
        n_best = 1 if joint or phrases else n_best
        self._decoder = Decoder(acoustic.vocabulary.blank_index, beam, n_best, fusion)
        self._workers, self._window_seconds = workers, window_seconds

    def recognise(self, sources: Iterable[Source], on_error: OnError | None = None) -> Iterator[Recognition]:
        """Recognise whole recordings, in their order.

        Args:
            sources: (name, audio file, samples or blocks of samples); may be a generator.
            on_error: called with the name and the error of a recording that can't be read, which is then
                skipped; without it the error is raised.

        Raises:
            AudioError: a recording can't be read, and there is no ``on_error``.
        """
        for name, events in self.segments(sources):
            *segments, ending = events
            if ending.error is None:
                yield self._join(name, segments, ending.seconds)
            elif on_error is None:
                raise ending.error
            else:
                on_error(name, ending.error)

    def segments(self, sources: Iterable[Source]) -> Iterator[tuple[str, Iterator[Segment | Ending]]]:
        """Recognise recordings of any length segment by segment, in constant memory.

        Args:
            sources: as for :meth:`recognise`.

        Yields:
            the name of each recording, and an iterator over its segments in order and one ending. Consume
            the iterator before the next recording.
        """
        events = self._events(sources)
        for (_, name), group in itertools.groupby(events, key=lambda event: event[:2]):
            yield name, (event for _, _, event in group)

    def recognise_pieces(self, pieces: Sequence[Piece]) -> list[list[Segment]]:
        """Recognise pieces of recordings in this process; with phrases a piece may have several segments.

        The segments are those of :meth:`segments` for recordings that are cut in the same way.
        """
        with decoding(self._decoder, 0) as submit:
            return self._recognise_pieces(pieces, submit)

    def piece(self, start: float, samples: np.ndarray) -> Piece:
        """A piece for :meth:`recognise_pieces` of samples (n,), mono in [-1, 1] at the model's sample rate.

        Args:
            start: seconds from the start of the recording.
            samples: the sound.
        """
        output_frame = round(self.acoustic.frame_seconds * self.sample_rate)
        return Piece.of_samples(start, samples, self.acoustic.features, output_frame)

    def segments_of_logits(self, logits: np.ndarray, start: float, seconds: float) -> list[Segment]:
        """Recognise a piece from its logits (T', C), T' ≥ 1, its start and its length in seconds."""
        (hypotheses,) = self._decoder.decode(logits[None], np.array([len(logits)]))
        piece = self._decoded((start, seconds, 0.0), hypotheses, frame_entropy(logits), logits)
        return self._finish([piece])[0]

    def scores(self, samples: np.ndarray, sequences: Sequence[Sequence[str]]) -> list[float] | None:
        """Scores of syllable sequences for one recording: the quantity that the search maximises.

        Args:
            samples: (samples,) in [-1, 1], mono, at the model's sample rate.
            sequences: canonical syllables.

        Returns:
            natural logarithms, -inf for syllables outside the vocabulary; None if the recording is cut at a
            pause, or if a joint search is used, which maximises another quantity.
        """
        whole = None if self._joint else self._whole(samples)
        if whole is None:
            return None
        vocabulary, logits = self.acoustic.vocabulary, whole[0]
        return [
            sequence_score(logits, vocabulary.encode(syllables), self._decoder.blank, self._decoder.fusion)
            if all(syllable in vocabulary for syllable in syllables)
            else -np.inf
            for syllables in sequences
        ]

    def inspect(self, samples: np.ndarray) -> Inspection | None:
        """The output of the acoustic model for one recording, for a plot.

        Args:
            samples: (samples,) in [-1, 1], mono, at the model's sample rate.

        Returns:
            None if the recording is cut at a pause.
        """
        whole = self._whole(samples)
        if whole is None:
            return None
        logits, piece = whole
        posteriors = softmax(logits).astype(np.float32)  # (T', C)
        frame_seconds = self.acoustic.frame_seconds
        start = piece.start - piece.padding
        return Inspection(posteriors, self.acoustic.vocabulary.tokens, frame_seconds, start)

    def _whole(self, samples: np.ndarray) -> tuple[np.ndarray, Piece] | None:
        """Logits (T', C) of a recording that is recognised in one piece, and the piece; else None."""
        stretches = list(speech_stretches([samples], self.sample_rate))
        if len(stretches) != 1:
            return None
        piece = self.piece(stretches[0].start / self.sample_rate, stretches[0].samples)
        logits, lengths = self.acoustic.logits([piece.features])
        return logits[0, : lengths[0]], piece

    def _events(self, sources: Iterable[Source]) -> Iterator[tuple[int, str, Segment | Ending]]:
        with decoding(self._decoder, self._workers) as submit:
            parts = read_parts(sources, self.sample_rate, self.piece)
            for window in windows(parts, self._window_seconds):
                pieces = [part for _, _, part in window if isinstance(part, Piece)]
                segments = iter(self._recognise_pieces(pieces, submit))
                for number, name, part in window:
                    for event in next(segments) if isinstance(part, Piece) else [part]:
                        yield number, name, event

    def _recognise_pieces(self, pieces: Sequence[Piece], submit: Submit) -> list[list[Segment]]:
        """Recognise each piece; only with phrases it may have several segments."""
        try:
            decoded = self._decode(pieces, submit)
        except BrokenExecutor as error:
            raise RunError(
                "a decoding process died", hint="the memory may be full: use fewer --workers"
            ) from error
        return self._finish([decoded[i] for i in range(len(pieces))])

    def _decode(self, pieces: Sequence[Piece], submit: Submit) -> dict[int, _Decoded]:
        """The first stage: each piece by its index. While a batch is decoded, the next one is computed."""
        submitted, decoded = deque(), {}
        for batch in batches_of([len(piece.features) for piece in pieces]):
            logits, lengths = self.acoustic.logits([pieces[i].features for i in batch])
            nothing = [None] * len(batch)
            valid = [rows[:length] for rows, length in zip(logits, lengths, strict=True)]
            entropy = nothing if self.phrases else [frame_entropy(rows) for rows in valid]
            # Only some searches need the logits again: they take the most memory of all.
            kept = valid if self._joint or self.phrases else nothing
            submitted.append((batch, submit(logits, lengths), entropy, kept))
        while submitted:  # a batch's logits are dropped when its alternatives are known
            batch, future, entropy, kept = submitted.popleft()
            for i, *found in zip(batch, future.result(), entropy, kept, strict=True):
                decoded[i] = self._decoded(pieces[i].span, *found)
        return decoded

    def _decoded(
        self,
        span: tuple[float, float, float],
        hypotheses: Sequence[Hypothesis],
        entropy: np.ndarray | None,
        logits: np.ndarray | None,
    ) -> _Decoded:
        """A piece with this start, length and padding; for a joint search alternatives replace the logits."""
        if not self._joint:
            return _Decoded(*span, hypotheses, entropy, logits)
        network = confusion_network(logits, hypotheses[0], self.acoustic.vocabulary)
        return _Decoded(*span, hypotheses, entropy, network=network)

    def _finish(self, pieces: Sequence[_Decoded]) -> list[list[Segment]]:
        """The second stage: segments of each piece."""
        if self.phrases:
            return [self._phrase_segments(piece) for piece in pieces]
        if self._joint:
            networks = [piece.network for piece in pieces]
            hypotheses = self._joint.search(networks, self._n_best)
            return [[self._joint_segment(*each)] for each in zip(pieces, hypotheses, strict=True)]
        by_syllables = [self._by_syllables(piece.hypotheses) for piece in pieces]
        hanzi = self._convert({pinyin for hypotheses in by_syllables for pinyin in hypotheses})
        found = zip(pieces, by_syllables, strict=True)
        return [[self._plain_segment(piece, hypotheses, hanzi)] for piece, hypotheses in found]

    def _by_syllables(self, hypotheses: Sequence[Hypothesis]) -> dict[tuple[str, ...], Hypothesis]:
        """Hypotheses by their syllables, without the space token; of equal ones the first."""
        found: dict[tuple[str, ...], Hypothesis] = {}
        for hypothesis in hypotheses:
            tokens = self.acoustic.vocabulary.decode(hypothesis.tokens)
            found.setdefault(tuple(token for token in tokens if token != SPACE), hypothesis)
        return found

    def _plain_segment(
        self,
        piece: _Decoded,
        hypotheses: Mapping[tuple[str, ...], Hypothesis],
        hanzi: Mapping[tuple[str, ...], str],
    ) -> Segment:
        _, frames, posteriors = self.spoken(next(iter(hypotheses.values())))
        n_best = (
            Alternative(pinyin, hanzi[pinyin], hypothesis.score) for pinyin, hypothesis in hypotheses.items()
        )
        return self._segment(piece, frames, n_best, syllable_features(frames, posteriors, piece.entropy))

    def spoken(self, hypothesis: Hypothesis) -> tuple[tuple[str, ...], tuple[int, ...], tuple[float, ...]]:
        """The syllables of a hypothesis, their frames and their posteriors, without the space token."""
        tokens = self.acoustic.vocabulary.decode(hypothesis.tokens)
        found = zip(tokens, hypothesis.frames, hypothesis.posteriors, strict=True)
        return tuple(zip(*(each for each in found if each[0] != SPACE), strict=True)) or ((), (), ())

    def _phrase_segments(self, piece: _Decoded) -> list[Segment]:
        """The utterances of a piece, compared with the phrases."""
        pinyin, frames, _ = self.spoken(piece.hypotheses[0])
        lead_seconds = self.calibration.lead_seconds
        settings = (self.acoustic.frame_seconds, piece.start, piece.seconds, lead_seconds, piece.padding)
        return list(phrase_segments(self.phrases, piece.logits, pinyin, frames, *settings))

    def _joint_segment(self, piece: _Decoded, hypotheses: Sequence[JointHypothesis]) -> Segment:
        slots = [piece.network.slots[slot] for slot in hypotheses[0].slots]
        frames = [slot.frame for slot in slots]
        posteriors = [
            np.exp(slot.log_posteriors[slot.syllables.index(syllable)])
            for slot, syllable in zip(slots, hypotheses[0].pinyin, strict=True)
        ]
        n_best = (
            Alternative(hypothesis.pinyin, hypothesis.hanzi, hypothesis.score, hypothesis.confidence)
            for hypothesis in hypotheses
        )
        hanzi = None
        if self._kind == JOINT_NGRAM:
            gaps = [np.exp(max(slot.log_posteriors)) for slot in slots] - np.array(posteriors)
            agreement = log_odds(hypotheses[0].confidence)
            hanzi = np.column_stack([gaps, self._joint.evidence(hypotheses[0]), agreement])
        features = syllable_features(frames, posteriors, piece.entropy, hanzi)
        return self._segment(piece, frames, n_best, features)

    def _segment(
        self, piece: _Decoded, frames: Sequence[int], n_best: Iterable[Alternative], features: np.ndarray
    ) -> Segment:
        """The segment of a piece, from the output frames and features of the best hypothesis's syllables."""
        start, end = piece.start, piece.start + piece.seconds
        confidence = self.calibration.confidence(self._kind, features)
        if confidence and np.mean(confidence) < self._minimum_confidence:
            return Segment(start, end, (), (Alternative((), "", 0.0),), certainty=features[:0])
        lead_seconds = self.calibration.lead_seconds - piece.padding
        times = syllable_times(frames, self.acoustic.frame_seconds, piece.seconds, start, lead_seconds)
        return Segment(start, end, tuple(times), tuple(n_best), confidence=confidence, certainty=features)

    def _convert(self, sentences: set[tuple[str, ...]]) -> Mapping[tuple[str, ...], str]:
        ordered = sorted(sentences)
        if self.converter is None:
            return dict.fromkeys(ordered, "")
        return dict(zip(ordered, self.converter.convert(ordered), strict=True))

    def _join(self, name: str, segments: Sequence[Segment], seconds: float) -> Recognition:
        """One recording from its segments; its n best hypotheses have the highest sums of scores."""
        certainty = [found.certainty for found in segments if found.certainty is not None and found.times]
        best, score = [Alternative((), "", 0.0)], attrgetter("score")
        for segment in segments:
            joined = (left + right for left, right in itertools.product(best, segment.n_best))
            # Equal texts come from different cuts (ma + ma ni, ma ma + ni): the last and best is kept.
            unique = {(found.pinyin, found.hanzi): found for found in sorted(joined, key=score)}
            best = heapq.nlargest(self._n_best, unique.values(), key=score)
        return Recognition(
            id=name,
            seconds=seconds,
            pinyin=best[0].pinyin,
            hanzi=best[0].hanzi,
            score=best[0].score,
            times=tuple(itertools.chain.from_iterable(segment.times for segment in segments)),
            n_best=tuple(best),
            phrases=tuple(segment.phrase for segment in segments if segment.phrase),
            confidence=tuple(itertools.chain.from_iterable(segment.confidence for segment in segments)),
            certainty=np.concatenate(certainty or [np.zeros((0, len(FEATURES)))]),
        )
