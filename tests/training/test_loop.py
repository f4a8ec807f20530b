"""Tests of the training loop: resumed runs equal uninterrupted ones, losses that are not finite, patience."""

import dataclasses
import json
import os
import signal
from dataclasses import dataclass
from functools import partial

import keras
import numpy as np
import pytest
from keras import ops

from tests.support.tensorboard_logs import summaries, tags_of
from training.checkpoint import TrainingState, load_checkpoint, save_checkpoint
from training.loop import TrainingConfig, log, train
from training.optimiser import OptimiserConfig, RateStage, averaged_weights, make_optimizer
from utils.errors import ConfigError, RunError, TrainingError
from utils.run_folder.run import start_run
from utils.stop_signals import Stopped


@dataclass
class LineBatch:
    """Points of a straight line."""

    ids: list[str]
    x: np.ndarray
    y: np.ndarray


class LineTask:
    """Learn y = 3 x + noise with dropout: a task with weights, seeds and an optimum."""

    metric = "dev_loss"
    accepts_padding = True

    def __init__(self, poison: str | None = None, normalised: bool = False):
        keras.utils.set_random_seed(3)
        first = keras.layers.BatchNormalization() if normalised else keras.layers.Dropout(0.2)
        self.model = keras.Sequential([keras.Input((1,)), first, keras.layers.Dense(1, dtype="float32")])
        self.poison = poison
        self.seen: list[tuple[int, str]] = []

    def steps(self, epoch):
        return 4

    def batches(self, epoch, first_step):
        rng = np.random.default_rng(epoch)
        for number in range(4):
            x = rng.standard_normal((8, 1)).astype("float32")
            ids = [f"e{epoch}b{number}u{i}" for i in range(8)]
            if self.poison in ids:
                x[ids.index(self.poison)] = np.nan
            if number >= first_step:
                self.seen.extend((epoch, name) for name in ids)
                yield LineBatch(ids, x, 3 * x)

    def arrays(self, batch):
        return {"x": batch.x, "y": batch.y}

    def losses(self, arrays, training):
        return ops.square(self.model(arrays["x"], training=training) - arrays["y"])[:, 0]

    def evaluate(self):
        x = np.linspace(-1, 1, 9, dtype="float32")[:, None]
        return {"dev_loss": float(np.mean((self.model.predict_on_batch(x) - 3 * x) ** 2))}


def run_folder(tmp_path, name="run"):
    return start_run(tmp_path / name, {"task": "speech"})


@pytest.mark.parametrize("xla", [False, True])
def test_training_leaves_the_run_folder_of_the_contract(tmp_path, xla):
    run, task = run_folder(tmp_path), LineTask()
    best = train(task, run, TrainingConfig(epochs=3, xla=xla), OptimiserConfig(learning_rate=0.1))
    assert run.best_weights.is_file() and run.last_weights.is_file() and run.checkpoint.is_file()
    rows = run.history.read_text(encoding="utf-8").splitlines()
    assert rows[0] == "epoch,step,learning_rate,train_loss,dev_loss,seconds"
    assert [row.split(",")[:2] for row in rows[1:]] == [["1", "4"], ["2", "8"], ["3", "12"]]
    assert json.loads(run.metrics.read_text(encoding="utf-8"))["best"] == best
    assert list((run.logs / "train").glob("events*")) and list((run.logs / "validation").glob("events*"))
    assert not list(run.path.rglob(".*")), "temporary files remain"
    assert run.config()["environment"]["computed_on"]["devices"]


def settings(epochs):
    return {"task": "speech", "training": {"epochs": epochs}}


def test_a_finished_run_is_extended(tmp_path):
    constant = OptimiserConfig(schedule="constant", warmup_fraction=0.0)
    for epochs in (2, 3):
        run = start_run(tmp_path / "run", settings(epochs))
        assert not run.metrics.is_file()
        train(LineTask(), run, TrainingConfig(epochs=epochs), constant)
    whole = start_run(tmp_path / "whole", settings(3))
    train(LineTask(), whole, TrainingConfig(epochs=3), constant)
    assert run.config()["training"] == {"epochs": 3}
    assert figures_of(run)[1] == figures_of(whole)[1]
    with pytest.raises(RunError, match=r"training\.epochs: 3 there, 2 asked"):
        start_run(tmp_path / "run", settings(2))


