"""Detect keywords in sound from a microphone, files or a pipe; print each with its time and score.

A LiteRT or ONNX model of a bundle needs neither TensorFlow nor Keras. Labels, front end, threshold, smoothing
and refractory time come from the bundle. Memory use is constant.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from keywords.listening import BLOCK_SECONDS, detect_keywords, open_listener
from streaming.keyword.detection import Detection
from utils.audio.microphone import microphone_blocks
from utils.audio.piped import open_pipe
from utils.audio.reading import audio_blocks
from utils.cli import positive
from utils.errors import run_command
from utils.stop_signals import until_stopped

EXAMPLES = """\
examples:
  python listen.py --model runs/commands/export talk.flac
  python listen.py --model runs/commands/export/litert/stream_external_float.tflite talk.flac
  arecord -q -t raw -f S16_LE -r 16000 | python listen.py --model runs/commands/export -
  python listen.py --model runs/commands/export --microphone --threshold 0.9

For the folder of a bundle, its LiteRT model with external state is used, in float if available.
A pipe may contain raw samples (16-bit little-endian mono, at --rate or the sample rate of the model), which
are processed while they arrive, or an audio file, which is processed when the pipe has ended.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line, listen, print."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if not options.audio and not options.microphone:
        parser.error("no input: give recordings, - for a pipe, or --microphone")
    listener = open_listener(
        options.model,
        threshold=options.threshold,
        smoothing_ms=options.smoothing_ms,
        refractory_ms=options.refractory_ms,
    )
    for source, blocks in _sources(options, listener.sample_rate):
        for detection in detect_keywords(listener, blocks):
            print(_line(detection, source, options), flush=True)
    return 0


def _sources(options: argparse.Namespace, sample_rate: int) -> Iterator[tuple[str, Iterator[np.ndarray]]]:
    if options.microphone:
        with until_stopped(microphone_blocks(sample_rate, BLOCK_SECONDS)) as blocks:
            yield "microphone", blocks
        return
    for name in options.audio:
        if name == "-":
            rate = options.rate or sample_rate
            with open_pipe(sys.stdin.buffer, rate, sample_rate, BLOCK_SECONDS) as sound:
                yield "-", audio_blocks(sound, sample_rate) if isinstance(sound, Path) else sound
        else:
            yield name, audio_blocks(name, sample_rate)


def _line(detection: Detection, source: str, options: argparse.Namespace) -> str:
    if options.json:
        values = {
            "seconds": round(detection.seconds, 3),
            "keyword": detection.keyword,
            "score": round(detection.score, 4),
            "source": source,
        }
        return json.dumps(values, ensure_ascii=False)
    origin = f"{source}\t" if len(options.audio) > 1 else ""
    return f"{origin}{detection.seconds:.2f}\t{detection.keyword}\t{detection.score:.3f}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--model", type=Path, required=True, help="an artefact in its bundle, or the bundle")
    parser.add_argument("audio", nargs="*", help="recordings; - for samples from a pipe")
    parser.add_argument("--microphone", action="store_true", help="listen to the default microphone")
    parser.add_argument(
        "--rate", type=positive, metavar="HZ", help="sample rate of a pipe (default: that of the model)"
    )
    parser.add_argument("--threshold", type=float, help="probability from which a keyword is detected")
    parser.add_argument("--smoothing-ms", type=float, help="time over which probabilities are averaged")
    parser.add_argument(
        "--refractory-ms",
        type=float,
        help="time after a detection without another one (default: the bundle's)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object per keyword")
    return parser


if __name__ == "__main__":
    run_command(main)
