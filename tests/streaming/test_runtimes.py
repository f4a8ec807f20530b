"""Tests of streamed models in LiteRT and ONNX, without TensorFlow's own operations."""

import keras
import numpy as np
import onnxruntime
import pytest
from ai_edge_litert.interpreter import Interpreter
from keras import layers

from streaming.conversion.convert import to_mode
from streaming.conversion.plan import stream_geometry
from streaming.speech.keras_stream import KerasStream
from tests.support.streamed import EXTERNAL, model_of, noise

FRAMES, BINS = 12, 4


@pytest.fixture(scope="module")
def plain() -> keras.Model:
    """Padding and a recurrent layer after a warm-up, a stride, a residual with unequal delays."""
    inputs = keras.Input((FRAMES, BINS))
    x = layers.Conv1D(6, 3, name="conv_1")(inputs)
    y = layers.BatchNormalization(name="norm")(layers.Conv1D(6, 3, dilation_rate=2, name="conv_2")(x))
    y = layers.Conv1D(6, 3, padding="causal", name="conv_3")(layers.ReLU(name="relu")(y))
    x = layers.Add(name="add")([layers.Cropping1D((1, 3), name="crop")(x), y])
    x = layers.MaxPooling1D(2, name="pool")(x)
    return model_of(inputs, layers.GRU(5, name="gru")(x))


def assert_runs_as_the_plain_model(plain, call):
    """``call``: tensors by name → tensors by name; two clips, the states set to zero before each."""
    facts = stream_geometry(plain)
    for seed in (1, 2):
        clip = noise((1, FRAMES, BINS), seed)
        states = {state.name: np.zeros(state.shape, np.float32) for state in facts.states}
        for start in range(0, FRAMES, facts.step):
            results = call({"input": clip[:, start : start + facts.step], **states})
            states = {name: results[f"{name}_next"] for name in states}
        assert facts.window == FRAMES
        assert np.abs(results["output"] - plain(clip, training=False)).max() <= 1e-4


def test_litert_without_flex(plain, tmp_path):
    to_mode(plain, EXTERNAL, 2).export(tmp_path / "model.tflite", format="litert", verbose=False)
    interpreter = Interpreter(str(tmp_path / "model.tflite"), num_threads=1)
    assert not [op["op_name"] for op in interpreter._get_ops_details() if op["op_name"].startswith("Flex")]
    run = interpreter.get_signature_runner()
    assert_runs_as_the_plain_model(plain, lambda tensors: run(**tensors))


def test_onnx(plain, tmp_path):
    streamed = to_mode(plain, EXTERNAL, 2)
    KerasStream(streamed).step(noise((1, 2, BINS)))  # Keras's export to ONNX requires a model that was called
    streamed.export(tmp_path / "model.onnx", format="onnx", verbose=False)
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    assert_runs_as_the_plain_model(
        plain, lambda tensors: dict(zip(names, session.run(names, tensors), strict=True))
    )