def test_evaluations_within_an_epoch_survive_a_kill(tmp_path):
    config = TrainingConfig(epochs=2, evaluation_steps=3, checkpoint_steps=1, log_weights=True)
    run, whole = run_folder(tmp_path), run_folder(tmp_path, "whole")
    with pytest.raises(TrainingError, match="e2b1u5"):
        train(LineTask(poison="e2b1u5"), run, config, OptimiserConfig())
    for folder in (run, whole):
        train(LineTask(), folder, config, OptimiserConfig())
    assert figures_of(run) == figures_of(whole)
    rows = [line.split(",")[:2] for line in run.history.read_text(encoding="utf-8").splitlines()[1:]]
    assert rows == [["1", "3"], ["1", "4"], ["2", "6"], ["2", "8"]]
    tags = tags_of(whole.logs)["train"]
    assert tags >= {"loss", "learning_rate", "gradient_norm", "utterances_a_second"}
    assert any(tag.endswith("/kernel") for tag in tags)


def test_the_gradient_norm_is_that_of_the_mean_loss(tmp_path):
    run, task = run_folder(tmp_path), LineTask(normalised=True)
    task.model.layers[0].trainable = False
    task.model.layers[-1].set_weights([np.zeros((1, 1)), np.zeros(1)])
    batch = next(task.batches(1, 0))
    train(task, run, TrainingConfig(epochs=1), OptimiserConfig(learning_rate=0.0, schedule="constant"))
    x = batch.x / np.sqrt(1.001)  # the statistics of the untrained normalisation
    expected = 2 * np.hypot(np.mean(3 * batch.x * x), np.mean(3 * batch.x))
    first = next(each.simple_value for each in summaries(run.logs / "train") if each.tag == "gradient_norm")
    assert first == pytest.approx(expected, rel=1e-4)


def test_accumulated_batches_make_one_update(tmp_path, monkeypatch):
    once, twice = (
        OptimiserConfig(algorithm="momentum", momentum=0.0, schedule="constant", accumulation=number)
        for number in (1, 2)
    )
    weights = []
    for optimiser, halves in ((once, False), (twice, True)):
        task = LineTask(normalised=True)
        task.model.layers[0].trainable = False
        batches = list(task.batches(1, 0))
        if not halves:  # the same points in batches of twice the size
            pairs = list(zip(batches[::2], batches[1::2], strict=True))
            batches = [
                LineBatch([*a.ids, *b.ids], np.concatenate([a.x, b.x]), np.concatenate([a.y, b.y]))
                for a, b in pairs
            ]
        monkeypatch.setattr(task, "steps", partial(lambda count, epoch: count, len(batches)))
        monkeypatch.setattr(
            task, "batches", partial(lambda found, epoch, first: iter(found[first:]), batches)
        )
        train(task, run_folder(tmp_path, str(halves)), TrainingConfig(epochs=1), optimiser)
        weights.append(task.model.layers[-1].get_weights())
    for whole, accumulated in zip(*weights, strict=True):
        np.testing.assert_allclose(accumulated, whole, rtol=1e-3)


def test_the_rate_falls_on_a_plateau_also_after_a_resume(tmp_path):
    frozen = OptimiserConfig(learning_rate=1e-9, schedule="plateau", plateau_patience=2, weight_decay=0.0)

    class ConstantTask(LineTask):
        def evaluate(self):
            return {"dev_loss": 1.0}

    run = start_run(tmp_path / "run", settings(4))
    train(ConstantTask(), run, TrainingConfig(epochs=4), frozen)
    run = start_run(tmp_path / "run", settings(6))
    train(ConstantTask(), run, TrainingConfig(epochs=6), frozen)
    rows = run.history.read_text(encoding="utf-8").splitlines()[1:]
    rates = [float(row.split(",")[2]) for row in rows]
    np.testing.assert_allclose(np.array(rates) / 1e-9, [1, 1, 1, 0.5, 0.5, 0.25], rtol=1e-5)


def test_a_resumed_run_sees_each_utterance_once_and_ends_the_same(tmp_path, monkeypatch):
    config = TrainingConfig(epochs=3, checkpoint_steps=1)
    whole, uninterrupted = LineTask(), run_folder(tmp_path, "whole")
    train(whole, uninterrupted, config, OptimiserConfig())

    first, second = LineTask(), LineTask()
    steps_before_kill = 6

    def die_after(original):
        def arrays(batch):
            if len(first.seen) > 8 * steps_before_kill:
                raise RuntimeError("killed")
            return original(batch)

        return arrays

    monkeypatch.setattr(first, "arrays", die_after(first.arrays))
    run = run_folder(tmp_path, "broken")
    with pytest.raises(RuntimeError, match="killed"):
        train(first, run, config, OptimiserConfig())
    train(second, run, config, OptimiserConfig())
    done_before = first.seen[: 8 * steps_before_kill]
    assert done_before + second.seen == whole.seen
    assert_same_weights(whole.model, second.model)
    assert figures_of(run) == figures_of(uninterrupted)
    for task, folder in ((whole, uninterrupted), (second, run)):
        task.model.load_weights(folder.best_weights)
    assert_same_weights(whole.model, second.model)


