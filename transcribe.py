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

from recognition.cluster_jobs import transcribe_on_cluster
from recognition.command_line.transcription import complete_options, transcription_parser
from recognition.options import MIX, transcript_settings, transcription_runs
from streaming.speech.recognizer import StreamRecognizer
from utils.audio.piped import live_audio
from utils.command.parser import CommandParser
from utils.errors import AudioError, TranscriptError, printable
from utils.files import remove_leftovers
from utils.hypotheses.digits import with_digits
from utils.hypotheses.live import LiveText, write_live_transcript
from utils.hypotheses.recognition import Ending, Recognition
from utils.hypotheses.transcript_formats import FORMATS, Events, print_transcript, readable
from utils.hypotheses.transcript_jobs import PIPE, Job, find_jobs, unfinished_jobs
from utils.hypotheses.transcript_marks import TranscriptMarks
from utils.run_folder.run import RunFolder, locked, open_run
from utils.stop_signals import Stopped

PIPE_NAME, MICROPHONE_NAME = "stdin", "microphone"
SHOWN_FAILURES = 10  # names or pairs in a message
BLOCK_SECONDS = 0.08  # of live audio that is read at once


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line, transcribe all files, print or write each transcript."""
    parser = _parser()
    options = parser.parse_args(arguments)
    complete_options(parser, options)
    live_name = MICROPHONE_NAME if options.microphone else PIPE_NAME
    jobs = find_jobs(options.paths, live_name, options.output, options.format)
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
    if not unfinished:
        return []
    from recognition.loading import (
        load_recognizer,
    )  # here: a command that only prints its help loads no model

    load = partial(load_recognizer, runs["speech"], runs["language"], options.search)
    if options.cluster:
        assert marks  # --cluster needs --output
        settings = options.cluster, load, options.format, options.digits
        failed = transcribe_on_cluster(*settings, unfinished, marks)
    else:
        failed = _transcribe(unfinished, load, options, marks)
    if failed:
        _print_names("{} of {} files could not be transcribed completely", failed, len(unfinished))
    return failed


def _print_names(message: str, names: Sequence[str], of: int) -> None:
    """Print a message with numbers, and the first names."""
    shown = [*names[:SHOWN_FAILURES], *(["…"] if len(names) > SHOWN_FAILURES else [])]
    print(f"{message.format(len(names), of)}: {', '.join(shown)}", file=sys.stderr)


def _transcribe(
    jobs: Sequence[Job],
    load: Callable[[], Any],
    options: argparse.Namespace,
    marks: TranscriptMarks | None,
) -> list[str]:
    """Transcribe all recordings; return the names of those that failed."""
    recognizer = _recognizer(load, options)
    failed: list[str] = []
    silent: list[str] = []
    form = FORMATS[options.format]
    # Without --output the printed transcripts show the progress.
    with tqdm(unit=" s of audio", disable=None if options.output else True) as bar:
        stopped: list[Stopped] = []
        sources = _sources(jobs, options, recognizer.sample_rate, stopped)
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


def _recognizer(load: Callable[[], Any], options: argparse.Namespace) -> Any:
    recognizer = load()
    for text in recognizer.phrases.homophone_warnings() if recognizer.phrases else ():
        print(f"warning: {text}", file=sys.stderr)
    if not options.stream:
        return recognizer
    stream = recognizer.live_stream()
    return StreamRecognizer(stream, None if options.output else LiveText(sys.stderr).show)


def _recognised(recognizer: Any, sources: Iterator[tuple[str, Any]], options: argparse.Namespace) -> Any:
    """The name and the events of each recording, see :meth:`recognition.recognizer.Recognizer.segments`."""
    if options.channels == MIX:
        return recognizer.segments(sources)
    from recognition.channels import recognise_channels

    return recognise_channels(recognizer, sources, options.channels, options.channel_names)


def _sources(
    jobs: Sequence[Job], options: argparse.Namespace, sample_rate: int, stopped: list[Stopped]
) -> Iterator[tuple[str, Any]]:
    """Name and file of each recording, or blocks of live audio; a signal that ends it joins ``stopped``."""
    seconds = BLOCK_SECONDS if options.stream else 1.0
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
    return transcription_parser(__doc__)


if __name__ == "__main__":
    run_command(main)
