"""Measures live streams at the same time: the delay of syllables and the processor time of a stream.

    python -m benchmarks.serving.live_streams
    python -m benchmarks.serving.live_streams --streams 1 8 16 --seconds 60 --recordings DIR

Each stream sends recordings with pauses between them, 0.1 s of audio every 0.1 s. The delay of a syllable is
the time from the moment at which its end was sent until the arrival of the first partial result (or final)
with a syllable during most of its final time, whichever syllable that is. It contains the look-ahead of the
model, the sound until the next partial result, the computation, and the transfer in both directions. The
delay of a final is the time from the end of the last syllable, and contains the pause of 0.8 s. CPU is that
of all processes of the service, as a part of a core for a stream.
"""

from utils.command.entry import run_command

import asyncio
import itertools
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import websockets

from benchmarks.serving.load import processor_seconds
from recognition.voice_activity import FRAME_SECONDS, STEP_FRAMES
from tests.support.recordings import RECORDINGS
from tests.support.service import Service, running_service
from utils.audio.folders import find_recordings
from utils.audio.reading import read_audio
from utils.command.arguments import positive
from utils.command.parser import CommandParser
from utils.text_table import print_table

RATE = 16_000
CHUNK_SECONDS = 0.1
PAUSE_SECONDS = 1.5  # between recordings
ALLOWED_SECONDS = 0.1  # beyond look-ahead and chunk


@dataclass
class Figures:
    """Figures of the clients: delays in seconds."""

    syllables: list[float] = field(default_factory=list)
    finals: list[float] = field(default_factory=list)
    look_ahead: float = 0.0


def main(arguments: Sequence[str] | None = None) -> None:
    """Start a service; run each number of streams; print the table."""
    options = _parser().parse_args(arguments)
    paths = find_recordings(options.recordings) if options.recordings else RECORDINGS
    pause = np.zeros(round(PAUSE_SECONDS * RATE), "<i2")
    sounds = [
        np.concatenate([np.trunc(read_audio(path, RATE) * 32767).astype("<i2"), pause]) for path in paths
    ]
    chunk = CHUNK_SECONDS + STEP_FRAMES * FRAME_SECONDS
    rows = []
    workers = ("--workers", "1", "--live-workers", str(options.live_workers))
    with running_service(*workers, "--streams", str(max(options.streams))) as service:
        service.wait_for("a worker of live streams is ready", options.live_workers)
        asyncio.run(_load(service, sounds, 1, 5))  # warms up
        for streams in options.streams:
            before, began = processor_seconds(service), time.monotonic()
            figures = asyncio.run(_load(service, sounds, streams, options.seconds))
            cpu = (processor_seconds(service) - before) / (time.monotonic() - began) / streams
            bound = figures.look_ahead + chunk + ALLOWED_SECONDS
            within = np.mean(np.array(figures.syllables) <= bound)
            percentiles = (
                np.percentile(figures.syllables, [50, 95, 99]),
                np.percentile(figures.finals, [50, 95]),
            )
            delays = [f"{1000 * value:.0f}" for value in np.concatenate(percentiles)]
            rows.append((streams, *delays[:3], f"{within:.1%}", *delays[3:], f"{cpu:.3f}"))
    headings = ("streams", "p50", "p95", "p99", "within", "final p50", "p95", "CPU")
    print_table("delays in ms", headings, rows, left=0)
    ahead = f"look-ahead {1000 * figures.look_ahead:.0f} ms + chunk and partial result {1000 * chunk:.0f} ms"
    print(f"within: {ahead} + {1000 * ALLOWED_SECONDS:.0f} ms")
    print(f"{options.live_workers} live workers; load of the machine: {psutil.getloadavg()[0]:.1f}")


async def _load(service: Service, sounds: Sequence[np.ndarray], streams: int, seconds: float) -> Figures:
    figures = Figures()
    rng = np.random.default_rng(streams)
    offsets = rng.uniform(0, 1, streams)
    orders = [rng.permutation(len(sounds)) for _ in range(streams)]
    clients = [
        _client(service, [sounds[index] for index in order], seconds, offset, figures)
        for order, offset in zip(orders, offsets, strict=True)
    ]
    await asyncio.gather(*clients)
    return figures


async def _client(
    service: Service, sounds: Sequence[np.ndarray], seconds: float, offset: float, figures: Figures
) -> None:
    """Send speech for some seconds, and record when syllables appear."""
    await asyncio.sleep(offset)
    size = round(CHUNK_SECONDS * RATE)
    stream = np.concatenate(list(itertools.islice(itertools.cycle(sounds), 1 + int(seconds))))
    stream = stream[: round(seconds * RATE)]
    async with websockets.connect(service.url.replace("http", "ws") + "/v1/stream") as socket:
        await socket.send(json.dumps({"type": "start", "encoding": "pcm_s16le", "rate": RATE}))
        ready = json.loads(await socket.recv())
        figures.look_ahead = ready["look_ahead_ms"] / 1000
        began = asyncio.get_running_loop().time()
        receiving = asyncio.create_task(_receive(socket, began, figures))
        for start in range(0, len(stream), size):
            # Sound is sent in real time.
            await asyncio.sleep(max(0.0, began + (start + size) / RATE - asyncio.get_running_loop().time()))
            await socket.send(stream[start : start + size].tobytes())
        await socket.send('{"type":"end"}')
        await receiving


async def _receive(socket: Any, began: float, figures: Figures) -> None:
    partials: list[tuple[float, dict[str, Any]]] = []
    async for text in socket:
        now = asyncio.get_running_loop().time() - began
        message = json.loads(text)
        if message["type"] not in ("partial", "final"):
            continue
        partials.append((now, message))
        if message["type"] == "final":
            for syllable in message["syllables"]:
                figures.syllables.append(_first_shown(syllable, partials) - syllable["end"])
            figures.finals.append(now - message["syllables"][-1]["end"])
            partials = []


def _first_shown(syllable: dict[str, Any], partials: Sequence[tuple[float, dict[str, Any]]]) -> float:
    """The arrival time of the first message that has a syllable with its middle within this one."""
    for moment, message in partials:
        for other in message["syllables"]:
            if syllable["start"] <= (other["start"] + other["end"]) / 2 <= syllable["end"]:
                return moment
    return partials[-1][0]


def _parser() -> CommandParser:
    parser = CommandParser(description=__doc__)
    parser.add_argument("--streams", type=positive, nargs="+", default=[1, 4, 8, 12, 16])
    parser.add_argument("--seconds", type=positive, default=30, help="duration of each stream (default: 30)")
    parser.add_argument("--live-workers", type=positive, default=2, metavar="N", help="default: 2")
    parser.add_argument("--recordings", type=Path, metavar="DIR", help="default: examples/recordings")
    return parser


if __name__ == "__main__":
    run_command(main)
