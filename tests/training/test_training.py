"""Tests of train.py speech and language from config to run folder, which is all that using the run needs."""

import csv
import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import keras
import numpy as np
import pytest
from tensorboard.compat.proto.graph_pb2 import GraphDef
from tensorboard.plugins.hparams import metadata

import transcribe
from data.manifest import Utterance, read_manifest, write_manifest
from model_language.registry import load_converter
from model_speech.acoustic_model import load_acoustic_model
from model_speech.vocabulary_transfer import transfer_run
from recognition import align
from tests.support.scripts import load_script
from tests.support.tensorboard_logs import events, summaries, tags_of
from tests.support.tiny_corpus import write_tiny_corpus
from training.run import train_from_config
from training.tasks.adaptation import with_initial_settings
from training.tasks.recipe import DATA_HASHES
from training.tasks.speech import VARIANTS, SpeechConfig
from utils.audio.samples import write_wav
from utils.config import load_config, to_plain
from utils.errors import ConfigError, CorpusError, RunError, TrainingError, UserError, VocabularyError
from utils.files import write_text
from utils.mandarin.output_units import HANZI, PARTS, TONELESS, units_of
from utils.run_folder.run import RunFolder, start_run
from utils.vocabulary import BLANK, SPACE, Vocabulary

SMALL = ("model.width=8", "model.blocks=1", "features.bins=16", "data.workers=1", "training.epochs=2")


@pytest.fixture
def config_file(tmp_path: Path) -> Path:
    (tmp_path / "tiny.yaml").write_text("model: {name: compact}\n", encoding="utf-8")
    return tmp_path / "tiny.yaml"


@pytest.fixture
def usual_precision() -> Iterator[None]:
    """Restore the global precision policy after a training."""
    yield
    keras.mixed_precision.set_global_policy("float32")


def _lists(manifest: Path) -> list[str]:
    cache = manifest.parent / "features"
    return [f"data.train=[{manifest}]", f"data.dev=[{manifest}]", f"data.cache={cache}"]


def _hyper_parameters(run: RunFolder) -> dict[str, object]:
    """The hyperparameters that TensorBoard's HParams page reads from the logs."""
    for value in summaries(run.logs / "validation"):
        if value.tag == metadata.SESSION_START_INFO_TAG:
            info = metadata.parse_session_start_info_plugin_data(value.metadata.plugin_data.content)
            return {k: getattr(v, v.WhichOneof("kind")) for k, v in info.hparams.items()}
    return {}


@pytest.mark.parametrize(("units", "most"), [(TONELESS, 500), (PARTS, 300), (HANZI, 10)])
def test_other_output_units_are_trained_and_recognised(
    tmp_path, config_file, usual_precision, language_run, units, most
):
    """Decoding is as free as with syllables: the second stage writes hanzi, or the first one has them.

    A further training has the same units without being told.
    """
    manifest = write_tiny_corpus(tmp_path / "corpus", utterances=8)
    run = RunFolder(tmp_path / "run")
    overrides = (*SMALL, *_lists(manifest), "training.epochs=1", f"vocabulary.units={units}")
    train_from_config("speech", config_file, overrides, run.path)
    vocabulary = Vocabulary.load(run.vocabulary("acoustic.txt"))
    assert len(vocabulary) < most and units_of(vocabulary.tokens) == units
    files = [str(utterance.audio) for utterance in read_manifest(manifest)]
    output = ["--output", str(tmp_path / "out"), "--format", "json"]
    arguments = ["--speech", str(run.path), "--language", str(language_run), *output]
    assert transcribe.main([*files, *arguments]) == 0
    test, lists = load_script("test.py").main, ["--manifest", str(manifest), "--output", str(tmp_path)]
    assert test(["speech", str(run.path), *lists, "--report", str(tmp_path), "--examples", "1"]) == 0
    results = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert "syllable_error_rate" in results and ("cer" in results) == (units == HANZI)
    metrics = json.loads(run.metrics.read_text(encoding="utf-8"))["best"]
    assert ("dev_character_error_rate" in metrics) == (units == HANZI)
    assert results["tone_error_rate"] is None or units != TONELESS
    with pytest.raises(ConfigError, match="need a model of tonal syllables"):
        transcribe.main([*files, *arguments, "--joint"])
    with pytest.raises(ConfigError, match="alignment needs a model of tonal syllables"):
        align.main([files[0], "--text", "你好", "--speech", str(run.path)])
    pipeline = ["pipeline", str(run.path), str(language_run), *lists]
    if units == HANZI:
        with pytest.raises(ConfigError, match="no second stage"):
            test(pipeline)
    else:
        assert test(pipeline) == 0
    further = RunFolder(tmp_path / "further")
    same = (*SMALL, *_lists(manifest), "training.epochs=1", f"initialise_from={run.path}")
    train_from_config("speech", config_file, same, further.path)
    assert Vocabulary.load(further.vocabulary("acoustic.txt")) == vocabulary
    assert further.config()["vocabulary"]["units"] == units


