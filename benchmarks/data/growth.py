"""Cost as a corpus grows: packing it and reading one epoch of it, with memory and start-up, in one table.

    python -m benchmarks.data.growth [--hours 1 10 100 1000] [--pack 1 10 100] [--folder DIR]

The corpus is generated: 400 WAV files of 2 to 8 s, which the lines of a manifest name again and again. It is
packed (``training.feature_shards --pack`` does the same) with the settings of
`configs/speech/compact_aishell1.yaml`, by one process. An epoch is read as in training (SpecAugment, batches
of 12,000 frames), but no model is trained; the list of shards of the largest packed corpus is repeated until
it has the requested hours, so the shards come from a warm cache. Each step runs in a separate process: "MB"
is the peak of its resident memory, "start" the seconds to its first batch. 100 h need 6 GB of disk.
"""

from utils.command.entry import run_command

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import cycle, islice
from pathlib import Path

import numpy as np
import yaml

from benchmarks.data.scale import RECIPE, ROOT, SECONDS, SPEAKERS, run
from data.array_store import require_space
from data.batches.packed_source import PackedCorpus, PackedSource
from data.features.augment import AugmentConfig
from data.features.packing import CHECKSUMS, LIST, SETTINGS, pack_corpus
from data.features.spec_augment import SpecAugmentConfig
from data.manifest import Utterance, write_manifest
from utils.audio.reading import SAMPLE_RATE, write_wav
from utils.command.arguments import positive
from utils.config import build_config
from utils.features.speech import FeatureConfig
from utils.files import write_json, write_text
from utils.mandarin.pinyin import full_inventory
from utils.run_folder.checksum_files import record
from utils.text_table import print_table
from utils.vocabulary import acoustic_vocabulary

SYLLABLES = 14  # syllables of an utterance
_BYTES_PER_HOUR = 80 * 2 * 360_000  # size of packed features


def main() -> None:
    """Pack and read corpora of all sizes, print the table."""
    options = _parser().parse_args()
    if options.step:
        step, *paths = options.step
        write_json(paths[-1], {"pack": _pack, "read": _read}[step](*paths[:-1]))
        return
    rows = []
    with tempfile.TemporaryDirectory(prefix="growth-", dir=options.folder) as name:
        folder = Path(name)
        sounds = _record(folder / "sounds")
        for hours in options.pack:
            require_space(folder, hours * _BYTES_PER_HOUR, "packed features", "fewer hours: --pack 1 10")
            manifest, packed = folder / f"{hours}.tsv", folder / f"packed_{hours}"
            _write_list(manifest, sounds, hours)
            rows.append(_row(hours, "pack", manifest, packed))
        _row(options.pack[-1], "read", packed)  # the shards come from a warm cache from now on
        for hours in options.hours:
            repeated = folder / f"repeated_{hours}"
            _repeat(packed, repeated, hours / options.pack[-1])
            rows.append(_row(hours, "read", repeated))
    columns = ("hours", "step", "start s", "seconds", "CPU s / h", "seconds / h", "times real time", "MB")
    print_table(f"Cost as a corpus grows, one process, {os.cpu_count()} cores", columns, rows, left=2)


