"""Sends malformed requests of many kinds: the service must refuse each one and answer the next.

    python -m benchmarks.serving.malformed --requests 2000
    python -m benchmarks.serving.malformed --requests 50000 --schemathesis 200

Kinds: a good request with changed, missing or repeated bytes; fields of a form with strange values; sound
with changed bytes; files that are small and become large (silence in FLAC, headers that promise gigabytes,
compressed archives); WebSocket frames of random bytes; connections that send slowly, which stay open all the
while. With --schemathesis each operation of the OpenAPI document also gets so many requests that its schema
allows or forbids. Between the kinds, a good request must be answered. The answers are counted by kind and
status; 0 is a connection that the service has closed. An answer of 500 or more, or a process that died, is a
failure and the exit code 1.
"""

from utils.command.entry import run_command

import argparse
import asyncio
import gzip
import io
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import psutil
import soundfile

from tests.support.recordings import RECORDINGS
from tests.support.service import Service, running_service
from utils.command.arguments import positive
from utils.text_table import print_table

BOUNDARY = b"boundary-of-parts"
AT_A_TIME = 64
SLOW_CONNECTIONS = 50
PATIENCE = 120.0
STRANGE = (
    "",
    " ",
    "-1",
    "nan",
    "1e400",
    "\x00",
    "\ud83d",
    "十",
    "x" * 70_000,
    "../../etc/passwd",
    "true",
    "[]",
    "{}",
)
FIELDS = (
    "model", "language", "prompt", "response_format", "temperature", "timestamp_granularities[]", "include[]",
    "stream", "digits", "phrases", "threshold", "n_best", "file",
)  # fmt: skip
PATHS = ("/v1/audio/transcriptions", "/v1/phrases", "/v1/convert", "/v1/models/", "/", "/docs", "/metrics")


def main(arguments: Sequence[str] | None = None) -> int:
    """Start a service, send all kinds of requests, print the counts."""
    options = _parser().parse_args(arguments)
    limits = ("--upload-megabytes", "4", "--upload-seconds", "600", "--receive-seconds", "1")
    with running_service("--workers", "2", *limits) as service:
        workers = {event["pid"] for event in service.wait_for("a worker is ready", 2)}
        counts = asyncio.run(_all_kinds(service, options.requests, random.Random(options.seed)))
        if options.schemathesis:
            counts["schemathesis"] = _schemathesis(service, options.schemathesis)
        _show(counts)
        alive = {pid for pid in workers if psutil.pid_exists(pid)}
        errors = service.events("a request failed") + service.events("a worker died")
        traces = service.log.read_text(encoding="utf-8").count("Traceback")
        failures = sum(count for kind in counts.values() for status, count in kind.items() if status >= 500)
        print(
            f"{failures} answers of 500 or more, {len(errors)} errors and {traces} traces in the log, ",
            end="",
        )
        print(f"{len(alive)} of {len(workers)} workers are those of the start")
        return int(bool(failures or errors or traces or alive != workers))


async def _all_kinds(service: Service, requests: int, rng: random.Random) -> dict[str, Counter]:
    kinds: dict[str, Callable[[random.Random], bytes]] = {
        "changed request": _changed_request,
        "strange fields": _strange_fields,
        "changed sound": _changed_sound,
        "large when decoded": _large_when_decoded,
        "WebSocket frames": _web_socket,
    }
    # Expensive kinds have fewer requests.
    shares = {
        "changed request": 0.6,
        "strange fields": 0.2,
        "changed sound": 0.1,
        "large when decoded": 0.002,
    }
    host, port = service.url.removeprefix("http://").split(":")
    slow = [asyncio.create_task(_slowly(host, int(port))) for _ in range(SLOW_CONNECTIONS)]
    counts: dict[str, Counter] = {}
    for kind, make in kinds.items():
        waiting = asyncio.Semaphore(AT_A_TIME)

        async def ask(make: Callable = make, waiting: asyncio.Semaphore = waiting) -> int:
            async with waiting:
                return await _answer(host, int(port), make(rng))

        number = max(4, round(requests * shares.get(kind, 0.1)))
        counts[kind] = Counter(await asyncio.gather(*(ask() for _ in range(number))))
        good = await _answer(host, int(port), _good_request(RECORDINGS[-1].read_bytes()))
        assert good == 200, f"after '{kind}' a good request is answered with {good}"
    for task in slow:
        task.cancel()
    counts["sent slowly"] = Counter({0: len(slow)})
    return counts


async def _answer(host: str, port: int, content: bytes) -> int:
    """The status of the answer; 0 if the connection is closed without one."""
    try:
        reader, writer = await asyncio.wait_for(asyncio.open_connection(host, port), PATIENCE)
    except OSError:
        return 0
    try:
        writer.write(content)
        line = await asyncio.wait_for(reader.readline(), PATIENCE)
        return int(line.split()[1]) if line.startswith(b"HTTP/1.1 ") else 0
    except (OSError, ValueError, IndexError):
        return 0
    finally:
        writer.close()


