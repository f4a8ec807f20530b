"""Reads audio files of any usual format as mono float32 samples at one sample rate, or says what is wrong.

``decoding`` chooses the decoder, soxr resamples. All recordings are read here, so that damaged ones are found
before they become wrong features: files that are cut off, text named ``.wav``, NaN samples, floats that are
not scaled to ±1.
"""

import contextlib
import io
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import soundfile
import soxr

from utils.audio.decoding import open_sound
from utils.errors import AudioError
from utils.files import replacing

SAMPLE_RATE = 16000  # Hz, used by all configs unless they set another one
HIGHEST_RATE = 1_000_000  # Hz, of a config
INT16_SCALE = 32768.0  # 1.0 as a 16-bit integer, the sample format of most corpora

# Float files may slightly exceed ±1; a peak above this is an error: integers were stored as floats.
_UNSCALED_PEAK = 64.0
_RATES_CHECKED = 50  # recordings whose sample rates are read before a training
_MIXED_AT_ONCE = 1 << 13  # samples; the blocks of decoders are multiples of it
_LEAST_POWER = 0.5  # of the mean, relative to that of independent channels; in opposite phase it is near 0


def read_audio(path: str | Path, sample_rate: int = SAMPLE_RATE) -> np.ndarray:
    """Read a recording as mono samples at ``sample_rate``.

    Several channels are mixed (:func:`mix`). Samples beyond ±1 (float files, lossy codecs,
    resampling) are clipped. The format is determined by the content of the file, not by its name.

    Args:
        path: a file of any format that libsndfile or FFmpeg reads; or the address of such a file
            (:mod:`utils.object_store`), whose content is held in memory.
        sample_rate: Hz.

    Returns:
        (samples,) float32 in [-1, 1].

    Raises:
        AudioError: the file is missing, empty, not audio, cut off, or holds NaN or unscaled samples.
        StoreError: a store does not answer.
    """
    blocks = list(audio_blocks(path, sample_rate))
    return blocks[0] if len(blocks) == 1 else np.concatenate(blocks)


def audio_blocks(
    path: str | Path, sample_rate: int = SAMPLE_RATE, channel: int | None = None
) -> Iterator[np.ndarray]:
    """Read a recording of any length block by block; the blocks together equal :func:`read_audio`.

    Args:
        path, sample_rate: as for :func:`read_audio`.
        channel: the only channel to read, from 0; None: all are mixed.

    Yields:
        (samples,) float32 in [-1, 1], of some seconds.

    Raises:
        AudioError: as for :func:`read_audio`; damage after the header is found when it is reached.
    """
    with open_sound(path) as sound:
        checked_blocks = (checked(block, path) for block in sound.blocks)
        if channel is None:
            mono = map(mix, checked_blocks)
        else:
            mono = (np.ascontiguousarray(block[:, channel]) for block in checked_blocks)
        empty = True
        for block in at_rate(mono, sound.rate, sample_rate):
            empty = False
            yield np.clip(block, -1.0, 1.0)
        if empty:
            raise AudioError(
                f"too short for a sample at {sample_rate} Hz", where=path, hint="remove it from the list"
            )


def read_channels(path: str | Path) -> tuple[np.ndarray, int]:
    """Read a recording unchanged: (samples, channels) float32, and its sample rate in Hz.

    Raises:
        AudioError: the file is missing, empty, not audio, cut off, or holds NaN or unscaled samples.
    """
    with open_sound(path) as sound:
        blocks = [checked(block, path) for block in sound.blocks]
        return blocks[0] if len(blocks) == 1 else np.concatenate(blocks), sound.rate


def channel_count(path: str | Path) -> int:
    """Channels of a recording; of one that can't be read, 1: reading it says why."""
    with contextlib.suppress(AudioError), open_sound(path) as sound:
        return next(sound.blocks).shape[1]
    return 1


def audio_seconds(path: str | Path) -> float:
    """Length of a recording in seconds: of uncompressed files from the header, of others by decoding.

    Raises:
        AudioError: the file is missing, empty, not audio, or its header shows that it is cut off.
    """
    return seconds_and_rate(path)[0]


def seconds_and_rate(path: str | Path) -> tuple[float, int]:
    """As :func:`audio_seconds`, and the sample rate in Hz."""
    with open_sound(path) as sound:
        frames = sum(map(len, sound.blocks)) if sound.frames is None else sound.frames
        return frames / sound.rate, sound.rate


