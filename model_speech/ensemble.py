"""Ensembles of acoustic models: the members in addition to the first model, and their logits.

A member is another model, or the same one with another hop of the features: speech that is sampled
more densely looks slower to it. A packed run lists its members in ``config.yaml``::

    ensemble:
    - {hop_ms: 9.0, weight: 0.3}
    - {run: ../audio_to_pinyin_streaming, weight: 0.3}

:func:`model_speech.ctc.posteriors.token_slots` combines what they compute.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from model_speech.acoustic_logits import AcousticLogits
from model_speech.ctc.posteriors import WeightedLogits
from utils.config import build_config
from utils.errors import require
from utils.features.speech import FeatureConfig
from utils.limits import Fraction, Limited
from utils.run_folder.run import RunFolder


@dataclass(frozen=True)
class MemberConfig(Limited, section="ensemble"):
    """A member in the configuration of a run.

    Attributes:
        weight: its share of the ensemble, below 1; the first model has what the members leave.
        run: another packed speech run, relative to the folder of the first one; None: the same model.
        hop_ms: time from one feature frame to the next; None: as the model was trained.
    """

    weight: Fraction
    run: str | None = None
    hop_ms: float | None = None


@dataclass(frozen=True)
class Member:
    """A member of an ensemble.

    Attributes:
        acoustic: the model; its vocabulary is that of the first model.
        features: settings of the features from which it computes the logits.
        weight: see :class:`MemberConfig`.
    """

    acoustic: AcousticLogits
    features: FeatureConfig
    weight: float


def member_configs(run: Path) -> list[MemberConfig]:
    """The members that the config of a speech run lists, in addition to the run itself.

    Raises:
        RunError: the config is damaged.
        ConfigError: the list is wrong.
    """
    folder = RunFolder(run)
    configs = [build_config(MemberConfig, setting) for setting in folder.config().get("ensemble") or []]
    require(
        sum(config.weight for config in configs) < 1,
        "the weights of the members in ensemble add up to 1 or more",
        where=folder.config_file,
        hint="leave a part of 1 to the model itself",
    )
    return configs


def member_folder(run: Path, config: MemberConfig) -> Path:
    """The run folder of a member of the ensemble of ``run``."""
    return (run / (config.run or "")).resolve()


def member_logits(
    members: Sequence[Member], features: Sequence[Sequence[np.ndarray]]
) -> list[tuple[WeightedLogits, ...]]:
    """The logits of each utterance by each member.

    Args:
        members: may be none.
        features: for each utterance the features (frames, bins) for each member.
    """
    if not members:
        return [()] * len(features)
    columns = []
    for member, batch in zip(members, zip(*features, strict=True), strict=True):
        logits, lengths = member.acoustic.logits(batch)
        valid = (rows[:length] for rows, length in zip(logits, lengths, strict=True))
        columns.append([WeightedLogits(rows, member.weight) for rows in valid])
    return list(zip(*columns, strict=True))
