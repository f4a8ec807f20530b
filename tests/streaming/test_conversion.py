"""Tests that streamed models equal their plain models: each layer, and stacks of layers.

Each layer streams in one mode and size of chunks; with --nightly in another one too.
"""

import keras
import numpy as np
import pytest
from keras import layers

from streaming.conversion.convert import to_mode
from streaming.conversion.modes import Mode
from streaming.conversion.plan import check_streamable, stream_geometry
from streaming.speech.keras_stream import KerasStream
from tests.support.streamed import (
    EXTERNAL,
    INTERNAL,
    STREAMS,
    TOLERANCE,
    assert_streams,
    model_of,
    noise,
    run,
    with_random_weights,
)
from utils.errors import ConfigError

FRAMES, BINS = 12, 4


@keras.saving.register_keras_serializable(package="test_streaming")
class Halves(keras.layers.Layer):
    """Whole windows of samples, as a front end cuts them: (B, samples) → (B, frames, 4), every 2 samples."""

    streaming_window = (4, 2)

    def call(self, samples):
        frames = (samples.shape[1] - 4) // 2 + 1
        return keras.ops.stack([samples[:, 2 * n : 2 * n + 4] for n in range(frames)], axis=1)


@keras.saving.register_keras_serializable(package="test_streaming")
class Logarithm(keras.layers.Layer):
    """A custom layer that computes each frame independently."""

    frame_wise = True

    def call(self, x):
        return keras.ops.log(keras.ops.abs(x) + 0.1)


@keras.saving.register_keras_serializable(package="test_streaming")
class Gate(keras.layers.Layer):
    """A custom layer with two inputs."""

    frame_wise = True

    def call(self, x, gate):
        return x * keras.ops.sigmoid(gate) + 1.0


# (layers, delay, stride) for 12 frames of 4 values: the delay that each layer alone adds is known.
ONE_DIMENSION = {
    "conv_valid": ([lambda: layers.Conv1D(3, 3)], 2, 1),
    "conv_dilated": ([lambda: layers.Conv1D(3, 3, dilation_rate=2)], 4, 1),
    "conv_causal": ([lambda: layers.Conv1D(3, 3, dilation_rate=2, padding="causal")], 0, 1),
    "conv_stride": ([lambda: layers.Conv1D(3, 3, strides=2)], 1, 2),
    "conv_stride_even": ([lambda: layers.Conv1D(3, 4, strides=2)], 1, 2),
    "conv_stride_beyond_kernel": ([lambda: layers.Conv1D(3, 2, strides=3)], 0, 3),
    "conv_stride_causal": ([lambda: layers.Conv1D(3, 3, strides=2, padding="causal")], 0, 2),
    "conv_stride_padded": ([lambda: layers.ZeroPadding1D((1, 0)),
                            lambda: layers.Conv1D(3, 3, strides=2)], 0, 2),
    "conv_padded_too_much": ([lambda: layers.ZeroPadding1D((5, 0)), lambda: layers.Conv1D(3, 3)], 0, 1),
    "conv_one_same": ([lambda: layers.Conv1D(3, 1, padding="same", strides=2)], 0, 2),
    "depthwise": ([lambda: layers.DepthwiseConv1D(3, depth_multiplier=2)], 2, 1),
    "separable": ([lambda: layers.SeparableConv1D(3, 3)], 2, 1),
    "max_pooling": ([lambda: layers.MaxPooling1D(3, 2)], 1, 2),
    "average_pooling": ([lambda: layers.AveragePooling1D(2)], 0, 2),
    "pooling_after_padding": ([lambda: layers.ZeroPadding1D((2, 0)),
                               lambda: layers.MaxPooling1D(3, 1)], 0, 1),
    "gru": ([lambda: layers.GRU(3, return_sequences=True)], 0, 1),
    "gru_before": ([lambda: layers.GRU(3, return_sequences=True, reset_after=False)], 0, 1),
    "lstm": ([lambda: layers.LSTM(3, return_sequences=True)], 0, 1),
    "simple_rnn": ([lambda: layers.SimpleRNN(3, return_sequences=True)], 0, 1),
    "cropping": ([lambda: layers.Cropping1D((2, 1))], 2, 1),
    "side_by_side": ([lambda: layers.Reshape((6, 8)), lambda: layers.Dense(3)], 0, 2),
    "side_by_side_late": ([lambda: layers.Conv1D(3, 2), lambda: layers.Cropping1D((0, 1)),
                           lambda: layers.Reshape((-1, 6)), lambda: layers.Dense(3)], 1, 2),
    "reshape_permute": ([lambda: layers.Reshape((FRAMES, 2, 2)), lambda: layers.Permute((1, 3, 2)),
                         lambda: layers.Reshape((FRAMES, 4)), lambda: layers.Conv1D(3, 2)], 1, 1),
    "strided_cascade": ([lambda: layers.Conv1D(3, 3, strides=2), lambda: layers.Conv1D(3, 3, strides=2),
                         lambda: layers.BatchNormalization(),
                         lambda: layers.Conv1D(3, 2, padding="causal")], 1, 4),
    "warm_up_before_gru": ([lambda: layers.Conv1D(3, 4), lambda: layers.GRU(3, return_sequences=True)], 3, 1),
    "warm_up_before_padding": ([lambda: layers.Conv1D(3, 4), lambda: layers.Dropout(0.5),
                                lambda: layers.Conv1D(3, 3, padding="causal")], 3, 1),
    "frame_wise": ([lambda: layers.Dense(5, activation="relu"), lambda: layers.LayerNormalization(),
                    lambda: layers.BatchNormalization(), lambda: layers.PReLU(shared_axes=[1]), Logarithm,
                    lambda: layers.TimeDistributed(layers.Dense(3)), lambda: layers.Softmax()], 0, 1),
}  # fmt: skip