def test_a_text_with_letters_is_refused_as_hanzi(tmp_path, config_file):
    manifest = write_tiny_corpus(tmp_path / "corpus", utterances=8)
    texts = read_manifest(manifest)
    texts[3] = replace(texts[3], pinyin=("ti4", "xu4"), hanzi="T恤")
    write_manifest(manifest, texts)
    overrides = (*SMALL, *_lists(manifest), "vocabulary.units=hanzi")
    with pytest.raises(CorpusError, match="2 texts have other characters than hanzi, such as 'T恤'"):
        train_from_config("speech", config_file, overrides, tmp_path / "run")


def test_a_run_keeps_the_classes_that_it_begins_with(tmp_path, config_file, usual_precision):
    manifest = write_tiny_corpus(tmp_path / "corpus", utterances=8)
    seen = sorted({syllable for each in read_manifest(manifest) for syllable in each.pinyin})
    few = Vocabulary((*seen, SPACE, BLANK))
    few.save(tmp_path / "few.txt")
    first, second = RunFolder(tmp_path / "first"), RunFolder(tmp_path / "second")
    overrides = (*SMALL, *_lists(manifest), "training.epochs=1")
    train_from_config("speech", config_file, (*overrides, f"vocabulary.file={tmp_path}/few.txt"), first.path)
    train_from_config("speech", config_file, (*overrides, f"initialise_from={first.path}"), second.path)
    assert Vocabulary.load(second.vocabulary("acoustic.txt")) == few
    Vocabulary(("我", "你", SPACE, BLANK)).save(tmp_path / "hanzi.txt")
    wrong = (*overrides, f"vocabulary.file={tmp_path}/hanzi.txt", "vocabulary.units=tonal_syllables")
    with pytest.raises(ConfigError, match=r"a vocabulary of hanzi, and vocabulary\.units=tonal_syl"):
        train_from_config("speech", config_file, wrong, tmp_path / "third")
    Vocabulary((*seen, SPACE)).save(tmp_path / "unfinished.txt")
    wrong = (*overrides, f"vocabulary.file={tmp_path}/unfinished.txt")
    with pytest.raises(ConfigError, match=r"has no blank '_' at its end.*make a line '_' the last one"):
        train_from_config("speech", config_file, wrong, tmp_path / "third")
    with pytest.raises(
        VocabularyError, match="a vocabulary of hanzi, and the source run has tonal_syllables"
    ):
        transfer_run(first.path, tmp_path / "fourth", tmp_path / "hanzi.txt")


