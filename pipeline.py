"""Recognition: audio → features → syllables with times → hanzi; test, transcribe, serve and export share it.

A recording of any length is cut where it is quiet; pieces of many recordings are recognised together in
batches of similar length, and put together again in their order.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from model_language.converter import Converter
from model_language.registry import load_converter
from model_speech.decoding import Hypothesis, beam_search, greedy_decode
from model_speech.loading import AcousticModel, load_acoustic_model
from utils.audio import read_audio
from utils.errors import AudioError, ConfigError
from utils.features import extract_features
from utils.recognition import Alternative, Recognition
from utils.silence import cut_at_silence
from utils.vocabulary import SPACE

__all__ = ["AcousticModel", "Recognizer", "load_acoustic_model", "load_converter", "syllable_times"]

LONGEST_PIECE = 20.0  # seconds
WINDOW_SECONDS = 600.0  # of audio whose features are held at once
BATCH_FRAMES = 6_000  # feature frames in a batch, padding included
# CTC marks a syllable by a spike near its middle; most syllables are shorter than twice this.
REACH_SECONDS = 0.25

Source = tuple[str, str | Path | np.ndarray]  # name; file, or mono samples in [-1, 1] at the model's rate
OnError = Callable[[str, AudioError], None]


@dataclass(frozen=True)
class _Piece:
    """A part of a recording, ready for the acoustic model."""

    clip: int  # the recording's number
    name: str
    clip_seconds: float
    start: float  # seconds from the recording's start
    seconds: float
    features: np.ndarray  # (frames, bins) float32


@dataclass(frozen=True)
class _Reading:
    """One reading of a piece: syllables and their times in seconds from the recording's start."""

    pinyin: tuple[str, ...]
    score: float
    times: tuple[tuple[float, float], ...]


class Recognizer:
    """Recordings → :class:`Recognition`.

    Args:
        acoustic: first stage.
        converter: second stage; None gives syllables only.
        beam: prefixes kept by the beam search; 1 decodes greedily.
        n_best: readings to give of each recording.

    Raises:
        ConfigError: more readings are asked for than the beam keeps.
    """

    def __init__(
        self, acoustic: AcousticModel, converter: Converter | None = None, beam: int = 1, n_best: int = 1
    ):
        if not 1 <= n_best <= beam:
            hint = "take a beam of at least as many"
            raise ConfigError(f"{n_best} readings from a beam of {beam}", hint=hint)
        self._acoustic, self._converter = acoustic, converter
        self._beam, self._n_best = beam, n_best

    def recognise(self, sources: Iterable[Source], on_error: OnError | None = None) -> Iterator[Recognition]:
        """Recognise recordings, in their order.

        Args:
            sources: (name, audio file or samples); read as they are needed, so a generator will do.
            on_error: called with the name and the error of what can't be read, which is then left out;
                without it the error is raised.

        Raises:
            AudioError: a recording can't be read, and there is no ``on_error``.
        """
        pieces = self._pieces(sources, on_error)
        read = (pair for window in _windows(pieces) for pair in zip(window, self._read(window), strict=True))
        for _, parts in itertools.groupby(read, key=lambda pair: pair[0].clip):
            yield self._join(list(parts))

    def _pieces(self, sources: Iterable[Source], on_error: OnError | None) -> Iterator[_Piece]:
        rate = self._acoustic.features.sample_rate
        for clip, (name, audio) in enumerate(sources):
            try:
                samples = audio if isinstance(audio, np.ndarray) else read_audio(audio, rate)
                if not len(samples):
                    raise AudioError("there are no samples", where=name)
            except AudioError as error:
                if on_error is None:
                    raise
                on_error(name, error)
                continue
            for start, end in cut_at_silence(samples, rate, LONGEST_PIECE):
                features = extract_features(samples[start:end], self._acoustic.features)
                yield _Piece(clip, name, len(samples) / rate, start / rate, (end - start) / rate, features)

    def _read(self, window: Sequence[_Piece]) -> list[list[tuple[_Reading, str]]]:
        """Readings of each piece with their hanzi, best first."""
        readings: list[list[_Reading]] = [[] for _ in window]
        for batch in _batches([len(piece.features) for piece in window]):
            logits, lengths = self._acoustic.logits([window[i].features for i in batch])
            for i, hypotheses in zip(batch, self._decode(logits, lengths), strict=True):
                readings[i] = self._readings(window[i], hypotheses)
        hanzi = self._convert({reading.pinyin for each in readings for reading in each})
        return [[(reading, hanzi[reading.pinyin]) for reading in each] for each in readings]

    def _decode(self, logits: np.ndarray, lengths: np.ndarray) -> list[list[Hypothesis]]:
        blank = self._acoustic.vocabulary.blank_index
        if self._beam == 1:
            return [[hypothesis] for hypothesis in greedy_decode(logits, lengths, blank)]
        return beam_search(logits, lengths, blank, beam=self._beam, n_best=self._n_best)

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

    def _convert(self, sentences: set[tuple[str, ...]]) -> Mapping[tuple[str, ...], str]:
        ordered = sorted(sentences)
        if self._converter is None:
            return dict.fromkeys(ordered, "")
        return dict(zip(ordered, self._converter.convert(ordered), strict=True))

    def _join(self, parts: Sequence[tuple[_Piece, list[tuple[_Reading, str]]]]) -> Recognition:
        """One recording from its pieces; the n best of the whole are the best sums of the pieces' scores."""
        best = [Alternative((), "", 0.0)]
        for _, readings in parts:
            joined = (
                Alternative(one.pinyin + reading.pinyin, one.hanzi + hanzi, one.score + reading.score)
                for one, (reading, hanzi) in itertools.product(best, readings)
            )
            best = heapq.nlargest(self._n_best, joined, key=lambda alternative: alternative.score)
        first, top = parts[0][0], best[0]
        return Recognition(
            id=first.name,
            seconds=first.clip_seconds,
            pinyin=top.pinyin,
            hanzi=top.hanzi,
            score=top.score,
            times=tuple(itertools.chain.from_iterable(readings[0][0].times for _, readings in parts)),
            n_best=tuple(best),
        )


def syllable_times(frames: Sequence[int], frame_seconds: float, seconds: float) -> list[tuple[float, float]]:
    """(start, end) of each syllable from the output frame in which CTC puts it.

    CTC says where a syllable is, not where it begins and ends: borders lie half-way between neighbours, but
    at most 0.25 s from the middle of the syllable's own frame, and within the recording's ``seconds``.
    """
    middles = [min((frame + 0.5) * frame_seconds, seconds) for frame in frames]
    borders = [0.0, *((a + b) / 2 for a, b in itertools.pairwise(middles)), seconds]
    return [
        (max(borders[i], middle - REACH_SECONDS), min(borders[i + 1], middle + REACH_SECONDS))
        for i, middle in enumerate(middles)
    ]


def _windows(pieces: Iterable[_Piece]) -> Iterator[list[_Piece]]:
    """Pieces by the 600 s: enough to find neighbours of similar length, little enough to hold."""
    window: list[_Piece] = []
    seconds = 0.0
    for piece in pieces:
        window.append(piece)
        seconds += piece.seconds
        if seconds >= WINDOW_SECONDS:
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
