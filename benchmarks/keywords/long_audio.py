"""A recording of hours: does memory stay flat, is anything lost, how fast is it?

    python benchmarks/keywords/long_audio.py
    python benchmarks/keywords/long_audio.py --hours 3 --speech RUN --language RUN --manifest LIST.tsv

Makes one file of the list's recordings in a row, with pauses and a faint noise between them (the demo's test
set, if no other is named), transcribes it with transcribe.py in a process of its own, and prints that
process's peak memory, how much it grew between the first and the last tenth of its work, the time, and the
syllable error rate against what the recordings say: the one of the recordings alone, if no cut loses any.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import soundfile

from benchmarks.support.watched import Measured, watched
from data.manifest import read_manifest
from utils.audio.reading import SAMPLE_RATE, read_audio
from utils.errors import run_command
from utils.metrics import count_errors

PAUSE_SECONDS = (0.7, 3.0)
NOISE = 10 ** (-65 / 20)


def main() -> int:
    """Make the file, transcribe it, print the figures."""
    options = _parser().parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="long-audio-") as folder:
        audio, output = Path(folder) / "long.wav", Path(folder) / "out"
        said = _write_long(audio, options.manifest, options.hours)
        seconds = soundfile.info(audio).duration
        print(
            f"{seconds / 3600:.2f} h, {audio.stat().st_size / 2**20:.0f} MiB, {len(said):,} syllables",
            flush=True,
        )
        measured = _transcribe(audio, output, options)
        heard = json.loads((output / "long.json").read_text(encoding="utf-8"))
    _report(measured, seconds, said, heard)
    return 0


def _write_long(path: Path, manifest: Path, hours: float) -> list[str]:
    """Write the recording, piece by piece; returns its syllables."""
    said: list[str] = []
    with soundfile.SoundFile(path, "w", SAMPLE_RATE, 1, subtype="PCM_16") as file:
        for samples, pinyin in _clips(manifest, hours * 3600 * SAMPLE_RATE):
            file.write(samples)
            said.extend(pinyin)
    return said


def _clips(manifest: Path, wanted: float) -> Iterator[tuple[np.ndarray, tuple[str, ...]]]:
    utterances, rng, length = read_manifest(manifest), np.random.default_rng(0), 0
    while True:
        for number in rng.permutation(len(utterances)):
            samples = read_audio(utterances[number].audio)
            pause = np.zeros(int(rng.uniform(*PAUSE_SECONDS) * SAMPLE_RATE), np.float32)
            samples = np.concatenate([samples, pause])
            length += len(samples)
            if length > wanted:
                return
            noise = rng.standard_normal(len(samples), np.float32)
            yield samples + np.float32(NOISE) * noise, utterances[number].pinyin


def _transcribe(audio: Path, output: Path, options: argparse.Namespace) -> Measured:
    """Run transcribe.py and watch it from outside."""
    command = [sys.executable, "transcribe.py", str(audio), "--format", "json", "--output", str(output)]
    command += ["--speech", str(options.speech), "--language", str(options.language), *options.options]

    def at_work() -> bool:
        # The file under its temporary name: from its first segment on, memory should not grow any more.
        return any(path.stat().st_size > 1000 for path in output.glob(".*.long.json"))

    return watched(command, at_work)


def _report(measured: Measured, seconds: float, said: list[str], heard: dict) -> None:
    spoken = sum(one["end"] - one["start"] for one in heard["segments"])
    times = [one["start"] for segment in heard["segments"] for one in segment["syllables"]]
    errors = count_errors(said, heard["pinyin"].split())
    print(f"peak memory        {measured.peak / 2**20:8.0f} MiB")
    print(f"first, last tenth  {measured.growth()}")
    print(f"time               {measured.seconds:8.0f} s, {seconds / measured.seconds:.0f} x real time")
    print(f"segments           {len(heard['segments']):8,}, {spoken / seconds:.0%} of the recording")
    print(f"syllables          {len(times):8,}, the last at {times[-1]:.1f} of {seconds:.1f} s")
    print(f"syllable errors    {errors.rate:8.1%}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--hours", type=float, default=3.0, help="length of the recording (default: 3)")
    parser.add_argument("--speech", type=Path, default=Path("runs/demo/speech"), metavar="RUN")
    parser.add_argument("--language", type=Path, default=Path("runs/demo/language"), metavar="RUN")
    parser.add_argument("--manifest", type=Path, default=Path("datasets/demo/test.tsv"), metavar="LIST")
    parser.add_argument("--folder", type=Path, help="for the recording (default: the system's temporary one)")
    parser.add_argument("options", nargs="*", help="more options of transcribe.py, after --")
    return parser


if __name__ == "__main__":
    run_command(main)
