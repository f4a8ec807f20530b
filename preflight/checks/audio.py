"""Checks the recordings of manifests for faults: unreadable, clipped, silent, wrong length, copies ….

Parallel processes measure each recording once; the checks read these measurements. Their thresholds lie
outside the range of 869 AISHELL, 2,448 dspspeech20 and 1,600 HSK-word recordings: loud frames at -38.6 dB or
above, lengths within 0.5 ms of the manifest's. The findings in these corpora are true: in dspspeech20 40
recordings of one speaker are clipped, and 36 of another speaker are duplicates.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from preflight.findings import ERROR, WARNING, Finding, line_check, line_finding, repeated_lines
from preflight.listings import Line, Listing, of_role
from utils.audio.levels import clipped_fraction, speech_level
from utils.audio.properties import read_channels
from utils.errors import AudioError
from utils.processes import collect

# Values beyond these thresholds are reported.
_CLIPPED = 0.01  # fraction of the samples
_SILENT = -60.0  # dB; read speech is 25 dB louder
_SECONDS_OFF, _SECONDS_OFF_FRACTION = 0.1, 0.02  # both must be exceeded; MP3 decoders differ by 0.05 s

_CHUNK = 64  # files in a job


@dataclass(frozen=True, slots=True)
class AudioMeasurements:
    """Measurements of a recording; levels are in dB relative to full scale.

    Attributes:
        path: path of the file.
        fault: why it cannot be read; the other values are then 0. ``""`` if it can be read.
        rate: Hz.
        seconds: duration.
        level: root mean square of the loud frames (25 ms).
        clipped: fraction of the samples in flat tops: three or more equal ones near the peak; this and all
            following values are of the loudest channel.
        digest: hash of the samples.
    """

    path: str
    fault: str = ""
    rate: int = 0
    seconds: float = 0.0
    level: float = 0.0
    clipped: float = 0.0
    digest: bytes = b""


def measure_recordings(paths: Sequence[str], workers: int) -> dict[str, AudioMeasurements]:
    """Measure files in parallel processes and show the progress; path → measurements.

    Raises:
        AudioError: a process died, because a decoder crashed.
    """
    chunks = [paths[start : start + _CHUNK] for start in range(0, len(paths), _CHUNK)]
    died = AudioError("a process that reads recordings died", hint="--workers 1 shows which file")
    measured = collect(
        _measure_chunk, chunks, workers, items=len(paths), title="recordings", died=died, unit="file"
    )
    return {item.path: item for item in measured}


def measure(path: str) -> AudioMeasurements:
    """Measure one file."""
    try:
        samples, rate = read_channels(path)  # (samples, channels)
    except AudioError as error:
        return AudioMeasurements(path, fault=error.message)
    squares = np.einsum("ij,ij->j", samples, samples, dtype=np.float64) / len(samples)  # (channels,)
    loudest = np.ascontiguousarray(samples[:, int(squares.argmax())])  # (samples,)
    return AudioMeasurements(
        path=path,
        rate=rate,
        seconds=len(samples) / rate,
        level=speech_level(loudest, rate),
        clipped=clipped_fraction(loudest),
        digest=hashlib.blake2b(samples.tobytes(), digest_size=12).digest(),
    )


def _measure_chunk(paths: Sequence[str]) -> tuple[int, list[AudioMeasurements]]:
    return len(paths), [measure(path) for path in paths]


Measurements = Mapping[str, AudioMeasurements]


def _found(
    listing: Listing, measurements: Measurements, readable: bool = True
) -> Iterator[tuple[Line, AudioMeasurements]]:
    """Lines with the measurements of their readable (or unreadable) recordings."""
    for line in listing.lines:
        found = measurements.get(line.audio)
        if found and bool(found.fault) != readable:
            yield line, found


def _spoken(listing: Listing, measurements: Measurements) -> Iterator[tuple[Line, AudioMeasurements]]:
    """The readable ones with speech: lines with a text, and recordings without a manifest."""
    return ((line, found) for line, found in _found(listing, measurements) if line.pinyin or not line.number)


def _unreadable(listing: Listing, measurements: Measurements) -> Iterator[tuple[Line, AudioMeasurements]]:
    return _found(listing, measurements, readable=False)


@line_check(
    ERROR, "not usable as audio", "copy, download or convert it again, or remove the line", _unreadable
)
def unreadable_recording(line: Line, found: AudioMeasurements) -> str:
    """Files that are empty, truncated, not audio, or contain NaN."""
    return found.fault


@line_check(
    ERROR,
    "not the length of the recording",
    "the file has changed or is the wrong one: prepare the corpus again",
    _found,
)
def wrong_seconds(line: Line, found: AudioMeasurements) -> str | None:
    """Lengths in the manifest that differ from the recording."""
    off = abs(line.seconds - found.seconds) if line.seconds >= 0 else 0.0
    is_wrong = off > _SECONDS_OFF and off > _SECONDS_OFF_FRACTION * found.seconds
    return f"{line.seconds:.2f} s in the list, {found.seconds:.2f} s in the file" if is_wrong else None


def low_rate(listing: Listing, measurements: Measurements, sample_rate: int) -> Iterator[Finding]:
    """Sample rates below the features' (16 kHz without a recipe): their upper bands would be empty."""
    found_lines = list(_found(listing, measurements))
    rates = Counter(found.rate for _, found in found_lines)
    for line, found in found_lines:
        if found.rate < sample_rate:
            texts = _low_rate_texts(rates, sample_rate)
            yield line_finding(WARNING, listing, line, *texts, f"{found.rate} Hz")