def _row(hours: int, step: str, *paths: Path) -> tuple[str, ...]:
    """Run a step in a separate process and return its row of figures."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "figures.json"
        words = [step, *map(str, paths), str(output)]
        cost = run([sys.executable, "-m", "benchmarks.data.growth", "--step", *words])
        figures = json.loads(output.read_text(encoding="utf-8"))
    start, seconds, audio_hours = figures["start"], figures["seconds"], figures["hours"]
    per_hour = (figures["cpu_seconds"] / audio_hours, seconds / audio_hours)
    return (
        f"{hours:,}",
        step,
        f"{start:.2f}",
        f"{seconds:.1f}",
        *(f"{value:.2f}" for value in per_hour),
        f"{3600 * audio_hours / seconds:,.0f}",
        f"{cost.megabytes:.0f}",
    )


def _pack(manifest: str, folder: str) -> dict[str, float]:
    features, augment = _settings()
    began, cpu = time.perf_counter(), time.process_time()
    pack_corpus([manifest], Path(folder), features, augment, workers=1)
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    return {"start": 0.0, "seconds": seconds, "cpu_seconds": cpu, "hours": _hours(PackedCorpus.open(folder))}


def _read(folder: str) -> dict[str, float]:
    began, cpu = time.perf_counter(), time.process_time()
    corpus = PackedCorpus.open(folder)
    vocabulary = acoustic_vocabulary(corpus.syllables)
    source = PackedSource(
        [corpus],
        [1.0],
        encode=lambda utterance: vocabulary.encode(utterance.pinyin),
        too_short=lambda cache, utterances, labels: (),
        batch_frames=12_000,
        max_batch=32,
        spec_augment=SpecAugmentConfig(),
    )
    source.steps(1)
    start, frames = 0.0, 0
    for batch in source.batches(1):
        start = start or time.perf_counter() - began
        frames += int(batch.feature_lengths.sum())
    figures = {
        "start": start,
        "seconds": time.perf_counter() - began,
        "cpu_seconds": time.process_time() - cpu,
    }
    return {**figures, "hours": frames * corpus.features.hop_seconds / 3600}


def _hours(corpus: PackedCorpus) -> float:
    """Hours of the recordings, without their augmented copies."""
    return corpus.frames.sum() / (1 + corpus.augment.copies) * corpus.features.hop_seconds / 3600


def _settings() -> tuple[FeatureConfig, AugmentConfig]:
    """The recipe's features, without augmented copies."""
    values = yaml.safe_load((ROOT / RECIPE).read_text(encoding="utf-8"))
    return build_config(FeatureConfig, values.get("features", {})), AugmentConfig(copies=0)


def _record(folder: Path) -> list[Utterance]:
    """Write a recording of noise for each speaker, with a text."""
    rng = np.random.default_rng(0)
    syllables = tuple(full_inventory()[:SYLLABLES])
    found = []
    for speaker in range(SPEAKERS):
        path, seconds = folder / f"{speaker}.wav", rng.uniform(*SECONDS)
        write_wav(path, 0.1 * rng.normal(size=int(SAMPLE_RATE * seconds)))
        found.append(Utterance(str(speaker), path, seconds, str(speaker), syllables, "字" * SYLLABLES))
    return found


def _write_list(path: Path, sounds: Sequence[Utterance], hours: int) -> None:
    count = round(hours * 3600 / np.mean([utterance.seconds for utterance in sounds]))
    write_manifest(path, [replace(sounds[n % SPEAKERS], id=f"{n:09}") for n in range(count)])


def _repeat(packed: Path, folder: Path, times: float) -> None:
    """A packed corpus whose list names the shards of another one, by links, ``times`` times."""
    folder.mkdir()
    for path in packed.iterdir():
        if path.name not in (LIST, CHECKSUMS):
            (folder / path.name).symlink_to(path)
    lines = (packed / LIST).read_text(encoding="utf-8").splitlines(keepends=True)
    write_text(folder / LIST, "".join(islice(cycle(lines), max(1, round(len(lines) * times)))))
    record(folder / CHECKSUMS, [folder / LIST, folder / SETTINGS])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    sizes = {"type": positive, "nargs": "+", "metavar": "HOURS"}
    parser.add_argument("--hours", default=[1, 10, 100, 1000], help="read (default: %(default)s)", **sizes)
    parser.add_argument("--pack", default=[1, 10, 100], help="packed (default: %(default)s)", **sizes)
    parser.add_argument("--folder", help="where the generated corpora go (default: the system's)")
    parser.add_argument("--step", nargs="+", help="run this step here")
    return parser


if __name__ == "__main__":
    run_command(main)
