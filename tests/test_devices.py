"""utils/devices.py: memory growth is asked for on each GPU; too late is a message, not the end."""

from __future__ import annotations

import logging
from types import SimpleNamespace

import pytest
import tensorflow as tf

from utils.devices import grow_gpu_memory


@pytest.fixture
def two_gpus(monkeypatch) -> list[tuple[str, bool]]:
    """What is asked of two GPUs, the first of which is in use already."""
    gpus, asked = [SimpleNamespace(name="GPU:0"), SimpleNamespace(name="GPU:1")], []

    def set_memory_growth(device, enable):
        if device is gpus[0]:
            raise RuntimeError("Physical devices cannot be modified after being initialized")
        asked.append((device.name, enable))

    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: gpus if kind == "GPU" else [])
    monkeypatch.setattr(tf.config.experimental, "set_memory_growth", set_memory_growth)
    return asked


def test_every_gpu_is_asked_and_one_that_is_at_work_is_named(two_gpus, caplog):
    with caplog.at_level(logging.WARNING):
        grow_gpu_memory()
    assert two_gpus == [("GPU:1", True)]
    assert "GPU:0: all of its memory is taken at once" in caplog.text and "GPU:1" not in caplog.text


def test_without_a_gpu_nothing_happens(caplog):
    grow_gpu_memory()
    assert not caplog.text
