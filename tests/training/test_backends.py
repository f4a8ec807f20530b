"""Tests that one recipe gives the same losses and outputs on TensorFlow, JAX and PyTorch, also resumed.

JAX and PyTorch have separate interpreters without TensorFlow. All resume the first checkpoint that TensorFlow
wrote, and so have the same weights. Trainings are nightly: they compile for half a minute.
"""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from tests.support.backend_jobs import JOBS, acoustic_logits
from tests.support.logged_losses import logged_losses
from tests.support.tiny_corpus import SYLLABLES, write_tiny_corpus
from utils.backend.prediction import pad_to_few_shapes
from utils.run_folder.run import RunFolder

ROOT = Path(__file__).parents[2]
INSTALL = "pip install -r requirements/backends.txt"
# One test waits for all trainings of a backend: half a minute of a processor, and of a busy one minutes.
pytestmark = pytest.mark.timeout(900)
STEPS = 30
COMMON = ("model.blocks=1", "model.dropout=0", "training.epochs=15", "optimiser.learning_rate=0.003")
RECIPES = {
    "speech": (
        *COMMON,
        "model.name=compact",
        "model.width=8",
        "model.front_filters=[4]",
        "features.bins=16",
        "data.workers=1",
        "data.batch_utterances=9",
        "training.checkpoint_steps=1",
    ),
    "language": (
        *COMMON,
        "model.name=transformer",
        "model.width=16",
        "model.heads=2",
        "data.batch_sentences=9",
        "training.checkpoint_steps=1",
    ),
}
# A resumed run could forget dropout's generators, the optimiser's moments, the loss's scale.
TESTS_OF_THE_LOOP = (
    "test_a_resumed_run_sees_each_utterance_once_and_ends_the_same",
    "test_half_precision_scales_its_loss_and_resumes",
    "test_a_training_that_diverges_in_its_last_step_has_failed",
    "test_averaged_weights_are_evaluated_and_saved_and_training_continues_with_its_own",
)
# Commands that need TensorFlow refuse with a message.
REFUSED = {
    "jax": ("training.profile=1-2", "training.profile works on TensorFlow only, not on 'jax'"),
    "torch": ("training.xla=true", "training.xla=true needs another Keras backend than 'torch'"),
}
# Chosen to compile quickly rather than to run quickly.
ENVIRONMENT = {
    "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "OMP_NUM_THREADS": "1",
}


@dataclass(frozen=True)
class Trials:
    """The runs of all backends in one folder: ``start`` and ``tensorflow``, ``jax``, ``torch``."""

    folder: Path
    sources: dict[str, Path]  # training data of each task

    def train(self, task: str, run: Path, *overrides: str) -> list[str]:
        """The arguments of ``train.py``."""
        source = self.sources[task]
        lists = (f"data.train=[{source}]", f"data.dev=[{source}]", f"data.cache={self.folder / 'cache'}")
        config = str(self.folder / f"{task}.yaml")
        return [task, "--config", config, "--run", str(run), *RECIPES[task], *lists, *overrides]

    def first_training(self, task: str) -> dict:
        """TensorFlow's training, which copies its folder at the first checkpoint."""
        run, copy = self.folder / "tensorflow" / task, self.folder / "start" / task
        arguments = self.train(task, run)
        return {
            "do": "copied_at_first_checkpoint",
            "arguments": arguments,
            "run": str(run),
            "copy": str(copy),
        }

    def further_training(self, task: str, backend: str) -> dict:
        """Resume the copy."""
        run = self.folder / backend / task
        shutil.copytree(self.folder / "start" / task, run)
        return {"do": "command", "script": "train.py", "arguments": self.train(task, run)}

    def use(self, backend: str) -> list[dict]:
        """Test, transcribe with and inspect TensorFlow's runs; compute the backend's logits."""
        folder = self.folder / backend
        speech, language = (str(self.folder / "tensorflow" / task) for task in RECIPES)
        audio = map(str, sorted((self.folder / "corpus" / "wav").glob("*.wav"))[:2])
        tested = ["--manifest", str(self.sources["speech"]), "--limit", "6", "--output", str(folder / "test")]
        read = ["--speech", speech, "--language", language, "--output", str(folder / "transcripts")]
        own = {"run": str(folder / "speech"), "output": str(folder / "own.npy")}
        return [
            {"do": "acoustic_logits", "run": speech, "output": str(folder / "tensorflow.npy")},
            {"do": "acoustic_logits", **own},
            {"do": "conversion", "run": language, "output": str(folder / "conversion.json")},
            {"do": "command", "script": "test.py", "arguments": ["pipeline", speech, language, *tested]},
            {"do": "command", "script": "transcribe.py", "arguments": [*audio, *read]},
        ]


@pytest.fixture(scope="module")
def trials(tmp_path_factory) -> Trials:
    folder = tmp_path_factory.mktemp("backends")
    rng = np.random.default_rng(0)
    sentences = ["".join(rng.choice(list(SYLLABLES.values()), 9 + i % 2)) for i in range(18)]
    (folder / "text.txt").write_text("\n".join(sentences), encoding="utf-8")
    for task in RECIPES:
        (folder / f"{task}.yaml").write_text(f"task: {task}\n", encoding="utf-8")
    manifest = write_tiny_corpus(folder / "corpus", utterances=18, longest=11)
    return Trials(folder, {"speech": manifest, "language": folder / "text.txt"})


@pytest.fixture(scope="module")
def tensorflow(trials: Trials) -> Path:
    """The folder of TensorFlow's results."""
    for job in (*map(trials.first_training, RECIPES), *trials.use("tensorflow")):
        JOBS[job.pop("do")](**job)
    return trials.folder / "tensorflow"


