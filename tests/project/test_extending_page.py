"""Tests that the diffs of docs/extending.md apply to the tree and that their additions work."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile

from data.corpora.tools.splits import split_of_speaker

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
DIFFS = re.findall(r"^```diff\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
PACKAGES = ("analysis", "data", "model_keyword", "model_speech", "streaming", "utils")
USE = """
import numpy as np
from analysis.errors.kinds import HANZI_KINDS
from model_keyword.registry import MODELS as KEYWORD_MODELS, build_keyword_model
from model_speech.registry import MODELS as SPEECH_MODELS
from streaming.conversion.plan import check_streamable
from utils.features.keyword import KeywordFeatureConfig

entry = SPEECH_MODELS["tdnn"]
model = entry.build(entry.config(width=8), 16, 5)
features = np.random.default_rng(0).normal(size=(2, 40, 16)).astype(np.float32)
lengths = np.array([40, 24], np.int32)
batch = np.asarray(model({"features": features, "lengths": lengths}))
alone = np.asarray(model({"features": features[1:, :24], "lengths": lengths[1:]}))
assert batch.shape == (2, 5, 5) and np.abs(batch[1, :3] - alone[0]).max() < 1e-5
network = build_keyword_model(KEYWORD_MODELS["mean_pool"].config(), KeywordFeatureConfig(), 16_000, 12)
assert network.output_shape == (None, 12) and not check_streamable(network)
assert "other initial" in [kind.name for kind in HANZI_KINDS]
"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the packages with the page's diffs applied."""
    copy = tmp_path_factory.mktemp("tree")
    for package in PACKAGES:
        shutil.copytree(ROOT / package, copy / package, ignore=shutil.ignore_patterns("__pycache__"))
    for diff in DIFFS:
        command = ["git", "apply", "-"]
        done = subprocess.run(command, cwd=copy, input=diff, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    return copy


def test_the_page_has_the_four_additions():
    assert len(DIFFS) == 4 and all("+++ b/" in diff for diff in DIFFS)


def test_models_and_kind_are_known(tree: Path):
    done = subprocess.run([sys.executable, "-c", USE], cwd=tree, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


def test_the_corpus_is_prepared(tree: Path, tmp_path: Path):
    samples = 0.1 * np.random.default_rng(0).standard_normal(16_000).astype(np.float32)
    names = [f"S{number}" for number in range(100)]
    speakers = {split_of_speaker("speaker_folders", name): name for name in names}  # one for each split
    for speaker in speakers.values():
        folder = tmp_path / "original" / speaker
        folder.mkdir(parents=True)
        soundfile.write(folder / "a.wav", samples, 16_000)
        (folder / "a.txt").write_text("你好中国", encoding="utf-8")
    command = [sys.executable, "-m", "data.corpora.speaker_folders", "prepare", str(tmp_path / "original")]
    command += ["--output", str(tmp_path / "lists")]
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    for split, speaker in speakers.items():
        _, line = (tmp_path / "lists" / f"{split}.tsv").read_text(encoding="utf-8").splitlines()
        assert line.startswith(f"{speaker}_a\t") and "ni3 hao3 zhong1 guo2\t你好中国" in line
