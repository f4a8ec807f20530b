"""Tests of GPU handling: memory growth, explanations for unused GPUs, recorded facts."""

import logging

import pytest
import tensorflow as tf

from training.failures import BATCH_SIZES, memory_errors_explained
from training.history import record_devices
from training.run import RECIPES
from training.tasks.speech import SpeechConfig
from utils.backend.devices import unused_gpu_reason
from utils.config import build_config
from utils.errors import CorpusError, TrainingError
from utils.files import write_text
from utils.run_folder.run import start_run


@pytest.fixture
def nvidia_smi(monkeypatch, tmp_path) -> None:
    program = tmp_path / "bin" / "nvidia-smi"
    write_text(program, "#!/bin/sh\necho 'NVIDIA H100 80GB HBM3, 550.54.14'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/bin:/usr/bin")


@pytest.fixture
def unused_gpu(monkeypatch, nvidia_smi):
    """A GPU that TensorFlow doesn't find."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


@pytest.mark.usefixtures("unused_gpu")
def test_a_gpu_that_is_not_used_is_named_with_what_to_do():
    reason = unused_gpu_reason()
    assert reason.startswith("tensorflow uses none of this machine's GPUs (NVIDIA H100 80GB HBM3, 550.54.14)")
    assert "for the reason run TF_CPP_MIN_LOG_LEVEL=0 python -c" in reason


@pytest.mark.usefixtures("unused_gpu")
def test_a_run_records_its_devices_and_warns_of_an_unused_gpu(tmp_path, caplog):
    run = start_run(tmp_path / "run", {"task": "speech"})
    with caplog.at_level(logging.INFO, "train"):
        record_devices(run)
    recorded = {
        "devices": ["CPU"],
        "nvidia": ["NVIDIA H100 80GB HBM3, 550.54.14"],
    }
    assert run.config()["environment"]["computed_on"] == recorded
    assert "computed on CPU" in caplog.text
    assert "uses none of this machine's GPUs" in caplog.text


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
