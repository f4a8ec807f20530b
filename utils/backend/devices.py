"""Sets up the devices of the Keras backend, describes them, and tells if it uses no GPU of the machine.

Training logs both. Works for TensorFlow, JAX and PyTorch.
"""

import logging
import os
import subprocess
from typing import Any

log = logging.getLogger(__name__)

_GPU_PROBE = {
    "tensorflow": "import tensorflow; tensorflow.config.list_physical_devices('GPU')",
    "jax": "import jax; jax.devices('cuda')",
    "torch": "import torch; torch.cuda.current_device()",
}
_QUERY = ("--query-gpu=name,driver_version", "--format=csv,noheader")
_ANSWER_SECONDS = 20  # after which nvidia-smi is stopped


def grow_gpu_memory() -> None:
    """Make TensorFlow allocate GPU memory when it needs it, so that other processes can use the GPU too.

    By default TensorFlow allocates nearly all memory at the start; ``TF_FORCE_GPU_ALLOW_GROWTH=false`` keeps
    that. If TensorFlow has already initialised the GPU, this only logs a warning.
    """
    import tensorflow as tf  # another backend must not load TensorFlow

    for device in tf.config.list_physical_devices("GPU"):
        try:
            tf.config.experimental.set_memory_growth(device, True)
        except (RuntimeError, ValueError) as error:
            log.warning(
                "%s: all of its memory is allocated at once, because TensorFlow has already started (%s)",
                device.name,
                error,
            )


def hide_gpus() -> None:
    """Let TensorFlow compute on the CPU only. If it has already started on a GPU, this only warns."""
    import tensorflow as tf

    try:
        tf.config.set_visible_devices([], "GPU")
    except RuntimeError:
        log.warning("the GPU is used, because TensorFlow has already started")


def share_cores(parts: int) -> None:
    """Let TensorFlow compute so many parts of a batch at the same time, each with its share of the cores.

    Does nothing on other backends, with a GPU, and where the variable ``TF_NUM_INTRAOP_THREADS`` is set. If
    TensorFlow has already started, this only logs a warning.
    """
    chosen = "TF_NUM_INTRAOP_THREADS" in os.environ
    if parts == 1 or chosen or _backend() != "tensorflow" or backend_gpus():
        return
    import tensorflow as tf

    try:
        tf.config.threading.set_intra_op_parallelism_threads(max((os.cpu_count() or 1) // parts, 1))
        tf.config.threading.set_inter_op_parallelism_threads(parts)
    except RuntimeError:
        log.warning("training.batch_parts: TensorFlow has already started, so the parts share its threads")


def is_replicated() -> bool:
    """Whether a model that is built now has a copy on each of several devices: in the scope of a strategy."""
    if _backend() != "tensorflow":
        return False
    import tensorflow as tf

    return tf.distribute.has_strategy()


def describe_devices() -> dict[str, Any]:
    """Describe the devices of the backend, for the log and the config of a run.

    Returns:
        ``devices``: names of the GPUs, or ``CPU``; ``nvidia``: name and driver of the machine's GPUs.
    """
    return {"devices": backend_gpus() or ["CPU"], "nvidia": nvidia_gpus()}


def nvidia_gpus() -> list[str]:
    """The GPUs that nvidia-smi lists, whether or not the backend uses them: ``NVIDIA L4, 580.65.06``."""
    try:
        done = subprocess.run(
            ["nvidia-smi", *_QUERY], capture_output=True, text=True, timeout=_ANSWER_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return []
    return done.stdout.splitlines()


def backend_gpus() -> list[str]:
    """Names of the GPUs that the Keras backend sees."""
    backend = _backend()
    if backend == "tensorflow":
        import tensorflow as tf

        details = tf.config.experimental.get_device_details
        devices = tf.config.list_physical_devices("GPU")
        return [details(device).get("device_name", device.name) for device in devices]
    if backend == "jax":
        import jax

        return [device.device_kind for device in jax.devices() if device.platform != "cpu"]
    if backend == "torch":
        import torch

        return [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    return []


def unused_gpu_reason() -> str:
    """Why the backend uses none of the machine's NVIDIA GPUs, or how to find out.

    ``""`` if it uses one, if there is none, or if ``CUDA_VISIBLE_DEVICES`` hides them.
    """
    gpus, hidden = nvidia_gpus(), os.environ.get("CUDA_VISIBLE_DEVICES", "0").strip() in ("", "-1")
    if not gpus or hidden or backend_gpus():
        return ""
    found = f"{_backend()} uses none of this machine's GPUs ({'; '.join(gpus)})"
    command = f'TF_CPP_MIN_LOG_LEVEL=0 python -c "{_GPU_PROBE[_backend()]}"'
    return f"{found}: driver and CUDA libraries have to fit this build; for the reason run {command}"


def _backend() -> str:
    import keras  # loading it takes seconds: see utils/backend/quiet.py

    return keras.backend.backend()