BACKENDS = [
    pytest.param(name, marks=pytest.mark.skipif(not there, reason=f"{name} isn't installed: {INSTALL}"))
    for name, there in ((name, importlib.util.find_spec(name)) for name in ("jax", "torch"))
]


@pytest.fixture(scope="module", params=BACKENDS)
def other(request, trials: Trials, tensorflow: Path) -> Path:
    """The folder of another backend's results."""
    speech, language = (trials.further_training(task, request.param) for task in RECIPES)
    loop = {"do": "tests_of_the_loop", "names": TESTS_OF_THE_LOOP}
    run_on(request.param, [speech, language, *trials.use(request.param), loop], trials.folder)
    return trials.folder / request.param


def run_on(backend: str, jobs: list[dict], folder: Path) -> None:
    """Run jobs of ``tests/support/backend_jobs.py`` in an interpreter on another backend."""
    compiled = {"JAX_COMPILATION_CACHE_DIR": str(folder / "compiled")}
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.backend_jobs"],
        cwd=ROOT,
        env={**os.environ, **ENVIRONMENT, **compiled, "KERAS_BACKEND": backend},
        input="\n".join(map(json.dumps, jobs)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"


def losses(run: Path) -> dict[int, float]:
    """The loss of each step."""
    logged = logged_losses(RunFolder(run))
    assert len(dict(logged)) == len(logged), "a step was computed twice"
    return dict(logged)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_run_has_the_logits_of_tensorflow_and_refused_settings_are_named(
    backend, trials, speech_run, tmp_path
):
    override, message = REFUSED[backend]
    arguments = trials.train("language", tmp_path / "refused", override)
    logits = {"run": str(speech_run), "output": str(tmp_path / "logits.npy")}
    refused = {"do": "refused", "arguments": arguments, "message": message}
    statistics = {"do": "statistics_of_a_step", "output": str(tmp_path / "mean.npy")}
    run_on(backend, [{"do": "acoustic_logits", **logits}, refused, statistics], tmp_path)
    acoustic_logits(str(speech_run), str(tmp_path / "tensorflow.npy"))
    found, expected = (np.load(tmp_path / f"{name}.npy") for name in ("logits", "tensorflow"))
    np.testing.assert_allclose(found, expected, atol=1e-4)
    np.testing.assert_allclose(np.load(tmp_path / "mean.npy"), [9, 10, 11], rtol=1e-6)


@pytest.mark.nightly
@pytest.mark.parametrize("task", RECIPES)
def test_the_loss_curve_is_tensorflows(tensorflow, other, task):
    """JAX pads batch, frames and labels."""
    expected, found = losses(tensorflow / task), losses(other / task)
    assert sorted(expected) == sorted(found) == list(range(1, STEPS + 1))
    for step in expected:
        assert found[step] == pytest.approx(expected[step], rel=1e-4), f"step {step}"
    assert expected[STEPS] < 0.9 * expected[1], "the loss must decrease"


@pytest.mark.nightly
@pytest.mark.parametrize("task", RECIPES)
def test_the_trained_weights_are_tensorflows(tensorflow, other, task):
    first, second = (np.load(RunFolder(folder / task).checkpoint) for folder in (tensorflow, other))
    assert first.files == second.files
    for name in first.files:
        if name.startswith("model") and first[name].dtype == np.float32:
            np.testing.assert_allclose(second[name], first[name], atol=1e-3, err_msg=name)


@pytest.mark.nightly
def test_a_run_of_tensorflow_gives_the_same_elsewhere(tensorflow, other):
    """Logits, n-best lists and output files of the commands."""
    first, second = (np.load(folder / "tensorflow.npy") for folder in (tensorflow, other))
    np.testing.assert_allclose(second, first, atol=1e-4)
    first, second = (
        json.loads((folder / "conversion.json").read_text("utf-8")) for folder in (tensorflow, other)
    )
    assert [hanzi for hanzi, _ in second] == [hanzi for hanzi, _ in first]
    np.testing.assert_allclose([score for _, score in second], [score for _, score in first], atol=1e-4)
    for path in (tensorflow / "test" / "hypotheses.tsv", *(tensorflow / "transcripts").iterdir()):
        assert (other / path.relative_to(tensorflow)).read_text("utf-8") == path.read_text("utf-8")


@pytest.mark.nightly
def test_a_run_of_another_backend_gives_the_same_on_tensorflow(other, tmp_path):
    acoustic_logits(str(other / "speech"), str(tmp_path / "logits.npy"))
    np.testing.assert_allclose(np.load(tmp_path / "logits.npy"), np.load(other / "own.npy"), atol=1e-4)


def test_batches_are_padded_for_jax(monkeypatch):
    """Lengths to four sizes an octave, rows to two, labels to one; nothing is padded for other backends."""
    arrays = {
        "features": np.ones((9, 33, 3), np.float32),
        "lengths": np.full(9, 33, np.int32),
        "labels": np.ones((9, 9), np.int32),
    }
    assert {name: array.shape for name, array in pad_to_few_shapes(arrays).items()} == {
        name: array.shape for name, array in arrays.items()
    }
    monkeypatch.setattr("keras.backend.backend", lambda: "jax")
    padded = pad_to_few_shapes(arrays)
    assert {name: array.shape for name, array in padded.items()} == {
        "features": (12, 40, 3),
        "lengths": (12,),
        "labels": (12, 16),
    }
    for name, array in arrays.items():
        inner = padded[name][tuple(slice(size) for size in array.shape)]
        np.testing.assert_array_equal(inner, array)
        assert padded[name].sum() == array.sum()
