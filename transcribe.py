"""Transcribe recordings, a pipe or the microphone as text, JSON, SRT, VTT, CTM or TextGrid."""

from utils.command.entry import run_command

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from tqdm import tqdm

from recognition import load
from recognition.command_options import add_joint_options, add_phrase_options, add_search_options
from recognition.options import (
    CHANNELS,
    MIX,
    SEPARATE,
    given_settings,
    transcript_settings,
    transcription_runs,
    transcription_search,
)
from streaming.speech.recognizer import StreamRecognizer
from utils.audio.piped import live_audio
from utils.cluster import add_cluster, on_cluster
from utils.command.arguments import fraction, language_run, listed_paths, positive, split_names
from utils.command.parser import CommandParser
from utils.errors import AudioError, ConfigError, TranscriptError, UserError, printable
from utils.files import remove_leftovers
from utils.hypotheses.digits import with_digits
from utils.hypotheses.live import LiveText, write_live_transcript
from utils.hypotheses.recognition import Ending, Recognition
from utils.hypotheses.transcript_formats import FORMATS, Events, print_transcript, readable
from utils.hypotheses.transcript_jobs import PIPE, Job, find_jobs, unfinished_jobs
from utils.hypotheses.transcript_marks import TranscriptMarks
from utils.run_folder.run import PRETRAINED_STREAMING, RunFolder, locked, open_run
from utils.stop_signals import Stopped