def assert_same_weights(first, second):
    for left, right in zip(first.get_weights(), second.get_weights(), strict=True):
        np.testing.assert_array_equal(left, right)


def figures_of(run):
    """The history and the best metrics without their times, which differ."""
    rows = [line.rpartition(",")[0] for line in run.history.read_text(encoding="utf-8").splitlines()]
    best = json.loads(run.metrics.read_text(encoding="utf-8"))["best"]
    return rows, {name: value for name, value in best.items() if name != "seconds"}


def test_a_resumed_run_knows_the_best_epoch_before(tmp_path):
    class ScoredTask(LineTask):
        """The same with a given error of its next epoch."""

        error = 0.1

        def evaluate(self):
            return {"dev_loss": self.error}

    run, task = run_folder(tmp_path), ScoredTask()
    with pytest.raises(TrainingError, match="e2b1u5"):
        train(ScoredTask(poison="e2b1u5"), run, TrainingConfig(epochs=2), OptimiserConfig())
    first = run.best_weights.read_bytes()
    task.error = 0.3
    best = train(task, run, TrainingConfig(epochs=2), OptimiserConfig())
    assert (best["epoch"], best["dev_loss"]) == (1, 0.1)
    assert run.best_weights.read_bytes() == first


def test_a_loss_that_is_not_finite_names_the_utterance(tmp_path):
    run = run_folder(tmp_path)
    with pytest.raises(TrainingError, match="e2b1u5 at step 6"):
        train(LineTask(poison="e2b1u5"), run, TrainingConfig(epochs=3), OptimiserConfig())
    resumed = load_checkpoint(run.checkpoint, (task := LineTask()).model, _built(task))
    assert resumed.epoch == 2 and all(np.isfinite(w).all() for w in task.model.get_weights())


class SteepTask(LineTask):
    """The same with gradients that are a thousand times as large."""

    def losses(self, arrays, training):
        return 1e3 * super().losses(arrays, training)


def wild_after(steps, rate=3e38, **optimiser):
    """An optimiser whose rate is near the largest float32 after ``steps``."""
    stages = (RateStage(steps, 1e-5), RateStage(1, rate))
    return OptimiserConfig(**optimiser, schedule="stages", stages=stages, weight_decay=0, clip_norm=0)


@pytest.mark.parametrize(
    ("problem", "optimiser"),
    [
        ("dev_loss", {"algorithm": "adam", "rate": 1e30}),
        ("weights", {"algorithm": "momentum"}),
        ("weights", {"algorithm": "momentum", "average": 0.5}),
    ],
)
def test_a_training_that_diverges_in_its_last_step_has_failed(tmp_path, problem, optimiser):
    run, config = run_folder(tmp_path), TrainingConfig(epochs=3, kept_weights=5)
    wild = wild_after(11, **optimiser)
    for _ in range(2):  # the second time from the checkpoint of the last good epoch
        message = f"diverged: {problem} not finite after step 12, .*lower optimiser.learning_rate"
        with pytest.raises(TrainingError, match=message):
            train(SteepTask(), run, config, wild)
        assert not run.metrics.exists()
        assert len(run.history.read_text(encoding="utf-8").splitlines()) == 1 + 2
        task = SteepTask()
        assert load_checkpoint(run.checkpoint, task.model, _built(task, wild)).step == 8
        for path in (run.best_weights, run.last_weights, *run.kept_weights.iterdir()):
            task.model.load_weights(path)
            assert abs(task.model.get_weights()[0]) < 10
        assert len(list(run.kept_weights.iterdir())) == 2


def test_initial_weights_that_are_not_finite_are_refused(tmp_path):
    task, run = LineTask(), run_folder(tmp_path)
    task.model.layers[-1].set_weights([np.full((1, 1), np.nan), np.zeros(1)])
    with pytest.raises(TrainingError, match=r"weights not finite before the training, .*initialise_from"):
        train(task, run, TrainingConfig(), OptimiserConfig())
    with pytest.raises(TrainingError, match="dev_loss not finite before the training"):
        train(task, run, TrainingConfig(evaluate_first=True), OptimiserConfig())
    assert not run.checkpoint.exists() and not run.best_weights.exists()


