"""Tests that every command in the texts is accepted by its program; those without a corpus are run."""

import argparse
import contextlib
import io
import itertools
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import pytest

from model_language import pinyin_to_hanzi
from tests.support.documented_commands import (
    ELLIPSIS,
    Command,
    all_commands,
    command_modules,
    commands_in_lines,
    makefile_targets,
    module_of,
    parser_of,
    parsers,
)
from tests.support.scripts import ROOT
from tests.support.tiny_runs import write_language_run, write_speech_run
from training.run import RECIPES
from utils.config import load_config
from utils.errors import UserError
from utils.files import write_json, write_text
from utils.run_folder.run import RunFolder

EXTERNAL = frozenset({"pip", "pytest", "venv"})
ANY_RECIPE = "CONFIG"


def problem(command: Command) -> str | None:
    """The reason why a command is not valid; None if it is."""
    if command.program == "make":
        return _problem_of_make(command.arguments)
    if command.program in EXTERNAL:
        missing = [word for word in command.arguments if word.endswith(".py") and not (ROOT / word).is_file()]
        return f"no such file: {missing}" if missing else None
    if command.words[0] != "-m" and not (ROOT / command.program).is_file():
        return "no such script"
    try:
        module = module_of(command.program)
    except ImportError as error:
        return f"no such module: {error}"
    if command.words[0] == "-m" and command.program not in command_modules():
        return "no command: nothing runs it"
    parser = parser_of(module)
    if not parser or not command.arguments:
        return None  # an example without options, or the name of a program
    words = command.arguments
    if command.program == "export.py" and words[0] == "verify":
        parser, words = module._verify_parser(), words[1:]
    if ELLIPSIS in words:
        return _unknown_options(parser, words)
    try:
        options, overrides = _parsed(parser, words)
    except ValueError as error:
        return str(error)
    overrides += [word for word in _positional_overrides(options) if word not in overrides]
    if wrong := [word for word in overrides if "=" not in word]:
        return f"unrecognised: {wrong}"
    return _problem_of_config(command, options, overrides)


