"""Tests of GPU handling: memory growth, explanations for unused GPUs, recorded facts."""

import logging
from pathlib import Path
from types import SimpleNamespace

import pytest
import tensorflow as tf

from training.failures import BATCH_SIZES, memory_errors_explained
from training.history import record_devices
from training.run import RECIPES
from training.tasks.speech import SpeechConfig
from utils.backend import devices
from utils.backend.devices import (
    describe_devices,
    gpu_messages,
    grow_gpu_memory,
    unused_gpu_reason,
)
from utils.backend.nvidia import NvidiaGpu, nvidia_gpus
from utils.config import build_config
from utils.errors import CorpusError, TrainingError
from utils.files import write_text
from utils.run_folder.run import start_run


@pytest.fixture
def two_gpus(monkeypatch) -> list[tuple[str, bool]]:
    """The settings requested for two GPUs, the first of which is already in use."""
    gpus, requested = [SimpleNamespace(name="GPU:0"), SimpleNamespace(name="GPU:1")], []

    def set_memory_growth(device, enable):
        if device is gpus[0]:
            raise RuntimeError("Physical devices cannot be modified after being initialized")
        requested.append((device.name, enable))

    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: gpus if kind == "GPU" else [])
    monkeypatch.setattr(tf.config.experimental, "set_memory_growth", set_memory_growth)
    return requested


def test_memory_growth_is_set_for_every_gpu_and_a_busy_gpu_is_named(two_gpus, caplog):
    with caplog.at_level(logging.WARNING):
        grow_gpu_memory()
    assert two_gpus == [("GPU:1", True)]
    assert "GPU:0: all of its memory is allocated at once" in caplog.text and "GPU:1" not in caplog.text


def test_without_a_gpu_nothing_happens(caplog):
    grow_gpu_memory()
    assert not caplog.text


# The log of TensorFlow 2.21 when it finds no GPU.
TENSORFLOW_LOG = """\
WARNING: All log messages before absl::InitializeLog() is called are written to STDERR
I0000 00:00:1795368240.853083    9332 cudart_stub.cc:31] Could not find cuda drivers on your machine, GPU will not be used.
I0000 00:00:1795368241.223068    9332 cpu_feature_guard.cc:227] This TensorFlow binary is optimized to use available CPU
To enable the following instructions: AVX2 FMA, in other operations, rebuild TensorFlow.
E0000 00:00:1795368374.739909    9332 cuda_platform.cc:52] failed call to cuInit: INTERNAL: UNKNOWN ERROR (303)
2026-11-22 10:00:00.123456: W tensorflow/core/common_runtime/gpu/gpu_device.cc:2342] Cannot dlopen some GPU libraries.
"""  # noqa: E501
MESSAGES = [
    "Could not find cuda drivers on your machine, GPU will not be used",
    "failed call to cuInit: INTERNAL: UNKNOWN ERROR (303)",
    "Cannot dlopen some GPU libraries",
]


def pci_device(root: Path, name: str, vendor: str, kind: str) -> None:
    folder = root / "sys/bus/pci/devices" / name
    write_text(folder / "vendor", f"{vendor}\n")
    write_text(folder / "class", f"{kind}\n")


@pytest.fixture
def no_nvidia_smi(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))


@pytest.fixture
def nvidia_smi(monkeypatch, tmp_path) -> None:
    program = tmp_path / "bin" / "nvidia-smi"
    write_text(program, "#!/bin/sh\necho 'NVIDIA H100 80GB HBM3, 550.54.14'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/bin:/usr/bin")


def test_gpus_are_those_that_nvidia_smi_lists(nvidia_smi):
    (gpu,) = nvidia_gpus()
    assert str(gpu) == "NVIDIA H100 80GB HBM3, driver 550.54.14"


@pytest.mark.usefixtures("no_nvidia_smi")
def test_gpus_are_found_on_the_bus_without_nvidia_smi(tmp_path):
    assert nvidia_gpus(tmp_path) == []
    pci_device(tmp_path, "0000:00:02.0", "0x8086", "0x030000")
    pci_device(tmp_path, "0000:01:00.0", "0x10de", "0x030200")
    pci_device(tmp_path, "0000:01:00.1", "0x10de", "0x040300")  # its audio device
    assert nvidia_gpus(tmp_path) == [NvidiaGpu("an NVIDIA GPU (PCI 0000:01:00.0)")]
    version = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build\n"
    write_text(tmp_path / "proc/driver/nvidia/version", version)
    information = tmp_path / "proc/driver/nvidia/gpus/0000:01:00.0/information"
    write_text(information, "Model: \t\t NVIDIA L4\nIRQ: 60\n")
    assert nvidia_gpus(tmp_path) == [NvidiaGpu("NVIDIA L4", "580.65.06")]


