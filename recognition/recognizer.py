"""Recognition: audio → features → syllables with times → hanzi; test, transcribe, serve and export share it.

A recording of any length is read block by block and cut where nobody speaks; pieces of many recordings are
recognised together in batches of similar length, and come out in their order.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from model_language.converters.base import Converter
from model_language.search.joint import JointReading, JointSearch
from model_speech.acoustic_model import AcousticModel
from model_speech.ctc.decoder import Decoder, Submit, decoding
from model_speech.ctc.posteriors import confusion_network
from model_speech.ctc.prefix_beam import Hypothesis
from model_speech.ctc.scoring import sequence_score
from model_speech.ctc.shallow_fusion import Fusion
from recognition.voice_activity import whole_or_stretches
from utils.audio.reading import audio_blocks
from utils.errors import AudioError, ConfigError, RunError
from utils.features.speech import extract_features
from utils.hypotheses.confusion_network import ConfusionNetwork
from utils.hypotheses.recognition import Alternative, Ending, Inspection, Recognition, Segment, syllable_times
from utils.softmax import softmax
from utils.vocabulary import SPACE

LONGEST_PIECE = 20.0  # seconds
WINDOW_SECONDS = 600.0  # of audio whose features are held at once
BATCH_FRAMES = 6_000  # feature frames in a batch, padding included

# Name; file, mono samples in [-1, 1] at the model's rate, or blocks of such samples.
Source = tuple[str, str | Path | np.ndarray | Iterator[np.ndarray]]
OnError = Callable[[str, AudioError], None]


@dataclass(frozen=True)
class _Piece:
    """A part of a recording, ready for the acoustic model."""

    start: float  # seconds from the recording's start
    seconds: float
    features: np.ndarray  # (frames, bins) float32


# What is read, in its order: the recording's number and name, and a piece of it or its end.
_Part = tuple[int, str, _Piece | Ending]


@dataclass(frozen=True)
class _Reading:
    """One reading of a piece: syllables and their times in seconds from the recording's start.

    A joint search has the hanzi already, and how sure each is.
    """

    pinyin: tuple[str, ...]
    score: float
    times: tuple[tuple[float, float], ...]
    hanzi: str = ""
    confidence: tuple[float, ...] = ()


class Recognizer:
    """Recordings → :class:`Segment` by segment, or one :class:`Recognition` each.

    Args:
        acoustic: first stage.
        converter: second stage; None gives syllables only.
        beam: prefixes kept by the beam search; 1 decodes greedily.
        n_best: readings to give of each segment and of each recording.
        fusion: a language model of syllables that has a say in the beam search (:func:`load_fusion`).
        joint: searches syllables and hanzi together, around the best reading.
        workers: processes that decode beside this one; 0: this one decodes.
        window_seconds: audio that is gathered before it is recognised; 0 recognises each piece as it comes.

    Raises:
        ConfigError: more readings are asked for than the beam keeps, or fusion without a beam.
    """

    def __init__(
        self,
        acoustic: AcousticModel,
        converter: Converter | None = None,
        beam: int = 1,
        n_best: int = 1,
        fusion: Fusion | None = None,
        joint: JointSearch | None = None,
        workers: int = 0,
        window_seconds: float = WINDOW_SECONDS,
    ):
        if not 1 <= n_best <= (beam if joint is None else n_best):
            hint = "take a beam of at least as many"
            raise ConfigError(f"{n_best} readings from a beam of {beam}", hint=hint)
        if fusion and beam == 1:
            raise ConfigError("a language model of syllables needs a beam", hint="e.g. --beam 10")
        self.sample_rate = acoustic.features.sample_rate  # Hz, of samples that are given as such
        self._acoustic, self._converter, self._n_best = acoustic, converter, n_best
        self._joint = joint
        self._decoder = Decoder(acoustic.vocabulary.blank_index, beam, 1 if joint else n_best, fusion)
        self._workers, self._window_seconds = workers, window_seconds

    def recognise(self, sources: Iterable[Source], on_error: OnError | None = None) -> Iterator[Recognition]:
        """Recognise whole recordings, in their order.

        Args:
            sources: (name, audio file, samples or blocks of them); read as they are needed, so a generator
                will do.
            on_error: called with the name and the error of what can't be read, which is then left out;
                without it the error is raised.

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
        """Recognise recordings of any length segment by segment, in flat memory.

        Args:
            sources: as for :meth:`recognise`.

        Yields:
            of each recording its name and what comes of it: its segments, in their order, then one ending. To
            be consumed before the next recording is asked for.
        """
        events = self._events(sources)
        for (_, name), group in itertools.groupby(events, key=lambda event: event[:2]):
            yield name, (event for _, _, event in group)

    def scores(self, samples: np.ndarray, sequences: Sequence[Sequence[str]]) -> list[float] | None:
        """How the search rates sequences of syllables for one recording: it looks for the highest.

        Args:
            samples: mono, in [-1, 1], at the model's rate.
            sequences: canonical syllables.

        Returns:
            natural logs, -inf for what can't be written; None if the recording is so long that it is cut, or
            if a joint search has looked for something else than the best syllables.
        """
        logits = None if self._joint else self._whole_logits(samples)
        if logits is None:
            return None
        vocabulary = self._acoustic.vocabulary
        return [
            sequence_score(logits, vocabulary.encode(syllables), self._decoder.blank, self._decoder.fusion)
            if all(syllable in vocabulary for syllable in syllables)
            else -np.inf
            for syllables in sequences
        ]

    def inspect(self, samples: np.ndarray) -> Inspection | None:
        """What the acoustic model makes of one recording, for a person to look at.

        Args:
            samples: mono, in [-1, 1], at the model's rate.

        Returns:
            None if the recording is so long that it is cut.
        """
        logits = self._whole_logits(samples)
        if logits is None:
            return None
        posteriors = softmax(logits).astype(np.float32)  # (T', C)
        return Inspection(posteriors, self._acoustic.vocabulary.tokens, self._acoustic.frame_seconds)

    def _whole_logits(self, samples: np.ndarray) -> np.ndarray | None:
        """Logits (T', C) of a recording that is recognised in one piece; None of one that is cut."""
        if len(samples) > LONGEST_PIECE * self.sample_rate:
            return None
        logits, lengths = self._acoustic.logits([extract_features(samples, self._acoustic.features)])
        return logits[0, : lengths[0]]

    def _events(self, sources: Iterable[Source]) -> Iterator[tuple[int, str, Segment | Ending]]:
        with decoding(self._decoder, self._workers) as submit:
            for window in _windows(self._parts(sources), self._window_seconds):
                pieces = [part for _, _, part in window if isinstance(part, _Piece)]
                segments = iter(self._read(pieces, submit))
                for clip, name, part in window:
                    yield clip, name, next(segments) if isinstance(part, _Piece) else part

    def _parts(self, sources: Iterable[Source]) -> Iterator[_Part]:
        for clip, (name, audio) in enumerate(sources):
            for part in self._parts_of(name, audio):
                yield clip, name, part

    def _parts_of(self, name: str, audio: Any) -> Iterator[_Piece | Ending]:
        rate, length = self._acoustic.features.sample_rate, 0

        def counted() -> Iterator[np.ndarray]:
            nonlocal length
            for block in _blocks(audio, rate):
                length += len(block)
                yield block

        error = None
        try:
            for stretch in whole_or_stretches(counted(), rate, LONGEST_PIECE):
                features = extract_features(stretch.samples, self._acoustic.features)
                yield _Piece(stretch.start / rate, len(stretch.samples) / rate, features)
            if not length:
                error = AudioError("there are no samples", where=name)
        except AudioError as caught:
            error = caught
        yield Ending(length / rate, error)

    def _read(self, pieces: Sequence[_Piece], submit: Submit) -> list[Segment]:
        """What is said in each piece."""
        batches = list(_batches([len(piece.features) for piece in pieces]))
        decoded, networks = [], {}
        readings: list[list[_Reading]] = [[] for _ in pieces]
        for batch in batches:
            logits, lengths = self._acoustic.logits([pieces[i].features for i in batch])
            # Logits are kept for a joint search alone: they need the most memory of all.
            decoded.append((submit(logits, lengths), (logits, lengths) if self._joint else None))
        try:
            for batch, (future, kept) in zip(batches, decoded, strict=True):
                for row, (i, hypotheses) in enumerate(zip(batch, future.result(), strict=True)):
                    if kept:
                        logits = kept[0][row, : kept[1][row]]
                        networks[i] = confusion_network(logits, hypotheses[0], self._acoustic.vocabulary)
                    else:
                        readings[i] = self._readings(pieces[i], hypotheses)
        except BrokenExecutor as error:
            hint = "the memory may be full: take fewer --workers"
            raise RunError("a decoding process died", hint=hint) from error
        if self._joint:
            for i, found in zip(
                networks, self._joint.read(list(networks.values()), self._n_best), strict=True
            ):
                readings[i] = [self._joint_reading(pieces[i], networks[i], one) for one in found]
            return [_joint_segment(piece, each) for piece, each in zip(pieces, readings, strict=True)]
        hanzi = self._convert({reading.pinyin for each in readings for reading in each})
        return [_segment(piece, each, hanzi) for piece, each in zip(pieces, readings, strict=True)]

    def _readings(self, piece: _Piece, hypotheses: Sequence[Hypothesis]) -> list[_Reading]:
        """Hypotheses as syllables; the space token is dropped, and what then comes twice."""
        readings: dict[tuple[str, ...], _Reading] = {}
        frame_seconds = self._acoustic.frame_seconds
        for hypothesis in hypotheses:
            tokens = self._acoustic.vocabulary.decode(hypothesis.tokens)
            spoken = [(t, f) for t, f in zip(tokens, hypothesis.frames, strict=True) if t != SPACE]
            pinyin = tuple(token for token, _ in spoken)
            times = syllable_times([frame for _, frame in spoken], frame_seconds, piece.seconds)
            moved = tuple((piece.start + start, piece.start + end) for start, end in times)
            readings.setdefault(pinyin, _Reading(pinyin, hypothesis.score, moved))
        return list(readings.values())

    def _joint_reading(self, piece: _Piece, network: ConfusionNetwork, found: JointReading) -> _Reading:
        frames = [network.slots[slot].frame for slot in found.slots]
        times = syllable_times(frames, self._acoustic.frame_seconds, piece.seconds)
        moved = tuple((piece.start + start, piece.start + end) for start, end in times)
        return _Reading(found.pinyin, found.score, moved, found.hanzi, found.confidence)

    def _convert(self, sentences: set[tuple[str, ...]]) -> Mapping[tuple[str, ...], str]:
        ordered = sorted(sentences)
        if self._converter is None:
            return dict.fromkeys(ordered, "")
        return dict(zip(ordered, self._converter.convert(ordered), strict=True))

    def _join(self, name: str, segments: Sequence[Segment], seconds: float) -> Recognition:
        """One recording from its segments; the n best of the whole are the best sums of their scores."""
        best = [Alternative((), "", 0.0)]
        for segment in segments:
            joined = (
                Alternative(
                    one.pinyin + other.pinyin,
                    one.hanzi + other.hanzi,
                    one.score + other.score,
                    one.confidence + other.confidence,
                )
                for one, other in itertools.product(best, segment.n_best)
            )
            best = heapq.nlargest(self._n_best, joined, key=lambda alternative: alternative.score)
        return Recognition(
            id=name,
            seconds=seconds,
            pinyin=best[0].pinyin,
            hanzi=best[0].hanzi,
            score=best[0].score,
            times=tuple(itertools.chain.from_iterable(segment.times for segment in segments)),
            n_best=tuple(best),
        )


