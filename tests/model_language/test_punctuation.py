"""Tests of punctuation: reading text, the network, training, packing, and marks in segments."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bundle.pack import pack
from data.text.punctuated import read_passages
from model_language.networks.punctuation import build_punctuation
from model_language.networks.punctuation_config import PunctuationConfig
from model_language.punctuation import Punctuator, load_punctuation, punctuated
from model_language.registry import load_converter, load_network
from training.run import train_from_config
from utils.errors import CorpusError, RunError
from utils.hypotheses.recognition import Alternative, Ending, Recognition
from utils.hypotheses.transcript_formats import FORMATS
from utils.mandarin.punctuation import MARKS, SEGMENT_END, pauses_between, split_marks

PASSAGES = ["今天，天气好。", "你去吗？", "苹果、梨、桃。", "快走！"] * 4
TINY = ("model.width=16", "model.dilations=[1,1]", "model.history=[2]", "model.steps=60", "training.epochs=2")


@pytest.fixture(scope="module")
def text(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("text") / "passages.txt"
    path.write_text("\n".join(PASSAGES), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def run(text) -> Path:
    recipe = text.with_name("recipe.yaml")
    recipe.write_text(
        f"data: {{train: [{text}], dev: [{text}], batch_syllables: 256, batch_sentences: 16}}\n"
        "model: {name: punctuation}\noptimiser: {learning_rate: 0.01}\n",
        encoding="utf-8",
    )
    folder = text.with_name("run")
    train_from_config("language", recipe, TINY, folder)
    return folder


@pytest.fixture(scope="module")
def packed(run) -> Path:
    folder = run.with_name("packed")
    pack(run, folder)
    return folder


def segment(hanzi: str, start: float = 0.0, step: float = 0.2) -> Recognition:
    times = tuple((start + step * i, start + step * (i + 1)) for i in range(len(hanzi)))
    best = Alternative(tuple("de5" for _ in hanzi), hanzi, 0.0)
    return Recognition(start, start + step * len(hanzi), times, (best,))


def test_marks_are_split_from_the_text():
    assert split_marks("好，是吗？！") == ("好是吗", [1, 0, 3])
    assert split_marks("，一；二：三…") == ("一二三", [1, 1, 2])


def test_text_without_punctuation_is_refused(tmp_path):
    path = tmp_path / "plain.txt"
    path.write_text("今天天气好\n", encoding="utf-8")
    with pytest.raises(CorpusError, match="no punctuation") as caught:
        read_passages([str(path)])
    assert str(path) in str(caught.value.where)


def test_pauses_are_classes_of_the_time_between_syllables():
    middles = np.cumsum([0.0, 0.2, 0.3, 0.45, 0.6, 0.9])
    assert pauses_between(middles).tolist() == [1, 2, 3, 4, 5, SEGMENT_END]
    assert pauses_between(np.array([1.0])).tolist() == [SEGMENT_END]


def test_a_mark_depends_on_few_hanzi_behind_it_and_not_on_padding():
    config = PunctuationConfig(width=8, dilations=(1, 1, 2), history=(2, 4))
    model = build_punctuation(config, 30)
    random = np.random.default_rng(2)
    hanzi, pauses = random.integers(2, 30, (1, 40)), random.integers(1, 7, (1, 40))
    whole = np.asarray(model({"hanzi": hanzi, "pauses": pauses}))
    for changed in (30, 39):
        other = hanzi.copy()
        other[0, changed] = 2 + (other[0, changed] - 1) % 28
        differs = np.abs(np.asarray(model({"hanzi": other, "pauses": pauses})) - whole).max(axis=-1)[0] > 1e-6
        assert np.flatnonzero(differs).min() == changed - 4  # 1 + 1 + 2
    padded = np.pad(hanzi, [(0, 0), (0, 9)])
    found = np.asarray(model({"hanzi": padded, "pauses": np.pad(pauses, [(0, 0), (0, 9)])}))
    np.testing.assert_allclose(found[:, :40], whole, atol=1e-5)


def test_training_learns_the_marks(run):
    metrics = json.loads((run / "metrics.json").read_text(encoding="utf-8"))["best"]
    assert metrics["dev_mark_error"] < 0.1
    assert metrics["dev_mark_error_without_pauses"] < 0.1


def test_a_packed_network_has_the_marks_of_its_run(run, packed):
    model, symbols = load_network(run)
    found = load_punctuation(packed)
    hanzi = "今天天气好你去吗快走"
    ids = symbols.hanzi.encode_or_unknown(hanzi)[None]
    logits = np.asarray(model({"hanzi": ids, "pauses": np.zeros_like(ids)}))[0]
    assert found.marks(hanzi) == [MARKS[index] for index in logits.argmax(axis=1)]
    assert "".join(map("".join, zip("你去吗", found.marks("你去吗"), strict=True))) == "你去吗？"
    assert found.marks("") == []
    assert (
        sum(path.stat().st_size for path in packed.rglob("*"))
        < run.joinpath("best.weights.h5").stat().st_size
    )


def test_a_run_that_is_not_packed_says_so(run):
    with pytest.raises(RunError, match=r"network\.onnx"):
        load_punctuation(run)
    with pytest.raises(RunError, match="a punctuation network writes no hanzi"):
        load_converter(run)


def test_segments_get_marks(packed):
    network = load_punctuation(packed)
    events = [segment("今天天气好"), segment("你去吗", 2.0), Ending(4.0)]
    first, second, ending = punctuated(events, network)
    assert (first.text, second.text) == ("今天，天气好。", "你去吗？")
    assert first.hanzi == "今天天气好"
    assert [word.text for word in first.words] == list("今天天气好")
    assert ending == Ending(4.0)
    assert list(punctuated(events, None)) == events


def test_only_final_text_gets_marks(packed):
    written = Punctuator(load_punctuation(packed))
    for event in (
        replace(segment("你去吗"), is_final=False),
        Recognition(0.0, 1.0),
        replace(segment("你去吗"), n_best=(Alternative(("ni3", "qu4", "ma5"), "", 0.0),)),
    ):
        assert written(event) is event


def test_marks_do_not_depend_on_later_segments(packed):
    network = load_punctuation(packed)
    events = [segment("苹果梨桃"), segment("快走", 2.0), segment("今天天气好", 4.0)]
    texts = [event.text for event in punctuated(events, network)]
    for count in (1, 2):
        assert [event.text for event in punctuated(events[:count], network)] == texts[:count]


def test_formats_write_marks_only_in_texts(packed):
    network = load_punctuation(packed)
    events = [*punctuated([segment("今天天气好")], network), Ending(1.0)]
    written = {name: "".join(form.write("a", events)) for name, form in FORMATS.items()}
    for name in ("text", "srt", "vtt", "json"):
        assert "今天，天气好。" in written[name]
    for name in ("ctm", "textgrid"):
        assert "，" not in written[name]
    assert json.loads(written["json"])["hanzi"] == "今天天气好"
    assert json.loads(written["json"])["text"] == "今天，天气好。"
