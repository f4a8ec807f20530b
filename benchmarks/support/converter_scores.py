"""Measures error rates with intervals, speed and memory of a converter's process on sentences."""

import statistics
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tqdm import tqdm

from analysis.intervals.bootstrap import rate_interval
from benchmarks.converters.converter_process import ConverterProcess
from benchmarks.converters.entry import Command, Entry
from benchmarks.support.pinyin_sentences import Condition
from utils.metrics import ErrorCounts, count_errors, count_sentence_errors, total

_BATCH = 500  # sentences
_WARM_UP, _TIMED, _SINGLE = 50, 2000, 200  # sentences
_SECONDS = 8.0  # seconds for each of the two timings, to limit slow converters


@dataclass(frozen=True)
class Rate:
    """An error rate and its 95 % interval, sentences of the same text resampled together."""

    rate: float
    low: float
    high: float


@dataclass(frozen=True)
class Score:
    """Errors of a converter under one condition.

    Attributes:
        sentences, characters: size of the references.
        cer, sentence_error: error rates.
        other_length: sentences whose output has another number of characters than the input has syllables.
    """

    test_set: str
    given: str
    sentences: int
    characters: int
    cer: Rate
    sentence_error: Rate
    other_length: int


@dataclass(frozen=True)
class Speed:
    """Speed of a new process.

    Attributes:
        start_seconds: time until the first sentence is converted.
        sentences_a_second: sentences per second in large batches.
        sentences_a_processor_second: the same in seconds of processor time, all cores together.
        milliseconds: median time of single sentences, each sent after the answer to the last one.
        peak_memory: bytes.
        timed: sentences that were sent at once; alone.
    """

    start_seconds: float
    sentences_a_second: float
    sentences_a_processor_second: float
    milliseconds: float
    peak_memory: int
    timed: tuple[int, int]


def scores(entry: Entry, command: Command, conditions: Iterable[Condition]) -> list[Score]:
    """Error rates under each condition; a sentence of several conditions is converted once."""
    chosen = [condition.sampled(entry.limit) for condition in conditions]
    lines = [[entry.line(sentence) for sentence in condition.pinyin] for condition in chosen]
    distinct = list(dict.fromkeys(line for part in lines for line in part))
    answers: dict[str, str] = {}
    step = min(_BATCH, max(1, len(distinct) // 50))
    with (
        ConverterProcess(entry.name, command.arguments) as process,
        tqdm(total=len(distinct), desc=entry.name, unit="sentence", disable=None) as bar,
    ):
        for start in range(0, len(distinct), step):
            batch = distinct[start : start + step]
            answers |= zip(batch, process.convert(batch), strict=True)
            bar.update(len(batch))
    return [
        score(condition, [answers[line] for line in part])
        for condition, part in zip(chosen, lines, strict=True)
    ]


def score(condition: Condition, answers: Sequence[str]) -> Score:
    """Compare the conversions with the references."""
    pairs = list(zip(condition.hanzi, answers, strict=True))
    characters = [count_errors(meant, found) for meant, found in pairs]
    return Score(
        test_set=condition.test_set,
        given=condition.given,
        sentences=len(pairs),
        characters=total(characters).reference,
        cer=_rate(characters, condition.hanzi),
        sentence_error=_rate([count_sentence_errors(*pair) for pair in pairs], condition.hanzi),
        other_length=sum(len(a) != len(p) for a, p in zip(answers, condition.pinyin, strict=True)),
    )


def _rate(counts: Sequence[ErrorCounts], sentences: Sequence[str]) -> Rate:
    interval = rate_interval(counts, groups=sentences, unit="sentence")
    return Rate(total(counts).rate, interval.low, interval.high)


def speed(entry: Entry, command: Command, sentences: Sequence[Sequence[str]]) -> Speed:
    """Time a new process on sentences that it has not converted before."""
    lines = list(dict.fromkeys(entry.line(sentence) for sentence in sentences))
    with ConverterProcess(entry.name, command.arguments) as process:
        process.convert(lines[:1])
        started = time.perf_counter() - process.started
        began = time.perf_counter()
        warm_up = lines[1 : min(_WARM_UP, len(lines) // 3, entry.limit // 10 or _WARM_UP)]
        process.convert(warm_up)
        each = (time.perf_counter() - began) / max(1, len(warm_up))
        rest = lines[1 + len(warm_up) :] or lines
        batch = rest[: min(_TIMED, max(1, int(_SECONDS / each)))]
        used, began = process.processor_seconds(), time.perf_counter()
        for start in range(0, len(batch), _BATCH):
            process.convert(batch[start : start + _BATCH])
        seconds, used = time.perf_counter() - began, process.processor_seconds() - used
        single = _single(process, rest[len(batch) :] or rest)
        return Speed(
            start_seconds=started,
            sentences_a_second=len(batch) / seconds,
            sentences_a_processor_second=len(batch) / max(used, 1e-2),  # resolution of the system's counter
            milliseconds=1000 * statistics.median(single),
            peak_memory=process.peak_memory(),
            timed=(len(batch), len(single)),
        )


def _single(process: ConverterProcess, lines: Sequence[str]) -> list[float]:
    """Seconds of each sentence, for as many as fit into the time."""
    seconds: list[float] = []
    for line in lines[:_SINGLE]:
        began = time.perf_counter()
        process.convert([line])
        seconds.append(time.perf_counter() - began)
        if sum(seconds) > _SECONDS:
            break
    return seconds
