"""Recognises recordings: segments with syllables, times, hanzi and alternatives.

A recording of any length is read block by block and cut at pauses. The acoustic model computes logits of many
pieces in batches of similar length, a CTC search (greedy, beam, with a syllable model, joint with the
converter, or over a list of phrases) decodes them, and a converter writes the hanzi. The results come out in
the order of the recordings.
"""

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from model_language.converters.user_word_converter import AnyConverter, UserWordConverter
from model_language.punctuation import Punctuation, punctuated
from model_language.search.joint import JointSearch
from model_language.search.sequences import SequenceSearch
from model_language.search.user_words import UserWords
from model_speech.acoustic_logits import AcousticLogits
from model_speech.ctc.decoder import Decoder, Submit, decoding
from model_speech.ctc.posteriors import confusion_network
from model_speech.ctc.shallow_fusion import Fusion
from recognition.confidence import (
    JOINT,
    JOINT_NGRAM,
    PLAIN,
    Calibration,
    frame_entropy,
    log_odds,
    syllable_features,
)
from recognition.no_speech import NO_SPEECH, no_speech_probability
from recognition.phrases.search import PhraseSearch
from recognition.phrases.segments import phrase_segments
from recognition.pieces import Piece, Source, batches_of, windows
from recognition.syllables import converted, spoken
from streaming.speech.recognizer import LiveStream, RecognitionStream
from utils.audio.samples import resampled
from utils.errors import AudioError, ConfigError, RunError
from utils.hypotheses.recognition import Alternative, Ending, Hypothesis, Recognition, syllable_times
from utils.hypotheses.whole_recordings import whole_recording
from utils.mandarin.output_units import HANZI

OnError = Callable[[str, AudioError], None]


@dataclass(frozen=True, eq=False)
class _Decoded:
    """What the second stage needs of a piece: its ``logits`` for phrases, its ``network`` for a joint search.

    Attributes:
        piece: the piece.
        hypotheses: of the CTC search, the best first.
        entropy: (T',) of each frame; None with phrases.
        logits: (T', C); None without phrases.
        network: the alternatives, a `ConfusionNetwork`; None without a joint search.
    """

    piece: Piece
    hypotheses: Sequence[Hypothesis]
    entropy: Any
    logits: Any = None
    network: Any = None


