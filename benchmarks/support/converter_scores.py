"""Measures error rates, speed and memory of a converter's process on sentences."""

import statistics
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tqdm import tqdm

from benchmarks.converters.entry import Command, Entry
from benchmarks.peers.process import PeerProcess
from benchmarks.support.pinyin_sentences import Condition
from utils.metrics import count_errors, total

_BATCH = 500  # sentences
_WARM_UP, _TIMED, _SINGLE = 50, 2000, 200  # sentences
_SECONDS = 8.0  # seconds for each of the two timings, to limit slow converters


@dataclass(frozen=True)
class Speed:
    """Speed of a new process.

    Attributes:
        start_seconds: time until the first sentence is converted.
        sentences_a_second: sentences per second in large batches.
        milliseconds: median time of single sentences, each sent after the answer to the last one.
        peak_memory: bytes.
    """

    start_seconds: float
    sentences_a_second: float
    milliseconds: float
    peak_memory: int


def error_rates(entry: Entry, command: Command, conditions: Iterable[Condition]) -> list[float]:
    """CER under each condition; a sentence of several conditions is converted once."""
    chosen = [condition.sampled(entry.limit) for condition in conditions]
    lines = [[entry.line(sentence) for sentence in condition.pinyin] for condition in chosen]
    distinct = list(dict.fromkeys(line for part in lines for line in part))
    answers: dict[str, str] = {}
    step = min(_BATCH, max(1, len(distinct) // 50))
    with (
        PeerProcess(entry.name, command.arguments) as process,
        tqdm(total=len(distinct), desc=entry.name, unit="sentence", disable=None) as bar,
    ):
        for start in range(0, len(distinct), step):
            batch = distinct[start : start + step]
            answers |= zip(batch, process.answers(batch), strict=True)
            bar.update(len(batch))
    return [
        total(map(count_errors, condition.hanzi, (answers[line] for line in part))).rate
        for condition, part in zip(chosen, lines, strict=True)
    ]


def speed(entry: Entry, command: Command, sentences: Sequence[Sequence[str]]) -> Speed:
    """Time a new process on sentences that it has not converted before."""
    lines = list(dict.fromkeys(entry.line(sentence) for sentence in sentences))
    with PeerProcess(entry.name, command.arguments) as process:
        process.answers(lines[:1])
        started = time.perf_counter() - process.started
        began = time.perf_counter()
        warm_up = lines[1 : min(_WARM_UP, len(lines) // 3, entry.limit // 10 or _WARM_UP)]
        process.answers(warm_up)
        each = (time.perf_counter() - began) / max(1, len(warm_up))
        rest = lines[1 + len(warm_up) :] or lines
        batch = rest[: min(_TIMED, max(1, int(_SECONDS / each)))]
        began = time.perf_counter()
        for start in range(0, len(batch), _BATCH):
            process.answers(batch[start : start + _BATCH])
        seconds = time.perf_counter() - began
        single = _single(process, rest[len(batch) :] or rest)
        return Speed(
            start_seconds=started,
            sentences_a_second=len(batch) / seconds,
            milliseconds=1000 * statistics.median(single),
            peak_memory=process.peak_memory(),
        )


def _single(process: PeerProcess, lines: Sequence[str]) -> list[float]:
    """Seconds of each sentence, for as many as fit into the time."""
    seconds: list[float] = []
    for line in lines[:_SINGLE]:
        began = time.perf_counter()
        process.answers([line])
        seconds.append(time.perf_counter() - began)
        if sum(seconds) > _SECONDS:
            break
    return seconds