def test_patience_stops_early(tmp_path):
    run = run_folder(tmp_path)
    frozen = OptimiserConfig(learning_rate=0.0, schedule="constant")
    train(LineTask(), run, TrainingConfig(epochs=20, patience=2), frozen)
    assert len(run.history.read_text(encoding="utf-8").splitlines()) == 1 + 3


def test_the_initial_weights_are_kept_if_no_epoch_is_better(tmp_path):
    run, task = run_folder(tmp_path), LineTask()
    task.model.layers[-1].set_weights([np.full((1, 1), 3.0), np.zeros(1)])  # the optimum
    config = TrainingConfig(epochs=2, kept_weights=1, evaluate_first=True)
    best = train(task, run, config, OptimiserConfig(learning_rate=0.1))
    assert best == {"epoch": 0, "step": 0, "dev_loss": 0.0}
    metrics = json.loads(run.metrics.read_text(encoding="utf-8"))
    assert metrics["best"] == metrics["initial"] == best and metrics["last"]["dev_loss"] > 0
    assert len(list(run.kept_weights.iterdir())) == 1
    task.model.load_weights(run.best_weights)
    np.testing.assert_array_equal(task.model.layers[-1].get_weights()[0], [[3.0]])


def test_initial_weights_are_mixed_into_the_saved_weights_also_after_a_resume(tmp_path):
    quarter = TrainingConfig(epochs=2, initial_fraction=0.25)
    run, task = run_folder(tmp_path), LineTask(normalised=True)
    initial = task.model.get_weights()
    with pytest.raises(TrainingError, match="e2b1u5"):
        train(LineTask(poison="e2b1u5", normalised=True), run, quarter, OptimiserConfig(learning_rate=0.1))
    train(task, run, quarter, OptimiserConfig(learning_rate=0.1))
    trained = task.model.get_weights()  # the training itself continues with its own weights
    task.model.load_weights(run.last_weights)
    assert len(initial) == 6  # scale, offset and statistics of the normalisation, kernel, bias
    for saved, first, last in zip(task.model.get_weights(), initial, trained, strict=True):
        np.testing.assert_allclose(saved, 0.25 * first + 0.75 * last, rtol=1e-6)


STAGES = (RateStage(10, 1e-2), RateStage(20, 1e-3), RateStage(30, 1e-4))
WARM = {"learning_rate": 1.0, "warmup_fraction": 0.1}


@pytest.mark.parametrize(
    ("schedule", "values", "rates"),
    [
        ("cosine", {**WARM, "final_fraction": 0.01}, {0: 0, 10: 1, 55: 0.505, 100: 0.01}),
        ("constant", {"learning_rate": 1.0}, {50: 1, 100: 1}),
        ("noam", WARM, {0: 0.1, 4: 0.5, 9: 1, 39: 0.5}),  # the root of the step
        ("inverse_time", {"learning_rate": 8e-4}, {0: 8e-4, 100: 4e-4, 900: 8e-5}),  # the decay of Keras 2
        ("stages", {"stages": STAGES}, {0: 1e-2, 9: 1e-2, 10: 1e-3, 29: 1e-3, 30: 1e-4, 70: 1e-4}),
        ("stages", {"stages": STAGES[:1]}, {0: 1e-2, 10: 1e-2, 99: 1e-2}),
        (
            "exponential",
            {"learning_rate": 1e-2, "final_fraction": 0.01},
            {0: 1e-2, 25: 10**-2.5, 50: 1e-3, 100: 1e-4},
        ),
    ],
)
def test_schedules(schedule, values, rates):
    config = OptimiserConfig(schedule=schedule, **values)
    rate = make_optimizer(config, total_steps=100)._learning_rate
    assert [float(rate(step)) for step in rates] == pytest.approx(list(rates.values()), rel=1e-5, abs=1e-9)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"algorithm": "rmsprop"}, "unknown optimiser.algorithm 'rmsprop', there are: adam, momentum"),
        ({"schedule": "linear"}, r"schedule 'linear', there are: cosine"),
        ({"schedule": "noam", "warmup_fraction": 0.0}, "'noam' without a warm-up"),
        ({"clip_norm": -1.0}, r"optimiser\.clip_norm is -1\.0"),
        ({"schedule": "stages"}, "optimiser.stages is empty, stages: "),
        ({"stages": STAGES}, "optimiser.stages with optimiser.schedule 'cosine', schedule: stages"),
        ({"schedule": "exponential", "final_fraction": 0.0}, "an exponential decay to 0, .*above 0"),
        ({"average": 1.0}, r"optimiser\.average is 1.0, at least 0 and below 1"),
        ({"final_fraction": -3.0}, r"optimiser\.final_fraction"),
        ({"beta_2": 1.0}, r"optimiser\.beta_2"),
    ],
)
def test_an_invalid_optimiser_is_refused_with_the_reason(values, message):
    with pytest.raises(ConfigError, match=message):
        OptimiserConfig(**values)


