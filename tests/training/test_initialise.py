"""Tests of training/initialise.py: weights by layer and token name; frozen layers stay equal bit for bit."""

import logging
import shutil
from pathlib import Path

import keras
import numpy as np
import pytest
from keras import layers

from model_language.networks.cbhg import CbhgConfig, build_cbhg
from model_language.networks.transformer import TransformerConfig, build_transformer
from model_language.registry import load_network
from model_language.vocabulary.symbols import build_symbols
from model_speech.acoustic_model import load_acoustic_model
from model_speech.layers.normalisation import MaskedBatchNormalization
from model_speech.models.gru_ctc import GruCtcConfig, build_gru_ctc
from tests.support.tiny_corpus import write_tiny_corpus
from training.initialise import TokenLayer, freeze_layers, named_layers, take_weights
from training.run import train_from_config
from utils.config import save_yaml, to_plain
from utils.errors import ConfigError, RunError
from utils.run_folder.run import RunFolder
from utils.vocabulary import BLANK, SPACE, Vocabulary

TOKENS = Vocabulary(("a1", "b1", "c1", "d1", SPACE, BLANK))


@pytest.fixture
def info(caplog: pytest.LogCaptureFixture) -> None:
    """Capture the training's log."""
    caplog.set_level(logging.INFO, logger="train")


def build(width: int = 8, blocks: int = 2, classes: int = len(TOKENS)) -> keras.Model:
    """A small model with random weights, statistics of normalisation too: (B, T, 5) → (B, T, classes)."""
    frames = keras.Input((None, 5))
    valid = keras.ops.any(frames != 0, axis=-1)  # (B, T)
    x = layers.Conv1D(4, 3, padding="same", name="conv")(frames)
    x = layers.Dense(width, name="front")(MaskedBatchNormalization(name="conv_norm")(x, valid))
    for block in range(1, blocks + 1):
        x = layers.Dense(width, name=f"block_{block}")(x)
        x = layers.ReLU()(MaskedBatchNormalization(name=f"block_{block}_norm")(x, valid))
    model = keras.Model(frames, layers.Dense(classes, name="logits")(x))
    rng = np.random.default_rng(classes)
    model.set_weights([rng.uniform(0.5, 1.5, weight.shape) for weight in model.get_weights()])
    return model


def weights(model: keras.Model) -> dict[str, list[np.ndarray]]:
    return {name: layer.get_weights() for name, layer in named_layers(model).items()}


def assert_equal(weights: list[np.ndarray], other: list[np.ndarray]) -> None:
    for left, right in zip(weights, other, strict=True):
        np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize(
    "again",
    [
        lambda: build_transformer(TransformerConfig(width=8, blocks=2, heads=2), 5, 6),
        lambda: build_cbhg(CbhgConfig(embedding=4, width=4, bank=2), 5, 6),
        lambda: build_gru_ctc(GruCtcConfig(width=4), 5, 6),
    ],
    ids=["transformer", "cbhg", "gru_ctc"],
)
def test_layers_have_the_names_of_their_summary_in_every_model_of_a_process(again):
    """Keras would number layers without a name through all models."""
    names = [list(named_layers(again())) for _ in range(2)]
    assert names[0] == names[1] and names[0][-1] == "logits"


def test_tokens_that_are_new_keep_their_initial_values(caplog, info):
    more = Vocabulary(("b1", "new1", "a1", BLANK))
    source, model = build(), build(classes=len(more))
    before = weights(model)["logits"]
    take_weights(model, source, "runs/a", {"logits": TokenLayer(TOKENS, more)})
    kernel, bias = weights(model)["logits"]
    np.testing.assert_array_equal(kernel[:, 1], before[0][:, 1])
    assert bias[1] == before[1][1]
    np.testing.assert_array_equal(kernel[:, [0, 2, 3]], weights(source)["logits"][0][:, [1, 0, 5]])
    assert (
        "another vocabulary: 3 tokens kept, 3 dropped (c1, d1, ' '), 1 new, untrained (new1)" in caplog.text
    )


