"""Tests that damage to a file of a run (flipped bit, truncation, swapped lines) is named with the file."""

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from model_keyword.loading import load_keyword_model
from model_language.pinyin_to_hanzi import PinyinToHanzi
from model_language.registry import load_converter
from model_speech.acoustic_model import load_acoustic_model
from preflight.recipes import examine_run
from tests.support.damage import DAMAGE, damage_file
from tests.support.tiny_words import write_keyword_run, write_tiny_words
from utils.errors import RunError
from utils.run_folder.run import PRETRAINED, RunFolder

SEEDS = 2


@pytest.fixture(scope="module")
def keyword_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished keyword run (random weights)."""
    folder = tmp_path_factory.mktemp("keyword")
    return write_keyword_run(folder / "run", write_tiny_words(folder / "words", takes=1))


@pytest.mark.parametrize(
    ("fixture", "load"),
    [
        ("speech_run", load_acoustic_model),
        ("language_run", load_converter),
        ("keyword_run", load_keyword_model),
    ],
)
def test_damage_to_a_run_is_named(request, tmp_path, fixture: str, load: Callable[[Path], object]):
    """Each file that has a checksum, and the list of checksums."""
    run = Path(shutil.copytree(request.getfixturevalue(fixture), tmp_path / "run"))
    names = [line.split("  ")[1] for line in (run / "checksums").read_text(encoding="utf-8").splitlines()]
    load(run)
    for path in (run / "checksums", *(run / name for name in names)):
        whole = path.read_bytes()
        for seed in range(SEEDS):
            for kind in DAMAGE:
                damage_file(path, kind, np.random.default_rng(seed))
                damage = f"{kind} {seed} of {path.name}"
                with pytest.raises(RunError) as caught:
                    load(run)
                    pytest.fail(f"not noticed: {damage}")
                assert path.name in str(caught.value), damage
                found = " ".join(
                    f"{finding.where} {finding.item} {finding.detail}"
                    for finding in examine_run(RunFolder(run))
                )
                assert path.name in found, f"doctor.py doesn't name it: {damage}"
        path.write_bytes(whole)
    load(run)


def test_damage_to_the_shipped_converter_is_named(tmp_path):
    run = shutil.copytree(PRETRAINED, tmp_path / "run")
    vocabularies = (f"vocabulary/{name}" for name in ("pinyin.txt", "hanzi.txt", "lexicon.tsv"))
    names = ("config.yaml", "network.onnx", "ngrams.npz", "emissions.npz", "words.npz", *vocabularies)
    for number, name in enumerate(names):
        whole = (run / name).read_bytes()
        damage_file(run / name, DAMAGE[number % len(DAMAGE)], np.random.default_rng(number))
        with pytest.raises(RunError, match=Path(name).name):
            PinyinToHanzi(run)
        (run / name).write_bytes(whole)
    assert PinyinToHanzi(run)("jin1 tian1 tian1 qi4 hen3 hao3") == "今天天气很好"
