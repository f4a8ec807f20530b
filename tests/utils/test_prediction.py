"""Tests that a model and a function of arrays are compiled once for batches of all shapes."""

import keras
import numpy as np

from utils.backend.prediction import predict, prepare_prediction

SHAPES = ((1, 5), (2, 5), (3, 9), (1, 1))


def test_a_model_is_compiled_once_and_predicts_batches_of_all_shapes():
    inputs = keras.Input((None, 3), name="features")
    model = keras.Model({"features": inputs}, keras.layers.Conv1D(2, 3, padding="same")(inputs))
    prepare_prediction(model)
    for shape in SHAPES:
        batch = {"features": np.random.default_rng(0).normal(size=(*shape, 3)).astype(np.float32)}
        found = predict(model, batch)
        np.testing.assert_allclose(found, model(batch), atol=1e-6)
    assert model.predict_function.experimental_get_tracing_count() == 1
