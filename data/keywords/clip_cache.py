"""Keyword clips → their samples in one file on disk, read once in parallel, then mapped into memory.

``FOLDER/KEY.int16`` holds the clips one after the other, all of one length; ``KEY`` is a hash of the
settings and of each recording's path, size and time, so what changed is read anew. Beside it
``KEY.rejected.tsv`` names what can't be used, and ``KEY.sha256``, written last, holds the checksums of both.
A killed run leaves nothing that a later one takes for whole, and deleting the folder is always safe.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tqdm import tqdm

from data.features.augment import coloured_noise
from data.keywords.clips import KeywordClip
from utils.audio.reading import INT16_SCALE, audio_blocks, read_audio
from utils.errors import AudioError, CorpusError
from utils.files import remove_left_over, replacing, write_text
from utils.processes import in_processes
from utils.run_folder.checksum_files import check, record

_VERSION = 1  # raise it when the same clips and settings give other samples than before
_MOST_REJECTED = 0.03  # of the clips; more are no accident
_FAILURES_SHOWN = 5
_JOBS_PER_WORKER = 16
_FEW = 500  # recordings that are read here before other processes would have started
_LOUDNESS_STEP = 160  # samples between the stretches that are compared
# Of generated silence: a third is digital zero, the others are noise at this level below full scale.
_GENERATED_DB = (-80.0, -45.0)
_NOISE_SLOPE = (0.0, 2.0)


@dataclass(frozen=True)
class ClipStore:
    """Samples of clips, all of one length and rate.

    Attributes:
        clips: those that can be used, in the order they were asked for.
        samples: (clips, clip_samples) int16, mapped from the disk, read-only.
        rejected: clips that can't be used, each with the reason.
    """

    clips: tuple[KeywordClip, ...]
    samples: np.ndarray
    rejected: tuple[tuple[KeywordClip, str], ...] = ()


def load_clips(
    clips: Sequence[KeywordClip], sample_rate: int, clip_samples: int, cache: str | Path, workers: int = 2
) -> ClipStore:
    """Read clips, or open what an earlier call has read.

    A recording is resampled. A shorter one than a clip gets zeros at both ends; of a longer one the loudest
    stretch is taken.

    Args:
        clips: of one split.
        sample_rate: Hz.
        clip_samples: length of each.
        cache: folder of the file; may be shared by all corpora, settings and runs.
        workers: processes; 1 reads in this one.

    Raises:
        CorpusError: no clips; more than 3 % of them can't be used (all are in ``KEY.rejected.tsv``); what an
            earlier call has read is damaged.
        AudioError: the disk is too small, or a process died.
    """
    if not clips:
        raise CorpusError("there are no clips to read", hint="check data.folder, or the manifests")
    key = _key(clips, sample_rate, clip_samples)
    path, notes, sums = (Path(cache, f"{key}{ending}") for ending in (".int16", ".rejected.tsv", ".sha256"))
    if not sums.is_file():
        remove_left_over(cache)
        rejected = _make(path, notes, clips, sample_rate, clip_samples, workers)
        record(sums, [path, notes])
        if rejected:
            print(f"note: {len(rejected)} of {len(clips)} clips can't be used: {notes}", file=sys.stderr)
    else:
        _check(sums, path, notes)
    reasons = _read_reasons(notes)
    usable = tuple(clip for row, clip in enumerate(clips) if row not in reasons)
    samples = np.memmap(path, np.int16, "r", shape=(len(usable), clip_samples))
    return ClipStore(usable, samples, tuple((clips[row], why) for row, why in sorted(reasons.items())))


def _check(sums: Path, path: Path, notes: Path) -> None:
    try:
        check(sums, [path, notes])
    except (OSError, ValueError) as error:
        hint = f"remove {sums} and run again: the clips are read anew"
        raise CorpusError(f"the cache of clips is damaged ({error})", where=path, hint=hint) from error


def fit_clip(samples: np.ndarray, clip_samples: int) -> np.ndarray:
    """(samples,) → (clip_samples,): zeros at both ends, or the stretch with the most energy."""
    missing = clip_samples - len(samples)
    if missing >= 0:
        return np.pad(samples, (missing // 2, missing - missing // 2))
    energy = np.concatenate([[0.0], np.cumsum(np.square(samples, dtype=np.float64))])
    starts = np.append(np.arange(0, -missing, _LOUDNESS_STEP), -missing)
    start = starts[np.argmax(energy[starts + clip_samples] - energy[starts])]
    return samples[start : start + clip_samples]


def generated_silence(name: str, length: int) -> np.ndarray:
    """What a muted or a quiet microphone gives, by the clip's name alone: (length,) float32."""
    rng = np.random.default_rng(list(name.encode()))
    if rng.random() < 1 / 3:
        return np.zeros(length, np.float32)
    level = 10.0 ** (rng.uniform(*_GENERATED_DB) / 20.0)
    return np.float32(level) * coloured_noise(length, rng.uniform(*_NOISE_SLOPE), rng)


