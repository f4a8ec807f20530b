"""Measures waiting times, throughput and memory of a service with many clients at the same time.

    python -m benchmarks.serving.load
    python -m benchmarks.serving.load --clients 200 --seconds 300 --recordings DIR

Each client sends one recording after another, in a new connection every few requests. After a 429 it waits as
long as the answer requests, and sends the recording again. The table has the answers by status; the median,
95th and 99th percentile of the time from a request to its answer; the seconds of audio that were transcribed
in a second, and in a second of processor time of the service, which does not depend on what else the machine
does; and the memory of the service (all its processes) after a warm-up of a quarter of the time, and at the
end.
"""

from utils.command.entry import run_command

import argparse
import asyncio
import itertools
import statistics
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
import psutil

from benchmarks.serving.memory import memory
from tests.support.recordings import RECORDINGS
from tests.support.service import Service, running_service
from utils.audio.folders import find_recordings
from utils.audio.properties import audio_seconds
from utils.command.arguments import positive
from utils.command.parser import CommandParser
from utils.text_table import print_table

PATIENCE = 600.0  # seconds for an answer
REQUESTS_OF_A_CONNECTION = 5


@dataclass
class Figures:
    """Figures of the clients.

    Attributes:
        statuses: answers by status; 0: no answer.
        waited: seconds from a request to its answer, of those with a transcript.
        audio: seconds of the recordings that were transcribed.
        memory: (seconds since the start, bytes) of the service.
        processor: seconds that the service has computed.
    """

    statuses: Counter = field(default_factory=Counter)
    waited: list[float] = field(default_factory=list)
    audio: float = 0.0
    memory: list[tuple[float, int]] = field(default_factory=list)
    processor: float = 0.0


def main(arguments: Sequence[str] | None = None) -> None:
    """Start a service, load it, print the figures."""
    options = _parser().parse_args(arguments)
    recordings = [path.read_bytes() for path in _recordings(options)]
    lengths = [audio_seconds(path) for path in _recordings(options)]
    with running_service("--workers", str(options.workers), "--requests", str(options.requests)) as service:
        service.wait_for("a worker is ready", options.workers)
        started = time.monotonic()
        figures = asyncio.run(_load(service, recordings, lengths, options))
        _show(figures, time.monotonic() - started, options)


async def _load(
    service: Service, recordings: Sequence[bytes], lengths: Sequence[float], options: argparse.Namespace
) -> Figures:
    figures = Figures()
    started, before = time.monotonic(), processor_seconds(service)
    watching = asyncio.create_task(_watch_memory(service, figures, started))
    clients = (
        _client(service.url, number, recordings, lengths, figures, started + options.seconds)
        for number in range(options.clients)
    )
    await asyncio.gather(*clients)
    watching.cancel()
    figures.processor = processor_seconds(service) - before
    return figures


async def _client(
    url: str,
    number: int,
    recordings: Sequence[bytes],
    lengths: Sequence[float],
    figures: Figures,
    end: float,
) -> None:
    order = itertools.cycle(range(len(recordings)))
    for _ in range(number % len(recordings)):
        next(order)
    while time.monotonic() < end:
        async with httpx2.AsyncClient(timeout=PATIENCE) as client:
            for index in itertools.islice(order, REQUESTS_OF_A_CONNECTION):
                while not await _request(client, url, recordings[index], figures):
                    if time.monotonic() >= end:
                        return
                figures.audio += lengths[index]


async def _request(client: httpx2.AsyncClient, url: str, recording: bytes, figures: Figures) -> bool:
    """Whether the transcript came; after a 429 its waiting time has passed."""
    begin = time.monotonic()
    try:
        answer = await client.post(f"{url}/v1/audio/transcriptions", files={"file": ("a.ogg", recording)})
    except httpx2.HTTPError:
        figures.statuses[0] += 1
        return False
    figures.statuses[answer.status_code] += 1
    if answer.status_code == 200:
        figures.waited.append(time.monotonic() - begin)
    elif answer.status_code == 429:
        await asyncio.sleep(float(answer.headers["Retry-After"]))
    return answer.status_code == 200


async def _watch_memory(service: Service, figures: Figures, started: float) -> None:
    while True:
        figures.memory.append((time.monotonic() - started, memory(service)))
        await asyncio.sleep(1.0)


def processor_seconds(service: Service) -> float:
    """Processor seconds of all processes of the service; the process that forks uploads counts them."""
    process = psutil.Process(service.process.pid)
    each = [found.cpu_times() for found in [process, *process.children(recursive=True)]]
    return sum(t.user + t.system + t.children_user + t.children_system for t in each)


def _show(figures: Figures, seconds: float, options: argparse.Namespace) -> None:
    times = ("p50 s", "p95 s", "p99 s", "audio s/s", "audio s/CPU s")
    headings = ("answers", *times, "MB warm", "MB end", "growth")
    cuts = statistics.quantiles(figures.waited, n=100) if len(figures.waited) > 1 else [0.0] * 99
    warm = [used for moment, used in figures.memory if seconds / 4 <= moment < seconds / 2]
    end = [used for moment, used in figures.memory if moment >= 3 * seconds / 4]
    before, after = statistics.median(warm or [1]) / 1e6, statistics.median(end or [1]) / 1e6
    answers = ", ".join(f"{status}: {count}" for status, count in sorted(figures.statuses.items()))
    row = (
        answers,
        *(f"{cuts[percent - 1]:.2f}" for percent in (50, 95, 99)),
        f"{figures.audio / seconds:.1f}",
        f"{figures.audio / max(figures.processor, 1e-9):.1f}",
        f"{before:.0f}",
        f"{after:.0f}",
        f"{after / before - 1:+.1%}",
    )
    title = f"{options.clients} clients, {seconds:.0f} s, {options.workers} workers"
    print_table(title, headings, [row])


def _recordings(options: argparse.Namespace) -> list[Path]:
    return find_recordings(options.recordings) if options.recordings else RECORDINGS


def _parser() -> CommandParser:
    parser = CommandParser(description=__doc__)
    parser.add_argument("--clients", type=positive, default=50, help="default: %(default)s")
    parser.add_argument("--seconds", type=positive, default=60, help="default: %(default)s")
    parser.add_argument(
        "--workers", type=positive, default=2, help="workers of the service (default: %(default)s)"
    )
    parser.add_argument(
        "--requests", type=positive, default=64, help="--requests of the service (default: %(default)s)"
    )
    parser.add_argument("--recordings", type=Path, metavar="DIR", help="default: those of examples/")
    return parser


if __name__ == "__main__":
    run_command(main)
