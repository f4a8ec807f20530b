"""The mel filters of python_speech_features: power spectra in, energies of the filters out."""

from functools import lru_cache

import numpy as np
import scipy.sparse
from python_speech_features import get_filterbanks


@lru_cache(maxsize=8)
def mel_filters(filters: int, fft_size: int, sample_rate: int) -> scipy.sparse.csr_array:
    """python_speech_features' triangular filters, for power spectra: (fft_size / 2 + 1, filters) float32.

    They go up to half the rate, and divide by the length of the FFT. Their corners are rounded down to FFT
    bins, so with many filters the lowest ones may be empty. The filters are cached, because the package
    computes them in a Python loop (1 ms for 80 filters), and sparse, because an FFT bin is in at most two
    filters; a dense product would start all threads of the linear algebra library for a tiny task (3 × the
    CPU time).
    """
    return scipy.sparse.csr_array(
        get_filterbanks(filters, fft_size, sample_rate).T / fft_size, dtype=np.float32
    )
