"""Reads keyword clips in parallel, cuts or pads them to one length, and keeps their samples in one file.

``FOLDER/KEY.int16``, which is memory-mapped, holds the clips one after the other. ``KEY`` is a hash of the
settings and of each recording's path, size and modification time. ``KEY.rejected.tsv`` lists the clips that
can't be used. The two files are an entry of the array store (``data/array_store.py``).
"""

import hashlib
import os
import sys
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from data.array_store import JOBS_PER_WORKER, CacheEntry, first_failures, process_died, require_space
from data.features.waveform_effects import random_coloured_noise
from data.keywords.clips import SILENCE, KeywordClip
from utils.audio.reading import INT16_SCALE, read_audio
from utils.errors import AudioError, CorpusError, require
from utils.files import remove_leftovers, replacing, write_text
from utils.object_store import file_state
from utils.processes import collect

_VERSION = 2  # increase it when the same clips and settings give other samples than before
_MAX_REJECTED = 0.03  # fraction of the clips; if more can't be used, the whole corpus is refused
_MIN_PARALLEL = 500  # clips; fewer are read in this process before others would have started
_ENERGY_STEP = 160  # samples between the segments whose energies are compared
# Of generated silence, a third is digital zero; the rest is noise at this level in dB below full scale.
_GENERATED_DB = (-80.0, -45.0)

IndexedClip = tuple[int, KeywordClip]  # (row in the file, clip)


@dataclass(frozen=True)
class ClipStore:
    """Samples of clips, all of one length and rate.

    Attributes:
        clips: the usable ones, in the order in which they were asked for.
        samples: (clips, clip_samples) int16, memory-mapped, read-only.
        rejected: clips that can't be used, each with the reason.
    """

    clips: tuple[KeywordClip, ...]
    samples: np.ndarray
    rejected: tuple[tuple[KeywordClip, str], ...] = ()


def load_clips(
    clips: Sequence[KeywordClip], sample_rate: int, clip_samples: int, cache: str | Path, workers: int = 2
) -> ClipStore:
    """Read clips, or open what an earlier call has read.

    Recordings are resampled. Shorter ones are padded with zeros at both ends; of longer ones the segment
    with the most energy is used.

    Args:
        clips: the clips of one split.
        sample_rate: Hz.
        clip_samples: length of each clip.
        cache: folder of the file; may be shared by all corpora, settings and runs.
        workers: processes; 1 reads in this process.

    Raises:
        CorpusError: there are no clips, or more than 3 % of them can't be used (all are listed in
            ``KEY.rejected.tsv``).
        CacheError: the cache is damaged or can't be written, or a worker process died.
    """
    if not clips:
        raise CorpusError("there are no clips to read", hint="check data.folder, or the manifests")
    key = _key(clips, sample_rate, clip_samples)
    entry = CacheEntry(Path(cache, key), ("int16", "rejected.tsv"), "clips")
    if not entry.is_complete():
        remove_leftovers(cache)
        with entry.writing():
            _write_clips(entry, clips, sample_rate, clip_samples, workers)
    with entry.reading():
        lines = entry.path("rejected.tsv").read_text(encoding="utf-8").splitlines()[1:]
        rejected = {int(row): reason for row, _, reason in (line.split("\t", 2) for line in lines)}
    usable = tuple(clip for row, clip in enumerate(clips) if row not in rejected)
    return ClipStore(
        usable,
        samples=np.memmap(entry.path("int16"), np.int16, "r", shape=(len(usable), clip_samples)),
        rejected=tuple((clips[row], reason) for row, reason in rejected.items()),
    )


