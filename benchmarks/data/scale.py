"""Time and memory from a corpus of AISHELL-1's size to the first training step, in one table.

    python -m benchmarks.data.scale [--utterances 10000 130000] [--folder DIR]

The corpus is generated: 400 speakers, real WAV files (hard links to one of each speaker), sentences made of
dictionary words. The warm feature cache of `configs/speech/compact_aishell1.yaml` is generated too: shards
and indices in their real format and size, with frames that are holes in the file and read as zeros. The
commands of users are measured, each in a separate process; the peak is that process's resident memory. Needs
0.3 GB of disk.
"""

from utils.command.entry import run_command

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import yaml
from pypinyin.phrases_dict import phrases_dict
from tqdm import tqdm

from data.array_store import write_array_header
from data.batches.batching import BatchSource
from data.features.augment import AugmentConfig
from data.features.cache import cache_folder, prepare_features
from data.features.keys import feature_keys
from data.features.shards import CRC, FRAME_TYPE, INDEX_ROW
from data.features.spec_augment import SpecAugmentConfig
from data.manifest import read_manifest
from utils.audio.reading import write_wav
from utils.config import build_config
from utils.errors import TrainingError
from utils.features.speech import FeatureConfig, feature_bins
from utils.mandarin.pinyin import is_hanzi
from utils.text_table import print_table
from utils.vocabulary import acoustic_vocabulary

ROOT = Path(__file__).resolve().parents[2]
RECIPE = "configs/speech/compact_aishell1.yaml"
SPEAKERS = 400
BATCHES = 200
SECONDS = (2.0, 8.0)  # shortest and longest recording; AISHELL-1's mean is 4.5
HANZI = 14  # smallest number in a sentence
SPLITS = {"train": 0.85, "dev": 0.1, "test": 0.05}  # fractions of the speakers


@dataclass(frozen=True)
class Cost:
    """The cost of a command: wall time, CPU time of all its threads, and peak memory."""

    seconds: float
    cpu_seconds: float
    megabytes: float


def main() -> None:
    """Make corpora of all sizes, run the commands on each, print the table."""
    options = _parser().parse_args()
    if options.only:
        {"fill": fill_cache, "batches": read_batches}[options.only[0]](Path(options.only[1]))
        return
    rows = []
    with tempfile.TemporaryDirectory(prefix="scale-", dir=options.folder) as folder:
        for count in options.utterances:
            for command, cost in measure(Path(folder, str(count)), count):
                figures = (f"{cost.seconds:.1f}", f"{cost.cpu_seconds:.1f}", f"{cost.megabytes:.0f}")
                rows.append((count, command, *figures))
    headings = ("utterances", "command", "seconds", "CPU seconds", "peak MB")
    print_table(f"From corpus to first step, {os.cpu_count()} cores", headings, rows, left=2)


def measure(folder: Path, count: int) -> Iterator[tuple[str, Cost]]:
    """The costs of all commands on a corpus of ``count`` utterances made in ``folder``."""
    make_corpus(folder / "data_aishell", count)
    shutil.copy(ROOT / RECIPE, folder / "recipe.yaml")
    python, manifests = [sys.executable], [str(folder / "manifests" / f"{split}.tsv") for split in SPLITS]
    prepare = [*python, "-m", "data.corpora.aishell1", "prepare", str(folder)]
    yield "prepare", run([*prepare, "--output", str(folder / "manifests")])
    yield "vocabulary", run([*python, "-m", "data.vocabularies", *manifests])
    broken = folder / "broken.tsv"
    broken.write_text(Path(manifests[0]).read_text(encoding="utf-8") + "one more line\n", encoding="utf-8")
    yield "vocabulary, last line bad", run([*python, "-m", "data.vocabularies", str(broken)], code=2)
    run([*python, __file__, "--only", "fill", str(folder)])
    yield f"{BATCHES} batches, no model", run([*python, __file__, "--only", "batches", str(folder)])
    log, steps = folder / "run" / "train.log", folder / "run" / "utterances.tsv"
    shards = len(list((folder / "cache").glob("*/*")))
    ready, stepped = run_until(
        [*python, "train.py", "speech", *_arguments(folder)],
        [
            lambda: log.exists() and " training and " in log.read_text(encoding="utf-8"),
            lambda: steps.exists() and steps.stat().st_size > 0,
        ],
    )
    if len(list((folder / "cache").glob("*/*"))) != shards:
        raise TrainingError("features were computed: the cache was not warm", where=folder / "cache")
    yield "train.py: data ready", ready
    yield "train.py: first step done", stepped
    shutil.rmtree(folder)


def _arguments(folder: Path) -> list[str]:
    """Arguments of the training: the recipe with this corpus, and a log line after each step."""
    lists = [f"data.{split}=[{folder / 'manifests' / split}.tsv]" for split in SPLITS]
    recipe = ["--config", str(folder / "recipe.yaml"), "--run", str(folder / "run")]
    return [*recipe, *lists, f"data.cache={folder / 'cache'}", "training.log_utterances=true"]


def make_corpus(folder: Path, count: int) -> None:
    """Write ``count`` utterances in the layout of AISHELL-1."""
    rng = random.Random(0)
    words = [word for word in phrases_dict if is_hanzi(word)]
    boundaries = np.cumsum([fraction * SPEAKERS for fraction in SPLITS.values()])
    lines = []
    for speaker in tqdm(range(SPEAKERS), "corpus", disable=None, leave=False):
        split = list(SPLITS)[int(np.searchsorted(boundaries, speaker, side="right"))]
        home = folder / "wav" / split / f"S{speaker:04}"
        sound = folder / "sounds" / f"{speaker}.wav"
        write_wav(sound, 0.1 * np.random.default_rng(speaker).normal(size=int(16000 * rng.uniform(*SECONDS))))
        home.mkdir(parents=True)
        for number in range(speaker, count, SPEAKERS):
            name = f"BAC009{home.name}W{number:06}"
            (home / f"{name}.wav").hardlink_to(sound)
            lines.append(f"{name} {' '.join(_sentence(words, rng))}\n")
    (folder / "transcript").mkdir()
    text = "".join(lines)
    (folder / "transcript" / "aishell_transcript_v0.8.txt").write_text(text, encoding="utf-8")


