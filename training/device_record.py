"""What a training computes on → ``train.log`` and ``config.yaml``, with a warning if a GPU is left unused."""

from __future__ import annotations

import logging

from utils.backend.devices import describe_devices, unused_gpu_reason
from utils.run_folder.run import RunFolder

log = logging.getLogger("train")


def record_devices(run: RunFolder) -> None:
    """Log the devices of the Keras backend and write them to the run's environment, as ``computed_on``."""
    facts = describe_devices()
    run.record("computed_on", facts)
    log.info(
        "computed on %s (CUDA build: %s, NVIDIA driver: %s)",
        ", ".join(facts["devices"]),
        facts["cuda_build"],
        facts["nvidia_driver"],
    )
    if reason := unused_gpu_reason():
        log.warning("%s; doctor.py --machine says more", reason)
