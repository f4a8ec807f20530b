"""Levels of samples over time."""

import numpy as np
import pytest

from utils.audio.levels import moving_power, peak_without_clicks


def test_the_power_of_a_sine_is_half_its_squared_amplitude_and_falls_at_the_ends():
    rate = 16_000
    samples = 0.5 * np.sin(2 * np.pi * 400 * np.arange(rate) / rate)
    power = moving_power(samples, rate, 0.08)
    assert power.shape == samples.shape
    np.testing.assert_allclose(power[rate // 4 : -rate // 4], 0.125, rtol=1e-6)
    assert power[0] == pytest.approx(0.0625, rel=0.01)  # half of the window is before the recording


def test_a_peak_is_no_click_if_it_lasts_or_is_not_far_above_what_lasts():
    power = np.array([1.0, 2.0, 3.0, 1.0, 1.0, 0.0])
    assert peak_without_clicks(power, 10.0, 15.0) == 3.0
    assert peak_without_clicks(np.append(power, 63.0), 10.0, 15.0) == 63.0  # 15 dB above 2
    clicks = np.append(power, [900.0, 0.0, 900.0])
    assert peak_without_clicks(clicks, 10.0, 15.0) == pytest.approx(2 * 10**1.5)
    assert peak_without_clicks(np.append(power, [900.0, 800.0]), 10.0, 15.0) == 900.0
    assert peak_without_clicks(power[1:3], 25.0, 5.0) == 3.0  # shorter than a click
    assert peak_without_clicks(np.zeros(4), 10.0, 15.0) == 0.0
