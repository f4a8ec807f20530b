"""Records the devices of a training in ``train.log`` and ``config.yaml``; warns if a GPU is not used."""

import logging

from utils.backend.devices import describe_devices, unused_gpu_reason
from utils.run_folder.run import RunFolder

log = logging.getLogger("train")


def record_devices(run: RunFolder) -> None:
    """Log the devices of the Keras backend; record them in config.yaml as ``computed_on``."""
    devices = describe_devices()
    run.record("computed_on", devices)
    log.info(
        "computed on %s (CUDA build: %s, NVIDIA driver: %s)",
        ", ".join(devices["devices"]),
        devices["cuda_build"],
        devices["nvidia_driver"],
    )
    if reason := unused_gpu_reason():
        log.warning("%s; see doctor.py --machine", reason)
