"""Detect keywords in audio from a microphone, files or a pipe; print each with its times and score.

The keywords are those of a trained model in a bundle, or typed words, which the acoustic model that comes
with this project searches for. Neither needs TensorFlow. Memory use is constant.
"""

from utils.command.entry import run_command

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from recognition.phrases.grammar import parse_grammar
from recognition.phrases.phrase_list import list_phrases, read_phrases
from streaming.keyword import Detection
from utils.audio.microphone import microphone_blocks
from utils.audio.piped import open_pipe
from utils.audio.reading import audio_blocks
from utils.command.arguments import fraction, positive, positive_number
from utils.command.parser import CommandParser
from utils.errors import AudioError, ConfigError, PhraseError, printable
from utils.run_folder.run import PRETRAINED_SPEECH
from utils.stop_signals import until_stopped

ALARMS_PER_HOUR = 1.0  # of each typed word
BLOCK_SECONDS = 0.1  # of the microphone and of a pipe: the longest additional delay
Detect = Callable[[Iterable[np.ndarray]], Iterable[Detection]]
EXAMPLES = """\
examples:
  python listen.py --word 小书童 --word 你好小明 --microphone
  python listen.py --phrases phrases.txt --alarms-per-hour 0.2 talk.flac
  python listen.py --model runs/commands/export talk.flac
  python listen.py --model runs/commands/export/litert/stream_external_float.tflite talk.flac
  arecord -q -t raw -f S16_LE -r 16000 | python listen.py --model runs/commands/export -
  python listen.py --model runs/commands/export --microphone --threshold 0.9

Each line has the second of the recording at which the word was recognised, the word, its score, the threshold
that the score reached, and the second in which the word began, where it is known: for typed words, and models
of wake_word.py.
Typed words need no training: --word, or a phrase file as described in docs/phrases.md. For the folder of a
bundle, its LiteRT model with external state is used, in float if available.
A pipe may contain raw samples (16-bit little-endian mono, at --rate or the sample rate of the model), which
are processed while they arrive, or an audio file, which is processed when the pipe has ended.
For a recording that can't be read an error is printed; the others are processed, and the exit code is 1.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line, listen, print."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if not options.audio and not options.microphone:
        parser.error("no input: give recordings, - for a pipe, or --microphone")
    if options.audio and options.microphone:
        parser.error("give recordings or --microphone, not both")
    if options.rate and "-" not in options.audio:
        parser.error("--rate is the sample rate of a pipe: give - as well")
    sample_rate, detect = _typed(options) if options.word or options.phrases else _trained(options)
    failed: list[str] = []
    for source, blocks in _sources(options, sample_rate):
        try:
            for detection in detect(blocks):
                print(_line(detection, source, options), flush=True)
        except AudioError as error:
            if len(options.audio) < 2:
                raise
            failed.append(source)
            print(error.labelled(), file=sys.stderr)
    if failed:
        summary = f"{len(failed)} of {len(options.audio)} recordings could not be read"
        print(f"{summary}: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def _trained(options: argparse.Namespace) -> tuple[int, Detect]:
    """Sample rate and detection of the keywords of a bundle."""
    from keywords.listening import detect_keywords, open_listener

    _refuse(
        options, ("speech", "alarms_per_hour"), "is for typed words", "for a trained model use --threshold"
    )
    listener = open_listener(options.model, options.threshold)
    return listener.sample_rate, partial(detect_keywords, listener)


def _typed(options: argparse.Namespace) -> tuple[int, Detect]:
    """Sample rate and detection of typed words and of the phrases of a file."""
    from keywords.phrase_listening import detect_phrases, open_phrase_listener

    _refuse(options, ("threshold",), "is for a trained model", "for typed words use --alarms-per-hour")
    phrases = read_phrases(options.phrases) if options.phrases else []
    if options.word:
        try:
            phrases += list_phrases(parse_grammar("\n".join(options.word), "--word"))
        except PhraseError as error:
            hint = f"{error.hint} (each --word is a line)"
            raise PhraseError(error.message, where=error.where, hint=hint) from error
    listener = open_phrase_listener(
        phrases,
        options.speech or PRETRAINED_SPEECH,
        options.alarms_per_hour or ALARMS_PER_HOUR,
        source=str(options.phrases or "--word"),
    )
    return listener.sample_rate, partial(detect_phrases, listener)


def _refuse(options: argparse.Namespace, names: Sequence[str], message: str, hint: str) -> None:
    """Raise ConfigError if one of these options, which would be ignored, is given."""
    for name in names:
        if getattr(options, name) is not None:
            raise ConfigError(f"--{name.replace('_', '-')} {message}", hint=hint)


def _sources(options: argparse.Namespace, sample_rate: int) -> Iterator[tuple[str, Iterator[np.ndarray]]]:
    if options.microphone:
        with until_stopped(microphone_blocks(sample_rate, BLOCK_SECONDS)) as blocks:
            yield "microphone", blocks
        return
    for name in options.audio:
        if name == "-":
            rate = options.rate or sample_rate
            with open_pipe(sys.stdin.buffer, rate, sample_rate, BLOCK_SECONDS) as sound:
                yield "-", sound
        else:
            yield printable(name), audio_blocks(name, sample_rate)


def _line(detection: Detection, source: str, options: argparse.Namespace) -> str:
    if options.json:
        values = {
            "seconds": round(detection.seconds, 3),
            "keyword": detection.keyword,
            "score": round(detection.score, 4),
            "threshold": round(detection.threshold, 4),
            "start": None if detection.start is None else round(detection.start, 3),
            "source": source,
        }
        return json.dumps(values, ensure_ascii=False)
    origin = f"{source}\t" if len(options.audio) > 1 else ""
    start = "" if detection.start is None else f"\tbegan {detection.start:.2f}"
    score = f"{detection.score:.3f}\tthreshold {detection.threshold:.3f}"
    return f"{origin}{detection.seconds:.2f}\t{detection.keyword}\t{score}{start}"


def _parser() -> CommandParser:
    parser = CommandParser(
        description=__doc__,
        epilog=EXAMPLES,
    )
    keywords = parser.add_mutually_exclusive_group(required=True)
    keywords.add_argument("--model", type=Path, help="an artefact in its bundle, or the bundle")
    keywords.add_argument(
        "--word", action="append", metavar="WORD", help="a word in hanzi, or as WiFi; may be repeated"
    )
    keywords.add_argument("--phrases", type=Path, metavar="FILE", help="a phrase file, see docs/phrases.md")
    parser.add_argument(
        "--speech",
        type=Path,
        metavar="RUN",
        help="for typed words: a speech run (default: the model of this project)",
    )
    parser.add_argument(
        "--alarms-per-hour",
        type=positive_number,
        metavar="N",
        help="for typed words: false alarms that are allowed for each, 0.2 to 3 with the model of this "
        f"project (default: {ALARMS_PER_HOUR:g})",
    )
    parser.add_argument("audio", nargs="*", help="recordings; - for samples from a pipe")
    parser.add_argument("--microphone", action="store_true", help="listen to the default microphone")
    parser.add_argument(
        "--rate", type=positive, metavar="HZ", help="sample rate of a pipe (default: that of the model)"
    )
    parser.add_argument("--threshold", type=fraction, help="probability from which a keyword is detected")
    parser.add_argument("--json", action="store_true", help="print one JSON object per keyword")
    return parser


if __name__ == "__main__":
    run_command(main)
