"""Runs jobs, given as JSON lines, in one fresh interpreter on the backend that KERAS_BACKEND names.

Several jobs share an interpreter, because loading a backend takes seconds. Commands are called as a shell
calls them, so whatever they need is loaded through the product's own path.
"""

import importlib.metadata
import json
import os
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.support.scripts import load_script
from utils.errors import ConfigError


def main() -> None:
    other = os.environ["KERAS_BACKEND"] != "tensorflow"
    if other:
        importlib.metadata.version = _version_without_tensorflow
    for line in sys.stdin:
        job = json.loads(line)
        JOBS[job.pop("do")](**job)
    # A training marks it with None as a module that can't be imported.
    assert not other or sys.modules.get("tensorflow") is None


def command(script: str, arguments: list[str]) -> None:
    """Run a command that must succeed."""
    assert load_script(script).main(arguments) == 0


def refused(arguments: list[str], message: str) -> None:
    """Run ``train.py``, which must refuse to begin and give the reason."""
    with pytest.raises(ConfigError, match=message):
        load_script("train.py").main(arguments)


def copied_at_first_checkpoint(arguments: list[str], run: str, copy: str) -> None:
    """Run ``train.py`` and copy the run folder at its first checkpoint, for others to resume."""
    train = load_script("train.py")
    from training import loop

    intact = loop.save_checkpoint

    def save_checkpoint(*given):
        intact(*given)
        if not Path(copy).exists():
            shutil.copytree(run, copy)

    loop.save_checkpoint = save_checkpoint
    try:
        assert train.main(arguments) == 0
    finally:
        loop.save_checkpoint = intact


def tests_of_the_loop(names: list[str]) -> None:
    """Run tests of ``tests/training/test_loop.py`` on this backend; their model compiles quickly."""
    assert (
        pytest.main(["-q", "-p", "no:cacheprovider", "tests/training/test_loop.py", "-k", " or ".join(names)])
        == 0
    )


def statistics_of_a_step(output: str) -> None:
    """The mean of a batch normalisation after a step of seven rows that may not be padded."""
    import keras

    from training.backends.step import make_train_step

    norm = keras.layers.BatchNormalization(momentum=0.0)
    model = keras.Sequential([keras.Input((3,)), norm, keras.layers.Dense(1)])
    optimizer = keras.optimizers.SGD(0.1)
    optimizer.build(model.trainable_variables)

    def losses(arrays, training):
        return keras.ops.sum(model(arrays["x"], training=training), axis=1)

    step = make_train_step(model, optimizer, losses, xla=False, accepts_padding=False)
    step({"x": np.arange(21, dtype=np.float32).reshape(7, 3)})
    np.save(output, keras.ops.convert_to_numpy(norm.moving_mean))


def acoustic_logits(run: str, output: str) -> None:
    """Logits of three utterances of unequal lengths, (3, T, classes) with zeros after their ends."""
    from utils.backend.quiet import silence_tensorflow

    silence_tensorflow()  # as recognition.loading does
    from model_speech.acoustic_model import load_acoustic_model
    from utils.features.settings import feature_bins

    acoustic = load_acoustic_model(run)
    rng = np.random.default_rng(0)
    features = [
        rng.normal(size=(n, feature_bins(acoustic.features))).astype("float32") for n in (150, 90, 31)
    ]
    logits, lengths = acoustic.logits(features)
    logits[np.arange(logits.shape[1]) >= lengths[:, None]] = 0
    np.save(output, logits[:, : lengths.max()])


def conversion(run: str, output: str) -> None:
    """The five best ways to write a sentence, with their scores, as JSON."""
    from model_language.converters.user_word_converter import UserWordConverter
    from model_language.registry import load_converter
    from model_language.search.user_words import UserWords

    guided = UserWordConverter(load_converter(run), UserWords())
    found = guided.explain([["wo3", "shi4", "ni3"]], 5, reasons=False)[0].n_best
    Path(output).write_text(
        json.dumps([[conversion.hanzi, conversion.score] for conversion in found]), encoding="utf-8"
    )


def _version_without_tensorflow(name: str) -> str:
    """The version of a package, without TensorFlow, as on a machine that does not have it."""
    if name == "tensorflow":
        raise importlib.metadata.PackageNotFoundError(name)
    return importlib.metadata.distribution(name).version


JOBS = {
    job.__name__: job
    for job in (
        command,
        refused,
        copied_at_first_checkpoint,
        tests_of_the_loop,
        statistics_of_a_step,
        acoustic_logits,
        conversion,
    )
}

if __name__ == "__main__":
    main()
