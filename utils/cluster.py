"""Computes the jobs of this process on the nodes of a Ray cluster instead of here.

``with on_cluster(ADDRESS):`` sends the jobs of :func:`utils.processes.run_jobs` there. The nodes need the
project, its packages and the data under the same paths as this machine (a shared file system), because a job
is a function of the project with paths as its arguments, and writes files as it does on this machine.

A job must give the same when it runs twice: the jobs of a node or process that is lost run again on another
one. Ray is described by Moritz et al., "Ray: A distributed framework for emerging AI applications" (2018).
"""

import argparse
import importlib
import os
import platform
import socket
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from utils.errors import ConfigError
from utils.processes import jobs_elsewhere

LOCAL = "local"
INSTALL = "pip install -r requirements/cluster.txt"
_ROOT = str(Path(__file__).resolve().parents[1])
_CONNECT_SECONDS = 20.0
_RETRIES = 3  # of a job whose node or process was lost
_PENDING_PER_CPU = 4  # jobs sent ahead, so that no CPU waits for its next one
# A job has one CPU.
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "TF_NUM_INTRAOP_THREADS"), "1")


def add_cluster(parser: argparse.ArgumentParser) -> None:
    """Add ``--cluster ADDRESS``, whose value is for :func:`on_cluster`."""
    parser.add_argument(
        "--cluster",
        metavar="ADDRESS",
        help="compute on a Ray cluster (HOST:6379, or auto on one of its nodes); local: one that is started "
        "on this machine. The nodes need the same files under the same paths",
    )


@contextmanager
def on_cluster(address: str | None) -> Iterator[None]:
    """Compute the jobs of this block on the cluster at ``address``; None changes nothing.

    Raises:
        ConfigError: Ray is not installed, or there is no cluster at the address.
    """
    if address is None:
        yield
        return
    ray = _ray()
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    environment = {**_ONE_THREAD, "PYTHONPATH": os.pathsep.join([_ROOT, os.environ.get("PYTHONPATH", "")])}
    start = {"include_dashboard": False} if address == LOCAL else {}
    try:
        _check_address(address)
        ray.init(
            address=address,
            runtime_env={"env_vars": environment},
            log_to_driver=False,
            logging_level="ERROR",
            **start,
        )
    except (OSError, RuntimeError, ValueError) as error:
        raise ConfigError(
            f"no Ray cluster answers ({error})",
            where=address,
            hint="start a node with 'ray start --head', or give --cluster local",
        ) from error
    try:
        with jobs_elsewhere(partial(_run_jobs, ray)):
            yield
    finally:
        ray.shutdown()


def _check_address(address: str) -> None:
    """Raise an OSError if nothing listens at HOST:PORT, for which Ray itself would wait minutes."""
    host, _, port = address.rpartition(":")
    if port.isdecimal():
        socket.create_connection((host, int(port)), timeout=_CONNECT_SECONDS).close()


def _ray() -> ModuleType:
    try:
        return importlib.import_module("ray")
    except ImportError as error:
        raise ConfigError("--cluster needs Ray, which is not installed", hint=INSTALL) from error


def _run_jobs(ray: ModuleType, work: Callable[[Any], Any], jobs: Iterable[Any]) -> Iterator[Any]:
    """Results of ``work(job)`` as they come; only some jobs are sent ahead, so that any number may follow."""
    task = ray.remote(num_cpus=1, max_retries=_RETRIES)(_work_in)
    folder, remaining, pending = str(Path.cwd()), iter(jobs), []
    try:
        while True:
            limit = _PENDING_PER_CPU * max(1, int(ray.cluster_resources().get("CPU", 1)))
            for job in remaining:
                pending.append(task.remote(folder, work, job))
                if len(pending) >= limit:
                    break
            if not pending:
                return
            done, pending = ray.wait(pending, num_returns=1)
            yield _result(ray, done[0])
    finally:
        for reference in pending:
            ray.cancel(reference)


def _result(ray: ModuleType, reference: Any) -> Any:
    """The result of a job; its own errors are raised as they are."""
    try:
        return ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        raise error.cause from error
    except ray.exceptions.RayError as error:
        raise BrokenExecutor(str(error)) from error


def _work_in(folder: str, work: Callable[[Any], Any], job: Any) -> Any:
    """Do a job, on a node, in the folder of the command."""
    try:
        os.chdir(folder)
    except OSError as error:
        raise ConfigError(
            f"the node {platform.node()} has no such folder",
            where=folder,
            hint="the nodes of a cluster need the project and the data under the same paths",
        ) from error
    return work(job)
