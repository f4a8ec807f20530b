"""Tests of config files and overrides: checked by name and type, with the nearest valid key suggested."""

import dataclasses
from pathlib import Path
from typing import Any, Literal

import pytest

from utils.config import build_config, flatten, load_config
from utils.errors import ConfigError


@dataclasses.dataclass(frozen=True)
class Small:
    name: str = "small"
    width: int = 3
    kernels: tuple[int, ...] = (1, 2)


@dataclasses.dataclass(frozen=True)
class Deep:
    name: str = "deep"
    blocks: int = 10
    width: int = 64


@dataclasses.dataclass(frozen=True)
class Optimiser:
    rate: float = 1e-3
    clip: float | None = None
    kind: Literal["adam", "sgd"] = "adam"


@dataclasses.dataclass(frozen=True)
class Recipe:
    seed: int = 0
    mixed: bool = False
    title: str = "a recipe"
    folder: Path | None = None
    corpora: tuple[str, ...] = ()
    crop: tuple[float, float] = (0.0, 1.0)
    weights: dict[str, float] = dataclasses.field(default_factory=dict)
    optimiser: Optimiser = dataclasses.field(default_factory=lambda: Optimiser(rate=0.5))
    warmup: Optimiser | None = None
    model: Any = dataclasses.field(default_factory=Small)


@dataclasses.dataclass(frozen=True)
class Required:
    count: int
    model: Any = None

    def __post_init__(self) -> None:
        if self.count < 0:
            raise ValueError(f"count {self.count} is negative")


VARIANTS = {"model": {"small": Small, "deep": Deep}}


def load(*overrides: str, path: Path | None = None) -> Recipe:
    return load_config(Recipe, path, overrides, VARIANTS)


def test_overrides_reach_every_kind_of_field():
    config = load(
        "seed=4", "mixed=true", "corpora=[a,b]", "crop=[0.5,2]", "optimiser.rate=1e-4", "optimiser.clip=5",
        "optimiser.kind=sgd", "folder=runs/x", "weights.noise=2", "warmup.rate=3", "model.kernels=[7]",
    )  # fmt: skip
    assert config == Recipe(
        seed=4,
        mixed=True,
        folder=Path("runs/x"),
        corpora=("a", "b"),
        crop=(0.5, 2.0),
        weights={"noise": 2.0},
        optimiser=Optimiser(rate=1e-4, clip=5.0, kind="sgd"),
        warmup=Optimiser(rate=3.0),
        model=Small(kernels=(7,)),
    )
    assert isinstance(config.optimiser.clip, float)


def test_overrides_win_over_the_file_and_leave_the_rest_of_its_section(tmp_path):
    path = tmp_path / "recipe.yaml"
    path.write_text("seed: 1\noptimiser: {rate: 1e-2, clip: 3}\nmodel: {name: deep, blocks: 4}\n", "utf-8")
    config = load("optimiser.clip=null", "model.width=8", "seed=2", path=path)
    assert config.seed == 2
    assert config.optimiser == Optimiser(rate=0.01, clip=None)
    assert config.model == Deep(blocks=4, width=8)


def test_a_partial_section_keeps_the_defaults_of_its_owner():
    assert load("optimiser.clip=1").optimiser == Optimiser(rate=0.5, clip=1.0)


def test_an_empty_section_means_its_defaults(tmp_path):
    path = tmp_path / "recipe.yaml"
    path.write_text("optimiser:\nmodel:\nwarmup:\n", "utf-8")
    assert load(path=path) == Recipe()


