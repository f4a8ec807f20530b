"""Tests of inspect_model.py attention: weights against a computation in NumPy, page."""

import base64
import json
import re
from pathlib import Path

import keras
import numpy as np
import pytest
from scipy.special import erf, softmax

import inspect_model
from analysis.weights.attention import AttentionMaps, write_attention_page
from model_language.networks.transformer import TransformerConfig, attend, build_transformer
from model_language.vocabulary.lexicon import Lexicon
from model_language.vocabulary.symbols import Symbols
from utils.config import save_yaml, to_plain
from utils.errors import ConfigError, CorpusError, RunError
from utils.run_folder.run import PRETRAINED, PRETRAINED_LANGUAGE_MODEL, RunFolder
from utils.vocabulary import language_vocabulary

TINY = TransformerConfig(width=8, blocks=2, heads=2, reach=2, dropout=0.5)  # dropout must not have an effect
IDS = np.array([2, 5, 3, 3, 6], np.int32)


@pytest.fixture(scope="module")
def symbols() -> Symbols:
    lexicon = Lexicon({"yin1": "音因", "yue4": "月乐", "kuai4": "快块", "le4": "乐勒", "de5": "的"})
    return Symbols(language_vocabulary(lexicon.syllables), language_vocabulary(lexicon.hanzi), lexicon)


@pytest.fixture(scope="module")
def model(symbols) -> keras.Model:
    keras.utils.set_random_seed(4)
    model = build_transformer(TINY, len(symbols.pinyin), len(symbols.hanzi))
    model.set_weights([0.5 * np.random.default_rng(5).normal(size=w.shape) for w in model.get_weights()])
    return model


@pytest.fixture(scope="module")
def run(tmp_path_factory, model, symbols) -> Path:
    folder = RunFolder(tmp_path_factory.mktemp("runs") / "transformer")
    save_yaml(folder.config_file, {"task": "language", "model": to_plain(TINY)})
    symbols.save(folder.path)
    model.save_weights(folder.best_weights)
    return folder.path


