"""Features and transcripts computed by a Ray cluster of one node and of two: seconds and their ratio.

    python -m benchmarks.project.cluster [--rounds 3] [--only transcripts]        # requirements/cluster.txt

The nodes are processes of this machine with one CPU each, so it needs two idle cores. A cluster of one node
runs on one core and a cluster of two on two: each core also does a share of what Ray and the command need.
(On two cores, a single node would have a core for its work alone and a second one for everything else.) The
utterances of the features name eight recordings of noise again and again, each with two augmented copies, so
little is read or written; the transcripts are those of the three recordings that come with the project, again
and again. The rounds alternate between the clusters; the first jobs of each node, which load the program and
the models, are not counted.
"""

from utils.command.entry import run_command

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from benchmarks.support.commands import ROOT
from benchmarks.support.recognizer import joint_recognizer
from data.features.augment import AugmentConfig
from data.features.cache import prepare_features
from data.manifest import Utterance
from recognition.cluster_jobs import transcribe_files
from utils.audio.reading import SAMPLE_RATE, write_wav
from utils.cluster import INSTALL, on_cluster
from utils.command.arguments import positive
from utils.errors import AudioError
from utils.features.speech import FeatureConfig
from utils.files import write_text
from utils.text_table import print_table

_SECONDS = 5.0  # length of a recording of noise
_AUGMENT = AugmentConfig(copies=2, noise_probability=0.5, room_probability=0.5)
_WORKERS = 8  # 128 jobs, as of a corpus four times as large: no node waits long for the other's last one
_RECORDINGS = ROOT / "examples" / "recordings"
_FIRST = 128  # utterances for each node that are not counted


@dataclass(frozen=True)
class Work:
    """What the nodes compute.

    Attributes:
        title: of the printed table.
        utterances: their number.
        compute: writes the results for so many utterances into a folder.
    """

    title: str
    utterances: int
    compute: Callable[[int, Path], None]


def main() -> None:
    """Compute the same on both clusters, print a table for each kind of work."""
    options = _parser().parse_args()
    if find_spec("ray") is None:
        print(f"skipped: Ray is not installed ({INSTALL})")
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for kind in [options.only] if options.only else WORKS:
            _compare(WORKS[kind], folder / kind, options.rounds)


def _compare(work: Work, folder: Path, rounds: int) -> None:
    folder.mkdir()
    seconds: dict[int, list[float]] = {1: [], 2: []}
    for round_ in range(rounds):
        for nodes in seconds:
            with _cluster_of(nodes) as address, on_cluster(address):
                work.compute(_FIRST * nodes, folder / f"first_{nodes}_{round_}")
                began = time.perf_counter()
                work.compute(work.utterances, folder / f"{nodes}_{round_}")
                seconds[nodes].append(time.perf_counter() - began)
    results = [_content(folder / f"{nodes}_0") for nodes in seconds]
    ratio = statistics.median(single / two for single, two in zip(*seconds.values(), strict=True))
    rows = [(str(nodes), " ".join(f"{value:.1f}" for value in values)) for nodes, values in seconds.items()]
    print_table(f"{work.utterances:,} utterances: {work.title}", ("nodes", "seconds"), rows)
    print(f"1 to 2 nodes: {ratio:.2f} times as fast; the same bytes: {results[0] == results[1]}")


def _features_of_noise(count: int, output: Path) -> None:
    paths = [output.parent / f"{number}.wav" for number in range(8)]
    for number, path in enumerate(paths):
        if not path.is_file():  # a recording that is written again has other keys
            write_wav(path, 0.1 * np.random.default_rng(number).normal(size=int(SAMPLE_RATE * _SECONDS)))
    utterances = [
        Utterance(f"{number:06}", paths[number % 8], _SECONDS, "s", ("ma1",), "妈") for number in range(count)
    ]
    prepare_features(utterances, FeatureConfig(), output, _AUGMENT, workers=_WORKERS)


def _transcripts(count: int, output: Path) -> None:
    output.mkdir()
    recordings = sorted(_RECORDINGS.glob("*.ogg"))
    chosen = [recordings[number % len(recordings)] for number in range(count)]
    for number, text in transcribe_files(joint_recognizer, "text", False, chosen):
        if isinstance(text, AudioError):
            raise text
        write_text(output / f"{number:06}.txt", text)


WORKS = {
    "features": Work(f"features of {_SECONDS:.0f} s, 2 copies", 2000, _features_of_noise),
    "transcripts": Work("transcripts", 1600, _transcripts),
}


@contextmanager
def _cluster_of(nodes: int) -> Iterator[str]:
    """The address of a cluster of nodes with one CPU each, beside a head without any, on as many cores."""
    from ray.cluster_utils import Cluster

    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(cores)[:nodes])  # Ray's processes inherit it
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    for _ in range(nodes):
        cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    try:
        yield cluster.address
    finally:
        cluster.shutdown()
        os.sched_setaffinity(0, cores)


def _content(folder: Path) -> dict[str, bytes]:
    paths = [*folder.rglob("*.npy"), *folder.rglob("*.txt")]
    return {path.name: path.read_bytes() for path in paths}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", choices=tuple(WORKS), help="default: both")
    parser.add_argument(
        "--rounds", type=positive, default=3, help="rounds of each cluster (default: %(default)s)"
    )
    return parser


if __name__ == "__main__":
    run_command(main)