PIPE_NAME, MICROPHONE_NAME = "stdin", "microphone"
SHOWN_FAILURES = 10  # names or pairs in a message
BLOCK_SECONDS = 0.08  # of live audio that is read at once
COMMON_OPTIONS = (
    *("--microphone", "--stream", "--format", "--output", "--digits", "--words", "--phrases"),
    *("--minimum-confidence", "--speech", "--language"),
)
EXAMPLES = """\
examples:
  python transcribe.py recording.wav
  python transcribe.py talks/ --format srt --output subtitles/     # called again, it goes on where it stopped
  python transcribe.py *.flac --speech runs/compact --language runs/ngram --format json --beam 10 --n-best 5
  python transcribe.py --list files.txt --output texts/
  python transcribe.py talks/ --output texts/ --cluster head:6379
  python transcribe.py talk.m4a --format vtt --digits
  python transcribe.py call.wav --channels separate --channel-names 客服,客户
  python transcribe.py meeting.wav --joint --words names.txt
  python transcribe.py commands/ --phrases phrases.txt      # only these phrases; everything else is rejected
  python transcribe.py lecture.flac --syllables runs/syllables --workers 1
  python transcribe.py --microphone                         # until Ctrl-C
  arecord -f S16_LE -r 16000 | python transcribe.py - --rate 16000
  arecord -f S16_LE -r 16000 | python transcribe.py - --rate 16000 --stream
  arecord -f S16_LE -r 16000 | python transcribe.py - --rate 16000 --stream --phrases phrases.txt
  python transcribe.py --microphone --no-second-pass        # for slow machines

Reads what libsndfile or FFmpeg reads (WAV, FLAC, OGG, MP3, m4a, mp4, webm, mkv …), of any length, sample rate
and number of channels. It is cut at pauses; the text appears line by line, and memory use is constant.
Without --speech and --language the models of this project are used (pretrained/). With --joint, syllables
and hanzi are searched together, which helps where the acoustic model is not certain. It is the default where
none of --speech, --language, --beam, --syllables and --phrases is given; --no-joint turns it off. With
--stream the syllables appear while they are spoken (on standard error; a terminal shows corrections too), by
a small streaming model. When an utterance ends with a pause, the large model recognises it again, which gives
the text; --no-second-pass leaves the text of the small one. Ctrl-C ends the sound, and the last utterance
gets its text too. For a file that can't be read an error is printed, and again a list at the end; the other
files are transcribed, and the exit code is 1.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line, transcribe all files, print or write each transcript."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.microphone:
        if options.paths or options.list or options.rate:
            parser.error("--microphone can't be combined with recordings or --rate")
        options.paths, options.stream = [PIPE], True
    if not options.paths and not options.list:
        parser.error("give recordings, folders, --list FILE, or --microphone")
    options.search = transcription_search(options.speech, options.language, **given_settings(vars(options)))
    if options.channels != MIX and (options.stream or options.cluster or PIPE in options.paths):
        raise ConfigError("--channels is for files", hint="leave out --stream, --cluster and '-'")
    if options.channel_names and options.channels != SEPARATE:
        raise ConfigError("--channel-names without --channels separate", hint="add --channels separate")
    if options.cluster and (not options.output or options.stream or PIPE in options.paths):
        raise ConfigError("--cluster transcribes files", hint="give --output DIR, no '-', no --stream")
    paths = [*options.paths, *(listed_paths(options.list) if options.list else ())]
    live_name = MICROPHONE_NAME if options.microphone else PIPE_NAME
    jobs = find_jobs(paths, live_name, options.output, options.format)
    if options.rate and [job.audio for job in jobs] != [PIPE]:
        raise UserError("--rate is the sample rate of raw audio from a pipe", hint="use it with '-' alone")
    if options.n_best > 1 and options.format != "json":
        raise UserError(f"--n-best {options.n_best} with --format {options.format}", hint="add --format json")
    if not options.second_pass:
        if options.speech or not options.stream:
            hint = "add --stream or --microphone, and leave out --speech"
            raise ConfigError("--no-second-pass is for live audio with the shipped models", hint=hint)
        options.speech = PRETRAINED_STREAMING
    runs = transcription_runs(options.speech, options.language)
    if options.syllables:
        open_run(options.syllables, "language")
    with _one_live_call(jobs, options):
        failed = _transcribe_unfinished(jobs, options, runs)
    return 1 if failed else 0


def _transcribe_unfinished(
    jobs: Sequence[Job], options: argparse.Namespace, runs: Mapping[str, Path]
) -> list[str]:
    """Transcribe what earlier calls have not finished; print and return the names of those that failed."""
    marks = _marks(options, runs)
    unfinished = unfinished_jobs(jobs, marks)
    if len(unfinished) < len(jobs):
        done = len(jobs) - len(unfinished)
        print(f"{done} of {len(jobs)} were transcribed before: skipped", file=sys.stderr)
    transcribe = _transcribe_on_cluster if options.cluster else _transcribe
    failed = transcribe(unfinished, options, marks) if unfinished else []
    if failed:
        _print_names("{} of {} files could not be transcribed completely", failed, len(unfinished))
    return failed


def _print_names(message: str, names: Sequence[str], of: int) -> None:
    """Print a message with numbers, and the first names."""
    shown = [*names[:SHOWN_FAILURES], *(["…"] if len(names) > SHOWN_FAILURES else [])]
    print(f"{message.format(len(names), of)}: {', '.join(shown)}", file=sys.stderr)


def _transcribe(jobs: Sequence[Job], options: argparse.Namespace, marks: TranscriptMarks | None) -> list[str]:
    """Transcribe all recordings; return the names of those that failed."""
    recognizer = _recognizer(options)
    failed: list[str] = []
    silent: list[str] = []
    form = FORMATS[options.format]
    block_seconds = BLOCK_SECONDS if options.stream else 1.0
    # Without --output the printed transcripts show the progress.
    with tqdm(unit=" s of audio", disable=None if options.output else True) as bar:
        stopped: list[Stopped] = []
        sources = _sources(jobs, options, recognizer.sample_rate, block_seconds, stopped)
        recognised = _recognised(recognizer, sources, options)
        for (name, events), job in zip(recognised, jobs, strict=False):  # to the end, or to a signal
            try:
                shown = _with_progress(events, bar, name, silent)
                if options.digits:
                    shown = map(with_digits, shown)
                if marks is None:
                    print_transcript(options.format, name, readable(shown), len(jobs) > 1)
                elif job.file is None:
                    write_live_transcript(job.target, form, name, shown)
                else:
                    marks.write(job.target, job.file, form.write(name, readable(shown)))
            except (AudioError, TranscriptError) as error:
                failed.append(name)
                tqdm.write(error.labelled(), file=sys.stderr)
    if silent:
        sure = f" of a confidence of {options.minimum_confidence}" if options.minimum_confidence else ""
        _print_names(f"note: no speech{sure} was found in {{}} of {{}} files", silent, len(jobs))
    if options.stream:
        print(recognizer.speed(), file=sys.stderr)
    if stopped:
        raise stopped[0]
    return failed


def _transcribe_on_cluster(
    jobs: Sequence[Job], options: argparse.Namespace, marks: TranscriptMarks | None
) -> list[str]:
    """As :func:`_transcribe`, by the nodes of a cluster."""
    from recognition.cluster_jobs import transcribe_files

    assert marks  # --cluster needs --output
    recordings = [job.audio for job in jobs]
    failed = []
    with on_cluster(options.cluster), tqdm(total=len(jobs), unit=" files", disable=None) as bar:
        for number, text in transcribe_files(_loader(options), options.format, options.digits, recordings):
            bar.update()
            try:
                if isinstance(text, AudioError):
                    raise text
                marks.write(jobs[number].target, jobs[number].audio, [text])
            except (AudioError, TranscriptError) as error:
                failed.append(number)
                tqdm.write(error.labelled(), file=sys.stderr)
    return [printable(jobs[number].audio) for number in sorted(failed)]


def _loader(options: argparse.Namespace) -> Callable[[], Any]:
    return partial(load, options.speech, options.language, **vars(options.search))


def _recognizer(options: argparse.Namespace) -> Any:
    recognizer = _loader(options)()
    for text in recognizer.phrases.homophone_warnings() if recognizer.phrases else ():
        print(f"warning: {text}", file=sys.stderr)
    if not options.stream:
        return recognizer
    stream = recognizer.live_stream()
    return StreamRecognizer(stream, None if options.output else LiveText(sys.stderr).show)


def _recognised(recognizer: Any, sources: Iterator[tuple[str, Any]], options: argparse.Namespace) -> Any:
    """The name and the events of each recording, see :meth:`recognition.recognizer.Recognizer.segments`."""
    if options.stream or options.channels == MIX:
        return recognizer.segments(sources)
    from recognition.channels import recognise_channels

    return recognise_channels(recognizer, sources, options.channels, options.channel_names)


def _sources(
    jobs: Sequence[Job], options: argparse.Namespace, sample_rate: int, seconds: float, stopped: list[Stopped]
) -> Iterator[tuple[str, Any]]:
    for job in jobs:
        if job.audio != PIPE:
            yield printable(job.audio), job.audio
            continue
        for blocks in live_audio(options.microphone, options.rate, sample_rate, seconds, stopped):
            yield MICROPHONE_NAME if options.microphone else PIPE_NAME, blocks
        if stopped:
            return


def _with_progress(events: Events, bar: tqdm, name: str, silent: list[str]) -> Iterator[Recognition | Ending]:
    """The same events; updates the progress bar with the seconds of audio.

    The name of a recording without speech is appended to ``silent``.
    """
    before, speech = 0.0, False
    for event in events:
        speech = speech or (isinstance(event, Recognition) and bool(event.times))
        now = event.seconds if isinstance(event, Ending) else event.end
        bar.update(round(now) - round(before))
        before = now
        yield event
    if not speech:
        silent.append(name)


def _one_live_call(jobs: Sequence[Job], options: argparse.Namespace) -> AbstractContextManager:
    """A lock of the output folder for live audio, whose transcripts have the same name in every call."""
    live = options.output and any(job.file is None for job in jobs)
    return locked(RunFolder(options.output)) if live else nullcontext()


def _marks(options: argparse.Namespace, runs: Mapping[str, Path]) -> TranscriptMarks | None:
    """The record of finished transcripts in the output folder; None without ``--output``."""
    if not options.output:
        return None
    remove_leftovers(options.output)
    channels = " ".join(("channels", options.channels, *options.channel_names))
    flags = {"stream": options.stream, "digits": options.digits, channels: options.channels != MIX}
    return TranscriptMarks(options.output, transcript_settings(options.search, runs, flags))


def _parser() -> CommandParser:
    parser = CommandParser(description=__doc__, epilog=EXAMPLES, common=COMMON_OPTIONS)
    parser.add_argument(
        "paths",
        nargs="*",
        type=Path,
        metavar="FILE_OR_FOLDER",
        help="recordings and folders; - is standard input",
    )
    parser.add_argument("--list", type=Path, metavar="FILE", help="a text file with more paths, one per line")
    parser.add_argument(
        "--microphone", action="store_true", help="the default microphone, with --stream; Ctrl-C ends it"
    )
    parser.add_argument("--speech", type=Path, metavar="RUN", help="run of the acoustic model")
    parser.add_argument("--language", type=language_run, metavar="RUN", help="run of the language model")
    parser.add_argument("--format", choices=tuple(FORMATS), default="text", help="default: text")
    parser.add_argument(
        "--channels",
        choices=CHANNELS,
        default=MIX,
        help="of a recording with several: mixed, the first one only, or a transcript of each (default: mix)",
    )
    parser.add_argument(
        "--channel-names",
        type=split_names,
        default=(),
        metavar="A,B",
        help="with --channels separate (default: left and right, or numbers)",
    )
    parser.add_argument(
        "--no-punctuation", action="store_false", default=None, dest="punctuation", help="hanzi only"
    )
    parser.add_argument("--digits", action="store_true", help="numbers as digits: 123 for 一百二十三")
    parser.add_argument(
        "--output",
        type=Path,
        metavar="DIR",
        help="one file per recording in DIR; finished transcripts are skipped, other files never replaced",
    )
    parser.add_argument(
        "--n-best",
        type=positive,
        default=1,
        help="hypotheses (or phrases) of each segment in JSON; without --joint at most --beam hypotheses",
    )
    parser.add_argument(
        "--minimum-confidence",
        type=fraction,
        default=0.0,
        metavar="P",
        help="segments whose syllables are less certain on average have no text (0 to 1; default: 0)",
    )
    parser.add_argument(
        "--rate", type=positive, metavar="HZ", help="standard input is raw mono 16-bit audio of this rate"
    )
    parser.add_argument(
        "--stream",
        action="store_true",
        help="recognise while the audio arrives, and show syllables while they are spoken",
    )
    parser.add_argument(
        "--no-second-pass",
        action="store_false",
        dest="second_pass",
        help="with --stream: the text of the small streaming model, which the large one does not revise",
    )
    add_search_options(parser)
    add_joint_options(parser)
    add_phrase_options(parser)
    add_cluster(parser)
    return parser


if __name__ == "__main__":
    run_command(main)
