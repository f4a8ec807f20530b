"""Feature shards computed by a Ray cluster of one node and of two: seconds and their ratio.

    python -m benchmarks.project.cluster [--utterances 2000] [--rounds 3]        # requirements/cluster.txt

The nodes are processes of this machine with one CPU each, so it needs two idle cores. A cluster of one node
runs on one core and a cluster of two on two: each core also does a share of what Ray and the command need.
(On two cores, a single node would have a core for its work alone and a second one for everything else.) The
utterances name eight recordings of noise again and again, each with two altered copies, so little is read
or written. The rounds alternate between the clusters; the first job of each node, which loads the program,
is not counted.
"""

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from benchmarks.support.tables import print_table
from data.features.augment import AugmentConfig
from data.features.cache import prepare_features
from data.manifest import Utterance
from utils.audio.reading import SAMPLE_RATE, write_wav
from utils.cli import positive
from utils.cluster import INSTALL, on_cluster
from utils.errors import run_command
from utils.features.speech import FeatureConfig

_SECONDS = 5.0  # length of a recording
_AUGMENT = AugmentConfig(copies=2, noise_probability=0.5, room_probability=0.5)
_WORKERS = 8  # 128 jobs, as of a corpus four times as large: no node waits long for the other's last one


def main() -> None:
    """Compute the same features on both clusters, print the table."""
    options = _parser().parse_args()
    if find_spec("ray") is None:
        print(f"skipped: Ray is not installed ({INSTALL})")
        return
    seconds: dict[int, list[float]] = {1: [], 2: []}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        utterances = _utterances(folder, options.utterances)
        for round_ in range(options.rounds):
            for nodes in seconds:
                with _cluster_of(nodes) as address, on_cluster(address):
                    _compute(utterances[: 128 * nodes], folder / f"first_{nodes}_{round_}")
                    began = time.perf_counter()
                    _compute(utterances, folder / f"features_{nodes}_{round_}")
                    seconds[nodes].append(time.perf_counter() - began)
        shards = [_content(folder / f"features_{nodes}_0") for nodes in seconds]
    ratio = statistics.median(single / two for single, two in zip(*seconds.values(), strict=True))
    rows = [(str(nodes), " ".join(f"{value:.1f}" for value in values)) for nodes, values in seconds.items()]
    print_table(
        f"{options.utterances:,} utterances of {_SECONDS:.0f} s, 2 copies", ("nodes", "seconds"), rows
    )
    print(f"1 to 2 nodes: {ratio:.2f} times as fast; the same bytes: {shards[0] == shards[1]}")


def _compute(utterances: list[Utterance], folder: Path) -> None:
    prepare_features(utterances, FeatureConfig(), folder, _AUGMENT, workers=_WORKERS)


def _utterances(folder: Path, count: int) -> list[Utterance]:
    paths = [folder / f"{number}.wav" for number in range(8)]
    for number, path in enumerate(paths):
        write_wav(path, 0.1 * np.random.default_rng(number).normal(size=int(SAMPLE_RATE * _SECONDS)))
    return [Utterance(f"{n:06}", paths[n % 8], _SECONDS, "s", ("ma1",), "妈") for n in range(count)]


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
    return {path.name: path.read_bytes() for path in folder.rglob("*.npy")}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--utterances", type=positive, default=2000, help="default: %(default)s")
    parser.add_argument(
        "--rounds", type=positive, default=3, help="rounds of each cluster (default: %(default)s)"
    )
    return parser


if __name__ == "__main__":
    run_command(main)
