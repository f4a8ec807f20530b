"""Tests of the errors of users: the texts of a message, and how long it may be."""

import pytest

from utils.errors import UserError


@pytest.mark.parametrize(
    ("given", "text", "labelled"),
    [
        ({}, "message", "error: message"),
        ({"where": "there"}, "message, there", "error: message\nwhere: there"),
        ({"hint": "do this"}, "message, do this", "error: message\nhint: do this"),
    ],
)
def test_where_and_hint_may_be_left_out(given, text, labelled):
    error = UserError("message", **given)
    assert (str(error), error.labelled()) == (text, labelled)


@pytest.mark.parametrize("part", ["message", "where", "hint"])
@pytest.mark.parametrize("quoted", ["x" * 2_000_000, "好" * 2_000_000, "ni3 hao3 " * 250_000])
def test_a_message_never_echoes_megabytes(part, quoted):
    error = UserError(**{"message": "wrong", part: f"'{quoted}' is not pinyin"})
    assert len(str(error)) < 5_000 and " characters)" in str(error)
    assert len(error.labelled()) < 5_000
    assert quoted[:100].strip() in str(error)
    assert len(error.message) < 5_000  # which other messages contain