def test_layers_that_do_not_fit_are_named_with_the_way_out(caplog, info):
    source, model = build(), build(width=12)
    message = r"6 of 8 layers don't fit: layer 'front' has the shapes \[\(4, 8\), \(8,\)\] there"
    with pytest.raises(ConfigError, match=message) as caught:
        take_weights(model, source, "runs/a", {"logits": TokenLayer(TOKENS, TOKENS)})
    assert caught.value.where == "initialise_from=runs/a"
    excepted = caught.value.hint.partition("initialise_except=[")[2].rstrip("]").split(",")
    before = weights(model)
    take_weights(model, source, "runs/a", {}, excepted)
    for name, arrays in weights(model).items():
        assert_equal(arrays, (before if name in excepted else weights(source))[name])
    assert "2 layers taken: conv, conv_norm\n" in caplog.text
    assert f"at their initial values: {', '.join(excepted)}" in caplog.text


def test_new_layers_must_be_allowed_and_missing_layers_are_dropped(caplog, info):
    deep, shallow = build(blocks=3), build()
    with pytest.raises(ConfigError, match="layer 'block_3' isn't there"):
        take_weights(deep, shallow, "runs/a", {})
    take_weights(deep, shallow, "runs/a", {}, ["block_3*"])
    take_weights(shallow, deep, "runs/b", {})
    assert "layers of runs/b that this model doesn't have: block_3, block_3_norm" in caplog.text