class Recognizer:
    """Recordings → :class:`Recognition` by segment, or one :class:`Recognition` each.

    Args:
        acoustic: first stage.
        converter: second stage; None gives syllables only.
        beam: prefixes kept by the beam search; 1 decodes greedily.
        n_best: hypotheses of each segment and of each recording.
        fusion: a language model of syllables for the beam search (:func:`recognition.loading.load_fusion`).
        joint: a search over syllables and hanzi together, in the confusion network of the best hypothesis.
        phrases: a list of phrases: only these are recognised, and there is no converter.
        workers: processes that decode; 0: this process decodes.
        calibration: calibration of syllable confidences; None: none are computed.
        minimum_confidence: a segment with a lower mean confidence of its syllables has no text.
        new_stream: makes a live stream with this recognizer, of it.
        punctuation: the network that adds punctuation to the texts of recordings and of live streams; None:
            they have none.

    Raises:
        ConfigError: ``n_best`` is larger than the beam, phrases together with a second stage, a minimum
            confidence without a calibration, or what the output units do not allow.
    """

    def __init__(
        self,
        acoustic: AcousticLogits,
        converter: AnyConverter | None = None,
        *,
        beam: int = 1,
        n_best: int = 1,
        fusion: Fusion | None = None,
        joint: JointSearch | SequenceSearch | None = None,
        workers: int = 0,
        phrases: PhraseSearch | None = None,
        calibration: Calibration | None = None,
        minimum_confidence: float = 0.0,
        new_stream: Callable[["Recognizer"], LiveStream] | None = None,
        punctuation: Punctuation | None = None,
    ):
        self._kind = (JOINT_NGRAM if joint.has_ngrams else JOINT) if joint else PLAIN
        self.calibration = calibration or Calibration({})
        self._minimum_confidence, self._new_stream = minimum_confidence, new_stream
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
        self.units = acoustic.vocabulary.units
        if joint or phrases or fusion:
            acoustic.vocabulary.require_tonal_syllables(
                "joint search, phrases and n-grams of syllables need a model"
            )
        self.sample_rate = acoustic.features.sample_rate  # Hz
        self.acoustic, self.converter = acoustic, converter
        self.phrases, self.joint, self.n_best = phrases, joint, n_best
        n_best = 1 if joint or phrases else n_best
        self.decoder = Decoder(acoustic.vocabulary.blank_index, beam, n_best, fusion)
        self._workers, self.punctuation = workers, punctuation
        self.words = converter.words if isinstance(converter, UserWordConverter) else UserWords()
        if self.words.words and self.units == HANZI:
            raise ConfigError(
                "user words are found by their syllables, and this model has hanzi as output units",
                hint="leave --words out, or train a model with vocabulary.units=tonal_syllables",
            )

    def transcribe(self, audio: str | Path | np.ndarray, rate: int | None = None) -> Recognition:
        """Recognise one recording.

        Args:
            audio: a file of any usual format; or mono samples (n,), floats in [-1, 1] or 16-bit integers.
            rate: sample rate of samples, in Hz; a file names its own.

        Raises:
            AudioError: the recording can't be read, or the samples are of another kind.
        """
        if isinstance(audio, str | Path):
            (result,) = self.recognise([(str(audio), audio)])
        else:
            (result,) = self.recognise([("samples", resampled(audio, rate, self.sample_rate))])
        return result

    def live_stream(self) -> LiveStream:
        """A new stream at the sample rate of the models, see :mod:`recognition.live.loading`."""
        assert self._new_stream
        return self._new_stream(self)

    def stream(self, rate: int) -> RecognitionStream:
        """Recognise live audio of this sample rate (Hz); streams share the models."""
        return RecognitionStream(self.live_stream(), rate)

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
            segments: list[Recognition] = []
            for event in events:
                if isinstance(event, Recognition):
                    segments.append(event)
                else:
                    ending = event  # the last one
            if ending.error is None:
                yield whole_recording(name, ending.seconds, segments, self.n_best)
            elif on_error is None:
                raise ending.error
            else:
                on_error(name, ending.error)

    def segments(self, sources: Iterable[Source]) -> Iterator[tuple[str, Iterator[Recognition | Ending]]]:
        """Recognise recordings of any length segment by segment, in constant memory.

        Args:
            sources: as for :meth:`recognise`.

        Yields:
            the name of each recording, and an iterator over its segments in order and one ending. Consume
            the iterator before the next recording.
        """
        events = self._events(sources)
        for (_, name), group in itertools.groupby(events, key=lambda event: event[:2]):
            yield name, punctuated((event for _, _, event in group), self.punctuation)

    def recognise_pieces(self, pieces: Sequence[Piece]) -> list[list[Recognition]]:
        """Recognise pieces of recordings in this process; with phrases a piece may have several segments.

        The segments are those of :meth:`segments` for recordings that are cut in the same way.
        """
        with decoding(self.decoder, 0) as submit:
            return self._recognise_pieces(pieces, submit)

    def piece(self, start: float, samples: np.ndarray) -> Piece:
        """A piece for :meth:`recognise_pieces` of samples (n,), mono in [-1, 1] at the model's sample rate.

        Args:
            start: seconds from the start of the recording.
            samples: the sound.
        """
        return Piece.of_samples(start, samples, self.acoustic)

    def segments_of_logits(self, logits: np.ndarray, start: float, seconds: float) -> list[Recognition]:
        """Recognise a piece from its logits (T', C), T' ≥ 1, its start and its length in seconds."""
        (hypotheses,) = self.decoder.decode(logits[None], np.array([len(logits)]))
        piece = Piece(start, seconds, features=np.zeros((0, 0), np.float32))
        return self._finish([self._decoded(piece, hypotheses, frame_entropy(logits), logits)])[0]

    def _events(self, sources: Iterable[Source]) -> Iterator[tuple[int, str, Recognition | Ending]]:
        with decoding(self.decoder, self._workers) as submit:
            for window in windows(sources, self.sample_rate, self.piece):
                pieces = [part for _, _, part in window if isinstance(part, Piece)]
                segments = iter(self._recognise_pieces(pieces, submit))
                for number, name, part in window:
                    for event in next(segments) if isinstance(part, Piece) else [part]:
                        yield number, name, event

    def _recognise_pieces(self, pieces: Sequence[Piece], submit: Submit) -> list[list[Recognition]]:
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
        submitted: deque[tuple[Any, ...]] = deque()
        decoded: dict[int, _Decoded] = {}
        for batch in batches_of([len(piece.features) for piece in pieces]):
            logits, lengths = self.acoustic.logits([pieces[i].features for i in batch])
            nothing = [None] * len(batch)
            valid = [rows[:length] for rows, length in zip(logits, lengths, strict=True)]
            entropy = nothing if self.phrases else [frame_entropy(rows) for rows in valid]
            # Only some searches need the logits again: they take the most memory of all.
            kept = valid if self.joint or self.phrases else nothing
            submitted.append((batch, submit(logits, lengths), entropy, kept))
        while submitted:  # a batch's logits are dropped when its alternatives are known
            batch, future, entropy, kept = submitted.popleft()
            for i, *found in zip(batch, future.result(), entropy, kept, strict=True):
                decoded[i] = self._decoded(pieces[i], *found)
        return decoded

    def _decoded(
        self,
        piece: Piece,
        hypotheses: Sequence[Hypothesis],
        entropy: np.ndarray | None,
        logits: Any,
    ) -> _Decoded:
        """A piece after the first stage; for a joint search alternatives replace the logits."""
        if not self.joint:
            return _Decoded(piece, hypotheses, entropy, logits)
        network = confusion_network(logits, hypotheses[0], self.acoustic.vocabulary)
        return _Decoded(piece, hypotheses, entropy, network=network)

    def _finish(self, pieces: Sequence[_Decoded]) -> list[list[Recognition]]:
        """The second stage: segments of each piece."""
        if self.phrases:
            return [self._phrase_segments(piece) for piece in pieces]
        if self.joint:
            found = self.joint.search([piece.network for piece in pieces], self.n_best)
            segment = self._joint_segment
        else:
            hypotheses = [piece.hypotheses for piece in pieces]
            found = converted(hypotheses, self.acoustic.vocabulary, self.converter)
            segment = self._plain_segment
        return [[segment(*each)] for each in zip(pieces, found, strict=True)]

    def _joint_segment(self, decoded: _Decoded, n_best: Sequence[Alternative]) -> Recognition:
        best = n_best[0]
        slots = [decoded.network.slots[slot] for slot in best.slots]
        frames = [slot.frame for slot in slots]
        posteriors = [
            np.exp(slot.log_posteriors[slot.syllables.index(syllable)])
            for slot, syllable in zip(slots, best.pinyin, strict=True)
        ]
        hanzi = None
        if self._kind == JOINT_NGRAM and isinstance(self.joint, JointSearch):
            gaps = [np.exp(max(slot.log_posteriors)) for slot in slots] - np.array(posteriors)
            agreement = log_odds(best.confidence)
            hanzi = np.column_stack([gaps, self.joint.evidence(best), agreement])
        features = syllable_features(frames, posteriors, decoded.entropy, hanzi)
        return self._segment(decoded.piece, frames, n_best, features)

    def _plain_segment(self, decoded: _Decoded, n_best: Sequence[Alternative]) -> Recognition:
        _, frames, posteriors, _ = spoken(decoded.hypotheses[0], self.acoustic.vocabulary)
        features = syllable_features(frames, posteriors, decoded.entropy)
        return self._segment(decoded.piece, frames, n_best, features)

    def _phrase_segments(self, decoded: _Decoded) -> list[Recognition]:
        """The utterances of a piece, compared with the phrases."""
        assert self.phrases
        pinyin, frames, *_ = spoken(decoded.hypotheses[0], self.acoustic.vocabulary)
        lead_seconds = self.calibration.lead_seconds
        piece, frame_seconds = decoded.piece, self.acoustic.frame_seconds
        settings = (frame_seconds, piece.start, piece.seconds, lead_seconds, piece.padding)
        return list(phrase_segments(self.phrases, decoded.logits, pinyin, frames, *settings))

    def _segment(
        self, piece: Piece, frames: Sequence[int], n_best: Sequence[Alternative], features: np.ndarray
    ) -> Recognition:
        """The segment of a piece, from the output frames and features of the best hypothesis's syllables."""
        start, end = piece.start, piece.start + piece.seconds
        confidence = self.calibration.confidence(self._kind, features)
        if confidence and np.mean(confidence) < self._minimum_confidence:
            return Recognition(start, end, certainty=features[:0])
        lead_seconds = self.calibration.lead_seconds - piece.padding
        times = syllable_times(frames, self.acoustic.frame_seconds, piece.seconds, start, lead_seconds)
        words = self.converter.word_starts(n_best[0].hanzi) if self.converter else ()
        segment = Recognition(
            start,
            end,
            tuple(times),
            tuple(map(self.words.written, n_best)),
            confidence=confidence,
            certainty=features,
            word_starts=tuple(words),
        )
        if confidence and no_speech_probability(segment) >= NO_SPEECH:
            return Recognition(start, end, certainty=features[:0])
        return segment
