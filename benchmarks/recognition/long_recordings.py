"""Transcribes recordings of several hours: memory that does not grow with the length, speed, errors.

    python -m benchmarks.recognition.long_recordings [--hours 0.5 3] [--manifest LIST.tsv] [--speech RUN]

Joins the recordings of a list into one file, with pauses and faint noise between them, transcribes it with
transcribe.py in a separate process, and prints its peak memory, time and syllable error rate, a row for each
length. Without errors of the segmentation, the error rate is that of the single recordings.
"""

from utils.command.entry import run_command

import argparse
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import soundfile

from benchmarks.support.commands import measured
from benchmarks.support.shared_lists import prepared_list
from data.manifest import read_manifest
from utils.audio.reading import SAMPLE_RATE, read_audio
from utils.command.parser import CommandParser
from utils.metrics import count_errors
from utils.run_folder.run import PRETRAINED, PRETRAINED_SPEECH
from utils.text_table import print_table

PAUSE_SECONDS = (0.7, 3.0)
NOISE = 10 ** (-65 / 20)
COLUMNS = ("hours", "peak memory", "time", "x real time", "segments", "last syllable", "syllable error")


def main() -> None:
    """Make the files, transcribe them, print the table."""
    options = _parser().parse_args()
    manifest = options.manifest or prepared_list("common_voice_zh/dev")
    rows = []
    for hours in options.hours:
        with tempfile.TemporaryDirectory(prefix="long-audio-") as folder:
            rows.append(_row(manifest, hours, Path(folder), options))
    print_table(str(options.speech), COLUMNS, rows)


def _row(manifest: Path, hours: float, folder: Path, options: argparse.Namespace) -> tuple[str, ...]:
    audio, output = folder / "long.wav", folder / "out"
    reference = write_long(audio, manifest, hours)
    command = ["transcribe.py", str(audio), "--format", "json", "--output", str(output)]
    command += ["--speech", str(options.speech), "--language", str(options.language)]
    cost = measured(*command, output=folder / "printed")
    seconds = soundfile.info(audio).duration
    transcript = json.loads((output / "long.json").read_text(encoding="utf-8"))
    segments = transcript["segments"]
    last = max(syllable["start"] for segment in segments for syllable in segment["syllables"])
    return (
        f"{seconds / 3600:.2f}",
        f"{cost.peak_memory / 2**20:.0f} MiB",
        f"{cost.seconds:.0f} s",
        f"{seconds / cost.seconds:.0f}",
        f"{len(segments):,}",
        f"{last:.1f} of {seconds:.1f} s",
        f"{count_errors(reference, transcript['pinyin'].split()).rate:.1%}",
    )


def write_long(path: Path, manifest: Path, hours: float) -> list[str]:
    """Write the recording in pieces; returns its syllables."""
    syllables: list[str] = []
    with soundfile.SoundFile(path, "w", SAMPLE_RATE, 1, subtype="PCM_16") as file:
        for samples, pinyin in _clips(manifest, hours * 3600 * SAMPLE_RATE):
            file.write(samples)
            syllables.extend(pinyin)
    return syllables


def _clips(manifest: Path, samples_wanted: float) -> Iterator[tuple[np.ndarray, tuple[str, ...]]]:
    utterances, rng, length = read_manifest(manifest), np.random.default_rng(0), 0
    while True:
        for number in rng.permutation(len(utterances)):
            samples = read_audio(utterances[number].audio)
            pause = np.zeros(int(rng.uniform(*PAUSE_SECONDS) * SAMPLE_RATE), np.float32)
            samples = np.concatenate([samples, pause])
            length += len(samples)
            if length > samples_wanted:
                return
            noise = rng.standard_normal(len(samples), np.float32)
            yield samples + np.float32(NOISE) * noise, utterances[number].pinyin


def _parser() -> CommandParser:
    parser = CommandParser(description=__doc__)
    parser.add_argument("--hours", type=float, nargs="+", default=[0.5, 3.0], help="lengths (%(default)s)")
    parser.add_argument("--speech", type=Path, default=PRETRAINED_SPEECH, metavar="RUN")
    parser.add_argument("--language", type=Path, default=PRETRAINED, metavar="RUN")
    parser.add_argument("--manifest", type=Path, metavar="LIST", help="default: Common Voice's dev speakers")
    return parser


if __name__ == "__main__":
    run_command(main)
