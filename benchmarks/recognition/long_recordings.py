"""Transcribes a recording of several hours: memory, errors, speed.

    python -m benchmarks.recognition.long_recordings
    python -m benchmarks.recognition.long_recordings --hours 3 --speech RUN --language RUN --manifest LIST.tsv

Joins the recordings of a list (default: the demo's test set) into one file, with pauses and faint noise
between them, transcribes it with transcribe.py in a separate process, and prints the peak memory, its growth
between the first and the last tenth of the run, the time, and the syllable error rate. Without errors of the
segmentation, the error rate is that of the single recordings.
"""

from utils.command.entry import run_command

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
from utils.metrics import count_errors

PAUSE_SECONDS = (0.7, 3.0)
NOISE = 10 ** (-65 / 20)


def main() -> int:
    """Make the file, transcribe it, print the figures."""
    options = _parser().parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="long-audio-") as folder:
        audio, output = Path(folder) / "long.wav", Path(folder) / "out"
        reference = _write_long(audio, options.manifest, options.hours)
        seconds = soundfile.info(audio).duration
        print(
            f"{seconds / 3600:.2f} h, {audio.stat().st_size / 2**20:.0f} MiB, {len(reference):,} syllables",
            flush=True,
        )
        measured = _transcribe(audio, output, options)
        transcript = json.loads((output / "long.json").read_text(encoding="utf-8"))
    _report(measured, seconds, reference, transcript)
    return 0


def _write_long(path: Path, manifest: Path, hours: float) -> list[str]:
    """Write the recording in pieces; returns its syllables."""
    syllables: list[str] = []
    with soundfile.SoundFile(path, "w", SAMPLE_RATE, 1, subtype="PCM_16") as file:
        for samples, pinyin in _clips(manifest, hours * 3600 * SAMPLE_RATE):
            file.write(samples)
            syllables.extend(pinyin)
    return syllables


def _clips(manifest: Path, target_seconds: float) -> Iterator[tuple[np.ndarray, tuple[str, ...]]]:
    utterances, rng, length = read_manifest(manifest), np.random.default_rng(0), 0
    while True:
        for number in rng.permutation(len(utterances)):
            samples = read_audio(utterances[number].audio)
            pause = np.zeros(int(rng.uniform(*PAUSE_SECONDS) * SAMPLE_RATE), np.float32)
            samples = np.concatenate([samples, pause])
            length += len(samples)
            if length > target_seconds:
                return
            noise = rng.standard_normal(len(samples), np.float32)
            yield samples + np.float32(NOISE) * noise, utterances[number].pinyin


def _transcribe(audio: Path, output: Path, options: argparse.Namespace) -> Measured:
    """Run transcribe.py and measure the process."""
    command = [sys.executable, "transcribe.py", str(audio), "--format", "json", "--output", str(output)]
    command += ["--speech", str(options.speech), "--language", str(options.language), *options.options]

    def has_started() -> bool:
        # The temporary output file: memory should not grow after its first segment.
        return any(path.stat().st_size > 1000 for path in output.glob(".*.long.json"))

    return watched(command, has_started)


def _report(measured: Measured, seconds: float, reference: list[str], transcript: dict) -> None:
    segments = transcript["segments"]
    spoken = sum(segment["end"] - segment["start"] for segment in segments)
    times = [syllable["start"] for segment in segments for syllable in segment["syllables"]]
    errors = count_errors(reference, transcript["pinyin"].split())
    print(f"peak memory        {measured.peak / 2**20:8.0f} MiB")
    print(f"first, last tenth  {measured.growth()}")
    print(f"time               {measured.seconds:8.0f} s, {seconds / measured.seconds:.0f} x real time")
    print(f"segments           {len(segments):8,}, {spoken / seconds:.0%} of the recording")
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
    parser.add_argument(
        "--folder", type=Path, help="folder for the recording (default: the system's temporary folder)"
    )
    parser.add_argument("options", nargs="*", help="more options of transcribe.py, after --")
    return parser


if __name__ == "__main__":
    run_command(main)