def test_a_speech_run_from_config_to_transcript_without_its_corpus(
    tmp_path, config_file, usual_precision, language_run, capsys, nightly
):
    """Mixed precision, batches in two parts; then the run is moved, the corpus deleted, and the run is used.

    With --nightly also XLA.
    """
    manifest = write_tiny_corpus(tmp_path / "corpus", utterances=8)
    overrides = (*SMALL, *_lists(manifest), "training.precision=mixed_bfloat16", f"training.xla={nightly}")
    overrides = (*overrides, "training.batch_parts=2", "training.log_weights=true")
    run = RunFolder(tmp_path / "runs" / "tiny")
    best = train_from_config("speech", config_file, overrides, run.path)

    log = run.log.read_text(encoding="utf-8")
    assert re.search(
        r"epoch 2/2  step \d+  train_loss \d+\.\d+  dev_loss .* dev_syllable_error_rate .* \d+\.\d s", log
    )
    rows = list(csv.DictReader(run.history.open(encoding="utf-8")))
    assert [float(row["seconds"]) > 0 and np.isfinite(float(row["train_loss"])) for row in rows] == [True] * 2
    assert float(rows[-1]["train_syllable_error_rate"]) >= 0
    assert re.search(r"T00_000\n +reference   shi4 shi4 ni3 ni3\n +hypothesis  ", log)
    written = tags_of(run.logs)
    assert written["validation"] >= {"loss", "syllable_error_rate", "examples"}
    assert written["train"] >= {"loss", "syllable_error_rate", "learning_rate", "gradient_norm"}
    graphs = [GraphDef.FromString(each.graph_def) for each in events(run.logs / "train") if each.graph_def]
    assert {node.name: list(node.input) for node in graphs[0].node}["logits"]
    shown = _hyper_parameters(run)
    assert (shown["model.width"], shown["training.precision"], shown["training.xla"]) == (
        8,
        "mixed_bfloat16",
        nightly,
    )
    assert (shown["model.front_filters"], shown["data.train"]) == ("16,32", str(manifest))
    assert {path.name for path in run.path.iterdir()} >= {"model_summary.txt", "metrics.json", "config.yaml"}

    before = run.last_weights.read_bytes()
    assert train_from_config("speech", config_file, overrides, run.path) == best
    assert run.last_weights.read_bytes() == before

    moved, other = tmp_path / "elsewhere", write_tiny_corpus(tmp_path / "other", utterances=2, seed=5)
    run.path.rename(moved)
    shutil.rmtree(manifest.parent)
    files = [str(utterance.audio) for utterance in read_manifest(other)]
    arguments = ["--speech", str(moved), "--language", str(language_run), "--output", str(tmp_path / "out")]
    assert transcribe.main([*files, *arguments]) == 0
    assert len(list((tmp_path / "out").glob("*.txt"))) == 2
    assert load_script("test.py").main(["speech", str(moved), "--manifest", str(other)]) == 0
    assert "not known" in capsys.readouterr().out


@pytest.fixture
def hasty(tmp_path: Path) -> Path:
    """A list of ten recordings: the first has more syllables than output frames, the last a rare syllable."""
    audio = [tmp_path / "wav" / f"{i}.wav" for i in range(10)]
    for path in audio:
        write_wav(path, 0.1 * np.random.default_rng(0).normal(size=16_000))
    texts = [("ma1 ni3 " * 10, "妈你" * 10), *[("ma1 ni3", "妈你")] * 8, ("mar1", "妈")]
    utterances = [
        Utterance(path.stem, path, 1.0, "s", tuple(pinyin.split()), hanzi)
        for path, (pinyin, hanzi) in zip(audio, texts, strict=True)
    ]
    write_manifest(tmp_path / "hasty.tsv", utterances)
    return tmp_path / "hasty.tsv"


def test_targets_longer_than_the_output_are_reported_by_utterance(tmp_path, config_file, hasty):
    with pytest.raises(TrainingError, match=r"1 of 10 utterances have more labels.*skipped\.tsv"):
        train_from_config("speech", config_file, [*SMALL, *_lists(hasty)], tmp_path / "run")
    assert (
        (tmp_path / "run" / "skipped.tsv").read_text().startswith("0\t20 output frames needed, 13 available")
    )