async def _slowly(host: str, port: int) -> None:
    """Headers that never end, in many connections."""
    while True:
        try:
            _, writer = await asyncio.open_connection(host, port)
            writer.write(b"POST /v1/audio/transcriptions HTTP/1.1\r\nHost: x\r\n")
            while not writer.is_closing():
                writer.write(b"X-A: b\r\n")
                await asyncio.sleep(1.0)
        except OSError:
            await asyncio.sleep(0.1)


def _request(path: str, body: bytes, kind: bytes) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"Content-Type: " + kind + b"\r\n\r\n" + body


def _form(fields: Sequence[tuple[str, bytes]], path: str = PATHS[0]) -> bytes:
    parts = []
    for name, value in fields:
        file = '; filename="a.ogg"\r\nContent-Type: audio/ogg' if name == "file" else ""
        head = f'--{BOUNDARY.decode()}\r\nContent-Disposition: form-data; name="{name}"{file}\r\n\r\n'
        parts.append(head.encode() + value + b"\r\n")
    return _request(
        path, b"".join(parts) + b"--" + BOUNDARY + b"--\r\n", b"multipart/form-data; boundary=" + BOUNDARY
    )


def _good_request(sound: bytes) -> bytes:
    return _form([("file", sound), ("model", b"x")])


def _changed(content: bytes, rng: random.Random, changes: int) -> bytes:
    found = bytearray(content)
    for _ in range(rng.randint(min(1, changes), changes)):
        at, length = rng.randrange(len(found) + 1), rng.randint(1, 20)
        match rng.randrange(4):
            case 0:
                found[at : at + 1] = rng.randbytes(1)
            case 1:
                del found[at : at + length]
            case 2:
                found[at:at] = found[at : at + length]
            case 3:
                found[at:at] = rng.randbytes(length)
    return bytes(found)


def _changed_request(rng: random.Random) -> bytes:
    """Mostly in the headers of the request and its parts; the sound is too short to be recognised."""
    fields = [("file", b"OggS" + bytes(40)), ("model", b"x"), ("prompt", "重庆".encode())]
    return _changed(_form(fields, rng.choice(PATHS)), rng, 6)


def _strange_fields(rng: random.Random) -> bytes:
    chosen = rng.choices(FIELDS, k=rng.randint(0, 8))
    values = [rng.choice(STRANGE).encode("utf-8", "surrogatepass") for _ in chosen]
    return _form(list(zip(chosen, values, strict=True)), rng.choice(PATHS))


def _changed_sound(rng: random.Random) -> bytes:
    sound = rng.choice(RECORDINGS).read_bytes()
    if rng.random() < 0.5:
        content = io.BytesIO()
        samples = np.zeros(800, np.float32)
        soundfile.write(
            content, samples, 16000, format=rng.choice(("WAV", "FLAC", "AIFF", "AU", "W64", "CAF"))
        )
        sound = content.getvalue()
    return _good_request(_changed(sound[: rng.randint(20, len(sound))], rng, 10))


def _large_when_decoded(rng: random.Random) -> bytes:
    match rng.randrange(3):
        case 0:  # 2,000 s of silence, beyond the limit
            content = io.BytesIO()
            soundfile.write(content, np.zeros(2000 * 8000, np.int16), 8000, format="FLAC")
            return _good_request(content.getvalue())
        case 1:  # the header of gigabytes, without the data
            head = b"RIFF\xf0\xff\xff\x7fWAVEfmt \x10\0\0\0\1\0\xff\0\x80\xbb\0\0\0\xee\2\0\xfe\1\x10\0"
            return _good_request(head + b"data\xf0\xff\xff\x7f" + bytes(1000))
    return _request(
        PATHS[0], gzip.compress(bytes(50_000_000)), b"multipart/form-data\r\nContent-Encoding: gzip"
    )


def _web_socket(rng: random.Random) -> bytes:
    head = "GET /v1/stream HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    return _changed((head + key).encode(), rng, 1 if rng.random() < 0.3 else 0) + rng.randbytes(
        rng.randint(0, 300)
    )


def _schemathesis(service: Service, examples: int) -> Counter:
    """Requests by the OpenAPI document; its own report is printed if it finds an answer of 500 or more."""
    command = [sys.executable, "-m", "schemathesis.cli", "run", f"{service.url}/openapi.json"]
    command += ["--checks", "not_a_server_error", "--max-examples", str(examples), "--request-timeout", "120"]
    before = len(service.events("request"))
    started = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stdout[-4000:], done.stderr[-2000:], sep="\n")
    statuses = Counter(event["status"] for event in service.events("request")[before:])
    print(f"schemathesis: exit code {done.returncode}, {time.monotonic() - started:.0f} s")
    return statuses


def _show(counts: dict[str, Counter]) -> None:
    statuses = sorted({status for kind in counts.values() for status in kind})
    headings = ("kind", "requests", *map(str, statuses))
    rows = [
        (kind, found.total(), *(found[status] or "" for status in statuses)) for kind, found in counts.items()
    ]
    print_table("answers by status", headings, rows)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--requests", type=positive, default=2000, help="about (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="default: %(default)s")
    parser.add_argument(
        "--schemathesis",
        type=positive,
        metavar="N",
        help="requests for each operation of the OpenAPI document",
    )
    return parser


if __name__ == "__main__":
    run_command(main)
