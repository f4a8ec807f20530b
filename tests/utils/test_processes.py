"""Tests of the worker processes: the message where the system can't start them."""

import pytest

from utils.errors import UserError
from utils.processes import WorkerPool


@pytest.mark.parametrize(
    "error", [PermissionError(13, "Permission denied"), NotImplementedError("no semaphores")]
)
def test_without_shared_memory_the_message_names_it_and_a_way_out(monkeypatch, error):
    def refused(*_, **__):
        raise error

    monkeypatch.setattr("utils.processes.ProcessPoolExecutor", refused)
    with pytest.raises(UserError, match=r"can't be started .*/dev/shm writable, .*--workers 1"):
        WorkerPool(2)