def _parsed(parser: argparse.ArgumentParser, words: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    """The options that a parser reads from the words, and the remaining words.

    Raises:
        ValueError: the parser refuses them.
    """
    has_actions = any(isinstance(action, argparse._SubParsersAction) for action in parser._actions)
    parse = parser.parse_known_args if has_actions else parser.parse_known_intermixed_args
    messages = io.StringIO()
    try:
        with contextlib.redirect_stderr(messages), contextlib.redirect_stdout(io.StringIO()):
            return parse(list(words))
    except SystemExit as end:
        if end.code == 0:  # --help
            return argparse.Namespace(), []
        raise ValueError(messages.getvalue().strip().splitlines()[-1]) from end


def _unknown_options(parser: argparse.ArgumentParser, words: Sequence[str]) -> str | None:
    """Options that no part of a parser has, which is all that can be checked with an ellipsis."""
    known = set(_option_names(parser))
    unknown = [word for word in words if word.startswith("--") and word not in known]
    return f"unknown options: {unknown}" if unknown else None


def _option_names(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:
        yield from action.option_strings
        if isinstance(action, argparse._SubParsersAction):
            for subparser in action.choices.values():
                yield from _option_names(subparser)


def _positional_overrides(options: argparse.Namespace) -> list[str]:
    words = [*(getattr(options, "overrides", None) or ()), *(getattr(options, "paths", None) or ())]
    return [str(word) for word in words if "=" in str(word)]


def _problem_of_config(command: Command, options: argparse.Namespace, overrides: Sequence[str]) -> str | None:
    """The problem of a recipe that is missing or refuses its overrides."""
    config = getattr(options, "config", None)
    if config is None and not overrides:
        return None
    of_speech = command.program in ("doctor.py", "training.feature_shards")
    folder = Path(config or "").parent.name  # doctor.py takes recipes of any task
    own_task = folder if command.program == "doctor.py" and folder in RECIPES else None
    task = getattr(options, "task", None) or own_task or ("speech" if of_speech else "keyword")
    if config is not None and str(config) != ANY_RECIPE:
        recipes = [ROOT / config]
        if not recipes[0].is_file():
            return f"no such recipe: {config}"
    else:
        recipes = sorted((ROOT / "configs" / task).glob("*.yaml"))
    schema, variants, _ = RECIPES[task]
    problems = []
    for recipe in recipes:
        try:
            load_config(schema, recipe, [f"task={task}", *overrides], variants)
            return None
        except UserError as error:
            problems.append(str(error))
    return problems[0]


def _problem_of_make(words: Sequence[str]) -> str | None:
    variables = [word.partition("=")[0] for word in words if "=" in word]
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    unknown = [word for word in words if "=" not in word and word not in makefile_targets()]
    unknown += [name for name in variables if f"$({name})" not in text]
    return f"not in the Makefile: {unknown}" if unknown else None


def test_every_command_of_every_text_is_accepted():
    found = all_commands()
    assert len(found) > 400
    distinct = {command.words: command for command in found}.values()
    problems = {str(command): reason for command in distinct if (reason := problem(command))}
    assert not problems, "\n".join(f"{command}\n    {reason}" for command, reason in problems.items())


@pytest.mark.parametrize("program", command_modules())
def test_help_of_every_command(program, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "110")
    with pytest.raises(SystemExit) as end:
        dict(parsers())[program].parse_args(["--help"])
    assert end.value.code == 0
    assert capsys.readouterr().out.startswith("usage: ")


RUN = {"convert.py", "analysis.report", "compare_runs.py"}
RESULTS = {"audio_seconds": 60.0, "seconds": 2.0}  # minimal results of a test
_FILE = re.compile(r"[\w/*]+(\.\w+)+|\w+/\S+|utt2spk")  # among the arguments of these commands


@pytest.fixture
def workspace(tmp_path, monkeypatch) -> Path:
    """A folder with small files and runs under the names that the texts use."""
    files = {
        "lines.txt": "ni3 hao3\nwo3 hao3\n",
        "names.txt": "妮 ni3 50\n",
        "a.txt": "a 今天天气很好\nb 我们去公园\n",
        "b.txt": "a 你好\nb 我们去公园吧\n",
        "ref.txt": "a 你好\nb 我很好\n",
        "hyp.txt": "a 你好\nb 我好\n",
        "other.txt": "a 你\nb 我很好\n",
        "utt2spk": "a one\nb two\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    language = write_language_run(tmp_path / "runs" / "ngram", Path("none.tsv"))
    speech = RunFolder(write_speech_run(tmp_path / "runs" / "speech", Path("none.tsv")))
    write_text(speech.history, "epoch,step,dev_syllable_error_rate,seconds\n1,10,0.5,30.0\n")
    for run in (language, speech.path):
        write_json(run / "test" / "dev" / "results.json", RESULTS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _is_runnable(command: Command, folder: Path) -> bool:
    """Whether every file that a command reads is in the folder."""
    if command.words == ("demo.py", "--list"):
        return True
    if command.program not in RUN or not (command.arguments or command.typed):
        return False
    if ELLIPSIS in command.arguments:
        return False
    outputs = {after for option, after in itertools.pairwise(command.arguments) if option == "--output"}
    names = [*command.arguments, *filter(None, [command.read])]
    files = [word for word in names if _FILE.fullmatch(word) and word not in outputs]
    return all(any(folder.glob(word)) for word in files)


def test_commands_that_need_no_corpus_run(workspace, capsys, monkeypatch):
    # Each converter is loaded once.
    monkeypatch.setattr(pinyin_to_hanzi, "load_converter", cache(pinyin_to_hanzi.load_converter))
    runnable = {command.words: command for command in all_commands() if _is_runnable(command, workspace)}
    for command in runnable.values():
        (workspace / "typed").write_text(f"{command.typed or ''}\n", encoding="utf-8")
        with (workspace / (command.read or "typed")).open(encoding="utf-8") as stdin:
            monkeypatch.setattr("sys.stdin", stdin)
            code = module_of(command.program).main(list(command.arguments))
        assert not code, str(command)
        assert capsys.readouterr().out, str(command)
    assert {command.program for command in runnable.values()} == {*RUN, "demo.py"}
    assert len(runnable) >= 12


def test_the_commands_that_the_demo_runs_are_accepted(capsys):
    module_of("demo.py").main(["--list"])
    found = commands_in_lines("demo.py --list", capsys.readouterr().out)
    assert len(found) >= 5
    assert not [reason for command in found if (reason := problem(command))]


def test_make_bench_leaves_out_the_benchmarks_that_need_arguments():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n", " ")
    left_out = re.search(r"^BENCH_WITH_ARGUMENTS := (.+)$", makefile, re.MULTILINE)[1].split()
    others = re.search(r"^NO_BENCH := (.+) \$", makefile, re.MULTILINE)[1].split()
    needing = {
        program.removeprefix("benchmarks.").replace(".", "/")
        for program, parser in parsers()
        if program.startswith("benchmarks.") and parser and any(action.required for action in parser._actions)
    }
    assert {name for name in needing if not name.startswith(tuple(others))} == set(left_out)
