"""Names of a packed speech run: a folder with the network as one ONNX file, which ``bundle.pack`` writes.

The initialisers of the file have the paths of the Keras model's variables (``block_1_mix/kernel``): it serves
ONNX Runtime (:mod:`model_speech.onnx_acoustic`) and, for adaptation and export, the Keras model
(:mod:`model_speech.packed_weights`).
"""

from utils.run_folder.run import RunFolder

FEATURES, LENGTHS, LOGITS = "features", "lengths", "logits"
STATE_PREFIX, NEXT_SUFFIX = "state_", "_next"
"""A state of a stream is the input ``state_00_conv``; the output ``state_00_conv_next`` is its next value."""
TIME_STRIDE, LOOK_AHEAD, WEIGHTS = "time_stride", "look_ahead", "weights"
"""Keys of the metadata: feature frames per logit frame, those that a stream waits for, names of variables."""
QUANTISED, SCALE = "_quantized", "_scale"
"""Ends of the names of a weight in int8 and of its scales."""


def is_packed(run: RunFolder) -> bool:
    """Whether a speech run was written by ``bundle.pack``."""
    return run.packed_network.is_file() and not run.best_weights.is_file()
