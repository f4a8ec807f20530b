"""Tests that every command in the texts is accepted by its program."""

import argparse
import contextlib
import io
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.support.documented_commands import (
    ELLIPSIS,
    Command,
    all_commands,
    command_modules,
    commands_in,
    makefile_targets,
    module_of,
    parser_of,
    parsers,
)
from tests.support.scripts import ROOT
from training.run import RECIPES
from utils.config import load_config
from utils.errors import UserError

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


def test_the_commands_that_the_demo_runs_are_accepted(capsys):
    module_of("demo.py").main(["--list"])
    found = list(commands_in("demo.py --list", capsys.readouterr().out))
    assert len(found) >= 5
    assert not [reason for command in found if (reason := problem(command))]