def by_hand(model: keras.Model, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The whole network in NumPy from its weights: attention (blocks, heads, L, L), logits (L, hanzi)."""
    weights = iter(np.asarray(weight, np.float64) for weight in model.get_weights())
    dense = lambda x: x @ next(weights) + next(weights)  # noqa: E731

    def norm(x):
        gamma, beta = next(weights), next(weights)
        return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-3) * gamma + beta

    def split(x):  # (L, width) → (heads, L, width / heads)
        return x.reshape(len(x), TINY.heads, -1).swapaxes(0, 1)

    x, attention = next(weights)[ids], []
    places = np.arange(len(ids))
    distance = np.clip(places[None] - places[:, None], -TINY.reach, TINY.reach)  # key - query
    for _ in range(TINY.blocks):
        normed = norm(x)
        bias = next(weights)  # (2 · reach + 1, heads)
        query, key = split(dense(normed)), split(dense(normed))
        scores = query @ key.swapaxes(1, 2) / np.sqrt(TINY.width / TINY.heads)
        attention.append(softmax(scores + bias[distance + TINY.reach].transpose(2, 0, 1), axis=-1))
        mixed = attention[-1] @ split(dense(normed))
        x = x + dense(mixed.swapaxes(0, 1).reshape(len(ids), -1))
        inner = dense(norm(x))
        x = x + dense(inner * 0.5 * (1 + erf(inner / np.sqrt(2))))
    return np.array(attention), dense(norm(x))


def test_the_weights_are_those_that_numpy_computes(model):
    found, (weights, logits) = attend(model, IDS), by_hand(model, IDS)
    assert found.weights.shape == (2, 2, 5, 5) and found.weights.dtype == np.float32
    np.testing.assert_allclose(found.weights, weights, atol=1e-5)
    np.testing.assert_allclose(found.logits, logits, atol=1e-4)
    np.testing.assert_allclose(found.weights.sum(axis=-1), 1, atol=1e-5)
    assert found.weights.std() > 0.05  # they differ, so an average or another layer would be noticed


def test_a_model_without_attention_is_rejected(symbols):
    plain = build_transformer(TransformerConfig(width=8, blocks=0, heads=2), 5, 6)
    with pytest.raises(RunError, match="has no attention"):
        attend(plain, IDS[:2])


def maps(length: int = 5, title: str = "a run") -> AttentionMaps:
    weights = np.random.default_rng(6).dirichlet(np.full(length, 0.3), size=(2, 3, length)).astype(np.float32)
    return AttentionMaps(title, [f"yin{n % 4 + 1}" for n in range(length)], "音" * length, weights)


def page_data(path: Path) -> dict:
    return json.loads(re.search(r'id="data">(.*?)</script>', path.read_text(encoding="utf-8"), re.DOTALL)[1])


def test_the_page_holds_the_weights_and_makes_no_requests(tmp_path):
    shown = maps()
    write_attention_page(shown, tmp_path / "page.html")
    data, text = page_data(tmp_path / "page.html"), (tmp_path / "page.html").read_text(encoding="utf-8")
    weights = np.frombuffer(base64.b64decode(data["weights"]), "<u2").reshape(2, 3, 5, 5) / 65535
    np.testing.assert_allclose(weights, shown.weights, atol=1e-5)
    assert (data["syllables"][1], data["hanzi"]) == ("yin2", ["音"] * 5)
    assert not re.search(r"https?://|src=|@import|url\(", text)


def test_texts_in_the_page_are_escaped(tmp_path):
    evil = "</script><script>alert(1)</script>"
    shown = maps(title=evil)
    shown = AttentionMaps(evil, [evil, *shown.syllables[1:]], "</><b", shown.weights)
    write_attention_page(shown, tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert text.count("</script>") == 2 and "<script>alert" not in text
    assert page_data(tmp_path / "page.html")["syllables"][0] == evil


def test_the_command_writes_the_page_of_a_run(run, model, symbols, tmp_path, capsys):
    page = tmp_path / "out" / "attention.html"
    sentence = "Yīn1 yue4 kuai4 le4"
    with pytest.raises(CorpusError, match="not a Mandarin syllable"):
        inspect_model.main(["attention", str(run), sentence, "--output", str(page)])
    sentence = "yīn yue4 kuai4 le4"
    inspect_model.main(["attention", str(run), sentence, "--output", str(page)])
    printed, data = capsys.readouterr().out, page_data(page)
    assert data["syllables"] == ["yin1", "yue4", "kuai4", "le4"] and "".join(data["hanzi"]) in printed
    weights = np.frombuffer(base64.b64decode(data["weights"]), "<u2").reshape(2, 2, 4, 4) / 65535
    np.testing.assert_allclose(weights, attend(model, symbols.encode(data["syllables"])).weights, atol=1e-4)
    assert str(page) in printed


def test_hanzi_may_be_given_instead(run, tmp_path):
    inspect_model.main(["attention", str(run), "音乐", "--output", str(tmp_path / "page.html")])
    assert page_data(tmp_path / "page.html")["syllables"] == ["yin1", "yue4"]


def test_mistakes_are_reported(run, language_run, tmp_path):
    with pytest.raises(ConfigError, match=r"cannot be drawn as '\.docx'"):
        inspect_model.main(["attention", str(run), "yin1", "--output", str(tmp_path / "page.docx")])
    with pytest.raises(CorpusError, match="no syllable"):
        inspect_model.main(["attention", str(run), "  ", "--output", str(tmp_path / "page.html")])
    with pytest.raises(RunError, match="a model 'ngram' has no attention"):
        inspect_model.main(["attention", str(language_run), "yin1", "--output", str(tmp_path / "page.html")])


def test_a_sentence_is_not_longer_than_a_window_of_the_converters(model, run, tmp_path):
    assert attend(model, np.full(512, 2, np.int32)).weights.shape == (2, 2, 512, 512)
    output = tmp_path / "page.html"
    with pytest.raises(CorpusError, match="the sentence has 513 syllables, the limit is 512"):
        inspect_model.main(["attention", str(run), "yin1 " * 513, "--output", str(output)])
    assert not output.exists()


@pytest.mark.parametrize(
    ("run", "name"), [(PRETRAINED, "combined"), (PRETRAINED_LANGUAGE_MODEL, "causal_cnn")]
)
def test_the_models_that_come_with_the_project_have_no_attention(run, name, tmp_path):
    with pytest.raises(RunError, match=f"a model '{name}' has no attention") as caught:
        inspect_model.main(["attention", str(run), "ni3 hao3", "--output", str(tmp_path / "a.html")])
    assert "transformer" in caught.value.hint