def test_freezing_by_pattern(caplog, info):
    model = build()
    freeze_layers(model, ["conv", "block_[01]_norm", "front"])
    frozen = [name for name, layer in named_layers(model).items() if not layer.trainable]
    assert frozen == ["conv", "front", "block_1_norm"]
    assert f"frozen: 3 of 8 layers, 136 of {model.count_params()} parameters: conv, front" in caplog.text
    with pytest.raises(ConfigError, match=r"freeze: no layer is called 'frnt', did you mean 'front'\?"):
        freeze_layers(model, ["frnt"])
    known = r"set freeze=\[…\] for this model, freeze=\[\] trains all layers; there are: conv, conv_norm, "
    with pytest.raises(ConfigError, match=rf"freeze: no layer is called 'zz_\*', {known}"):
        freeze_layers(model, ["zz_*"])
    with pytest.raises(ConfigError, match="freeze leaves nothing to train"):
        freeze_layers(model, ["*"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A corpus with an additional syllable, a text, and a config of each task."""
    folder = tmp_path_factory.mktemp("initialise")
    manifest, text = write_tiny_corpus(folder / "corpus", utterances=8), folder / "text.txt"
    manifest.write_text(manifest.read_text(encoding="utf-8").replace("ma1", "mar1"), encoding="utf-8")
    text.write_text("我是你\n你好\n不是〇\n" * 4, encoding="utf-8")
    for name, model, lists, more in (
        ("speech", "name: compact, width: 8, blocks: 1", manifest, "workers: 1, batch_utterances: 4"),
        ("language", "name: transformer, width: 16, blocks: 1, heads: 2", text, "batch_sentences: 6"),
    ):
        recipe = f"""
model: {{{model}}}
data: {{train: [{lists}], dev: [{lists}], cache: {folder / "cache"}, {more}}}
training: {{epochs: 1, checkpoint_steps: 1}}
"""
        (folder / f"{name}.yaml").write_text(recipe, encoding="utf-8")
    return folder


def test_a_speech_run_from_another_with_a_frozen_backbone(folder, speech_run, monkeypatch):
    """A corpus with a new syllable: the output layer is extended by name; frozen layers do not change."""
    source_run = RunFolder(shutil.copytree(speech_run, folder / "source"))
    run, config = RunFolder(folder / "run"), folder / "speech.yaml"
    backbone = [name for name in named_layers(load_acoustic_model(speech_run).model) if name != "logits"]
    overrides = [
        f"initialise_from={source_run.path}",
        f"freeze=[{','.join(backbone)}]",
        "features.bins=16",
    ]
    saved = interrupt_after_first_checkpoint(monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        train_from_config("speech", config, overrides, run.path)
    shutil.rmtree(source_run.path)  # a resumed training does not need it
    train_from_config("speech", config, overrides, run.path)
    assert len(saved) == 1 and run.metrics.is_file()

    source, new = load_acoustic_model(speech_run), load_acoustic_model(run.path)
    assert len(new.vocabulary) == len(source.vocabulary) + 1
    theirs, ours = weights(source.model), weights(new.model)
    assert [name for name in ours if not all(map(np.array_equal, ours[name], theirs[name]))] == ["logits"]
    before = theirs["logits"][0][:, source.vocabulary.index("ni3")]
    after = ours["logits"][0][:, new.vocabulary.index("ni3")]
    assert 0 < abs(after - before).max() < 0.01  # two steps from the other run's token
    assert run.config()["initialise_from"] == str(source_run.path) and run.config()["freeze"] == backbone
    log = run.log.read_text(encoding="utf-8")
    assert log.count("initialised from") == 1 and "1 new, untrained (mar1)" in log
    assert log.count(f"frozen: {len(ours) - 1} of {len(ours)} layers") == 2


def interrupt_after_first_checkpoint(monkeypatch) -> list[int]:
    """Ctrl-C comes after the first checkpoint; later trainings are left alone."""
    import training.loop

    saved, original = [], training.loop.save_checkpoint

    def save(*arguments):
        original(*arguments)
        if not saved:
            saved.append(1)
            raise KeyboardInterrupt

    monkeypatch.setattr(training.loop, "save_checkpoint", save)
    return saved


def test_a_language_run_from_another(folder):
    """The text has a hanzi that is new to the vocabulary; with a learning rate of 0 no weight changes."""
    source, config = RunFolder(folder / "language_one"), TransformerConfig(width=16, blocks=1, heads=2)
    symbols = build_symbols()
    model = build_transformer(config, len(symbols.pinyin), len(symbols.hanzi))
    symbols.save(source.path)
    model.save_weights(source.best_weights)
    save_yaml(source.config_file, {"task": "language", "model": to_plain(config)})
    overrides = [f"initialise_from={source.path}", "freeze=[embedding]", "optimiser.learning_rate=0"]
    train_from_config("language", folder / "language.yaml", overrides, folder / "language_two")
    new, after = load_network(folder / "language_two")
    assert len(after.hanzi) == len(symbols.hanzi) + 1
    places = [after.hanzi.index(token) for token in symbols.hanzi.tokens]
    for name, arrays in weights(new).items():
        kept = [array[..., places] for array in arrays] if name == "logits" else arrays
        assert_equal(kept, weights(model)[name])


@pytest.mark.parametrize(
    ("model", "overrides", "error", "message"),
    [
        ("speech", ["initialise_from=nowhere"], RunError, "there is no such folder, nowhere"),
        ("speech", ["initialise_from={language}"], RunError, "a run of task 'language', not 'speech'"),
        ("transformer", ["initialise_from={language}"], RunError, "'ngram' is estimated by counting"),
        ("ngram", ["freeze=[logits]"], ConfigError, "name=ngram is estimated by counting"),
    ],
)
def test_unsuitable_weights_are_refused_with_the_reason(
    folder, language_run, model, overrides, error, message, tmp_path
):
    config = folder / "speech.yaml" if model == "speech" else folder / "language.yaml"
    if model == "ngram":
        config = tmp_path / "ngram.yaml"
        config.write_text("model: {name: ngram}\n", encoding="utf-8")
    task = "speech" if model == "speech" else "language"
    with pytest.raises(error, match=message):
        overrides = [override.format(language=language_run) for override in overrides]
        train_from_config(task, config, overrides, tmp_path / "run")