def sequence_of(makers, inputs):
    x = inputs
    for make in makers:
        x = make()(x)
    return model_of(inputs, x)


@pytest.mark.parametrize("case", ONE_DIMENSION)
def test_a_layer_over_frames(case, nightly):
    makers, delay, stride = ONE_DIMENSION[case]
    model = sequence_of(makers, keras.Input((FRAMES, BINS)))
    facts = assert_streams(model, *((INTERNAL, stride), (EXTERNAL, 3 * stride))[: 1 + nightly])
    assert (facts.delay, facts.stride, facts.step, facts.frames_per_call) == (delay, stride, stride, stride)
    assert facts.window is None


TWO_DIMENSIONS = {
    "conv_valid": ([lambda: layers.Conv2D(2, (3, 2), dilation_rate=(2, 1))], 4, 1),
    "conv_same_frequency": ([lambda: layers.Conv2D(2, (1, 3), padding="same", strides=(1, 2))], 0, 1),
    "conv_padded": ([lambda: layers.ZeroPadding2D(((2, 0), (1, 1))), lambda: layers.Conv2D(2, 3)], 0, 1),
    "warm_up_before_padding": ([lambda: layers.Conv2D(2, (3, 1)),
                                lambda: layers.ZeroPadding2D(((2, 0), (0, 2))),
                                lambda: layers.DepthwiseConv2D(3, strides=2)], 1, 2),
    "separable": ([lambda: layers.SeparableConv2D(2, (3, 3))], 2, 1),
    "pooling": ([lambda: layers.MaxPooling2D((2, 2)),
                 lambda: layers.AveragePooling2D((2, 1), strides=1)], 1, 2),
    "pooling_of_frequency": ([lambda: layers.AveragePooling2D((1, 3), padding="same")], 0, 1),
    "cropping": ([lambda: layers.Cropping2D(((1, 2), (1, 0))), lambda: layers.Conv2D(2, 1)], 1, 1),
    "spatial_dropout": ([lambda: layers.SpatialDropout2D(0.5), lambda: layers.Conv2D(2, 1)], 0, 1),
}  # fmt: skip


@pytest.mark.parametrize("case", TWO_DIMENSIONS)
def test_a_layer_over_frames_and_bins(case, nightly):
    makers, delay, stride = TWO_DIMENSIONS[case]
    model = sequence_of(makers, keras.Input((FRAMES, 5, 2)))
    facts = assert_streams(model, *((EXTERNAL, stride), (INTERNAL, 2 * stride))[: 1 + nightly])
    assert (facts.delay, facts.stride) == (delay, stride)


