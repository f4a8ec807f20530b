"""Knowledge distillation: a trained acoustic model, the teacher, gives its distributions to a student.

The teacher gets the same copies of the recordings as the student, without masks, in its own features. Its
outputs are computed once and stored beside the features, the most probable classes of each of its frames. So
a model of whole utterances, which sees what follows, can teach a model for streams, and a large one costs a
training step next to nothing.
"""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

from data.features.augment import AugmentConfig
from data.features.cache import FeatureCache, prepare_features
from data.features.shards import FRAME_TYPE
from data.manifest import Utterance
from model_speech.acoustic_logits import AcousticLogits, load_acoustic_logits
from utils.arrays import softmax
from utils.errors import require
from utils.features.settings import FeatureConfig, first_frame_seconds
from utils.limits import Limited, NotNegative
from utils.run_folder.checksum_files import hash_once
from utils.run_folder.run import open_run
from utils.vocabulary import Vocabulary, first_few

CLASSES = 8  # stored for each frame: with the shipped model, 0.999 of the probability on average


@dataclass(frozen=True)
class DistillationConfig(Limited, section="distillation"):
    """Settings of the distillation.

    Attributes:
        teacher: a speech run; empty: none.
        weight: of the distillation loss (:mod:`model_speech.ctc.distillation`), added to the CTC loss.
    """

    teacher: str = ""
    weight: NotNegative = 1.0


@dataclass(frozen=True)
class TeacherNetwork:
    """Computes what is stored of a teacher: its most probable classes in each of its frames.

    Attributes:
        run: the speech run.
        name: of the folder of the outputs; changes with the weights.
        values: stored per frame, 2 · ``CLASSES``.
        time_stride: feature frames for each frame of the outputs.
    """

    run: str
    name: str
    time_stride: int
    values: int = 2 * CLASSES

    @classmethod
    def of(cls, run: str) -> Self:
        """The network of a speech run.

        Raises:
            RunError: it is not a whole speech run.
        """
        model, folder = _load(run), open_run(run, "speech")
        weights = folder.best_weights if folder.best_weights.is_file() else folder.packed_network
        stride = round(model.frame_seconds / model.features.hop_seconds)
        return cls(run, f"teacher-{hash_once(weights)[:16]}", stride)

    def __call__(self, features: np.ndarray) -> np.ndarray:
        """(frames, bins) → (T, 2 · CLASSES) float16, see :func:`unpack`."""
        logits, lengths = _load(self.run).logits([features])
        probabilities = softmax(logits[0, : lengths[0]])  # (T, classes)
        count = min(CLASSES, probabilities.shape[1])
        found = np.argpartition(-probabilities, count - 1, axis=1)[:, :count]
        packed = np.zeros((len(found), self.values), FRAME_TYPE)
        packed[:, :count] = found.astype(np.uint16).view(FRAME_TYPE)
        packed[:, CLASSES : CLASSES + count] = np.take_along_axis(probabilities, found, axis=1)
        return packed


