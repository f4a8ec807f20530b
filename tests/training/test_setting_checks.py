"""Tests of the check of setting names, which must know the names that the config classes have."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.scripts import ROOT
from training.setting_checks import check_settings, model_names, setting_types
from utils.config import dotted_names
from utils.errors import ConfigError


@pytest.mark.parametrize("task", ["speech", "language", "keyword"])
def test_the_names_are_those_of_the_config_classes(task):
    from training.run import RECIPES  # here: the other tests need no Keras

    schema, variants, _ = RECIPES[task]
    assert set(setting_types(task)) == set(dotted_names(schema, variants))
    assert set(model_names(task)) - {"initial"} == set(variants["model"]) - {"initial"}


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("model.name=compakt", "unknown model.name 'compakt'"),
        ("training.epochs=many", "'training.epochs' must be a whole number, not 'many'"),
        ("training.epochs=0", "training.epochs is 0"),
        ("data.train=a.tsv", "'data.train' must be a list, not 'a.tsv'"),
        ("optimiser.warmup_fraction=2", "optimiser.warmup_fraction is 2"),
        ("model.width=wide", "'model.width' must be a whole number, not 'wide'"),
    ],
)
def test_a_wrong_value_is_refused(override, message):
    with pytest.raises(ConfigError, match=re.escape(message)) as caught:
        check_settings("speech", Path("configs/demo/speech.yaml"), [override])
    assert override in str(caught.value) and caught.value.where


@pytest.mark.parametrize(
    ("script", "arguments", "hint"),
    [
        ("train", "speech --config configs/demo/speech.yaml model.name=compakt", "did you mean 'compact'?"),
        ("test", "keyword {run} data.foldr=x", "did you mean 'folder'?"),
    ],
)
def test_settings_are_checked_without_keras(tmp_path, script, arguments, hint):
    """In a process of its own: this one may have loaded it."""
    (tmp_path / "config.yaml").write_text("task: keyword\n")
    code = f"import sys, {script}\ntry: {script}.main(sys.argv[1:])\nfinally: print('keras' in sys.modules)"
    command = [sys.executable, "-c", code, *arguments.format(run=tmp_path).split()]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout == "False\n" and hint in done.stderr