def sample_rates_of(paths: Sequence[str | Path]) -> Counter[int]:
    """Count the sample rates (Hz) of up to 50 evenly chosen recordings; unreadable ones are ignored.

    Little more than headers is read, which is fast enough before each training.
    """
    rates: Counter[int] = Counter()
    for path in paths[:: -(-len(paths) // _RATES_CHECKED) or 1]:
        with contextlib.suppress(AudioError), open_sound(path) as sound:
            rates[sound.rate] += 1
    return rates


def write_wav(path: str | Path, samples: np.ndarray, sample_rate: int = SAMPLE_RATE) -> None:
    """Write (samples,) floats as a mono 16-bit WAV; values outside [-1, 1] are clipped.

    Raises:
        OSError: the file can't be written.
    """
    # Written by Python, because libsndfile reports a full disk as "System error".
    content = io.BytesIO()
    soundfile.write(content, as_int16(samples), sample_rate, subtype="PCM_16", format="WAV")
    with replacing(path) as temporary:
        temporary.write_bytes(content.getbuffer())


def as_int16(samples: np.ndarray) -> np.ndarray:
    """(samples,) floats as 16-bit integers, as :func:`write_wav` writes them."""
    return np.clip(np.rint(samples * INT16_SCALE), -INT16_SCALE, INT16_SCALE - 1).astype(np.int16)


def resample(samples: np.ndarray, from_rate: float, to_rate: float, quality: str = "HQ") -> np.ndarray:
    """Resample (samples,) float32, band-limited, with soxr; rates in Hz, ``LQ`` takes half the time."""
    if from_rate == to_rate:
        return samples
    return soxr.resample(samples, from_rate, to_rate, quality)


def at_rate(blocks: Iterable[np.ndarray], from_rate: float, to_rate: float) -> Iterator[np.ndarray]:
    """Like :func:`resample` of all blocks (samples,) together; empty blocks are left out."""
    if from_rate == to_rate:
        yield from blocks
        return
    resampler = soxr.ResampleStream(from_rate, to_rate, 1, dtype="float32")
    for block in blocks:
        resampled = resampler.resample_chunk(block)
        if len(resampled):
            yield resampled
    rest = resampler.resample_chunk(np.zeros(0, np.float32), last=True)
    if len(rest):
        yield rest


def checked(samples: np.ndarray, path: str | Path) -> np.ndarray:
    """The same samples, of any shape; AudioError for NaN and for integers stored as floats."""
    peak = np.abs(samples).max(initial=0.0)  # NaN if there is a NaN
    if not np.isfinite(peak):
        count = int(np.size(samples) - np.isfinite(samples).sum())
        raise AudioError(f"{count} samples are NaN or infinite", where=path, hint="make the file again")
    if peak > _UNSCALED_PEAK:
        raise AudioError(
            f"float samples up to {peak:.0f}, expected -1 to 1",
            where=path,
            hint="divide by 32768, or save as 16-bit integers",
        )
    return samples


def sample_blocks(samples: np.ndarray, rate: int | None, sample_rate: int) -> Iterator[np.ndarray]:
    """Samples of a caller, resampled as those of a file are.

    Args:
        samples: see :func:`mono_samples`.
        rate: Hz, of the samples.
        sample_rate: Hz, of the result.

    Yields:
        (samples,) float32 in [-1, 1].

    Raises:
        AudioError: as for :func:`mono_samples`, or there is no rate.
    """
    if not rate:
        raise AudioError("samples without their sample rate", hint="give it in Hz, e.g. 16000")
    for block in at_rate([mono_samples(samples)], rate, sample_rate):
        yield np.clip(block, -1.0, 1.0)


def mono_samples(samples: np.ndarray) -> np.ndarray:
    """Samples of a caller, (n,) floats in [-1, 1] or 16-bit integers, as (n,) float32.

    Raises:
        AudioError: they have another shape or type, are not finite, or are floats that are not scaled.
    """
    samples = np.asarray(samples)
    if samples.ndim != 1:
        hint = "give one channel, an array (samples,)"
        raise AudioError(f"samples with the shape {samples.shape}", hint=hint)
    if samples.dtype == np.int16:
        return samples.astype(np.float32) / np.float32(INT16_SCALE)
    if not np.issubdtype(samples.dtype, np.floating):
        raise AudioError(f"samples of type {samples.dtype}", hint="give float32 in [-1, 1], or int16")
    return checked(samples.astype(np.float32, copy=False), "samples")


def mix(samples: np.ndarray) -> np.ndarray:
    """The mean of the channels of (samples, channels) float32, as (samples,) float32.

    A microphone whose wires are swapped gives a channel in opposite phase, and the mean would be silence.
    Where it has less than half the power of a mean of independent channels, the loudest channel is taken; of
    each part, because one of the speakers may be in opposite phase.
    """
    if samples.shape[1] == 1:
        return np.ascontiguousarray(samples[:, 0])
    mixed = samples.mean(axis=1)
    for start in range(0, len(mixed), _MIXED_AT_ONCE):
        part, mean = (array[start : start + _MIXED_AT_ONCE] for array in (samples, mixed))
        energies = [float(channel @ channel) for channel in part.T]
        if float(mean @ mean) * len(energies) ** 2 < _LEAST_POWER * sum(energies):
            mean[:] = part[:, np.argmax(energies)]
    return mixed
