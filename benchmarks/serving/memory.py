"""Measures the memory of a service without requests and with a long recording, and its start.

    python -m benchmarks.serving.memory
    python -m benchmarks.serving.memory --minutes 180 --recording MY.mp3 --workers 4

Starts the service, waits until all its processes have their models, then sends a recording: that of
--recording, or clips of a list joined to one of --minutes. Memory is the sum of the proportional set sizes of
all processes (what several share counts once), read four times a second; "idle" is after a pause of some
seconds.
"""

from utils.command.entry import run_command

import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import httpx2
import psutil

from benchmarks.recognition.long_recordings import write_long
from benchmarks.support.shared_lists import prepared_list
from tests.support.service import TRANSCRIPTIONS, Service, running_service
from utils.audio.properties import audio_seconds
from utils.command.arguments import positive
from utils.command.parser import CommandParser
from utils.text_table import print_table

STEP_SECONDS = 0.25
PAUSE_SECONDS = 5.0
COLUMNS = ("ready", "idle", "peak with the recording", "idle after it", "answer", "audio", "x real time")


def main(arguments: Sequence[str] | None = None) -> None:
    """Start a service, send it a recording, print the table."""
    options = _parser().parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="service-memory-") as folder:
        recording = options.recording
        if not recording:
            recording = Path(folder) / "long.wav"
            write_long(recording, prepared_list("common_voice_zh/dev"), options.minutes / 60)
        workers = f"--workers {options.workers} --live-workers {options.live_workers} --upload-megabytes 2000"
        started = time.monotonic()
        with running_service(*workers.split()) as service:
            service.wait_for("a worker is ready", options.workers)
            service.wait_for("a worker of live streams is ready", options.live_workers)
            row = [f"{time.monotonic() - started:.1f} s", *_measured(service, recording)]
    title = f"{options.workers} workers, {options.live_workers} for live streams"
    print_table(title, COLUMNS, [row])


def _measured(service: Service, recording: Path) -> list[str]:
    time.sleep(PAUSE_SECONDS)
    idle, begun, ended = memory(service), time.monotonic(), threading.Event()
    read = [idle]

    def watch() -> None:
        while not ended.wait(STEP_SECONDS):
            read.append(memory(service))

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        files = {"file": recording.read_bytes()}
        answer = httpx2.post(service.url + TRANSCRIPTIONS, files=files, timeout=None)
    finally:
        ended.set()
        watching.join()
    took, seconds = time.monotonic() - begun, audio_seconds(recording)
    time.sleep(PAUSE_SECONDS)
    sizes = [f"{size / 1e6:.0f} MB" for size in (idle, max(read), memory(service))]
    return [*sizes, str(answer.status_code), f"{seconds:.0f} s", f"{seconds / took:.0f}"]


def memory(service: Service) -> int:
    """Bytes of all processes of a service; those that several share are counted once."""
    process, found = psutil.Process(service.process.pid), 0
    for each in [process, *process.children(recursive=True)]:
        try:
            found += each.memory_full_info().pss
        except psutil.Error:
            continue  # it has ended
    return found


def _parser() -> CommandParser:
    parser = CommandParser(description=__doc__)
    parser.add_argument("--recording", type=Path, metavar="FILE", help="default: clips of Common Voice")
    parser.add_argument("--minutes", type=float, default=30.0, help="of the clips (default: %(default)s)")
    parser.add_argument("--workers", type=positive, default=2, help="default: %(default)s")
    parser.add_argument("--live-workers", type=positive, default=2, help="default: %(default)s")
    return parser


if __name__ == "__main__":
    run_command(main)
