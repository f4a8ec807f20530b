"""Tests of softmax and log-softmax against SciPy, also for logits whose exponentials overflow."""

import numpy as np
import pytest
import scipy.special

from utils.arrays import log_softmax, softmax


@pytest.mark.parametrize("largest", [1.0, 1e4])
def test_equal_those_of_scipy_in_float64(largest):
    logits = np.random.default_rng(0).uniform(-largest, largest, (2, 3, 7)).astype(np.float32)
    expected = logits.astype(np.float64)
    for found, reference in ((softmax, scipy.special.softmax), (log_softmax, scipy.special.log_softmax)):
        values = found(logits)
        assert values.dtype == np.float64
        np.testing.assert_allclose(values, reference(expected, axis=-1), rtol=1e-12, atol=1e-15)