def _blocks(audio: str | Path | np.ndarray | Iterator[np.ndarray], rate: int) -> Iterable[np.ndarray]:
    if isinstance(audio, np.ndarray):
        return [audio]
    return audio_blocks(audio, rate) if isinstance(audio, str | Path) else audio


def _joint_segment(piece: _Piece, readings: Sequence[_Reading]) -> Segment:
    return Segment(
        start=piece.start,
        end=piece.start + piece.seconds,
        times=readings[0].times,
        n_best=tuple(Alternative(one.pinyin, one.hanzi, one.score, one.confidence) for one in readings),
    )


def _segment(piece: _Piece, readings: Sequence[_Reading], hanzi: Mapping[tuple[str, ...], str]) -> Segment:
    return Segment(
        start=piece.start,
        end=piece.start + piece.seconds,
        times=readings[0].times,
        n_best=tuple(Alternative(one.pinyin, hanzi[one.pinyin], one.score) for one in readings),
    )


def _windows(parts: Iterable[_Part], most: float) -> Iterator[list[_Part]]:
    """Parts by ``most`` seconds: enough to find neighbours of similar length, little enough to hold."""
    window: list[_Part] = []
    seconds = 0.0
    for part in parts:
        window.append(part)
        seconds += part[2].seconds if isinstance(part[2], _Piece) else 0.0
        if seconds >= most:
            yield window
            window, seconds = [], 0.0
    if window:
        yield window


def _batches(frames: Sequence[int]) -> Iterator[list[int]]:
    """Indices by ascending length, as many a batch as fit with their padding (at least one)."""
    batch: list[int] = []
    for i in sorted(range(len(frames)), key=frames.__getitem__):
        if batch and (len(batch) + 1) * frames[i] > BATCH_FRAMES:
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch
