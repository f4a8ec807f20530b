"""Log mel features of microcontrollers (``microfrontend`` of TensorFlow Lite), by pymicro-features.

Its C code computes frames of 30 ms every 10 ms with 40 channels at 16 kHz in integers: mel filters, noise
reduction and per-channel energy normalisation, PCAN (Wang et al., arXiv 1607.05666). Only the noise estimate
depends on earlier frames.
"""

import importlib
from typing import Any

import numpy as np

from utils.audio.samples import as_int16
from utils.errors import missing_package

_STEP_SAMPLES = 160  # that the C code takes at once


class MicroFrontEnd:
    """Features of an endless signal.

    Raises:
        UserError: the package pymicro-features is missing.
    """

    def __init__(self):
        try:
            self._front_end: Any = importlib.import_module("pymicro_features").MicroFrontend()
        except ImportError as error:
            raise missing_package("pymicro-features") from error
        self._pending = np.zeros(0, np.int16)

    def feed(self, samples: np.ndarray) -> np.ndarray:
        """Samples (n,) in [-1, 1] (others are clipped) → the frames that they complete, (m, 40) float32."""
        pending = np.concatenate([self._pending, as_int16(samples)])
        whole = len(pending) // _STEP_SAMPLES * _STEP_SAMPLES
        self._pending = pending[whole:]
        steps = pending[:whole].reshape(-1, _STEP_SAMPLES)
        outputs = [self._front_end.process_samples(step.tobytes()).features for step in steps]
        return np.array([frame for frame in outputs if frame], np.float32).reshape(-1, 40)
