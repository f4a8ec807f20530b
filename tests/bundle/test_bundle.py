"""Tests of bundles without a framework: offered variants, checks of artefacts, clips in chunks, folders."""

import re
from dataclasses import replace

import numpy as np
import pytest

from bundle.check.measuring import verdict
from bundle.check.scoring import accuracy, chunks_of, decoded
from bundle.runtimes.artefacts import Artefact, ArtefactInfo, open_artefact
from bundle.variants import Format, Precision, Variant, refusal
from streaming.conversion.modes import Mode
from utils.errors import BundleError

LITERT = Variant(Format.LITERT, Mode.STREAM_EXTERNAL_STATE_INFERENCE, Precision.INT8)


@pytest.mark.parametrize("format_", [Format.ONNX, Format.FROZEN_GRAPH])
@pytest.mark.parametrize("precision", list(Precision))
def test_state_inside_is_refused_where_it_would_be_lost(format_, precision):
    assert refusal(Variant(format_, Mode.STREAM_INTERNAL_STATE_INFERENCE, precision)).instead.endswith(
        ("external", "internal")
    )


@pytest.mark.parametrize(
    ("frames", "size", "due", "chunks"),
    [(6, 1, 6, 6), (6, 2, 6, 3), (6, 4, 6, 2), (5, 2, 6, 3), (5, 2, 8, 4)],
)
def test_chunks_hold_the_clip_and_its_last_frame_where_more_is_needed(frames, size, due, chunks):
    clip = np.arange(2 * frames, dtype=np.float32).reshape(frames, 2)
    made = chunks_of(clip, size, due)
    assert made.shape == (chunks, 1, size, 2)
    flat = made.reshape(-1, 2)
    assert np.array_equal(flat[:frames], clip)
    assert np.array_equal(flat[frames:], np.repeat(clip[-1:], len(flat) - frames, axis=0))


def test_errors_are_shared_out_to_labels_or_tokens():
    logits, labels = np.eye(4)[[0, 1, 2, 3]], np.array([0, 1, 2, 0])
    assert accuracy(labels, decoded(logits, -1)) == 3 / 4
    rows = np.eye(4)[[[3, 0, 0, 3, 0, 1], [3, 3, 2, 2, 2, 3]]]  # blank 3: 0 0 1 · 2
    assert decoded(rows, 3) == [[0, 0, 1], [2]] and decoded(rows, 0) == [[3, 3, 1], [3, 2, 3]]
    assert accuracy(np.array([[0, 1, -1], [2, -1, -1]]), decoded(rows, 3)) == 1 - 1 / 3


FOUND = {
    "difference": {"reset": 5e-5},
    "largest": 0.5,
    "agreement": 1.0,
    "accuracy": {"reset1": 0.9},
    "labels": 500,
}


@pytest.mark.parametrize(
    ("precision", "changes", "message"),
    [
        (Precision.FLOAT, {}, ""),
        (Precision.FLOAT, {"difference": {"reset": 2e-4}}, r"differs .* by 0.0002 \(reset\), allowed 0.0001"),
        (Precision.FLOAT, {"difference": {"reset": 2e-4}, "largest": 4.0}, ""),
        (Precision.FLOAT, {"difference": {"reset": float("nan")}}, "differs"),
        (Precision.FLOAT16, {"difference": {"reset": 2e-4}}, ""),
        (Precision.FLOAT16, {"difference": {"running": 2e-2}}, r"\(running\)"),
        (Precision.INT8, {"difference": {"reset": 1.0}}, ""),
        (Precision.INT8, {"accuracy": {"reset1": 0.888}}, "1.2 points below"),
        (Precision.INT8, {"accuracy": {"reset1": 0.86}, "labels": 25}, ""),  # one label of 25
        (Precision.INT8, {"accuracy": {"reset1": 0.95}}, ""),
    ],
)
def test_artefacts_are_judged_by_logits_or_by_accuracy(precision, changes, message):
    problems = verdict(replace(LITERT, precision=precision), {**FOUND, **changes}, {"reset1": 0.9})
    assert len(problems) == bool(message)
    assert re.search(message, "".join(problems))


class Backend:
    """The backend of a stream that takes two frames of three values."""

    info = ArtefactInfo(Mode.STREAM_EXTERNAL_STATE_INFERENCE, (1, 2, 3), {}, 1)

    def call(self, inputs, states):
        return inputs["input"].sum(axis=(1, 2))[:, None], {}

    def initial_states(self):
        return {}

    def reset(self):
        pass


def test_a_chunk_of_another_size_and_the_wrong_use_are_refused(tmp_path):
    artefact = Artefact(Backend(), tmp_path / "model")
    assert artefact.step(np.ones((2, 3))).tolist() == [[6.0]]
    assert artefact.step(np.ones((1, 2, 3))).tolist() == [[6.0]]
    with pytest.raises(BundleError, match=r"takes \(2, 3\) per call, not \(1, 3\)"):
        artefact.step(np.ones((1, 3)))
    with pytest.raises(BundleError, match=r"for streams.*\.step"):
        artefact.run(np.ones((1, 2, 3)))


@pytest.mark.parametrize("name", ["model.tflite", "model.onnx", "model.txt", "missing.tflite", "folder"])
def test_files_that_are_no_artefacts_are_named(tmp_path, name):
    if name == "folder":
        (tmp_path / name).mkdir()
    elif "missing" not in name:
        (tmp_path / name).write_bytes(b"nothing of the kind")
    with pytest.raises(BundleError, match=name):
        open_artefact(tmp_path / name)