@dataclass(frozen=True)
class _Job:
    """Some recordings to read: of each the rows of the file that its clips fill."""

    file: Path
    recordings: tuple[tuple[tuple[int, KeywordClip], ...], ...]
    sample_rate: int
    clip_samples: int


def _key(clips: Sequence[KeywordClip], sample_rate: int, clip_samples: int) -> str:
    digest = hashlib.blake2b(f"{_VERSION} {sample_rate} {clip_samples}".encode(), digest_size=10)
    states: dict[Path | None, str] = {None: "generated"}
    for clip in clips:
        if clip.audio not in states:
            states[clip.audio] = _state(clip.audio)
        # The label has no part in it, so a choice of other words often finds its clips.
        name = clip.id if clip.audio is None else ""
        digest.update(f"\n{states[clip.audio]}\t{name}\t{clip.start_seconds}\t{clip.seconds}".encode())
    return digest.hexdigest()


def _state(path: Path) -> str:
    absolute = os.path.abspath(path)  # noqa: PTH100 - Path.absolute takes longer, and there are 100,000 of them
    try:
        state = os.stat(path)  # noqa: PTH116
    except OSError:
        return f"{absolute} missing"
    return f"{absolute} {state.st_size} {state.st_mtime_ns}"


def _make(
    path: Path,
    notes: Path,
    clips: Sequence[KeywordClip],
    sample_rate: int,
    clip_samples: int,
    workers: int,
) -> dict[int, str]:
    """Write the file and the notes; row → reason of what can't be used."""
    size = len(clips) * clip_samples * 2
    path.parent.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(path.parent).free
    if size > free:
        what = f"the clips need {size / 1e9:.1f} GB, {free / 1e9:.1f} GB are free"
        raise AudioError(what, where=path.parent, hint="free some space, or set data.cache to another folder")
    with replacing(path) as temporary:
        with temporary.open("wb") as file:
            file.truncate(size)
        rejected = dict(_read_all(temporary, clips, sample_rate, clip_samples, workers))
        rows = [f"{row}\t{clips[row].id}\t{rejected[row]}\n" for row in sorted(rejected)]
        write_text(notes, "row\tid\treason\n" + "".join(rows))
        if len(rejected) > _MOST_REJECTED * len(clips):
            raise _too_many(rejected, clips, notes)
        _close_gaps(temporary, sorted(rejected), len(clips), clip_samples)
    return rejected


