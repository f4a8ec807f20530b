"""Tests of how commands end: errors of users give labelled lines and exit code 2, others a stack trace."""

from utils.command.entry import run_command

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from utils.errors import ConfigError
from utils.stop_signals import Stopped

ROOT = Path(__file__).parents[2]
# Commands that don't work with requirements/run.txt alone, and a package that each of them then lacks.
LACKING = {
    "test.py speech RUN": "rapidfuzz",
    "inspect_model.py weights RUN": "h5py",
    "train.py speech --config configs/demo/speech.yaml --run RUN": "keras",
    "export.py pretrained/audio_to_pinyin": "tensorflow",
}
INSTALL = "pip install -r requirements.txt (requirements/run.txt is for shipped and exported models only)"


def exit_code(main) -> int:
    with pytest.raises(SystemExit) as caught:
        run_command(main)
    return caught.value.code


def raising(error: BaseException):
    def main() -> int:
        raise error

    return main


@pytest.mark.parametrize(("returned", "code"), [(None, 0), (0, 0), (1, 1), (3, 3)])
def test_the_exit_code_is_what_main_returns(returned, code):
    assert exit_code(lambda: returned) == code


def test_a_users_mistake_is_three_labelled_lines_on_stderr(capsys):
    assert exit_code(raising(ConfigError("no such file", where="a.yaml", hint="try b.yaml"))) == 2
    shown = capsys.readouterr()
    assert shown.err == "error: no such file\nwhere: a.yaml\nhint: try b.yaml\n"
    assert shown.out == ""


def test_ctrl_c_ends_without_a_stack_trace(capsys):
    assert exit_code(raising(KeyboardInterrupt())) == 130
    assert "Ctrl-C" in capsys.readouterr().err


def test_an_error_that_a_compiled_module_made_of_ctrl_c_is_ctrl_c(capsys):
    error = SystemError("returned a result with an exception set")
    error.__cause__ = KeyboardInterrupt()
    assert exit_code(raising(error)) == 130
    assert "Ctrl-C" in capsys.readouterr().err


def test_sigterm_is_reported_by_its_name_and_the_exit_code_of_the_shells(capsys):
    assert exit_code(raising(Stopped(signal.SIGTERM))) == 143
    assert capsys.readouterr().err == "stopped by SIGTERM\n"


def test_a_full_disk_and_a_forbidden_file_are_user_errors(capsys):
    assert exit_code(raising(OSError(errno.ENOSPC, "No space left on device"))) == 2
    assert capsys.readouterr().err == (
        "error: No space left on device\n"
        "where: while writing\n"
        "hint: free some space, then run the same command again\n"
    )
    assert exit_code(raising(PermissionError(errno.EACCES, "Permission denied", "/x"))) == 2
    assert capsys.readouterr().err == (
        "error: Permission denied\nwhere: /x\nhint: change the permissions, or choose another path\n"
    )


def test_a_package_that_is_not_installed_is_a_user_error(capsys):
    assert exit_code(raising(ModuleNotFoundError("No module named 'keras.src'", name="keras.src"))) == 2
    shown = capsys.readouterr().err
    assert shown.startswith("error: the package keras is missing\nhint: pip install -r requirements.txt")


@pytest.mark.parametrize(
    "error",
    [
        ValueError("a bug"),
        OSError(errno.EIO, "I/O error"),
        ModuleNotFoundError("No module named 'utils.absent'", name="utils.absent"),
    ],
)
def test_a_bug_keeps_its_stack_trace(error):
    with pytest.raises(type(error)):
        run_command(raising(error))


@pytest.mark.parametrize("lines", [1, 100_000])
def test_a_closed_pipe_is_no_error(lines):
    code = f"from utils.command.entry import run_command; run_command(lambda: print('line\\n' * {lines}))"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait(timeout=200) == 0


@pytest.mark.parametrize("command", LACKING)
def test_a_package_that_is_missing_while_a_command_starts_is_named(command, tmp_path: Path):
    package = LACKING[command]
    error = f"ModuleNotFoundError(\"No module named '{package}'\", name='{package}')"
    (tmp_path / f"{package}.py").write_text(f"raise {error}\n", encoding="utf-8")
    arguments = command.replace("RUN", str(tmp_path / "run")).split()
    done = python(*arguments, environment={"PYTHONPATH": str(tmp_path)})
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"error: the package {package} is missing\nhint: {INSTALL}\n"


def python(*arguments: str, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "KERAS_BACKEND": "tensorflow", **(environment or {})}
    return subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )


def interrupted(command: str) -> subprocess.CompletedProcess[str]:
    """A program that gets Ctrl-C while it imports a module."""
    # A shell starts background jobs with Ctrl-C ignored, and the test runner may be such a job.
    heard = "signal.signal(signal.SIGINT, signal.default_int_handler)"
    return python("-c", f"import signal; {heard}; {command}; signal.raise_signal(signal.SIGINT)")


def test_ctrl_c_while_a_command_imports_its_modules_ends_it_quietly():
    done = interrupted("from utils.command.entry import run_command")
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "stopped by Ctrl-C\n")


def test_programs_that_are_no_commands_keep_their_stack_trace():
    """A user's program that imports modules of this project."""
    done = interrupted("import utils.command.entry")
    assert done.returncode == -signal.SIGINT and "KeyboardInterrupt" in done.stderr
    done = python("-c", "import utils.command.entry, absent")
    assert done.returncode == 1 and "ModuleNotFoundError: No module named 'absent'" in done.stderr
