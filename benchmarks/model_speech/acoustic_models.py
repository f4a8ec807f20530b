"""Cost and benefit of the acoustic models in one table: compute, training speed, error rate.

    python -m benchmarks.model_speech.acoustic_models [--minutes 10] [--utterances 8] [--seconds 4]

Speed: each model trains on the same random batch with the optimiser of `train.py`, in its own process; the
    time of a step (forward, CTC, backward, update) is the median after two warm-up steps.

Error: each model then trains with its own recipe on the demo's corpus (written by `make demo`), `dfcnn` for
    this many minutes and `compact` for a tenth of them, and decodes the test split, whose voices and
    sentences are not in the training split.

Columns: million multiply-accumulates per second of audio; seconds per step; speed relative to real time;
    minutes of training steps; hours of audio in training; tonal syllable error rate.
"""

from utils.command.entry import run_command

import argparse
import csv
import json
import random
import shutil
import time
from pathlib import Path

import numpy as np

from benchmarks.support.commands import run
from benchmarks.support.training_step import ctc_losses, measured_alone, random_batch
from data.manifest import read_manifest, write_manifest
from utils.errors import CorpusError
from utils.features.speech import FeatureConfig, feature_bins
from utils.run_folder.run import RunFolder
from utils.text_table import print_table
from utils.vocabulary import acoustic_vocabulary

FEATURES = {"dfcnn": FeatureConfig(kind="spectrogram"), "compact": FeatureConfig(kind="filter_bank")}
RECIPES = {"dfcnn": "configs/speech/dfcnn_thchs30.yaml", "compact": "configs/demo/speech.yaml"}
SHARE_OF_MINUTES = {"dfcnn": 1.0, "compact": 0.1}
CORPUS = Path("datasets/demo")
RUNS = Path("runs/benchmarks/acoustic_models")
FRAMES_A_SECOND = 100  # of the features: a hop of 10 ms
WARM_UP_STEPS = 2


def main() -> None:
    """Measure each model in its own process and print the table."""
    options = _parser().parse_args()
    if options.only:
        print(json.dumps(measure(options.only, options.utterances, options.seconds, options.steps)))
        return
    if not (CORPUS / "train.tsv").is_file():
        raise CorpusError("the demo's corpus is not here", where=CORPUS, hint="make it with `make demo`")
    rows = {}
    for name in FEATURES:
        speed = measured_alone("benchmarks.model_speech.acoustic_models", name)
        real_time = options.utterances * options.seconds / speed["step_seconds"]
        seconds = 60 * options.minutes * SHARE_OF_MINUTES[name]
        rows[name] = {**speed, "real_time": real_time, **_train_and_test(name, real_time * seconds)}
    _print(rows, options)


def measure(name: str, utterances: int, seconds: int, steps: int) -> dict[str, float]:
    """Train one model on a random batch of ``utterances`` of ``seconds`` each; return its figures."""
    # TensorFlow is loaded in the measuring process only.
    from model_speech.registry import MODELS
    from training.backends.step import make_train_step
    from training.optimiser import OptimiserConfig, make_optimizer
    from utils.backend.model_cost import multiply_accumulates

    bins, classes = feature_bins(FEATURES[name]), len(acoustic_vocabulary())
    config = MODELS[name].config()
    model = MODELS[name].build(config, bins, classes)
    optimizer = make_optimizer(OptimiserConfig(), WARM_UP_STEPS + steps)
    step = make_train_step(model, optimizer, ctc_losses(model, config.time_stride, classes), xla=False)
    batch = random_batch(utterances, seconds, bins, classes)
    times = []
    for _ in range(WARM_UP_STEPS + steps):
        start = time.perf_counter()
        np.asarray(step(batch))
        times.append(time.perf_counter() - start)
    frames = seconds * FRAMES_A_SECOND
    return {
        "parameters": model.count_params(),
        "mac_a_second": multiply_accumulates(model, frames) / seconds,
        "step_seconds": float(np.median(times[WARM_UP_STEPS:])),
    }


def _train_and_test(name: str, audio_seconds: float) -> dict[str, float]:
    """Train for whole epochs on a random part of the corpus; return training seconds and test error."""
    utterances = read_manifest(CORPUS / "train.tsv")
    random.Random(0).shuffle(utterances)
    epochs = max(1, round(audio_seconds / sum(utterance.seconds for utterance in utterances)))
    elapsed = np.cumsum([utterance.seconds for utterance in utterances])
    count = min(len(utterances), 1 + int(np.searchsorted(elapsed, audio_seconds / epochs)))
    manifest, folder = RUNS / f"{name}.tsv", RUNS / name
    shutil.rmtree(folder, ignore_errors=True)  # measured again: the amount of audio depends on the speed
    write_manifest(manifest, utterances[:count])
    splits = [
        f"data.train=[{manifest}]",
        f"data.dev=[{CORPUS / 'dev.tsv'}]",
        f"data.test=[{CORPUS / 'test.tsv'}]",
    ]
    recipe = ["--config", RECIPES[name], "--run", str(folder), f"training.epochs={epochs}"]
    run("train.py", "speech", *recipe, *splits)
    with RunFolder(folder).history.open(encoding="utf-8") as file:
        seconds = sum(float(row["seconds"]) for row in csv.DictReader(file))
    figures = json.loads(run("test.py", "speech", str(folder), "--json"))
    return {
        "training_seconds": seconds,
        "audio_hours": epochs * float(elapsed[count - 1]) / 3600,
        "error": figures["syllable_error_rate"],
    }


def _print(rows: dict[str, dict[str, float]], options: argparse.Namespace) -> None:
    columns = ("model", "weights", "MMAC/s", "step", "speed", "ratio", "trained", "audio", "error")
    slowest = max(row["step_seconds"] for row in rows.values())
    cells = [
        (
            name,
            f"{row['parameters'] / 1e6:.2f} M",
            f"{row['mac_a_second'] / 1e6:.0f}",
            f"{row['step_seconds']:.3f} s",
            f"{row['real_time']:.0f} x",
            f"{slowest / row['step_seconds']:.1f} x",
            f"{row['training_seconds'] / 60:.1f} m",
            f"{row['audio_hours']:.1f} h",
            f"{row['error']:.1%}",
        )
        for name, row in rows.items()
    ]
    title = f"Acoustic models: a step of {options.utterances} x {options.seconds} s; the demo's test"
    print_table(title, columns, cells)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--utterances", type=int, default=8, help="utterances in the batch (default: %(default)s)"
    )
    parser.add_argument(
        "--seconds", type=int, default=4, help="length of each utterance (default: %(default)s)"
    )
    parser.add_argument("--steps", type=int, default=5, help="timed steps (default: %(default)s)")
    parser.add_argument(
        "--minutes", type=float, default=10, help="dfcnn trains; compact a tenth (default: %(default)s)"
    )
    parser.add_argument("--only", choices=FEATURES, help="measure this model here, print its figures as JSON")
    return parser


if __name__ == "__main__":
    run_command(main)
