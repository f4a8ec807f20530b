"""Tests of errors: user errors give labelled lines and exit code 2; other errors keep their stack trace."""

import errno
import signal
import subprocess
import sys

import pytest

from preflight.findings import Finding, apply, format_findings
from utils import errors
from utils.errors import ConfigError, UserError, run_command, shorten
from utils.stop_signals import Stopped


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


@pytest.mark.parametrize(
    ("given", "text", "labelled"),
    [
        ({}, "what", "error: what"),
        ({"where": "there"}, "what, there", "error: what\nwhere: there"),
        ({"hint": "do this"}, "what, do this", "error: what\nhint: do this"),
    ],
)
def test_where_and_hint_may_be_left_out(given, text, labelled):
    error = UserError("what", **given)
    assert (str(error), error.labelled()) == (text, labelled)


def test_ctrl_c_ends_without_a_stack_trace(capsys):
    assert exit_code(raising(KeyboardInterrupt())) == 130
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


def test_every_error_is_a_user_error():
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    assert len(kinds) >= 6
    assert all(issubclass(kind, UserError) for kind in kinds if kind.__module__ == errors.__name__)


@pytest.mark.parametrize("lines", [1, 100_000])
def test_a_closed_pipe_is_no_error(lines):
    code = f"from utils.errors import run_command; run_command(lambda: print('line\\n' * {lines}))"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait(timeout=200) == 0


@pytest.mark.parametrize("part", ["what", "where", "hint"])
@pytest.mark.parametrize("quoted", ["x" * 2_000_000, "好" * 2_000_000, "ni3 hao3 " * 250_000])
def test_a_message_never_echoes_megabytes(part, quoted):
    error = UserError(**{"what": "wrong", part: f"'{quoted}' is not pinyin"})
    assert len(str(error)) < 5_000 and " characters)" in str(error)
    assert len(error.labelled()) < 5_000
    assert quoted[:100].strip() in str(error)
    assert len(error.what) < 5_000  # which other messages contain


def test_usual_words_are_quoted_whole():
    text = f"'{'a' * 290}' {' '.join(['word'] * 700)}"
    assert shorten(text) == text


def test_findings_quote_no_megabytes():
    def strange(listing):
        yield Finding("error", "list.tsv", "x" * 2_000_000, "unknown syllable", "mend it", "y" * 2_000_000)

    (found,) = apply((strange,), None)
    assert len(format_findings([found])[0]) < 1_000