def test_the_lines_about_gpus_are_picked_from_a_log():
    assert gpu_messages(TENSORFLOW_LOG) == MESSAGES
    assert gpu_messages("E0000 00:00:1.2 3 a.cc:1] something else\n") == []


@pytest.fixture
def failing_tensorflow(monkeypatch, nvidia_smi):
    """A GPU that TensorFlow doesn't find, with the log above."""
    code = f"import sys; sys.stderr.write({TENSORFLOW_LOG!r})"
    monkeypatch.setitem(devices._GPU_PROBE, "tensorflow", code)
    monkeypatch.setattr(
        tf.sysconfig, "get_build_info", lambda: {"is_cuda_build": True, "cuda_version": "12.5"}
    )
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    devices.no_gpu_messages.cache_clear()
    yield
    devices.no_gpu_messages.cache_clear()


@pytest.mark.usefixtures("failing_tensorflow")
def test_a_gpu_that_is_not_used_is_explained_in_tensorflows_words(monkeypatch):
    reason = unused_gpu_reason()
    assert reason.startswith("tensorflow uses none of this machine's GPUs (NVIDIA H100 80GB HBM3, driver 550")
    assert all(message in reason for message in MESSAGES)
    monkeypatch.setattr(tf.sysconfig, "get_build_info", lambda: {"is_cuda_build": False})
    assert unused_gpu_reason().endswith("it is built without CUDA")


@pytest.mark.usefixtures("failing_tensorflow")
@pytest.mark.parametrize("hidden", ["", "-1"])
def test_hidden_or_missing_gpus_are_no_error(monkeypatch, hidden):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", hidden)
    assert unused_gpu_reason() == ""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    monkeypatch.setattr(devices, "nvidia_gpus", list)
    assert unused_gpu_reason() == ""


def test_the_facts_name_devices_build_and_driver(monkeypatch, nvidia_smi):
    build = {"is_cuda_build": True, "cuda_version": "12.5.1", "cudnn_version": "9"}
    monkeypatch.setattr(tf.sysconfig, "get_build_info", lambda: build)
    facts = {"devices": ["CPU"], "cuda_build": "12.5.1, cuDNN 9", "nvidia_driver": "550.54.14"}
    assert describe_devices() == facts
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: [SimpleNamespace(name="GPU:0")])
    details = {"device_name": "NVIDIA H100 80GB HBM3"}
    monkeypatch.setattr(tf.config.experimental, "get_device_details", lambda device: details)
    assert describe_devices()["devices"] == ["NVIDIA H100 80GB HBM3"]


@pytest.mark.usefixtures("failing_tensorflow")
def test_a_run_records_its_devices_and_warns_of_an_unused_gpu(tmp_path, caplog):
    run = start_run(tmp_path / "run", {"task": "speech"})
    with caplog.at_level(logging.INFO, "train"):
        record_devices(run)
    assert run.config()["environment"]["computed_on"]["nvidia_driver"] == "550.54.14"
    assert "computed on CPU (CUDA build: 12.5, cuDNN ?, NVIDIA driver: 550.54.14)" in caplog.text
    assert "failed call to cuInit" in caplog.text and "CUDA libraries" in caplog.text


@pytest.mark.parametrize(
    "error",
    [
        tf.errors.ResourceExhaustedError(None, None, "OOM when allocating tensor with shape[32,400,80]"),
        RuntimeError("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 12 bytes."),
        RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB"),
        MemoryError(),
    ],
)
def test_running_out_of_memory_names_the_setting_to_lower(error):
    message = r"memory has run out \(.+data\.batch_frames \(now 12,000\), e\.g\. data\.batch_frames=6000"
    with pytest.raises(TrainingError, match=message), memory_errors_explained("speech", SpeechConfig()):
        raise error


def test_a_table_of_allocations_is_quoted_in_short():
    error = RuntimeError("out of memory " + "block of 12 bytes " * 1000)
    with (
        pytest.raises(TrainingError, match=r"\(18,0\d\d characters\)") as raised,
        memory_errors_explained("speech", SpeechConfig()),
    ):
        raise error
    assert len(raised.value.message) < 250


def test_other_errors_are_left_as_they_are():
    with pytest.raises(ValueError, match="another"), memory_errors_explained("speech", SpeechConfig()):
        raise ValueError("another")
    died = CorpusError("a worker process died", hint="perhaps out of memory: run it with fewer workers")
    with pytest.raises(CorpusError, match="fewer workers"), memory_errors_explained("speech", SpeechConfig()):
        raise died
    for task, (schema, variants, _) in RECIPES.items():
        section, name = BATCH_SIZES[task].split(".")
        values = {"task": task, "model": {"name": next(iter(variants["model"]))}}
        assert getattr(getattr(build_config(schema, values, variants), section), name) > 0