def _sentence(words: Sequence[str], rng: random.Random) -> list[str]:
    chosen: list[str] = []
    while sum(map(len, chosen)) < HANZI:
        chosen.append(rng.choice(words))
    return chosen


def fill_cache(folder: Path) -> None:
    """Make the warm cache of the recipe for the corpus in ``folder``, without computing a feature."""
    features, augment, recipe = _recipe(folder)
    for split, altered in (("train", augment), ("dev", AugmentConfig(copies=0))):
        utterances = read_manifest(folder / "manifests" / f"{split}.tsv")
        keys, _ = feature_keys(utterances, features, altered, recipe.get("seed", 0))
        frames = np.array([round(100 * utterance.seconds) for utterance in utterances])
        per_shard = 1024 // keys.shape[1]
        for start in range(0, len(keys), per_shard):
            some = slice(start, start + per_shard)
            shard_frames = np.repeat(frames[some], keys.shape[1])
            shards = cache_folder(folder / "cache", features)
            _write_hollow_shard(shards, keys[some].ravel(), shard_frames, feature_bins(features))


def _recipe(folder: Path) -> tuple[FeatureConfig, AugmentConfig, dict[str, Any]]:
    """The recipe's settings of features and copies and all its values, read without loading models."""
    values = yaml.safe_load((folder / "recipe.yaml").read_text(encoding="utf-8"))
    features = build_config(FeatureConfig, values.get("features", {}))
    return features, build_config(AugmentConfig, values.get("augment", {})), values


def read_batches(folder: Path) -> None:
    """Read the corpus in ``folder`` as a training does, without a model."""
    features, augment, recipe = _recipe(folder)
    utterances = read_manifest(folder / "manifests" / "train.tsv")
    vocabulary = acoustic_vocabulary({syllable for utterance in utterances for syllable in utterance.pinyin})
    features_cache = prepare_features(utterances, features, folder / "cache", augment)
    labels = [vocabulary.encode(item.pinyin, item.id, item.audio) for item in utterances]
    source = BatchSource(
        features_cache,
        utterances,
        labels,
        batch_frames=recipe["data"]["batch_frames"],
        max_batch=32,
        shuffle=True,
        spec_augment=SpecAugmentConfig(),
    )
    for _ in zip(range(BATCHES), source.batches(epoch=1), strict=False):
        pass


def _write_hollow_shard(folder: Path, keys: np.ndarray, frames: np.ndarray, bins: int) -> None:
    """Write the shard of `data.features.shards.write_shard` for zero features, with a hole in the file."""
    folder.mkdir(parents=True, exist_ok=True)
    name = keys[0].hex()
    index = np.empty(len(keys), INDEX_ROW)
    index["key"], index["frames"], index["start"] = keys, frames, np.cumsum(frames) - frames
    with (folder / f"{name}.npy").open("wb") as file:
        write_array_header(file, (int(frames.sum()), bins), FRAME_TYPE)
        file.truncate(file.tell() + int(frames.sum()) * bins * 2)
        file.seek(0, os.SEEK_END)
        file.write(np.array([_sum_of_zeros(int(count) * bins * 2) for count in frames], CRC).tobytes())
    np.save(folder / f"{name}.index.npy", index)


@cache
def _sum_of_zeros(count: int) -> int:
    return zlib.crc32(bytes(count))


def run(command: list[str], code: int = 0) -> Cost:
    """Run a command to its end and return its cost.

    Raises:
        TrainingError: it ended with another code.
    """
    return _watch(command, [], code)[0]


def run_until(command: list[str], events: Sequence[Callable[[], bool]]) -> list[Cost]:
    """Run a command, kill it after the last event and return the cost until each event.

    Raises:
        TrainingError: it ended before that.
    """
    return _watch(command, events, code=-signal.SIGKILL)[: len(events)]


def _watch(command: list[str], events: Sequence[Callable[[], bool]], code: int) -> list[Cost]:
    """The cost of a command until each event (it is killed at the last) and until its end."""
    costs: list[Cost] = []
    began, peak, cpu = time.perf_counter(), 0, 0.0
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, cwd=ROOT, env=_environment(), stdout=output, stderr=output)
        watched = psutil.Process(process.pid)
        while process.poll() is None:
            peak = max(peak, watched.memory_info().rss)
            cpu = max(cpu, sum(watched.cpu_times()[:2]))
            if len(costs) < len(events) and events[len(costs)]():
                costs.append(Cost(time.perf_counter() - began, cpu, peak / 1e6))
                if len(costs) == len(events):
                    process.kill()
            time.sleep(0.005)
        costs.append(Cost(time.perf_counter() - began, cpu, peak / 1e6))
        if process.returncode != code:
            output.seek(0)
            raise TrainingError("a command failed", where=" ".join(command), hint=output.read().decode())
    return costs


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--utterances", type=int, nargs="+", default=[10_000, 130_000], help="sizes (default: %(default)s)"
    )
    parser.add_argument("--folder", help="where the generated corpora go (default: the system's)")
    parser.add_argument("--only", nargs=2, metavar=("fill|batches", "DIR"), help="run this step here")
    return parser


if __name__ == "__main__":
    run_command(main)
