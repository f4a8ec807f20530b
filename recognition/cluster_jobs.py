"""Recognises recordings on the nodes of a cluster (:mod:`utils.cluster`), in jobs of 32 recordings.

A process of a node loads the models with its first job and keeps them. A job that runs again, because its
node was lost, gives the same results.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from tqdm import tqdm

from utils.cluster import on_cluster
from utils.errors import AudioError, RunError, TranscriptError, printable
from utils.hypotheses.digits import with_digits
from utils.hypotheses.transcript_formats import FORMATS, readable
from utils.hypotheses.transcript_jobs import Job
from utils.hypotheses.transcript_marks import TranscriptMarks
from utils.processes import run_jobs

if TYPE_CHECKING:  # a command that needs no model loads none
    from recognition.recognizer import Recognizer

Item = TypeVar("Item")
Result = TypeVar("Result")

_JOB_RECORDINGS = 32


def results_by_job(
    load: Callable[[], Recognizer],
    work: Callable[[Recognizer, Sequence[Item]], list[Result]],
    items: Sequence[Item],
) -> Iterator[tuple[int, list[Result]]]:
    """Work on all items job by job, in no fixed order.

    Args:
        load: loads the models; can be pickled, as :class:`functools.partial` of a function of a module.
        work: can be pickled as well; returns a result for each item.
        items: the inputs of ``work``; can be pickled.

    Yields:
        the index of the first item of a job, and the results of the job.

    Raises:
        RunError: a job was given up, because each process that worked on it died.
    """
    starts = range(0, len(items), _JOB_RECORDINGS)
    jobs = [(start, items[start : start + _JOB_RECORDINGS]) for start in starts]
    try:
        yield from run_jobs(partial(_work_on, pickle.dumps(load), work), jobs, workers=1)
    except BrokenExecutor as error:
        raise RunError(
            "processes that recognise recordings died again and again",
            hint="perhaps out of memory: see the logs of the cluster's nodes",
        ) from error


def transcribe_on_cluster(
    address: str,
    load: Callable[[], Recognizer],
    form: str,
    digits: bool,
    jobs: Sequence[Job],
    marks: TranscriptMarks,
) -> list[str]:
    """Transcribe recordings on the nodes of a cluster, and write the transcripts here.

    ``load`` is as for :func:`results_by_job`, ``form`` one of ``FORMATS``, perhaps with ``digits``.

    Returns:
        the names of the recordings that failed.
    """
    recordings, failed = [job.audio for job in jobs], []
    with on_cluster(address), tqdm(total=len(jobs), unit=" files", disable=None) as bar:
        for start, texts in results_by_job(load, partial(_transcribe, form, digits), recordings):
            for number, text in enumerate(texts, start):
                bar.update()
                try:
                    if isinstance(text, AudioError):
                        raise text
                    marks.write(jobs[number].target, recordings[number], [text])
                except (AudioError, TranscriptError) as error:
                    failed.append(number)
                    tqdm.write(error.labelled(), file=sys.stderr)
    return [printable(recordings[number]) for number in sorted(failed)]


def _transcribe(
    form: str, digits: bool, recognizer: Recognizer, recordings: Sequence[Path]
) -> list[str | AudioError]:
    results: list[str | AudioError] = []
    for name, events in recognizer.segments((printable(audio), audio) for audio in recordings):
        shown = readable(events)
        try:
            texts = FORMATS[form].write(name, map(with_digits, shown) if digits else shown)
            results.append("".join(texts))
        except AudioError as error:
            results.append(error)
    return results


def _work_on(
    load: bytes,
    work: Callable[[Recognizer, Sequence[Item]], list[Result]],
    job: tuple[int, Sequence[Item]],
) -> tuple[int, list[Result]]:
    start, items = job
    return start, work(_loaded(load), items)


@lru_cache(maxsize=1)
def _loaded(load: bytes) -> Recognizer:
    return pickle.loads(load)()