def fit_clip(samples: np.ndarray, clip_samples: int) -> np.ndarray:
    """(samples,) → (clip_samples,): padded with zeros at both ends, or the segment with the most energy."""
    missing = clip_samples - len(samples)
    if missing >= 0:
        return np.pad(samples, (missing // 2, missing - missing // 2))
    energy = np.concatenate([[0.0], np.cumsum(np.square(samples, dtype=np.float64))])
    starts = np.append(np.arange(0, -missing, _ENERGY_STEP), -missing)
    start = starts[np.argmax(energy[starts + clip_samples] - energy[starts])]
    return samples[start : start + clip_samples]


def generated_silence(name: str, length: int) -> np.ndarray:
    """Samples as of a muted or a quiet microphone, seeded with the clip's name: (length,) float32."""
    rng = np.random.default_rng(list(name.encode()))
    if rng.random() < 1 / 3:
        return np.zeros(length, np.float32)
    level = 10.0 ** (rng.uniform(*_GENERATED_DB) / 20.0)
    return np.float32(level) * random_coloured_noise(length, rng)


@dataclass(frozen=True)
class _Job:
    """Some recordings to read, each with the clips to be cut from it."""

    file: Path
    recordings: tuple[tuple[IndexedClip, ...], ...]
    sample_rate: int
    clip_samples: int


def _key(clips: Sequence[KeywordClip], sample_rate: int, clip_samples: int) -> str:
    digest = hashlib.blake2b(f"{_VERSION} {sample_rate} {clip_samples}".encode(), digest_size=10)
    states: dict[Path | None, str] = {None: "generated"}
    for clip in clips:
        if clip.audio not in states:
            states[clip.audio] = _state_of(clip.audio)
        # Words are left out: another choice of them may find the same clips.
        name = clip.id if clip.audio is None else ""
        segment = f"{clip.start_seconds}\t{clip.seconds}\t{clip.label == SILENCE}"
        digest.update(f"\n{states[clip.audio]}\t{name}\t{segment}".encode())
    return digest.hexdigest()


def _state_of(path: Path) -> str:
    try:
        return file_state(path)
    except OSError:
        return f"{path} missing"


def _write_clips(
    entry: CacheEntry, clips: Sequence[KeywordClip], sample_rate: int, clip_samples: int, workers: int
) -> None:
    """Write the samples of the usable clips, and the list of the others."""
    folder, size = entry.stem.parent, len(clips) * clip_samples * 2
    require_space(folder, size, "clips")
    workers = workers if len(clips) >= _MIN_PARALLEL else 1
    rejected_list = entry.path("rejected.tsv")
    with replacing(entry.path("int16")) as temporary:
        with temporary.open("wb") as file:
            file.truncate(size)
        jobs = _jobs(temporary, clips, sample_rate, clip_samples, workers)
        died = process_died("clips", folder)
        failures = collect(_read_job, jobs, workers, items=len(clips), title="clips", died=died)
        rejected = dict(sorted(failures))
        rows = [f"{row}\t{clips[row].id}\t{reason}\n" for row, reason in rejected.items()]
        write_text(rejected_list, "row\tid\treason\n" + "".join(rows))
        if len(rejected) > _MAX_REJECTED * len(clips):
            shown = first_failures([(clips[row].id, reason) for row, reason in rejected.items()])
            raise CorpusError(
                f"{len(rejected)} of {len(clips)} clips can't be used ({shown})",
                where=rejected_list,
                hint="correct the recordings, or remove them",
            )
        _remove_rows(temporary, rejected.keys(), len(clips), clip_samples)
    if rejected:
        print(f"note: {len(rejected)} of {len(clips)} clips can't be used: {rejected_list}", file=sys.stderr)


def _jobs(
    file: Path, clips: Sequence[KeywordClip], sample_rate: int, clip_samples: int, workers: int
) -> list[_Job]:
    """Divide the recordings into jobs; the segments of one recording are read together."""
    by_recording: dict[object, list[IndexedClip]] = defaultdict(list)
    for row, clip in enumerate(clips):
        by_recording[clip.audio if clip.seconds and clip.audio else row].append((row, clip))
    recordings = list(map(tuple, by_recording.values()))
    size = max(1, len(recordings) // (workers * JOBS_PER_WORKER))
    return [
        _Job(file, tuple(recordings[start : start + size]), sample_rate, clip_samples)
        for start in range(0, len(recordings), size)
    ]


def _read_job(job: _Job) -> tuple[int, list[tuple[int, str]]]:
    """Write the clips of a job into their rows: (number of clips, failures as (row, reason))."""
    failures: list[tuple[int, str]] = []
    with job.file.open("r+b") as file:
        for recording in job.recordings:
            written = set()
            try:
                for row, samples in _read_recording(recording, job.sample_rate, job.clip_samples):
                    integers = np.rint(fit_clip(samples, job.clip_samples) * INT16_SCALE)
                    file.seek(row * job.clip_samples * 2)
                    file.write(np.clip(integers, -INT16_SCALE, INT16_SCALE - 1).astype("<i2").tobytes())
                    written.add(row)
            except AudioError as error:
                reason = " ".join(str(error).split())
                failures += [(row, reason) for row, _ in recording if row not in written]
            except Exception as error:
                error.add_note(f"while reading {recording[0][1].audio}")
                raise
    return sum(map(len, job.recordings)), failures


def _read_recording(
    recording: Sequence[IndexedClip], sample_rate: int, clip_samples: int
) -> Iterator[tuple[int, np.ndarray]]:
    """The samples of each clip of one recording: (row, (samples,) float32)."""
    row, clip = recording[0]
    if clip.audio is None:
        yield row, generated_silence(clip.id, clip_samples)
    elif clip.seconds:
        samples = read_audio(clip.audio, sample_rate)
        for row, segment in recording:
            start = round(segment.start_seconds * sample_rate)
            cut = samples[start : start + max(1, round(segment.seconds * sample_rate))]
            require(len(cut), f"it ends before {segment.start_seconds} s", where=clip.audio, error=AudioError)
            yield row, cut
    else:
        samples = read_audio(clip.audio, sample_rate)[round(clip.start_seconds * sample_rate) :]
        require(len(samples), f"it ends before {clip.start_seconds} s", where=clip.audio, error=AudioError)
        is_audible = np.abs(samples).max() * INT16_SCALE >= 0.5  # as 16-bit samples, some are not 0
        require(
            is_audible or clip.label == SILENCE,
            f"it is silent, but labelled {clip.label}",
            where=clip.audio,
            error=AudioError,
        )
        yield row, samples


def _remove_rows(file: Path, rejected: Collection[int], rows: int, clip_samples: int) -> None:
    """Move the other rows up, and cut off the end of the file."""
    if not rejected:
        return
    samples = np.memmap(file, np.int16, "r+", shape=(rows, clip_samples))
    first = min(rejected)
    kept = [row for row in range(first, rows) if row not in rejected]
    for target, row in enumerate(kept, start=first):
        samples[target] = samples[row]
    samples.flush()
    del samples
    os.truncate(file, (rows - len(rejected)) * clip_samples * 2)