def test_a_few_long_targets_are_left_out_and_a_limit_keeps_the_vocabulary(
    tmp_path, config_file, hasty, monkeypatch
):
    monkeypatch.setattr("training.utterance_checks.MAX_SKIPPED_FRACTION", 0.5)
    run = RunFolder(tmp_path / "run")
    overrides = [*SMALL, *_lists(hasty), "training.epochs=1", "data.limit=3"]
    train_from_config("speech", config_file, overrides, run.path)
    assert "1 utterances are too short for their labels and skipped" in run.log.read_text(encoding="utf-8")
    assert re.search(
        r"1 dev utterances are too short .*the error rate in full\): 0\n", run.log.read_text("utf-8")
    )
    assert "2 training and 10 dev utterances" in run.log.read_text(encoding="utf-8")
    assert "mar1" in load_acoustic_model(run.path).vocabulary


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ((), r"data\.train and data\.dev each need a manifest"),
        (("data.train=[a.tsv]", "data.dev=[a.tsv]", "data.weights=[1,2]"), "2 entries for 1 manifests"),
        (
            ("data.train=[a.tsv]", "data.weights=[0]"),
            r"data\.weights is \(0\.0,\).*above 0",
        ),
        (("initialise_except=[logits]",), "initialise_except without initialise_from"),
        (("data.limit=-1",), r"data\.limit is -1, .*at least 0"),
    ],
)
def test_a_recipe_that_cannot_be_trained_is_refused_with_the_reason(
    tmp_path, config_file, overrides, message
):
    with pytest.raises(ConfigError, match=message):
        train_from_config("speech", config_file, overrides, tmp_path / "run")


LANGUAGE_MODELS = {
    "transformer": ("model.width=16", "model.blocks=1", "model.heads=2", "training.epochs=2"),
    "ngram": ("model.order=2",),
}


@pytest.mark.parametrize("name", LANGUAGE_MODELS)
def test_a_language_run_from_plain_text_to_hanzi(tmp_path, name):
    text = tmp_path / "text.txt"
    text.write_text("我是你\n你好\n不是我\nABC\n" * 4, encoding="utf-8")
    config = tmp_path / "language.yaml"
    config.write_text(f"model: {{name: {name}}}\n", encoding="utf-8")
    lists = (f"data.train=[{text}]", f"data.dev=[{text}]", f"data.cache={tmp_path / 'cache'}")
    run = RunFolder(tmp_path / "run")
    best = train_from_config("language", config, [*LANGUAGE_MODELS[name], *lists], run.path)
    assert 0 <= best["dev_character_error_rate"] <= 1
    log = run.log.read_text(encoding="utf-8")
    assert "4 lines of" in log and "12 of 12 dev sentences are training sentences too" in log
    run.path.rename(tmp_path / "moved")
    for path in (text, config):
        path.unlink()
    (hanzi,) = load_converter(tmp_path / "moved").convert([["ni3", "hao3"]])
    assert len(hanzi) == 2


def test_the_command_ends_with_the_metrics_of_the_best_weights(tmp_path, capsys):
    text, config, run = tmp_path / "text.txt", tmp_path / "language.yaml", tmp_path / "run"
    text.write_text("我是你\n你好\n不是我\n" * 4, encoding="utf-8")
    config.write_text("model: {name: ngram}\n", encoding="utf-8")
    lists = (f"data.train=[{text}]", f"data.dev=[{text}]", f"data.cache={tmp_path / 'cache'}")
    arguments = ["language", "--config", str(config), "--run", str(run), *LANGUAGE_MODELS["ngram"], *lists]
    assert load_script("train.py").main(arguments) == 0
    printed = capsys.readouterr().out.partition("metrics of the best weights:\n")[2].splitlines()
    assert any(line.startswith("dev_character_error_rate\t") for line in printed)
    assert printed[-1] == f"run folder\t{run}"


