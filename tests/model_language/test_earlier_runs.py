"""Tests that language runs of earlier versions load, and convert and score as they did then.

``tests/support/earlier_language_runs.zip`` holds a tiny run of each model, written before models, modules and
files were renamed. Its ``example.json`` has sentences in ``pinyin`` with the ``hanzi`` and ``scores`` of that
version, or the ``perplexities`` of a model of syllables.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from model_language.ngram.syllables import load_syllable_ngram
from model_language.registry import MODELS, load_converter
from tests.support.earlier_runs import unpack_runs

RUNS = "earlier_language_runs.zip"
LATER = {"causal_cnn"}  # models that came afterwards
NEW_NAMES = {"context": "gated_cnn", "fused": "combined"}
CONVERTERS = ("transformer", "published_transformer", "cbhg", "ngram", "context", "fused")


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    return unpack_runs(RUNS, tmp_path_factory.mktemp("earlier"))


def example_of(run: Path) -> dict[str, Any]:
    return json.loads((run / "example.json").read_text(encoding="utf-8"))


def test_there_is_a_run_of_each_model(runs):
    assert {NEW_NAMES.get(path.name, path.name) for path in runs.iterdir()} == set(MODELS) - LATER


@pytest.mark.parametrize("name", CONVERTERS)
def test_an_earlier_run_converts_and_scores_as_before(runs, name):
    converter, example = load_converter(runs / name), example_of(runs / name)
    assert list(converter.convert(example["pinyin"])) == example["hanzi"]
    scores = [
        converter.scores([pinyin], [hanzi])[0]
        for pinyin, hanzi in zip(example["pinyin"], example["hanzi"], strict=True)
    ]
    assert scores == pytest.approx(example["scores"], abs=1e-4)


def test_an_earlier_model_of_syllables_gives_the_same_perplexities(runs):
    example = example_of(runs / "syllable_ngram")
    model = load_syllable_ngram(runs / "syllable_ngram")
    perplexities = [model.perplexity([pinyin]) for pinyin in example["pinyin"]]
    assert perplexities == pytest.approx(example["perplexities"], rel=1e-6)


@pytest.mark.parametrize("name", CONVERTERS)
def test_a_damaged_vocabulary_of_an_earlier_run_is_named(runs, tmp_path, name):
    run = shutil.copytree(runs / name, tmp_path / "run")
    hanzi = run / "vocabulary" / "hanzi.txt"
    first, second, *others = hanzi.read_text(encoding="utf-8").splitlines()
    hanzi.write_text("\n".join([second, first, *others]) + "\n", encoding="utf-8")
    with pytest.raises(Exception, match=r"hanzi\.txt"):
        load_converter(run)