WHOLE_CLIP = {
    "flatten": lambda x: layers.Dense(2)(layers.Flatten()(x)),
    "flatten_one_frame": lambda x: layers.Flatten()(layers.Conv1D(3, FRAMES)(x)),
    "reshape": lambda x: layers.Dense(2)(layers.Reshape((FRAMES * BINS,))(x)),
    "reshape_to_one": lambda x: layers.Reshape((1, FRAMES * BINS))(x),
    "permute": lambda x: layers.Dense(2)(layers.Permute((2, 1))(x)),
    "average": lambda x: layers.GlobalAveragePooling1D()(layers.Conv1D(3, 4, padding="causal")(x)),
    "maximum": lambda x: layers.GlobalMaxPooling1D()(layers.Conv1D(3, 4)(x)),
    "gru": lambda x: layers.GRU(3)(layers.Conv1D(3, 4)(x)),
    "lstm_stack": lambda x: layers.LSTM(3)(layers.LSTM(2, return_sequences=True)(layers.Conv1D(2, 2)(x))),
    "attention": lambda x: layers.GlobalAveragePooling1D()(layers.MultiHeadAttention(2, 3)(x, x)),
    "attention_residual": lambda x: layers.Flatten()(
        layers.Add()([x, layers.MultiHeadAttention(1, 2)(x, x)])
    ),
    "bidirectional_after_attention": lambda x: layers.Bidirectional(layers.GRU(2))(
        layers.MultiHeadAttention(1, 2)(x, x)
    ),
    "squeeze_excitation": lambda x: layers.Multiply()([
        x, layers.Dense(BINS, activation="sigmoid")(layers.GlobalAveragePooling1D(keepdims=True)(x))
    ]),
    "windows_of_two_lengths": lambda x: layers.Concatenate()([
        layers.Flatten()(x), layers.Flatten()(layers.Cropping1D((1, 2))(x)),
        layers.GRU(2)(layers.Cropping1D((0, 1))(x))
    ]),
}  # fmt: skip


@pytest.mark.parametrize("case", WHOLE_CLIP)
def test_an_answer_for_the_whole_clip(case, nightly):
    inputs = keras.Input((FRAMES, BINS))
    model = model_of(inputs, WHOLE_CLIP[case](inputs))
    facts = assert_streams(model, *((EXTERNAL, 5), (INTERNAL, 1))[: 1 + nightly])
    assert (facts.delay, facts.stride, facts.window) == (None, None, FRAMES)
    assert stream_geometry(model, frames_per_call=5).window == 15


def residual_with_cropping(x):
    y = layers.Conv1D(6, 3, dilation_rate=2, use_bias=False)(x)
    y = layers.ReLU()(layers.BatchNormalization()(y))
    return layers.Add()([layers.Cropping1D((1, 3))(layers.Conv1D(6, 1)(x)), y])


def residual_causal(x):
    y = layers.BatchNormalization()(layers.DepthwiseConv1D(3)(layers.ZeroPadding1D((2, 0))(x)))
    return layers.Add()([x, layers.ReLU()(y)])


@pytest.mark.parametrize("residual", [residual_with_cropping, residual_causal])
def test_residual_blocks(residual, nightly):
    inputs = keras.Input((20, 6))
    x = layers.Conv1D(6, 2)(inputs)
    x = residual(residual(x))
    model = model_of(inputs, layers.Concatenate()([x, x]))
    calls = (INTERNAL, 1), (EXTERNAL, 1), (INTERNAL, 5), (EXTERNAL, 5)
    assert_streams(model, *calls[:: 1 if nightly else 3])


def test_branches_of_unequal_delay_are_aligned():
    inputs = keras.Input((FRAMES, BINS))
    late = layers.Conv1D(BINS, 5)(inputs)
    padded = layers.Conv1D(BINS, 5)(layers.ZeroPadding1D((3, 0))(layers.Cropping1D((0, 3))(inputs)))
    early = layers.Cropping1D((0, 4))(inputs)
    x = layers.Multiply()([layers.Subtract()([late, early]), layers.Maximum()([early, padded])])
    model = model_of(inputs, layers.Average()([x, late]))
    assert assert_streams(model, (INTERNAL, 1), (EXTERNAL, 2)).delay == 4


def test_inputs_of_a_custom_layer_are_aligned():
    inputs = keras.Input((FRAMES, BINS))
    gate = layers.Conv1D(BINS, 3)(inputs)
    model = model_of(inputs, layers.Conv1D(3, 2)(Gate()(layers.Cropping1D((0, 2))(inputs), gate)))
    assert_streams(model, (INTERNAL, 1), (EXTERNAL, 3))


def test_samples_in_a_frame_is_a_hop():
    inputs = keras.Input((26,))
    x = Logarithm()(Halves()(layers.Rescaling(0.5)(inputs)))
    model = model_of(inputs, layers.Dense(3)(layers.Conv1D(3, 3)(x)))
    facts = assert_streams(model, (INTERNAL, 1), (EXTERNAL, 3))
    assert (facts.step, facts.hop, facts.stride, facts.frames_per_call) == (2, 2, 2, 1)
    assert to_mode(model, INTERNAL, 3).input.shape == (1, 6)


