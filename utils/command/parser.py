"""The command-line parser of all commands: suggests the nearest option; has a short and a long help."""

import argparse
import difflib
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import takewhile
from typing import Any

_OPTION = re.compile(r"--?[A-Za-z][\w-]*")


class CommandParser(argparse.ArgumentParser):
    """Keeps the line breaks of its texts, and suggests the nearest option for one that it doesn't know.

    Args:
        common: the options that ``--help`` shows where a command has many; ``--help-all`` shows the others
            too. Empty: all options are common.
        of_argparse: arguments of :class:`argparse.ArgumentParser`.
    """

    def __init__(self, *, common: Sequence[str] = (), **of_argparse: Any):
        of_argparse.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        of_argparse.setdefault("allow_abbrev", False)  # --language is not --language-model
        started = sys.modules["__main__"].__spec__  # of python -m; None of a script
        if started:  # Python 3.14 names the command so by itself
            of_argparse.setdefault("prog", f"python -m {started.name}")
        super().__init__(**of_argparse)
        self._common = common
        if common:
            self.add_argument("--help-all", action=_HelpAll, nargs=0, help="show all options and exit")

    def parse_known_args(self, args: Iterable[str] | None = None, namespace: Any = None) -> Any:
        """As in argparse, but a misspelt option ends the command first, before what is missing is named."""
        words = sys.argv[1:] if args is None else list(args)
        known = self._option_string_actions
        for word in takewhile(lambda word: word != "--", () if self._subparsers else words):
            name = word.partition("=")[0]
            if _OPTION.fullmatch(name) and name not in known:
                # Without dashes, which all options have in common.
                words_of_known = {option.lstrip("-"): option for option in known}
                nearest = difflib.get_close_matches(name.lstrip("-"), words_of_known, n=1)
                suggestion = f": did you mean {words_of_known[nearest[0]]}?" if nearest else ""
                self.error(f"unknown option {name}{suggestion}")
        return super().parse_known_args(words, namespace)

    def set_environment_defaults(self, prefix: str, leave_out: Sequence[str] = ()) -> None:
        """Take the defaults of options from the environment: that of ``--port`` from ``{prefix}PORT``.

        A value that the option does not accept ends the command with the name of its variable.
        """
        for action in self._actions:
            variable = f"{prefix}{action.dest.upper()}"
            value = os.environ.get(variable)
            if not value or action.nargs == 0 or action.dest in leave_out:
                continue
            try:
                action.default = self._get_value(action, value)
            except argparse.ArgumentError as error:
                self.error(f"{variable}: {error.message}")

    def format_usage(self) -> str:
        """The usage, with the common options."""
        with self._rare_hidden():
            return super().format_usage()

    def format_help(self) -> str:
        """The help, with the common options."""
        with self._rare_hidden():
            return super().format_help()

    def show_all(self) -> None:
        """Let help and usage show all options."""
        self._common = ()

    @contextmanager
    def _rare_hidden(self) -> Iterator[None]:
        shown = {"-h", "--help-all", *self._common}
        options = [each for each in self._actions if each.option_strings and self._common]
        rare = {each: each.help for each in options if shown.isdisjoint(each.option_strings)}
        for each in rare:
            each.help = argparse.SUPPRESS
        yield
        for each, text in rare.items():
            each.help = text


class _HelpAll(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: Any, **__: Any) -> None:
        assert isinstance(parser, CommandParser)
        parser.show_all()
        parser.print_help()
        parser.exit()
