"""FFT of 16-bit frames in integers, with the rounding of kissfft, as microcontrollers compute it.

``utils/features/micro.py`` uses it. Each column of an array is a frame, and NumPy computes all frames
together.
"""

from functools import lru_cache

import numpy as np

Complex = tuple[np.ndarray, np.ndarray]
"""Real and imaginary parts of one shape, int32."""

_LARGEST = np.iinfo(np.int16).max


def fixed_point_fft(values: np.ndarray) -> Complex:
    """FFT of the columns, divided by ``size``, as kissfft computes it with ``FIXED_POINT=16``.

    Even samples are the real part and odd samples the imaginary part of a complex FFT of half the length,
    from which the result is computed.

    Args:
        values: (size, n) int32 with 16-bit numbers.

    Returns:
        real and imaginary part, (size / 2, n) int32 each, without the highest frequency.
    """
    real, imaginary = _complex_fft(values[::2], values[1::2])
    half = len(real)
    mirror = -np.arange(half) % half
    # Halved after the change of sign, because 16384 and -16384 round differently.
    mirror_imaginary = _divided(-imaginary[mirror], 2)
    real, imaginary = _divided(real, 2), _divided(imaginary, 2)
    even = real + real[mirror], imaginary + mirror_imaginary
    odd = real - real[mirror], imaginary - mirror_imaginary
    twisted = _multiplied(odd, _twiddles_of_real(half))
    result_real = even[0] + twisted[0]
    result_imaginary = even[1] + twisted[1]
    # kissfft computes the upper half of the bins from the lower half: rounding is reversed there.
    upper = slice(half // 2, None)
    lower = mirror[upper]
    result_real[upper] = even[0][lower] - twisted[0][lower]
    result_imaginary[upper] = twisted[1][lower] - even[1][lower]
    result_real[0], result_imaginary[0] = 2 * (real[0] + imaginary[0]), 0
    return result_real >> 1, result_imaginary >> 1


def _complex_fft(real: np.ndarray, imaginary: np.ndarray) -> Complex:
    """Fixed-point FFT over the first axis of (size, n): decimation in time with radix 4 (innermost 2)."""
    size, columns = real.shape
    if size == 1:
        return real, imaginary
    radix = 4 if size % 4 == 0 else 2
    # Each part has every radix-th value: (size, n) → (size / radix, radix · n), all parts together.
    parts = _complex_fft(*(part.reshape(-1, radix * columns) for part in (real, imaginary)))
    real, imaginary = (_divided(part, radix).reshape(-1, radix, columns) for part in parts)
    turned = real[:, 1:], imaginary[:, 1:]
    if size > radix:  # otherwise all factors are 1, and numbers below 2^14 are unchanged
        turned = _multiplied(turned, _twiddles(size, radix))
    others = [(turned[0][:, i], turned[1][:, i]) for i in range(radix - 1)]
    joined = (_radix_four if radix == 4 else _radix_two)((real[:, 0], imaginary[:, 0]), *others)
    return tuple(np.concatenate([part[i] for part in joined]) for i in range(2))


def _radix_two(a: Complex, b: Complex) -> list[Complex]:
    return [(a[0] + b[0], a[1] + b[1]), (a[0] - b[0], a[1] - b[1])]


def _radix_four(a: Complex, b: Complex, c: Complex, d: Complex) -> list[Complex]:
    (even, odd), (total, difference) = _radix_two(a, c), _radix_two(b, d)
    return [
        (even[0] + total[0], even[1] + total[1]),
        (odd[0] + difference[1], odd[1] - difference[0]),
        (even[0] - total[0], even[1] - total[1]),
        (odd[0] - difference[1], odd[1] + difference[0]),
    ]


def _divided(values: np.ndarray, divisor: int) -> np.ndarray:
    return _rounded(values * np.int32(_LARGEST // divisor))


def _multiplied(values: Complex, factors: Complex) -> Complex:
    """Complex product; the factors have 15 fractional bits."""
    (a, b), (c, d) = values, factors
    return _rounded(a * c - b * d), _rounded(a * d + b * c)


def _rounded(products: np.ndarray) -> np.ndarray:
    """Round 15 fractional bits away, in place."""
    products += np.int32(1 << 14)
    products >>= np.int32(15)
    return products


@lru_cache(maxsize=32)
def _twiddles(size: int, radix: int) -> Complex:
    """Twiddle factors of all parts but the first: real and imaginary (size / radix, radix - 1, 1) int32."""
    turns = np.arange(size // radix)[:, None, None] * np.arange(1, radix)[:, None]
    return _unit_circle(-2 * np.pi / size * turns)


@lru_cache(maxsize=4)
def _twiddles_of_real(half: int) -> Complex:
    return _unit_circle(-np.pi * (np.arange(half)[:, None] / half + 0.5))


def _unit_circle(phase: np.ndarray) -> Complex:
    return tuple(np.floor(0.5 + _LARGEST * part).astype(np.int32) for part in (np.cos(phase), np.sin(phase)))