def test_a_layer_called_twice_has_a_state_for_each_call_and_one_set_of_weights():
    inputs = keras.Input((FRAMES, BINS))
    shared, recurrent = layers.Conv1D(BINS, 3, padding="causal"), layers.GRU(BINS, return_sequences=True)
    model = model_of(inputs, recurrent(shared(recurrent(shared(inputs)))))
    facts = assert_streams(model, (INTERNAL, 2), (EXTERNAL, 1))
    assert len(facts.states) == 4
    streamed = to_mode(model, INTERNAL)
    assert streamed.count_params() == model.count_params() + facts.state_values


def test_nested_and_sequential_models_are_unfolded():
    inner_input = keras.Input((None, BINS))
    inner = keras.Model(
        inner_input, layers.Add()([inner_input, layers.Conv1D(BINS, 3, padding="causal")(inner_input)])
    )
    sequence = keras.Sequential(
        [keras.Input((FRAMES, BINS)), inner, layers.Conv1D(BINS, 2), inner, layers.Flatten()]
    )
    assert_streams(with_random_weights(sequence), (EXTERNAL, 3))


@pytest.fixture(scope="module")
def long_memory() -> keras.Model:
    """A model whose window is longer than a clip, so that an earlier clip would change its output."""
    inputs = keras.Input((6, BINS))
    x = layers.Conv1D(BINS, 3, dilation_rate=4, padding="causal", name="conv")(inputs)
    return model_of(inputs, layers.GRU(3, name="gru")(x))


@pytest.mark.parametrize("mode", STREAMS)
def test_a_reset_clears_all_states(long_memory, mode):
    stream = KerasStream(to_mode(long_memory, mode))
    first, second = noise((1, 6, BINS), 1), noise((1, 6, BINS), 2)
    expected = keras.ops.convert_to_numpy(long_memory(second))
    run(stream, first, 1)
    assert (
        np.abs(run(stream, second, 1)[-1] - expected).max() > 0.01
    )  # without a reset the first clip has an effect
    stream.reset()
    assert np.abs(run(stream, second, 1)[-1] - expected).max() <= TOLERANCE


def test_non_stream_is_a_copy():
    inputs = keras.Input((FRAMES, BINS))
    x = layers.BatchNormalization()(layers.Conv1D(3, 3, padding="same")(inputs))
    model = model_of(inputs, layers.Bidirectional(layers.LSTM(2))(layers.Dropout(0.5)(x)))
    copy = to_mode(model, Mode.NON_STREAM_INFERENCE)
    clips = noise((3, FRAMES, BINS))
    assert np.array_equal(copy(clips, training=True), model(clips, training=False))
    assert not any(isinstance(layer, layers.Dropout) for layer in copy.layers)
    model.set_weights([np.zeros_like(weight) for weight in model.get_weights()])
    assert np.any(copy(clips))  # the copy has separate weights


def test_a_model_trained_in_mixed_precision_streams_in_float32():
    inputs = keras.Input((FRAMES, BINS))
    x = layers.GRU(3, dtype="mixed_bfloat16")(layers.Conv1D(3, 3, dtype="mixed_bfloat16")(inputs))
    model = model_of(inputs, x)
    plain = to_mode(model, Mode.NON_STREAM_INFERENCE)
    clip = noise((1, FRAMES, BINS))
    streamed = run(KerasStream(to_mode(model, INTERNAL)), clip, 1)[-1]
    assert np.abs(plain.predict_on_batch(clip) - streamed).max() <= TOLERANCE


@pytest.mark.parametrize("frames_per_call", [0, 1, 3])
def test_a_chunk_that_the_strides_do_not_allow_is_refused(frames_per_call):
    inputs = keras.Input((FRAMES, BINS))
    model = keras.Model(inputs, layers.Conv1D(3, 3, strides=2)(inputs), name="strided")
    with pytest.raises(
        ConfigError, match=r"\d frames per call, but the strides of 'strided' need a multiple of 2"
    ):
        to_mode(model, INTERNAL, frames_per_call)


def test_a_clip_without_fixed_length_streams_per_frame():
    inputs = keras.Input((None, BINS))
    model = model_of(inputs, layers.GRU(3, return_sequences=True)(layers.Conv1D(3, 3)(inputs)))
    assert not check_streamable(model)
    clip = noise((1, 9, BINS))
    streamed = np.concatenate(run(KerasStream(to_mode(model, INTERNAL)), clip, 1), axis=1)
    assert np.abs(streamed[:, 2:] - model(clip)).max() <= TOLERANCE
