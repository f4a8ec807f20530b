"""Reads keyword clips in parallel, cuts or pads them to one length, and keeps their samples in one file.

``FOLDER/KEY.int16``, which is memory-mapped, holds the clips one after the other. ``KEY`` is a hash of the
settings and of each recording's path, size and modification time. ``KEY.rejected.tsv`` lists the clips that
can't be used. The two files are an entry of the array store (``data/array_store.py``).
"""

import hashlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from tqdm import tqdm

from data.array_store import CacheEntry, first_failures, process_died, require_space
from data.features.waveform_effects import random_coloured_noise
from data.keywords.clips import SILENCE, KeywordClip
from utils.audio.reading import INT16_SCALE, read_audio
from utils.errors import AudioError, CorpusError, require
from utils.files import remove_leftovers, replacing, write_text
from utils.object_store import file_state
from utils.processes import ordered_workers

_VERSION = 2  # increase it when the same clips and settings give other samples than before
_MAX_REJECTED = 0.03  # fraction of the clips; if more can't be used, the whole corpus is refused
_CLIPS_PER_JOB = 100
_MIN_PARALLEL = 5  # jobs; fewer are done in this process before others would have started
_RECORDINGS_IN_MEMORY = 8  # of those from which several segments are cut
_ENERGY_STEP = 160  # samples between the segments whose energies are compared
# Of generated silence, a third is digital zero; the rest is noise at this level in dB below full scale.
_GENERATED_DB = (-80.0, -45.0)

ReadClips = tuple[np.ndarray, list[tuple[int, str]]]  # samples, and what can't be used, by index


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


def _key(clips: Sequence[KeywordClip], sample_rate: int, clip_samples: int) -> str:
    digest = hashlib.blake2b(f"{_VERSION} {sample_rate} {clip_samples}".encode(), digest_size=10)
    states: dict[Path | None, str] = {None: "generated"}
    for clip in clips:
        if clip.audio and clip.audio not in states:
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
    folder, rejected_list = entry.stem.parent, entry.path("rejected.tsv")
    require_space(folder, len(clips) * clip_samples * 2, "clips")
    jobs = [
        (clips[start : start + _CLIPS_PER_JOB], sample_rate, clip_samples)
        for start in range(0, len(clips), _CLIPS_PER_JOB)
    ]
    rejected: list[tuple[str, str, str]] = []
    _recording.cache_clear()  # the files may have changed
    with (
        replacing(entry.path("int16")) as temporary,
        temporary.open("wb") as file,
        tqdm(desc="clips", total=len(clips), disable=None) as bar,
        ordered_workers(workers if len(jobs) >= _MIN_PARALLEL else 1) as run,
    ):
        results = run(_read_clips, jobs, process_died("clips", folder))
        for start, (samples, failures) in enumerate(results):
            file.write(samples.tobytes())
            first = start * _CLIPS_PER_JOB
            rejected += [(str(first + row), clips[first + row].id, reason) for row, reason in failures]
            bar.update(len(samples) + len(failures))
        write_text(rejected_list, "\n".join(["row\tid\treason", *map("\t".join, rejected)]) + "\n")
        if len(rejected) > _MAX_REJECTED * len(clips):
            shown = first_failures([(name, reason) for _, name, reason in rejected])
            raise CorpusError(
                f"{len(rejected)} of {len(clips)} clips can't be used ({shown})",
                where=rejected_list,
                hint="correct the recordings, or remove them",
            )
    if rejected:
        print(f"note: {len(rejected)} of {len(clips)} clips can't be used: {rejected_list}", file=sys.stderr)


def _read_clips(clips: Sequence[KeywordClip], sample_rate: int, clip_samples: int) -> ReadClips:
    """Samples of the usable clips, (n, clip_samples) int16, and the others as (index, reason)."""
    found, failures = [], []
    for index, clip in enumerate(clips):
        try:
            samples = fit_clip(_samples_of(clip, sample_rate, clip_samples), clip_samples)
        except AudioError as error:
            failures.append((index, " ".join(str(error).split())))
        else:
            integers = np.rint(samples * INT16_SCALE)
            found.append(np.clip(integers, -INT16_SCALE, INT16_SCALE - 1).astype("<i2"))
    return np.array(found, "<i2").reshape(-1, clip_samples), failures


def _samples_of(clip: KeywordClip, sample_rate: int, clip_samples: int) -> np.ndarray:
    """The sound of a clip: (samples,) float32.

    Raises:
        AudioError: the recording can't be read, is too short, or is silent.
    """
    if clip.audio is None:
        return generated_silence(clip.id, clip_samples)
    read = _recording if clip.seconds else read_audio  # several segments are cut from one recording
    samples, start = read(clip.audio, sample_rate), round(clip.start_seconds * sample_rate)
    end = start + max(1, round(clip.seconds * sample_rate)) if clip.seconds else len(samples)
    samples = samples[start:end]
    require(len(samples), f"it ends before {clip.start_seconds} s", where=clip.audio, error=AudioError)
    is_audible = np.abs(samples).max() * INT16_SCALE >= 0.5  # as 16-bit samples, some are not 0
    require(
        is_audible or clip.label == SILENCE,
        f"it is silent, but labelled {clip.label}",
        where=clip.audio,
        error=AudioError,
    )
    return samples


@lru_cache(maxsize=_RECORDINGS_IN_MEMORY)
def _recording(path: Path, sample_rate: int) -> np.ndarray:
    return read_audio(path, sample_rate)
