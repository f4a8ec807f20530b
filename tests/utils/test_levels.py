"""Levels of samples over time."""

import numpy as np
import pytest

from utils.audio.levels import moving_power


def test_the_power_of_a_sine_is_half_its_squared_amplitude_and_falls_at_the_ends():
    rate = 16_000
    samples = 0.5 * np.sin(2 * np.pi * 400 * np.arange(rate) / rate)
    power = moving_power(samples, rate, 0.08)
    assert power.shape == samples.shape
    np.testing.assert_allclose(power[rate // 4 : -rate // 4], 0.125, rtol=1e-6)
    assert power[0] == pytest.approx(0.0625, rel=0.01)  # half of the window is before the recording


def test_the_power_is_highest_around_a_click():
    samples = np.zeros(1000)
    samples[400] = 1.0
    power = moving_power(samples, 1000, 0.011)
    assert set(np.flatnonzero(power)) == set(range(395, 406))
    np.testing.assert_allclose(power[395:406], 1 / 11)
