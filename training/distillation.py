"""Knowledge distillation: a trained acoustic model, the teacher, gives its logits to another, the student.

The teacher gets the same copy of a recording as the student, without masks, in its own features and at its
own frame rate. So a model of whole utterances, which sees what follows, can teach a model for streams.
"""

import math
from dataclasses import dataclass
from typing import Any, Self

import keras
import numpy as np
from keras import ops

from model_speech.acoustic_model import AcousticModel, load_acoustic_model, trained_settings
from model_speech.ctc.loss import LOG_ZERO, output_lengths
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
        time_stride: its feature frames for each of its logit frames.
        student_seconds: of a logit frame of the student.
        student_start: time at which the student's first logit frame begins, in seconds.
    """

    model: keras.Model
    features: FeatureConfig
    columns: np.ndarray
    weight: float
    time_stride: int
    student_seconds: float
    student_start: float

    @classmethod
    def load(
        cls, config: DistillationConfig, features: FeatureConfig, student: Any, vocabulary: Vocabulary
    ) -> Self | None:
        """The teacher that a recipe names; None if it names none.

        Args:
            config: settings.
            features: feature settings of the model that learns.
            student: its config.
            vocabulary: its tokens.

        Raises:
            ConfigError: the teacher has fewer logit frames a second or another sample rate, or does not know
                half of the tokens.
            RunError: the teacher is not a whole speech run.
        """
        if not config.teacher:
            return None
        acoustic = load_acoustic_model(config.teacher)
        seconds = student.time_stride * features.hop_seconds
        require(
            acoustic.frame_seconds < 1.01 * seconds,
            f"the teacher has a logit frame every {1000 * acoustic.frame_seconds:g} ms, the model every "
            f"{1000 * seconds:g} ms",
            where=f"distillation.teacher={config.teacher}",
            hint="a teacher whose frames are as close together as the model's, or closer",
        )
        require(
            acoustic.features.sample_rate == features.sample_rate,
            f"the teacher has features of {acoustic.features.sample_rate:,} Hz, the model of "
            f"{features.sample_rate:,} Hz: augmented copies of a recording would differ",
            where=f"distillation.teacher={config.teacher}",
            hint="a teacher of the same features.sample_rate",
        )
        acoustic.model.trainable = False
        columns = _columns(acoustic, vocabulary, config.teacher)
        start = first_frame_seconds(features) - 0.5 * features.hop_seconds
        stride = acoustic.time_stride
        return cls(acoustic.model, acoustic.features, columns, config.weight, stride, seconds, start)

    def logits(self, features: Any, lengths: Any, student_frames: Any) -> Any:
        """Logits for the frames and the classes of the student.

        Where several frames of the teacher have their middle in a frame of the student, it learns the one in
        which a blank is the least probable.

        Args:
            features: (B, T, F) float32, those of the teacher.
            lengths: (B,) int32, valid frames of these.
            student_frames: T', number of the student's logit frames.

        Returns:
            (B, T', C) float32, without gradient.
        """
        logits = self.model({"features": features, "lengths": lengths}, training=False)
        unknown = ops.full_like(logits[:, :, :1], LOG_ZERO)
        logits = ops.take(ops.concatenate([logits, unknown], axis=-1), self.columns, axis=-1)
        last = output_lengths(lengths, self.time_stride)[:, None, None] - 1
        frames = ops.minimum(self._frames(student_frames)[None], last)  # (B, T', frames to choose from)
        blank = ops.log_softmax(logits, axis=-1)[:, :, -1]
        shape = ops.shape(frames)
        of_blank = ops.take_along_axis(blank, ops.reshape(frames, (shape[0], -1)), axis=1)
        choice = ops.argmin(ops.reshape(of_blank, shape), axis=-1)[:, :, None]
        chosen = ops.take_along_axis(frames, choice, axis=2)  # (B, T', 1)
        return ops.stop_gradient(ops.take_along_axis(logits, chosen, axis=1))

    def _frames(self, student_frames: Any) -> Any:
        """The frames of the teacher in each frame of the student, (T', largest number of them) int32.

        If they are fewer in a frame, its last one is repeated.
        """
        hop = self.features.hop_seconds
        seconds = self.time_stride * hop
        first_middle = first_frame_seconds(self.features) + 0.5 * (self.time_stride - 1) * hop
        ends = self.student_start + self.student_seconds * ops.arange(student_frames + 1, dtype="float32")
        after = ops.ceil((ends - first_middle) / seconds - 1e-4)  # the first frame after each limit
        first, last = after[:-1, None], after[1:, None] - 1
        most = math.ceil(self.student_seconds / seconds - 1e-4)
        offsets = ops.arange(most, dtype="float32")[None]
        return ops.cast(ops.maximum(ops.minimum(first + offsets, last), 0), "int32")


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
