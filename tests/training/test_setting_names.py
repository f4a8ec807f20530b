"""Tests of the check of setting names, which must know the names that the config classes have."""

from pathlib import Path

import pytest

from tests.support.scripts import ROOT
from training.setting_names import check_setting_names, setting_names
from utils.config import dotted_names
from utils.errors import ConfigError


@pytest.mark.parametrize("task", ["speech", "language", "keyword"])
def test_the_names_are_those_of_the_config_classes(task):
    from training.run import RECIPES  # here: the other tests need no Keras

    schema, variants, _ = RECIPES[task]
    assert set(setting_names(task)) == set(dotted_names(schema, variants))


@pytest.mark.parametrize("recipe", sorted(ROOT.glob("configs/*/*.yaml")), ids=lambda path: path.stem)
def test_every_recipe_is_accepted(recipe):
    folder = recipe.parent.name
    check_setting_names(recipe.stem.partition("_")[0] if folder == "demo" else folder, recipe, ["seed=3"])
    check_setting_names(None, recipe, [])


@pytest.mark.parametrize(
    ("override", "hint"),
    [
        ("training.epoch=3", "did you mean 'training.epochs'?"),
        ("epochs=3", "did you mean 'training.epochs'?"),
        ("modle.width=3", "did you mean 'model.width'?"),
        ("data.trian=[a.tsv]", "did you mean 'data.train'?"),
    ],
)
def test_a_misspelt_name_is_refused_with_the_nearest_one(override, hint):
    with pytest.raises(ConfigError, match="unknown key") as caught:
        check_setting_names("speech", Path("configs/demo/speech.yaml"), [override])
    assert caught.value.hint == hint
