"""Tests of every command: quick help with an example, user errors in labelled lines, no stack trace."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.documented_commands import Command, module_of
from tests.support.scripts import exit_code

ROOT = Path(__file__).parents[2]
COMMANDS = {
    "train.py": ["train.py"],
    "test.py": ["test.py"],
    "test.py pipeline": ["test.py", "pipeline"],
    "transcribe.py": ["transcribe.py"],
    "inspect_model.py": ["inspect_model.py"],
    "inspect_model.py transfer": ["inspect_model.py", "transfer"],
    "demo.py": ["demo.py"],
    "doctor.py": ["doctor.py"],
    "data.vocabularies": ["-m", "data.vocabularies"],
    "data.corpora.thchs30": ["-m", "data.corpora.thchs30"],
    "data.corpora.aishell1": ["-m", "data.corpora.aishell1"],
    "data.corpora.manifest_lists": ["-m", "data.corpora.manifest_lists"],
    "data.corpora.synthetic": ["-m", "data.corpora.synthetic"],
    "data.corpora.synthetic generate": ["-m", "data.corpora.synthetic", "generate"],
}
# Runs a command and writes the modules that it loaded: help is quick if few are imported. Modules are counted
# because seconds differ threefold between machines.
PROBE = """
import os, runpy, sys
arguments = sys.argv[1:]
sys.path.insert(0, "")
try:
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = arguments
        runpy.run_path(arguments[0], run_name="__main__")
except SystemExit as end:
    with open(os.environ["PROBED"], "w") as file:
        file.write(" ".join(sys.modules))
    raise
"""
MOST_MODULES = 800
SLOW_TO_IMPORT = {
    "tensorflow",
    "keras",
    "jax",
    "torch",
    "onnxruntime",
    "matplotlib.pyplot",
    "pandas",
    "scipy.signal",
    "scipy.stats",
}
NOWHERE = {
    "train.py": ["train.py", "speech", "--config", "nowhere.yaml", "--run", "{tmp}/run"],
    "test.py": ["test.py", "pipeline", "{tmp}/nowhere", "{tmp}/nowhere"],
    "transcribe.py": ["transcribe.py", "nowhere.wav", "--speech", "{tmp}/no", "--language", "{tmp}/no"],
    "inspect_model.py": ["inspect_model.py", "transfer", "nowhere", "{tmp}/new", "--vocabulary", "no.txt"],
    "doctor.py": ["doctor.py", "nowhere"],
    "data.vocabularies": ["-m", "data.vocabularies", "nowhere.tsv"],
    "data.corpora.thchs30": ["-m", "data.corpora.thchs30", "prepare", "nowhere", "--output", "{tmp}"],
    "data.corpora.aishell1": ["-m", "data.corpora.aishell1", "prepare", "nowhere", "--output", "{tmp}"],
    "data.corpora.manifest_lists": [
        "-m",
        "data.corpora.manifest_lists",
        "prepare",
        "nowhere",
        "--output",
        "{tmp}",
    ],
    "data.corpora.synthetic": ["-m", "data.corpora.synthetic", "prepare", "nowhere", "--output", "{tmp}"],
}


def run(arguments: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    # As for a user: JAX, which another test may have loaded, sets TensorFlow's log level for its process.
    inherited = {name: value for name, value in os.environ.items() if name != "TF_CPP_MIN_LOG_LEVEL"}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**inherited, **environment},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=600,
        check=False,
    )


@pytest.mark.parametrize("arguments", COMMANDS.values(), ids=COMMANDS)
def test_help_is_quick_quiet_and_shows_an_example(tmp_path, arguments):
    probed = tmp_path / "probed"
    done = run(["-c", PROBE, *arguments, "--help"], PROBED=str(probed), COLUMNS="100")
    assert done.returncode == 0
    assert done.stderr == ""
    assert done.stdout.startswith("usage: ")
    example = " ".join(arguments[:2]) if arguments[0] == "-m" else arguments[0]
    assert f"\n  python {example}" in done.stdout.partition("examples:")[2]
    loaded = probed.read_text(encoding="utf-8").split()
    assert not SLOW_TO_IMPORT.intersection(loaded)
    assert len(loaded) <= MOST_MODULES


@pytest.mark.parametrize("arguments", NOWHERE.values(), ids=NOWHERE)
def test_a_wrong_path_is_one_message_that_names_it(tmp_path, arguments, nightly, capsys):
    """Called in this process; with --nightly from a shell."""
    words = [argument.format(tmp=tmp_path) for argument in arguments]
    if nightly:
        done = run(words)
        code, printed, messages = done.returncode, done.stdout, done.stderr
    else:
        call = Command("", tuple(words))
        code = exit_code(module_of(call.program).main, call.arguments)
        printed, messages = capsys.readouterr()
    assert code == 2, messages
    labels = [line.partition(": ")[0] for line in messages.splitlines()]
    assert labels[0] == "error" and labels == [
        label for label in ("error", "where", "hint") if label in labels
    ]
    assert "nowhere" in messages or str(tmp_path) in messages
    assert printed == ""


@pytest.mark.parametrize(
    "arguments", [["train.py", "speach"], ["test.py", "pipeline", "--spilt", "dev", "a", "b"]]
)
def test_a_misspelt_word_is_answered_with_the_usage(arguments):
    done = run(arguments)
    assert done.returncode == 2
    assert done.stderr.startswith("usage: ")
    assert "Traceback" not in done.stderr
