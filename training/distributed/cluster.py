"""Reads ``TF_CONFIG`` (the processes that train together) and waits until all of them have started.

TensorFlow waits for a missing process forever, without a message, and ignores Ctrl-C meanwhile.
:func:`wait_for_workers` prevents that.
"""

import json
import logging
import re
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass

from utils.errors import ConfigError, TrainingError

log = logging.getLogger("train")

VARIABLE = "TF_CONFIG"  # environment variable
EXAMPLE = (
    '\'{"cluster": {"worker": ["10.0.0.1:2222", "10.0.0.2:2222"]}, "task": {"type": "worker", "index": 0}}\''
)
JOBS = ("chief", "worker")  # in the order in which TensorFlow counts the processes
WAIT_SECONDS = 600.0  # then a process that is missing is an error
_POLL_SECONDS = 0.5  # between two attempts to reach the missing processes
_REPORT_SECONDS = 15.0  # between two log lines that name them
_CONNECT_TIMEOUT = 5.0  # seconds


@dataclass(frozen=True)
class Cluster:
    """The processes that train together.

    Attributes:
        names: names of all processes: ``worker 0`` …; the first is the chief, which writes the run folder.
        addresses: ``host:port`` of each process.
        index: index of this process.
    """

    names: tuple[str, ...]
    addresses: tuple[str, ...]
    index: int

    def describe(self, index: int) -> str:
        """``worker 1 (10.0.0.2:2222)``."""
        return f"{self.names[index]} ({self.addresses[index]})"


def read_cluster(environment: Mapping[str, str]) -> Cluster:
    """Read and check ``TF_CONFIG``.

    Raises:
        ConfigError: it is missing, not JSON, or does not describe a cluster with this process.
    """
    try:
        config = json.loads(environment[VARIABLE])
        jobs, task = config["cluster"], config["task"]
        names = tuple(f"{job} {index}" for job in JOBS for index in range(len(jobs.get(job, ()))))
        addresses = tuple(address for job in JOBS for address in jobs.get(job, ()))
        for address in addresses:
            if not re.fullmatch(r".+:\d{1,5}", address):
                raise ValueError(f"{address!r} is not host:port")
        return Cluster(names, addresses, names.index(f"{task['type']} {task['index']}"))
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise ConfigError(
            f"--distribute multi_worker reads {VARIABLE}: it is missing or wrong ({error})",
            hint=f"such as {EXAMPLE}",
        ) from error


def wait_for_workers(cluster: Cluster, wait_seconds: float = WAIT_SECONDS) -> None:
    """Wait until every process of the cluster listens at its address.

    Raises:
        ConfigError: the port of this process is in use.
        TrainingError: a process did not start in time; the error names it.
    """
    start = reported = time.monotonic()
    missing = [index for index in range(len(cluster.names)) if index != cluster.index]
    with _listen(cluster):
        # Later TensorFlow's server listens at the same address.
        while missing := [index for index in missing if not answers(cluster.addresses[index])]:
            named = ", ".join(map(cluster.describe, missing))
            now = time.monotonic()
            if now - start > wait_seconds:
                raise TrainingError(
                    f"no answer from {named} in {wait_seconds:.0f} s",
                    hint="start the same command there, with its own task in TF_CONFIG; check the firewall",
                )
            if now - reported > _REPORT_SECONDS:
                log.warning("waiting for %s", named)  # a warning is printed: the run has no log yet
                reported = now
            time.sleep(_POLL_SECONDS)


def answers(address: str) -> bool:
    """Whether a process listens at ``host:port``."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_TIMEOUT):
            return True
    except (OSError, OverflowError):
        return False


def _listen(cluster: Cluster) -> socket.socket:
    port = int(cluster.addresses[cluster.index].rpartition(":")[2])
    try:
        return socket.create_server(("", port), backlog=128)
    except (OSError, OverflowError) as error:
        raise ConfigError(
            f"port {port} of {cluster.describe(cluster.index)} can't be opened here ({error})",
            hint="stop the job if it is already running on this machine, or choose another port in "
            f"{VARIABLE}",
        ) from error