def unpack(packed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Stored outputs → classes (T, CLASSES) int64 and their probabilities (T, CLASSES) float32."""
    classes = np.ascontiguousarray(packed[:, :CLASSES]).view(np.uint16)
    return classes.astype(np.int64), packed[:, CLASSES:].astype(np.float32)


@functools.lru_cache(maxsize=1)
def _load(run: str) -> AcousticLogits:
    return load_acoustic_logits(Path(run))


def prepare_teacher(
    config: DistillationConfig, utterances: Sequence[Utterance], copies: tuple[str, AugmentConfig, int, int]
) -> FeatureCache:
    """Compute the outputs of the teacher that the cache lacks.

    Args:
        config: settings.
        utterances: those of the training.
        copies: folder, augmentation, workers and seed, see :func:`data.features.cache.prepare_features`.
    """
    network, features = TeacherNetwork.of(config.teacher), _load(config.teacher).features
    return prepare_features(utterances, features, *copies, network)


@dataclass(frozen=True, eq=False)
class Teacher:
    """Outputs of a teacher, as the targets of a student.

    Attributes:
        outputs: of the training utterances, see :class:`TeacherNetwork`.
        classes: (classes of the teacher,) int64, the student's class of each; -1 for an unknown token.
        blank: the teacher's blank.
        seconds: of a logit frame of the teacher, and of the student.
        begins: time at which the first frame of each begins, in seconds.
        time_stride: feature frames for each logit frame of the student.
    """

    outputs: FeatureCache
    classes: np.ndarray
    blank: int
    seconds: tuple[float, float]
    begins: tuple[float, float]
    time_stride: int
    count: int = CLASSES

    def targets(self, utterance: str, copy: int, frames: int) -> tuple[np.ndarray, np.ndarray]:
        """What a student learns from a copy of an utterance.

        Where several frames of the teacher have their middle in a frame of the student, it learns the one in
        which a blank is the least probable; where none has, the last one before.

        Args:
            utterance: its id.
            copy: 0 for the recording itself.
            frames: T, logit frames of the student.

        Returns:
            Classes of the student (T, CLASSES) int32, and their probabilities (T, CLASSES) float32, of sum 1
            in each frame; all are 0 where it knows none of the classes.
        """
        classes, probabilities = unpack(self.outputs.features(utterance, copy))
        blank = np.where(classes == self.blank, probabilities, 0.0).sum(axis=1)
        candidates = self._candidates(frames, len(classes))  # (T, frames to choose from)
        chosen = candidates[np.arange(frames), blank[candidates].argmin(axis=1)]
        known = self.classes[classes[chosen]]
        probabilities = np.where(known >= 0, probabilities[chosen], 0.0)
        total = probabilities.sum(axis=1, keepdims=True)
        return np.maximum(known, 0).astype(np.int32), probabilities / np.where(total > 0, total, 1.0)

    def _candidates(self, frames: int, count: int) -> np.ndarray:
        """The frames of the teacher in each frame of the student, int64; fewer than most: the last again."""
        (own, student), (own_begin, begin) = self.seconds, self.begins
        limits = begin + student * np.arange(frames + 1)
        after = np.ceil((limits - own_begin) / own - 0.5 - 1e-4).astype(
            np.int64
        )  # first frame after each limit
        offsets = np.arange(math.ceil(student / own - 1e-4))
        return np.clip(np.minimum(after[:-1, None] + offsets, after[1:, None] - 1), 0, count - 1)


def load_teacher(
    config: DistillationConfig,
    features: FeatureConfig,
    time_stride: int,
    vocabulary: Vocabulary,
    utterances: Sequence[Utterance],
    copies: tuple[str, AugmentConfig, int, int],
) -> Teacher | None:
    """The teacher that a recipe names, with its outputs for ``utterances``; None if it names none.

    Args:
        config: settings.
        features, time_stride, vocabulary: those of the model that learns.
        utterances, copies: see :func:`prepare_teacher`.

    Raises:
        ConfigError: the teacher has fewer logit frames a second or another sample rate, or does not know half
            of the tokens.
        RunError: the teacher is not a whole speech run.
    """
    if not config.teacher:
        return None
    model, where = _load(config.teacher), f"distillation.teacher={config.teacher}"
    seconds = model.frame_seconds, time_stride * features.hop_seconds
    require(
        seconds[0] < 1.01 * seconds[1],
        f"the teacher has a logit frame every {1000 * seconds[0]:g} ms, the model every "
        f"{1000 * seconds[1]:g} ms",
        where=where,
        hint="a teacher whose frames are as close together as the model's, or closer",
    )
    require(
        model.features.sample_rate == features.sample_rate,
        f"the teacher has features of {model.features.sample_rate:,} Hz, the model of "
        f"{features.sample_rate:,} Hz: augmented copies of a recording would differ",
        where=where,
        hint="a teacher of the same features.sample_rate",
    )
    classes = _student_classes(model.vocabulary, vocabulary, where)
    outputs = prepare_teacher(config, utterances, copies)
    _load.cache_clear()  # the training needs the outputs only
    begins = tuple(first_frame_seconds(each) - each.hop_seconds / 2 for each in (model.features, features))
    return Teacher(
        outputs, classes, model.vocabulary.blank_index, seconds, (begins[0], begins[1]), time_stride
    )


def _student_classes(teacher: Vocabulary, student: Vocabulary, where: str) -> np.ndarray:
    unknown = sorted(set(student.tokens) - set(teacher.tokens))
    require(
        len(unknown) * 2 < len(student),
        f"the teacher does not know {len(unknown)} of {len(student)} tokens ({first_few(unknown)})",
        where=where,
        hint="a teacher for the same kind of tokens",
    )
    known = {token: index for index, token in enumerate(student.tokens)}
    return np.array([known.get(token, -1) for token in teacher.tokens], np.int64)