def _read_all(
    file: Path, clips: Sequence[KeywordClip], sample_rate: int, clip_samples: int, workers: int
) -> Iterator[tuple[int, str]]:
    """Fill the rows of the file; what can't be read as (row, reason)."""
    by_recording: dict[object, list[tuple[int, KeywordClip]]] = defaultdict(list)
    for row, clip in enumerate(clips):
        # Whole recordings stand alone; the stretches of one recording are cut in one go.
        by_recording[clip.audio if clip.seconds and clip.audio else row].append((row, clip))
    groups = [tuple(sorted(group, key=_start)) for group in by_recording.values()]
    workers = 1 if len(groups) < _FEW else workers
    size = max(1, len(groups) // (workers * _JOBS_PER_WORKER))
    jobs = [
        _Job(file, tuple(groups[start : start + size]), sample_rate, clip_samples)
        for start in range(0, len(groups), size)
    ]
    try:
        with tqdm(total=len(clips), desc="reading clips", unit=" clips", disable=None) as progress:
            for done, failures in in_processes(_read_job, jobs, workers):
                yield from failures
                progress.update(done)
    except BrokenExecutor as error:
        hint = "out of memory, or a recording that crashes the decoder: with data.workers=1 it shows where"
        raise AudioError("a process that reads recordings died", where=file.parent, hint=hint) from error


def _start(member: tuple[int, KeywordClip]) -> tuple[float, int]:
    row, clip = member
    return clip.start_seconds, row


def _read_job(job: _Job) -> tuple[int, list[tuple[int, str]]]:
    """Read the recordings of a job into their rows: (clips seen, failures as (row, reason))."""
    failures: list[tuple[int, str]] = []
    done = 0
    with job.file.open("r+b") as file:
        for group in job.recordings:
            done += len(group)
            written = set()
            try:
                for row, samples in _samples(group, job.sample_rate, job.clip_samples):
                    integers = np.rint(fit_clip(samples, job.clip_samples) * INT16_SCALE)
                    file.seek(row * job.clip_samples * 2)
                    file.write(np.clip(integers, -INT16_SCALE, INT16_SCALE - 1).astype("<i2").tobytes())
                    written.add(row)
            except AudioError as error:
                failures += [(row, " ".join(str(error).split())) for row, _ in group if row not in written]
            except Exception as error:
                error.add_note(f"while reading {group[0][1].audio}")
                raise
    return done, failures


def _samples(
    group: Sequence[tuple[int, KeywordClip]], sample_rate: int, clip_samples: int
) -> Iterator[tuple[int, np.ndarray]]:
    """The samples of each clip of one recording: (row, (samples,) float32)."""
    row, clip = group[0]
    if clip.audio is None:
        yield row, generated_silence(clip.id, clip_samples)
    elif clip.seconds:
        yield from _stretches(group, clip.audio, sample_rate)
    else:
        samples = read_audio(clip.audio, sample_rate)[round(clip.start_seconds * sample_rate) :]
        if not len(samples):
            raise AudioError(f"it ends before {clip.start_seconds} s", where=clip.audio)
        yield row, samples


def _stretches(
    group: Sequence[tuple[int, KeywordClip]], audio: Path, sample_rate: int
) -> Iterator[tuple[int, np.ndarray]]:
    """Cut stretches, sorted by their beginnings, out of a recording of any length, block by block."""
    blocks = audio_blocks(audio, sample_rate)
    held, offset = np.zeros(0, np.float32), 0  # samples not let go yet, and how many were before them
    for row, clip in group:
        start = round(clip.start_seconds * sample_rate)
        stop = start + max(1, round(clip.seconds * sample_rate))
        while offset + len(held) < stop and (block := next(blocks, None)) is not None:
            gone = max(0, min(start - offset, len(held)))
            held, offset = np.concatenate([held[gone:], block]), offset + gone
        stretch = held[max(0, start - offset) : stop - offset]
        if not len(stretch):
            raise AudioError(f"it ends before {clip.start_seconds} s", where=audio)
        yield row, stretch


def _close_gaps(file: Path, gaps: Sequence[int], rows: int, clip_samples: int) -> None:
    """Move what follows a rejected row up, and cut the end of the file off."""
    if not gaps:
        return
    samples = np.memmap(file, np.int16, "r+", shape=(rows, clip_samples))
    for shift, (gap, following) in enumerate(zip(gaps, [*gaps[1:], rows], strict=True)):
        for row in range(gap + 1, following):
            samples[row - shift - 1] = samples[row]
    samples.flush()
    del samples
    os.truncate(file, (rows - len(gaps)) * clip_samples * 2)


def _read_reasons(notes: Path) -> dict[int, str]:
    try:
        lines = notes.read_text(encoding="utf-8").splitlines()[1:]
        return {int(row): reason for row, _, reason in (line.split("\t", 2) for line in lines)}
    except (OSError, ValueError) as error:
        hint = "remove the file of the same name that ends in .int16, and run again"
        raise CorpusError(f"can't be read ({error})", where=notes, hint=hint) from error


def _too_many(rejected: dict[int, str], clips: Sequence[KeywordClip], notes: Path) -> CorpusError:
    first = sorted(rejected)[:_FAILURES_SHOWN]
    shown = "; ".join(f"{clips[row].id}: {rejected[row]}" for row in first)
    more = "; …" if len(rejected) > len(first) else ""
    what = f"{len(rejected)} of {len(clips)} clips can't be used ({shown}{more})"
    return CorpusError(what, where=notes, hint="put the recordings right, or remove them")
