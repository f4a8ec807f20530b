"""Tests of the context before a clip: the end of another clip, silence, or the past of a stream."""

import keras
import numpy as np
import pytest

from data.features.spec_augment import SpecAugmentConfig
from data.keywords.augment import KeywordAugmentConfig
from data.keywords.clip_cache import ClipStore
from data.keywords.clips import KeywordClip
from model_keyword.models.ds_tc_resnet import DsTcResnetConfig
from model_keyword.models.gru_lstm import GruConfig
from model_keyword.registry import MODELS, build_keyword_model
from streaming.conversion.modes import Mode
from tests.support.streamed import assert_streams, with_random_weights
from training.tasks.keyword_batches import KeywordBatches
from utils.errors import ConfigError
from utils.features.keyword import KeywordFeatureConfig, feature_frames

FEATURES = KeywordFeatureConfig(mel_bins=12, coefficients=0)
CLIP, CONTEXT = 6400, 4800  # samples
SMALL = DsTcResnetConfig(
    filters=(6, 6), repeats=(1, 1), kernels=(5, 3), strides=(2, 1), dilations=(1, 2), residuals=(False, True)
)


@pytest.fixture(scope="module")
def model() -> keras.Model:
    return with_random_weights(build_keyword_model(SMALL, FEATURES, CLIP, 3, CONTEXT))


def test_only_the_clips_frames_count(model: keras.Model):
    frames = feature_frames(CONTEXT + CLIP, FEATURES)
    assert model.input_shape == (None, frames, 12)
    # 34 frames, 19 of them the clip's; half of them after the stride: 17 and 10.
    assert frames == 34 and feature_frames(CLIP, FEATURES) == 19
    assert model.get_layer("newest").output.shape[1] == 10
    # The layers depend on 4 + 2 · 4 earlier frames and on no others.
    features = np.random.default_rng(0).normal(size=(1, frames, 12)).astype(np.float32)
    far, near = features.copy(), features.copy()
    far[:, :2] += 1
    near[:, 12] += 1
    answers = [np.asarray(model(x, training=False)) for x in (features, far, near)]
    assert np.abs(answers[1] - answers[0]).max() < 1e-6
    assert np.abs(answers[2] - answers[0]).max() > 1e-4


def test_the_model_with_context_streams(model: keras.Model):
    assert_streams(
        model, (Mode.STREAM_INTERNAL_STATE_INFERENCE, 2), (Mode.STREAM_EXTERNAL_STATE_INFERENCE, 4)
    )


def test_a_model_that_can_take_no_context_is_refused():
    with pytest.raises(ConfigError, match="gru takes the clip only"):
        build_keyword_model(GruConfig(), FEATURES, CLIP, 3, CONTEXT)
    assert {name for name, entry in MODELS.items() if entry.context} >= {
        "ds_tc_resnet",
        "bc_resnet",
        "ds_cnn",
    }


def store_of(clips: int) -> ClipStore:
    """Clip i is the constant 1000 · (i + 1)."""
    samples = np.repeat(1000 * np.arange(1, clips + 1, dtype=np.int16)[:, None], CLIP, axis=1)
    return ClipStore(tuple(KeywordClip(str(row), None, "a") for row in range(clips)), samples, ())


def test_the_context_in_training_is_the_end_of_another_clip_or_silence():
    quiet = KeywordAugmentConfig(shift_ms=0, speed_probability=0, noise_probability=0, gain_db=(0.0, 0.0))
    raw, masks = KeywordFeatureConfig(kind="raw"), SpecAugmentConfig(0, 0, 0, 0, 0)
    batches = KeywordBatches(
        store_of(8), np.arange(8, dtype=np.int32), 64, raw, quiet, masks, context_samples=CONTEXT
    )
    batch = batches.batch(0)
    assert batch.features.shape == (64, CONTEXT + CLIP)
    contexts, clips = batch.features[:, :CONTEXT], batch.features[:, CONTEXT:]
    assert clips[:, 0] * 32768 == pytest.approx(1000 * (batch.targets + 1))
    silent = np.all(contexts == 0, axis=1)
    assert 0.1 < silent.mean() < 0.5
    levels = contexts[~silent][:, 0] * 32.768
    assert np.all(contexts.max(axis=1) == contexts.min(axis=1))
    assert set(np.round(levels).astype(int)) <= set(range(1, 9)) and len(set(levels)) > 4
    assert np.array_equal(batch.features, batches.batch(0).features)
