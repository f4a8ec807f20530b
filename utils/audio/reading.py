"""Reads audio files of any usual format as mono float32 samples at one sample rate, or says what is wrong.

``decoding`` chooses the decoder, soxr resamples. All samples of models are read here, so that damaged files
are found before they become wrong features: files that are cut off, text named ``.wav``, NaN samples, floats
that are not scaled to ±1.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import soxr

from utils.audio.decoding import open_sound
from utils.errors import AudioError

SAMPLE_RATE = 16000  # Hz, used by all configs unless they set another one
HIGHEST_RATE = 1_000_000  # Hz, of a config
INT16_SCALE = 32768.0  # 1.0 as a 16-bit integer, the sample format of most corpora

# Float files may slightly exceed ±1; a peak above this is an error: integers were stored as floats.
_UNSCALED_PEAK = 64.0
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
