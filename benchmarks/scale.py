"""Time and memory from a corpus of AISHELL-1's size to the first training step, in one table.

    python benchmarks/scale.py [--utterances 10000 130000] [--folder DIR]

The corpus is generated: 400 speakers, real WAV files (hard links to one of each speaker), sentences made of
dictionary words. So is the warm feature cache of `configs/speech/compact_aishell1.yaml`: shards and indices
in their real format and size, their frames a hole in the file that reads as zeros. What is measured are the
commands that a user types, each in a process of its own; the peak is that process's resident memory. Needs
0.3 GB of disk.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from pypinyin.phrases_dict import phrases_dict
from rich.console import Console
from rich.table import Table
from tqdm import tqdm

from data.augment import AugmentConfig
from data.feature_cache import cache_folder
from data.feature_keys import feature_keys
from data.feature_shards import INDEX_ROW, SUM, write_shard_header
from data.manifest import read_manifest
from utils.audio import write_wav
from utils.errors import TrainingError, run_command
from utils.features import FeatureConfig, feature_bins
from utils.pinyin import is_hanzi

ROOT = Path(__file__).resolve().parent.parent
RECIPE = "configs/speech/compact_aishell1.yaml"
SPEAKERS = 400
SECONDS = (2.0, 8.0)  # of a recording; AISHELL-1's mean is 4.5
HANZI = 14  # at least, in a sentence
SPLITS = {"train": 0.85, "dev": 0.1, "test": 0.05}  # of the speakers


@dataclass(frozen=True)
class Cost:
    """What a command took: wall time and the peak of its memory."""

    seconds: float
    megabytes: float


def main() -> None:
    """Make corpora of all sizes, run the commands on each, print the table."""
    options = _parser().parse_args()
    if options.fill:
        fill_cache(options.fill)
        return
    table = Table(title=f"From corpus to first step, {os.cpu_count()} cores")
    for column in ("utterances", "command", "seconds", "peak MB"):
        table.add_column(column, justify="left" if column == "command" else "right")
    with tempfile.TemporaryDirectory(prefix="scale-", dir=options.folder) as folder:
        for count in options.utterances:
            for command, cost in measure(Path(folder, str(count)), count):
                table.add_row(f"{count:,}", command, f"{cost.seconds:.1f}", f"{cost.megabytes:.0f}")
            table.add_section()
    Console().print(table)


def measure(folder: Path, count: int) -> Iterator[tuple[str, Cost]]:
    """The costs of all commands on a corpus of ``count`` utterances made in ``folder``."""
    make_corpus(folder / "data_aishell", count)
    python, manifests = [sys.executable], [str(folder / "manifests" / f"{split}.tsv") for split in SPLITS]
    prepare = [*python, "-m", "data.corpora.aishell1", "prepare", str(folder)]
    yield "prepare", run([*prepare, "--output", str(folder / "manifests")])
    yield "vocabulary", run([*python, "-m", "data.vocabularies", *manifests])
    broken = folder / "broken.tsv"
    broken.write_text(Path(manifests[0]).read_text(encoding="utf-8") + "one more line\n", encoding="utf-8")
    yield "vocabulary, last line bad", run([*python, "-m", "data.vocabularies", str(broken)], code=2)
    subprocess.run([*python, __file__, "--fill", str(folder)], cwd=ROOT, env=_environment(), check=True)
    training = [*python, "train.py", "speech", "--config", RECIPE, "--run", str(folder / "run")]
    checkpoint = folder / "run" / "checkpoint" / "state.npz"
    yield "train.py to first step", run(training + _overrides(folder), until=checkpoint)
    shutil.rmtree(folder)


def _overrides(folder: Path) -> list[str]:
    """What the measured training changes in the recipe: where the corpus is, and a checkpoint each step."""
    lists = [f"data.{split}=[{folder / 'manifests' / split}.tsv]" for split in SPLITS]
    return [*lists, f"data.cache={folder / 'cache'}", "training.checkpoint_steps=1"]


def make_corpus(folder: Path, count: int) -> None:
    """Write ``count`` utterances in the layout of AISHELL-1."""
    rng = random.Random(0)
    words = [word for word in phrases_dict if is_hanzi(word)]
    boundaries = np.cumsum([share * SPEAKERS for share in SPLITS.values()])
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
    # TensorFlow comes with the recipes: it is loaded in the process that fills the cache only.
    from training.speech import VARIANTS, SpeechConfig
    from utils.config import load_config

    config = load_config(SpeechConfig, ROOT / RECIPE, _overrides(folder), VARIANTS)
    for split, augment in (("train", config.augment), ("dev", AugmentConfig(copies=0))):
        utterances = read_manifest(folder / "manifests" / f"{split}.tsv")
        keys, _ = feature_keys(utterances, config.features, augment, config.seed)
        frames = np.array([round(100 * utterance.seconds) for utterance in utterances])
        per_shard = 1024 // keys.shape[1]
        for start in range(0, len(keys), per_shard):
            some = slice(start, start + per_shard)
            shard_frames = np.repeat(frames[some], keys.shape[1])
            _write_hollow_shard(
                cache_folder(config.data.cache, config.features), keys[some].ravel(), shard_frames
            )


def _write_hollow_shard(folder: Path, keys: np.ndarray, frames: np.ndarray) -> None:
    """What `data.feature_shards.write_shard` writes for silent features, but as a hole in the file."""
    folder.mkdir(parents=True, exist_ok=True)
    name, bins = keys[0].hex(), feature_bins(FeatureConfig())
    index = np.empty(len(keys), INDEX_ROW)
    index["key"], index["frames"], index["start"] = keys, frames, np.cumsum(frames) - frames
    with (folder / f"{name}.npy").open("wb") as file:
        write_shard_header(file, int(frames.sum()), bins)
        file.truncate(file.tell() + int(frames.sum()) * bins * 2)
        file.seek(0, os.SEEK_END)
        file.write(np.array([_sum_of_zeros(int(count) * bins * 2) for count in frames], SUM).tobytes())
    np.save(folder / f"{name}.index.npy", index)


@cache
def _sum_of_zeros(count: int) -> int:
    return zlib.crc32(bytes(count))


def run(command: list[str], code: int = 0, until: Path | None = None) -> Cost:
    """Run a command to its end, or to when the file ``until`` is there; what it took."""
    began = time.perf_counter()
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, cwd=ROOT, env=_environment(), stdout=output, stderr=output)
        stopped = False
        while not (ended := os.wait4(process.pid, os.WNOHANG))[0]:
            if until and until.exists() and not stopped:
                seconds, stopped = time.perf_counter() - began, True
                process.kill()
            time.sleep(0.01)
        if not stopped:
            seconds = time.perf_counter() - began
            if os.waitstatus_to_exitcode(ended[1]) != code or until:
                output.seek(0)
                raise TrainingError("a command failed", where=" ".join(command), hint=output.read().decode())
    return Cost(seconds, ended[2].ru_maxrss / 1024)


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
    parser.add_argument("--fill", type=Path, help="make the warm cache of the corpus in this folder")
    return parser


if __name__ == "__main__":
    run_command(main)
