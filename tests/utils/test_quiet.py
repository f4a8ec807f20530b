"""Tests of utils/backend/quiet.py: native start-up messages are suppressed, all others are shown."""

import os

import pytest

from utils.backend.quiet import hide_native_messages, silence_tensorflow

NOTES = (
    "WARNING: All log messages before absl::InitializeLog() is called are written to STDERR\n"
    "I0000 00:00:1795261719.118664    5723 cudart_stub.cc:31] Could not find cuda drivers on your machine.\n"
    "E0000 00:00:1795261721.646497    5723 cuda_platform.cc:52] failed call to cuInit\n"
    "2026-11-21 12:00:00.123456: I tensorflow/core/util/port.cc:153] oneDNN custom operations are on.\n"
    "To enable the following instructions: AVX2 FMA, in other operations, rebuild TensorFlow.\n"
)


def test_notes_are_held_back_and_the_rest_is_passed_on(capfd):
    with hide_native_messages():
        os.write(2, NOTES.encode())
        os.write(2, "Illegal instruction 中文\n".encode())
    assert capfd.readouterr().err == "Illegal instruction 中文\n"


def test_an_error_while_loading_gets_through(capfd):
    with pytest.raises(ImportError), hide_native_messages():
        os.write(2, b"a reason\n")
        raise ImportError("no TensorFlow")
    os.write(2, b"afterwards\n")
    assert capfd.readouterr().err == "a reason\nafterwards\n"


def test_the_log_level_is_the_users_if_set(monkeypatch):
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "0")
    silence_tensorflow()
    assert os.environ["TF_CPP_MIN_LOG_LEVEL"] == "0"
    monkeypatch.delenv("TF_CPP_MIN_LOG_LEVEL")
    silence_tensorflow()
    assert os.environ["TF_CPP_MIN_LOG_LEVEL"] == "2"