@pytest.mark.parametrize(
    ("override", "parts"),
    [
        ("sed=1", ["unknown key 'sed'", "did you mean 'seed'?"]),
        ("model.widht=4", ["unknown key 'model.widht'", "did you mean 'model.width'?"]),
        ("optimiser.rat=4", ["unknown key 'optimiser.rat'", "did you mean 'optimiser.rate'?"]),
        ("rate=4", ["unknown key 'rate'", "did you mean 'optimiser.rate'?"]),
        ("blocks=4", ["unknown key 'blocks'", "did you mean 'model.blocks'?"]),
        ("model.blocks=4", ["unknown key 'model.blocks'", "model.name=small has: name, "]),
        ("model.name=smal", ["unknown model.name 'smal'", "did you mean 'small'?"]),
        ("model=deep", ["'model' is a section, not 'deep'", "write model.name=deep"]),
        ("optimiser.rate=fast", ["'optimiser.rate' must be a number, not 'fast'"]),
        ("optimiser.kind=adan", ["unknown optimiser.kind 'adan'", "did you mean 'adam'?"]),
        ("model.width=a", ["'model.width' must be a whole number, not 'a'"]),
        ("seed=1.5", ["'seed' must be a whole number, not 1.5"]),
        ("seed=1e30", ["'seed' is 1e+30", "at most 4,294,967,295"]),
        ("seed=.nan", ["'seed' must be a whole number, not nan"]),
        ("optimiser.rate=.inf", ["'optimiser.rate' is inf", "give a finite number"]),
        ("optimiser.rate=.nan", ["'optimiser.rate' must be a number, not nan"]),
        ("optimiser.clip=.inf", ["'optimiser.clip' is inf"]),
        ("crop=[0,.inf]", ["'crop[1]' is inf"]),
        ("weights.noise=.inf", ["'weights.noise' is inf"]),
        ("seed=true", ["'seed' must be a whole number, not True"]),
        ("seed=null", ["'seed' must be a whole number, not None"]),
        ("mixed=1", ["'mixed' must be true or false, not 1"]),
        ("title=2024", ["'title' must be text", "not 2024"]),
        ("folder=3", ["'folder' must be a path, not 3"]),
        ("corpora=thchs30", ["'corpora' must be a list, not 'thchs30'", "write [thchs30]"]),
        ("crop=[1]", ["'crop' must have 2 entries, not 1"]),
        ("model.kernels=[3,x]", ["'model.kernels[1]' must be a whole number, not 'x'"]),
        ("weights=3", ["'weights' must be", "not 3"]),
        ("seed", ["'seed' is not an override", "key=value"]),
        ("=3", ["'=3' is not an override", "key=value"]),
        ("corpora=[a", ["can't be read"]),
        ("folder=~/x", ["'folder' is '~/x'", "write the whole path"]),
        ("title=${seed}", ["'title' is '${seed}'", "write the whole path"]),
        ("corpora=[a,~/b]", ["'corpora' is '~/b'", "write the whole path"]),
        ("title='???'", ["'title' is '???'", "write the whole path"]),
        ("seed=!!int x", ["can't be read"]),
    ],
)
def test_a_wrong_override_is_named_with_the_remedy(override, parts):
    with pytest.raises(ConfigError) as caught:
        load(override)
    assert all(part in str(caught.value) for part in [*parts, override]), str(caught.value)


def test_a_file_with_a_wrong_key_is_named(tmp_path):
    path = tmp_path / "recipe.yaml"
    path.write_text("model: {name: deep, kernels: [3]}\n", "utf-8")
    with pytest.raises(ConfigError, match=r"unknown key 'model.kernels', .*recipe\.yaml"):
        load(path=path)


def test_a_missing_file_shows_its_siblings(tmp_path):
    (tmp_path / "compact.yaml").write_text("seed: 1\n", "utf-8")
    with pytest.raises(ConfigError, match=r"no such config file.*compact\.yaml"):
        load(path=tmp_path / "compcat.yaml")
    with pytest.raises(ConfigError, match="recipes are in configs/"):
        load(path=tmp_path / "nowhere" / "x.yaml")


@pytest.mark.parametrize(
    "content", [b"a: [1", b"- a list\n", b"seed: 1\nseed: 2\n", b"\xff\xfe\x00", b"just text"]
)
def test_a_damaged_file_is_named(tmp_path, content):
    path = tmp_path / "damaged.yaml"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=r"damaged\.yaml"):
        load(path=path)


def test_a_data_class_may_refuse_its_values():
    with pytest.raises(ConfigError, match="count -1 is negative, runs/x"):
        build_config(Required, {"count": -1}, where="runs/x")


@dataclasses.dataclass(frozen=True)
class Either:
    size: float | Literal["all"] | None = None


@pytest.mark.parametrize("size", [0.5, "all", None])
def test_a_field_may_have_one_of_several_types(size):
    assert build_config(Either, {"size": size}).size == size


def test_flatten_writes_dotted_keys():
    assert flatten({"a": {"b": {"c": 1}, "d": [2]}, "e": None}) == {"a.b.c": 1, "a.d": [2], "e": None}
