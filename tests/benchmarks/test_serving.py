"""A short run of the load generator: the service answers all requests."""

import re

import pytest

from benchmarks.serving import load


@pytest.mark.nightly
def test_some_clients_at_the_same_time(capsys):
    load.main(["--clients", "6", "--seconds", "2", "--workers", "1", "--requests", "2"])
    shown = capsys.readouterr().out
    answers = {int(status): int(count) for status, count in re.findall(r"(\d+): (\d+)", shown)}
    assert answers.keys() <= {200, 429}
    assert answers[200] > 0