def test_averages_are_those_of_the_weights_after_each_step():
    config = OptimiserConfig(algorithm="momentum", momentum=0.0, learning_rate=1.0, schedule="constant")
    config = dataclasses.replace(config, warmup_fraction=0.0, weight_decay=0.0, clip_norm=0.0, average=0.9)
    value = keras.Variable(np.zeros(1, "float32"))
    optimizer = make_optimizer(config, 10)
    optimizer.build([value])
    for _ in range(3):
        optimizer.apply([ops.ones(1)], [value])  # -1, -2, -3
    with averaged_weights(optimizer, [value]):
        assert float(value[0]) == pytest.approx(0.9 * (0.9 * -1 + 0.1 * -2) + 0.1 * -3)
    assert float(value[0]) == -3.0


def test_averaged_weights_are_evaluated_and_saved_and_training_continues_with_its_own(tmp_path):
    run, task = run_folder(tmp_path), LineTask()
    judged, evaluate = [], task.evaluate
    task.evaluate = lambda: judged.append(task.model.get_weights()[0]) or evaluate()
    train(task, run, TrainingConfig(epochs=3), OptimiserConfig(learning_rate=0.1, average=0.9))
    kept = LineTask().model
    kept.load_weights(run.last_weights)
    assert kept.get_weights()[0] == judged[-1] != task.model.get_weights()[0]


def test_the_weights_of_the_last_epochs_and_of_the_best_are_kept(tmp_path):
    run, task = run_folder(tmp_path), LineTask()
    rates = iter([0.5, 0.1, 0.3, 0.4, 0.2])
    task.evaluate = lambda: {"dev_loss": next(rates)}
    train(task, run, TrainingConfig(epochs=5, kept_weights=2), OptimiserConfig())
    assert sorted(path.name for path in run.kept_weights.iterdir()) == [
        "step_000008_dev_loss_0.1000.weights.h5",
        "step_000016_dev_loss_0.4000.weights.h5",
        "step_000020_dev_loss_0.2000.weights.h5",
    ]


def test_half_precision_scales_its_loss_and_resumes(tmp_path):
    keras.mixed_precision.set_global_policy("mixed_float16")
    try:
        run, config = run_folder(tmp_path), OptimiserConfig(learning_rate=0.1)
        train(LineTask(), run, TrainingConfig(epochs=3), config)
        again = make_optimizer(config, total_steps=12)
        again.build((task := LineTask()).model.trainable_variables)
        assert load_checkpoint(run.checkpoint, task.model, again).step == 12
        assert float(again.scale_loss(1.0)) > 1
    finally:
        keras.mixed_precision.set_global_policy("float32")


def test_a_damaged_or_foreign_checkpoint_is_refused(tmp_path):
    task = LineTask()
    path = tmp_path / "state.npz"
    save_checkpoint(path, task.model, _built(task), TrainingState(epoch=2))
    wider = keras.Sequential([keras.Input((1,)), keras.layers.Dropout(0.2), keras.layers.Dense(2)])
    with pytest.raises(RunError, match="another"):
        load_checkpoint(path, wider, _built(LineTask()))
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(RunError, match=r"can't be read .*delete it"):
        load_checkpoint(path, task.model, _built(task))


def _built(task, config=None):
    optimizer = make_optimizer(config or OptimiserConfig(), total_steps=12)
    optimizer.build(task.model.trainable_variables)
    return optimizer


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_a_signal_stops_between_two_steps_with_a_checkpoint(tmp_path, monkeypatch, caplog, number):
    monkeypatch.setattr(log, "propagate", True)
    caplog.set_level("INFO", log.name)
    run, task, config = run_folder(tmp_path), LineTask(), TrainingConfig(epochs=3)
    original = task.arrays

    def arrays(batch):
        if batch.ids[0] == "e2b1u0":
            os.kill(os.getpid(), number)
        return original(batch)

    monkeypatch.setattr(task, "arrays", arrays)
    with pytest.raises(Stopped) as caught:
        train(task, run, config, OptimiserConfig())
    assert caught.value.number == number
    name = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM"}[number]
    assert f"{name}: a checkpoint is written at epoch 2, step 6" in caplog.text
    second = LineTask()
    train(second, run, config, OptimiserConfig())
    assert second.seen[0] == (2, "e2b2u0") and len(task.seen + second.seen) == 3 * 4 * 8
