"""Processor time from audio files to hanzi with the shipped models, as a fraction of the length of the audio.

    python -m benchmarks.recognition.real_time_factor [--manifest dev.tsv]

Reads and recognises the recordings as ``transcribe.py`` does (cutting at pauses, acoustic model, joint
search) and prints the real-time factor: processor seconds of all threads by seconds of audio. Loading the
models is not included. ``OMP_NUM_THREADS=1`` keeps it on one core.
"""

from utils.command.entry import run_command

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.recognition.audio_to_pinyin import DEV
from benchmarks.support.recognizer import joint_recognizer
from data.manifest import read_manifest
from utils.run_folder.run import PRETRAINED_SPEECH


def main(arguments: Sequence[str] | None = None) -> int:
    """Recognise the recordings twice and print the real-time factor of the second time."""
    options = _parser().parse_args(arguments)
    recognizer = joint_recognizer(options.run)
    sources = [(utterance.id, utterance.audio) for utterance in read_manifest(options.manifest)]
    for _ in range(2):
        start = time.process_time()
        seconds = sum(recognition.seconds for recognition in recognizer.recognise(sources))
        elapsed = time.process_time() - start
    print(f"{len(sources)} recordings, {seconds:.0f} s: real-time factor {elapsed / seconds:.4f}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--run", type=Path, default=PRETRAINED_SPEECH, help="a speech run")
    parser.add_argument("--manifest", type=Path, default=DEV, help="recordings")
    return parser


if __name__ == "__main__":
    run_command(main)
