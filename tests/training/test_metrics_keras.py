"""Tests of training/{losses,metrics}.py: equal to the plain functions; saved compiled models."""

import keras
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from keras import ops

from model_speech.ctc.decoder import greedy_decode
from model_speech.ctc.loss import ctc_loss, output_lengths
from model_speech.models.compact import CompactConfig, build_compact
from training.losses import CtcLoss, pack_ctc_targets, pack_pairs, unpack_ctc_targets
from training.metrics import CharacterErrorRate, SyllableErrorRate, edit_distances
from utils.metrics import count_errors, total

CLASSES, BLANK, BINS = 7, 6, 16
TOKENS = st.lists(st.integers(0, 3), max_size=7)


def ragged(rows: list[list[int]], width: int, padding: int) -> np.ndarray:
    return np.array([row + [padding] * (width - len(row)) for row in rows], np.int32)


@settings(max_examples=20)
@given(st.lists(st.tuples(TOKENS, TOKENS), min_size=3, max_size=3), st.randoms(use_true_random=False))
def test_distances_are_those_of_levenshtein(pairs, random):
    references, hypotheses = zip(*pairs, strict=True)
    scattered = []  # ignored positions are anywhere between the tokens
    for hypothesis in hypotheses:
        places = sorted(random.sample(range(9), len(hypothesis)))
        row = np.full(9, -1, np.int32)
        row[places] = hypothesis
        scattered.append(row)
    lengths = np.array([len(reference) for reference in references], np.int32)
    found = edit_distances(ragged(list(references), 7, 2), lengths, np.stack(scattered))
    expected = [count_errors(*pair).errors for pair in pairs]
    np.testing.assert_array_equal(ops.convert_to_numpy(found), expected)


def speech_batch(seed: int, utterances: int = 6) -> dict[str, np.ndarray]:
    """Random features and labels of many lengths; the last two utterances have no label."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(8, 41, utterances).astype(np.int32)
    label_lengths = np.minimum(rng.integers(1, 6, utterances), lengths // 8).astype(np.int32)
    label_lengths[-2:] = 0
    return {
        "features": rng.normal(size=(utterances, 40, BINS)).astype(np.float32),
        "lengths": lengths,
        "labels": rng.integers(0, BLANK, (utterances, 5)).astype(np.int32),
        "label_lengths": label_lengths,
        "frames": output_lengths(lengths, 8),
    }


def test_packed_targets_survive_unpacking():
    batch = speech_batch(0)
    packed = pack_ctc_targets(batch["labels"], batch["label_lengths"], batch["frames"])
    labels, label_lengths, frames = map(ops.convert_to_numpy, unpack_ctc_targets(packed))
    np.testing.assert_array_equal(label_lengths, batch["label_lengths"])
    np.testing.assert_array_equal(frames, batch["frames"])
    inside = np.arange(5) < label_lengths[:, None]
    np.testing.assert_array_equal(labels[inside], batch["labels"][inside])


def test_ctc_loss_and_syllable_error_rate_are_those_of_the_plain_functions():
    metric, counted = SyllableErrorRate(BLANK), []
    for seed in (1, 2):
        batch = speech_batch(seed)
        logits = np.random.default_rng(seed).normal(size=(6, 5, CLASSES)).astype(np.float32)
        packed = pack_ctc_targets(batch["labels"], batch["label_lengths"], batch["frames"])
        metric.update_state(packed, logits)
        readings = greedy_decode(logits, batch["frames"], BLANK)
        rows = zip(batch["labels"], batch["label_lengths"], readings, strict=True)
        counted += [
            count_errors(row[:length].tolist(), list(reading.tokens)) for row, length, reading in rows
        ]
        each = ctc_loss(batch["labels"], logits, batch["label_lengths"], batch["frames"], BLANK)
        np.testing.assert_array_equal(CtcLoss(BLANK).call(packed, logits), each)
        assert float(CtcLoss(BLANK)(packed, logits)) == pytest.approx(float(np.mean(each)))
    assert total(counted).errors > 10
    assert float(metric.result()) == pytest.approx(total(counted).rate)
    metric.reset_state()
    assert float(metric.result()) == 0


def test_character_error_rate_by_hand():
    candidates = np.array([[1, 0], [1, 0], [2, 3], [4, 0]])
    syllables, targets = np.array([[2, 3, 2], [2, 0, 0]]), np.array([[2, 4, 2], [3, 0, 0]])
    logits = np.zeros((2, 3, 5), np.float32)
    logits[:, :, 3] = 1  # syllable 2 is read as hanzi 3: wrong, wrong, right; syllable 3 can only be hanzi 4
    metric = CharacterErrorRate(candidates)
    metric.update_state(pack_pairs(syllables, targets), logits)
    assert float(metric.result()) == pytest.approx(2 / 4)
    metric.reset_state()
    metric.update_state(pack_pairs(syllables, targets), logits, sample_weight=np.array([2.0, 1.0]))
    assert float(metric.result()) == pytest.approx(4 / 7)


def test_a_compiled_acoustic_model_survives_its_file(tmp_path):
    batch = speech_batch(3)
    inputs = {"features": batch["features"], "lengths": batch["lengths"]}
    packed = pack_ctc_targets(batch["labels"], batch["label_lengths"], batch["frames"])
    model = build_compact(CompactConfig(width=8, blocks=0, dropout=0.0), BINS, CLASSES)
    model.compile("adam", loss=CtcLoss(BLANK), metrics=[SyllableErrorRate(BLANK)], jit_compile=False)
    before, after = (model.train_on_batch(inputs, packed, return_dict=True) for _ in range(2))
    assert set(before) == {"loss", "syllable_error_rate"} and after["loss"] < before["loss"]
    assert_same_after_loading(model, inputs, packed, tmp_path)


def assert_same_after_loading(model: keras.Model, inputs, targets, folder) -> None:
    before = model.test_on_batch(inputs, targets, return_dict=True)
    keras.models.save_model(model, folder / "model.keras")
    loaded = keras.models.load_model(folder / "model.keras")
    after = loaded.test_on_batch(inputs, targets, return_dict=True)
    assert len(before) == 2 and before == pytest.approx(after)