def test_another_place_does_not_keep_a_run_from_being_continued(tmp_path, config_file):
    plain = to_plain(with_initial_settings(load_config(SpeechConfig, config_file, SMALL, VARIANTS)))
    plain["data"] |= {"cache": "elsewhere", "workers": 7}
    run = start_run(tmp_path / "run", plain)
    write_text(run.metrics, '{"best": {"step": 5, "dev_loss": 1.0}}')
    assert train_from_config("speech", config_file, SMALL, run.path)["step"] == 5
    for other in ("training.evaluate_first=true", "data.batch_frames=100"):
        with pytest.raises(RunError, match=other.partition("=")[0]):
            train_from_config("speech", config_file, [*SMALL, other], run.path)


def test_a_language_recipe_without_text_is_refused(tmp_path):
    config = tmp_path / "language.yaml"
    config.write_text("model: {name: ngram}\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"data\.train or data\.dev is empty"):
        train_from_config("language", config, [], tmp_path / "run")


def test_corpora_are_mixed_by_weight_and_the_run_records_it(tmp_path, config_file):
    first, second = (
        write_tiny_corpus(tmp_path / name, utterances=8, seed=seed) for seed, name in enumerate("ab")
    )
    second.write_text(second.read_text(encoding="utf-8").replace("T0", "B0"), encoding="utf-8")
    for audio in (second.parent / "wav").glob("T0*"):
        audio.rename(audio.with_name(audio.name.replace("T0", "B0")))
    overrides = [*SMALL, f"data.train=[{first},{second}]", "data.weights=[2,0.25]", f"data.dev=[{first}]"]
    overrides += ["training.epochs=1"]
    run = RunFolder(tmp_path / "run")
    train_from_config("speech", config_file, [*overrides, f"data.cache={tmp_path / 'cache'}"], run.path)
    assert f"{second}: 8 utterances x 0.25: 2 an epoch" in run.log.read_text(encoding="utf-8")
    corpora = run.config()["environment"]["corpora"]
    assert [(c["manifest"], c["weight"], c["utterances"], c["first_epoch"]) for c in corpora] == [
        (str(first), 2.0, 8, 16),
        (str(second), 0.25, 8, 2),
    ]
    assert set(run.config()["environment"][DATA_HASHES]) == {"data.train", "data.dev"}


def test_an_early_failure_leaves_no_run_folder(tmp_path, config_file):
    """Otherwise a corrected path would be refused as "another config"."""
    corpus, run = write_tiny_corpus(tmp_path / "corpus", utterances=4), RunFolder(tmp_path / "run")
    wrong = [*SMALL, *_lists(tmp_path / "none.tsv"), "training.epochs=1"]
    with pytest.raises(UserError, match=r"none\.tsv"):
        train_from_config("speech", config_file, wrong, run.path)
    assert not run.path.exists()
    right = [*SMALL, *_lists(corpus), "training.epochs=1"]
    train_from_config("speech", config_file, right, run.path)
    before = sorted(run.path.rglob("*"))
    run.metrics.unlink()
    corpus.unlink()
    with pytest.raises(UserError, match=corpus.name):
        train_from_config("speech", config_file, right, run.path)
    assert sorted([*run.path.rglob("*"), run.metrics]) == before


def test_a_run_of_another_text_is_not_taken_for_finished(tmp_path):
    """After a change of the text, such as the removal of test sentences, the old model must not be used."""
    text, config = tmp_path / "text.txt", tmp_path / "ngram.yaml"
    config.write_text("model: {name: ngram, order: 2}\n", encoding="utf-8")
    overrides = [f"data.train=[{text}]", f"data.dev=[{text}]", f"data.cache={tmp_path / 'cache'}"]

    def run() -> None:
        train_from_config("language", config, overrides, tmp_path / "run")

    text.write_text("我们今天去公园\n他说明天再来\n", encoding="utf-8")
    run()
    run()  # finished, and unchanged
    text.write_text("我们今天去公园\n", encoding="utf-8")
    with pytest.raises(RunError, match=r"trained on another content of .*text\.txt"):
        run()
    text.unlink()
    run()  # a finished run doesn't need its text