def low_rate_of_some(listing: Listing, rates: Counter[int], sample_rate: int) -> Iterator[Finding]:
    """The same from the headers of some recordings: the quick check of train.py."""
    low = sum(count for rate, count in rates.items() if rate < sample_rate)
    if low:
        detail = f"{low} of {rates.total()} checked recordings, from {min(rates)} Hz"
        yield Finding(WARNING, listing.path, "", *_low_rate_texts(rates, sample_rate), detail)


def _low_rate_texts(rates: Counter[int], sample_rate: int) -> tuple[str, str]:
    """Description and advice for recordings below the features' rate, depending on their number."""
    problem = f"a sample rate below the features' {sample_rate} Hz: the upper bands are empty"
    lowest, low = min(rates), sum(count for rate, count in rates.items() if rate < sample_rate)
    if 2 * low > rates.total():
        return problem, f"telephone speech: train with features.sample_rate={lowest}"
    return problem, f"find the originals, remove them, or train all with features.sample_rate={lowest}"


@line_check(
    WARNING, "clipped", "record it again at a lower level; a few clipped recordings are harmless", _found
)
def clipping(line: Line, found: AudioMeasurements) -> str | None:
    """Recordings that are clipped."""
    return f"{found.clipped:.1%} of the samples" if found.clipped > _CLIPPED else None


@line_check(WARNING, "nearly silent", "listen to it, or remove the line", _spoken)
def silence(line: Line, found: AudioMeasurements) -> str | None:
    """Recordings of speech that are nearly silent."""
    return f"loud frames at {found.level:.0f} dB" if found.level < _SILENT else None


def same_sound(listing: Listing, measurements: Measurements) -> Iterator[Finding]:
    """Files with different names and identical samples."""
    return repeated_lines(
        listing,
        ((found.digest, line) for line, found in _found(listing, measurements)),
        ("a copy of another recording", "remove one of them"),
        (
            "a copy of another recording with another text",
            "listen to it: at most one of the texts is right",
        ),
        already_found=lambda line, first: line.audio == first.audio,  # by repeated_recording
        relation="same as",
    )


def same_sound_in_splits(listings: list[Listing], measurements: Measurements) -> Iterator[Finding]:
    """Test or dev recordings that are in the training set under another file name."""
    train = [pair for listing in of_role(listings, "train") for pair in _found(listing, measurements)]
    known = {found.digest: line for line, found in train}
    names = {line.audio for line, _ in train}
    for listing in listings:
        if listing.role not in ("dev", "test"):
            continue
        for line, found in _found(listing, measurements):
            if found.digest in known and line.audio not in names:
                severity = ERROR if listing.role == "test" else WARNING
                problem = "a copy of a recording in the training set"
                advice = f"remove one of them: the {listing.role} figures are too good"
                yield line_finding(severity, listing, line, problem, advice, known[found.digest].id)


AUDIO = (unreadable_recording, wrong_seconds, clipping, silence, same_sound)
"""Checks of the recordings of one list."""
RATES = (low_rate,)
"""Checks of sample rates against that of the features."""
ACROSS = (same_sound_in_splits,)
"""Checks across several lists."""
