"""GPUs that TensorFlow sees → settings of theirs, made before it begins to use them."""

from __future__ import annotations

import logging

log = logging.getLogger(__name__)


def grow_gpu_memory() -> None:
    """Have TensorFlow take a GPU's memory as it needs it, so that other processes find some too.

    Left to itself it takes nearly all at once. ``TF_FORCE_GPU_ALLOW_GROWTH=false`` still has it do so. Once
    TensorFlow is at work it can't be changed any more: that is said in the log, and nothing else happens.
    """
    import tensorflow as tf  # another backend must not load TensorFlow

    for device in tf.config.list_physical_devices("GPU"):
        try:
            tf.config.experimental.set_memory_growth(device, True)
        except (RuntimeError, ValueError) as error:
            log.warning(
                "%s: all of its memory is taken at once, as TensorFlow was at work before (%s)",
                device.name,
                error,
            )
