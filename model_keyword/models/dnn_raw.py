"""DNN for keywords that hears samples, not features: windows of samples in, logits of the labels out.

The network of `model_keyword.models.dnn`, as Rybakov et al. (2020, arXiv:2005.06720) train it on windows of
the waveform: its first layer learns the filters that a front end would have. Wants ``features.kind: raw``.

486,988 parameters for 49 windows of 640 samples and 12 labels.
"""

from __future__ import annotations

from dataclasses import dataclass

from model_keyword.models.dnn import DnnConfig, build_dnn


@dataclass(frozen=True)
class DnnRawConfig(DnnConfig):
    """Geometry of `build_dnn_raw`; that of `model_keyword.models.dnn.DnnConfig`."""

    name: str = "dnn_raw"


def build_dnn_raw(config: DnnRawConfig, x, labels: int):
    """Build the network.

    Args:
        config: geometry.
        x: the samples of each window (B, T, window).
        labels: L.

    Returns:
        logits (B, L) float32.

    Raises:
        ConfigError: the clip has fewer values than are pooled.
    """
    return build_dnn(config, x, labels)
