"""Short runs of the load generator and of malformed requests: the service answers all of them."""

import re

import pytest

from benchmarks.serving import load, malformed


@pytest.mark.nightly
def test_malformed_requests_break_nothing(capsys):
    assert malformed.main(["--requests", "400"]) == 0
    shown = capsys.readouterr().out
    assert "0 answers of 500 or more, 0 errors and 0 traces" in shown
    assert "changed request" in shown


@pytest.mark.nightly
def test_some_clients_at_the_same_time(capsys):
    load.main(["--clients", "6", "--seconds", "2", "--workers", "1", "--requests", "2"])
    shown = capsys.readouterr().out
    answers = {int(status): int(count) for status, count in re.findall(r"(\d+): (\d+)", shown)}
    assert answers.keys() <= {200, 429}
    assert answers[200] > 0
