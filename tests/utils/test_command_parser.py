"""Tests of the command line of all commands: misspelt options, short and long help."""

import sys
from importlib.machinery import ModuleSpec

import pytest

from utils.command.arguments import language_run
from utils.command.parser import CommandParser


def parser() -> CommandParser:
    parsed = CommandParser(description="a\nb", common=("--format",))
    parsed.add_argument("files", nargs="*")
    parsed.add_argument("--format", choices=("text", "srt"))
    parsed.add_argument("--shift", type=int, nargs="+")
    return parsed


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["x.wav", "--formt", "srt"], "unknown option --formt: did you mean --format?"),
        (["--shft=3"], "unknown option --shft: did you mean --shift?"),
        (["-format", "srt"], "unknown option -format: did you mean --format?"),
        (["--zzz"], "unknown option --zzz\n"),
        (["--model"], "unknown option --model\n"),  # not --help
    ],
)
def test_a_misspelt_option_is_named_with_the_nearest_one(words, message, capsys):
    for parse in (parser().parse_args, parser().parse_intermixed_args):
        with pytest.raises(SystemExit, match="2"):
            parse(words)
        assert message in capsys.readouterr().err


def test_a_prefix_is_no_option(capsys):
    with pytest.raises(SystemExit):
        parser().parse_args(["--form", "srt"])
    assert "unknown option --form: did you mean --format?" in capsys.readouterr().err


def test_negative_numbers_and_words_after_two_dashes_are_not_misspelt():
    options = parser().parse_args(["--format", "srt", "--shift", "-200", "100", "--", "--formt"])
    assert (options.format, options.shift, options.files) == ("srt", [-200, 100], ["--formt"])


def test_the_usage_names_the_command_as_it_was_started(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["/project/recognition/align.py"])
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", ModuleSpec("recognition.align", None))
    outer = CommandParser()
    assert outer.prog == "python -m recognition.align"
    assert outer.add_subparsers().add_parser("prepare").prog == "python -m recognition.align prepare"
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", None)  # python recognition/align.py
    assert CommandParser().prog == "align.py"


def test_a_misspelt_option_of_an_action_is_named_by_the_action(capsys):
    outer = CommandParser()
    outer.add_subparsers().add_parser("prepare").add_argument("--output")
    with pytest.raises(SystemExit):
        outer.parse_args(["prepare", "--outptu", "x"])
    assert "did you mean --output?" in capsys.readouterr().err


def test_help_shows_the_common_options_and_help_all_the_others_too(capsys):
    for option, others in (("--help", False), ("--help-all", True)):
        with pytest.raises(SystemExit, match="0"):
            parser().parse_args([option])
        shown = capsys.readouterr().out
        assert "--format" in shown and "a\nb" in shown
        assert ("--shift" in shown) == others
    assert "--shift" not in parser().format_usage()


@pytest.mark.parametrize(
    "name", ["zh", "zh-CN", "Chinese", "MANDARIN", "中文", "zh_CN", "zh-Hans-CN", "auto"]
)
def test_mandarin_may_be_named_where_a_language_run_is_given(name):
    assert language_run(name) is None


def test_other_languages_are_refused_and_folders_are_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "zh").mkdir()
    assert [str(language_run(text)) for text in ("zh", "runs/none")] == ["zh", "runs/none"]
    takes_language = CommandParser()
    takes_language.add_argument("--language", type=language_run)
    with pytest.raises(SystemExit):
        takes_language.parse_args(["--language", "en"])
    assert "the only language that is recognised is Mandarin" in capsys.readouterr().err


def test_a_value_of_the_environment_that_is_wrong_names_its_variable(monkeypatch, capsys):
    monkeypatch.setenv("SPEECH_SHIFT", "3")
    monkeypatch.setenv("SPEECH_FILES", "x.wav")
    monkeypatch.setenv("SPEECH_HELP", "1")
    parsed = parser()
    parsed.set_environment_defaults("SPEECH_", leave_out=("files",))
    options = parsed.parse_args([])
    assert (options.shift, options.files) == (3, [])
    monkeypatch.setenv("SPEECH_SHIFT", "abc")
    with pytest.raises(SystemExit, match="2"):
        parser().set_environment_defaults("SPEECH_")
    assert "SPEECH_SHIFT: invalid int value: 'abc'" in capsys.readouterr().err
