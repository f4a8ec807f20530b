"""Knowledge distillation: a trained acoustic model, the teacher, gives its logits to another, the student.

The teacher gets the same copy of a recording as the student, without masks, in its own features. So a model
of whole utterances, which sees what follows, can teach a model for streams.
"""

from dataclasses import dataclass
from typing import Any, Self

import keras
import numpy as np
from keras import ops

from model_speech.acoustic_model import AcousticModel, load_acoustic_model, trained_settings
from model_speech.ctc.loss import LOG_ZERO
from utils.errors import require
from utils.features.settings import FeatureConfig, first_frame_seconds
from utils.limits import Limited, NotNegative
from utils.run_folder.run import open_run
from utils.vocabulary import Vocabulary, first_few


@dataclass(frozen=True)
class DistillationConfig(Limited, section="distillation"):
    """Settings of the distillation.

    Attributes:
        teacher: a speech run; empty: none. The step takes a sixth longer with one of the student's size.
        weight: of the distillation loss (:mod:`model_speech.ctc.distillation`), added to the CTC loss.
    """

    teacher: str = ""
    weight: NotNegative = 1.0


def teacher_features(config: DistillationConfig) -> FeatureConfig:
    """The feature settings of the teacher; only its config is read."""
    return trained_settings(open_run(config.teacher, "speech"))[0]


@dataclass(frozen=True, eq=False)
class Teacher:
    """A trained model that teaches another one.

    Attributes:
        model: features and lengths → logits.
        features: its feature settings.
        columns: (classes of the student,) int32, the teacher's class of each; the number of the teacher's
            classes for a token that it does not know.
        weight: of the loss.
    """

    model: keras.Model
    features: FeatureConfig
    columns: np.ndarray
    weight: float

    @classmethod
    def load(cls, config: DistillationConfig, student: Any, vocabulary: Vocabulary) -> Self | None:
        """The teacher that a recipe names; None if it names none.

        Args:
            config: settings.
            student: config of the model that learns.
            vocabulary: its tokens.

        Raises:
            ConfigError: their time strides differ, or the teacher does not know half of the tokens.
            RunError: the teacher is not a whole speech run.
        """
        if not config.teacher:
            return None
        acoustic = load_acoustic_model(config.teacher)
        require(
            acoustic.time_stride == student.time_stride,
            f"the teacher has a logit frame for {acoustic.time_stride} feature frames, model.* has one for "
            f"{student.time_stride}",
            where=f"distillation.teacher={config.teacher}",
            hint="only models with the same time stride can teach each other",
        )
        acoustic.model.trainable = False
        columns = _columns(acoustic, vocabulary, config.teacher)
        return cls(acoustic.model, acoustic.features, columns, config.weight)

    def frames_later(self, student: FeatureConfig, copies: int) -> int:
        """Frames by which the teacher's features lag behind those of the student, at the same sound.

        Args:
            student: feature settings of the model that learns.
            copies: augmented copies of each recording; their noise and rooms differ with the sample rate.

        Raises:
            ConfigError: its frames are further apart or closer, or of another rate where there are copies.
        """
        require(
            self.features.hop_seconds == student.hop_seconds,
            f"the teacher has a feature frame every {1000 * self.features.hop_seconds:g} ms, the model every "
            f"{1000 * student.hop_seconds:g} ms",
            where="distillation.teacher",
            hint="the same features.hop_ms for both",
        )
        require(
            self.features.sample_rate == student.sample_rate or not copies,
            f"the teacher hears {self.features.sample_rate:,} Hz, the model {student.sample_rate:,} Hz: "
            "augmented copies of a recording would differ",
            where="distillation.teacher",
            hint="a teacher of the same features.sample_rate, or augment.copies=0",
        )
        later = first_frame_seconds(student) - first_frame_seconds(self.features)
        return round(later / student.hop_seconds)

    def logits(self, features: Any, lengths: Any) -> Any:
        """Logits of the student's classes: features (B, T, F), lengths (B,) → (B, T', C) float32."""
        logits = self.model({"features": features, "lengths": lengths}, training=False)
        unknown = ops.full_like(logits[:, :, :1], LOG_ZERO)
        return ops.stop_gradient(ops.take(ops.concatenate([logits, unknown], axis=-1), self.columns, axis=-1))


def _columns(teacher: AcousticModel, vocabulary: Vocabulary, run: str) -> np.ndarray:
    known = {token: index for index, token in enumerate(teacher.vocabulary.tokens)}
    unknown = [token for token in vocabulary.tokens if token not in known]
    require(
        len(unknown) * 2 < len(vocabulary),
        f"the teacher does not know {len(unknown)} of {len(vocabulary)} tokens ({first_few(unknown)})",
        where=f"distillation.teacher={run}",
        hint="a teacher for the same kind of tokens",
    )
    return np.array([known.get(token, len(teacher.vocabulary)) for token in vocabulary.tokens], np.int32)
