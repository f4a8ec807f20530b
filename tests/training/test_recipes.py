"""Tests of the checks of recipes: those of the project fit, wrong names and values are refused."""

import pytest

from preflight.recipes import read_recipe
from tests.support.scripts import ROOT
from training.run import RECIPES
from utils.config import flatten, load_config, to_plain
from utils.errors import ConfigError

MODELS = [(task, name) for task, (_, variants, _) in RECIPES.items() for name in variants["model"]]


def build(task, name, *overrides):
    schema, variants, _ = RECIPES[task]
    return load_config(schema, None, [f"task={task}", f"model.name={name}", *overrides], variants)


@pytest.mark.parametrize(("task", "name"), MODELS)
def test_numbers_that_no_setting_can_have_are_refused(task, name):
    first = {of: (of, model) for of, model in reversed(MODELS)}.values()
    values = flatten(to_plain(build(task, name)))
    numbers = {
        key: isinstance(value, list)
        for key, value in values.items()
        if isinstance(value, int | float | list) and not isinstance(value, bool)
    }
    assert "seed" in numbers and "optimiser.learning_rate" in numbers
    if (task, name) not in first:  # the other sections are the same
        numbers = {key: is_list for key, is_list in numbers.items() if key.startswith("model.")}
    for key, is_list in numbers.items():
        for value in (".inf", ".nan"):
            with pytest.raises(ConfigError, match=key.rpartition(".")[2]):
                build(task, name, f"{key}=[{value}]" if is_list else f"{key}={value}")


@pytest.mark.parametrize(
    ("task", "override", "message"),
    [
        ("speech", "training.epochs=1e30", r"'training\.epochs' is 1e\+30, .*at most 4,294,967,295"),
        ("speech", "training.epochs=1e9", r"training\.epochs is 1000000000, .*1 to 100,000"),
        ("speech", "seed=-1", "seed is -1, .*at least 0"),
        ("speech", "optimiser.warmup_fraction=1.5", r"optimiser\.warmup_fraction is 1\.5, .*0 to 1"),
        ("speech", "features.sample_rate=4e9", "at most 1,000,000 Hz and 1,000 ms"),
        ("speech", "features.hop_ms=1e19", "at most 1,000,000 Hz and 1,000 ms"),
        (
            "keyword",
            "features.sample_rate=4e9",
            "sample_rate is 4000000000, .*1 to 1,000,000",
        ),
    ],
)
def test_numbers_beyond_their_limit_are_refused(task, override, message):
    with pytest.raises(ConfigError, match=message):
        build(task, next(name for of, name in MODELS if of == task), override)


@pytest.mark.parametrize("recipe", sorted(ROOT.glob("configs/*/*.yaml")), ids=lambda path: path.stem)
def test_every_recipe_is_accepted(recipe, monkeypatch):
    # The settings of an initial run, which is not here, are not read.
    monkeypatch.setattr("preflight.recipes.with_initial_settings", lambda config: config)
    folder = recipe.parent.name
    task = recipe.stem.partition("_")[0] if folder == "demo" else folder
    assert read_recipe(recipe, ["seed=3"]).task == task


@pytest.mark.parametrize(
    ("override", "message", "hint"),
    [
        ("training.epoch=3", "unknown key", "did you mean 'training.epochs'?"),
        ("epochs=3", "unknown key", "did you mean 'training.epochs'?"),
        ("modle.width=3", "unknown key", "did you mean 'model'?"),
        ("data.trian=[a.tsv]", "unknown key", "did you mean 'data.train'?"),
        ("model.name=compakt", "unknown model.name 'compakt'", "did you mean 'compact'?"),
        ("training.epochs=many", "must be a whole number, not 'many'", None),
        ("data.train=a.tsv", "must be a list, not 'a.tsv'", "write [a.tsv]"),
    ],
)
def test_what_is_misspelt_is_refused_with_a_hint(override, message, hint):
    with pytest.raises(ConfigError, match=message) as caught:
        read_recipe(ROOT / "configs" / "demo" / "speech.yaml", [override])
    assert caught.value.hint == hint and override in str(caught.value)
