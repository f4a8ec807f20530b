"""Finds the commands in pages, recipes and help texts, and splits them into words as a shell does."""

import argparse
import importlib
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from types import ModuleType

from data.corpora.tools.command import corpus_parser
from tests.support.scripts import ROOT, load_script

ELLIPSIS = "…"
_PAGES = ("*.md", "docs/*.md", "pretrained/*/*.md", "configs/**/*.yaml", "requirements/*.txt")
_COMMANDS = (
    "*.py",
    *(f"{room}/**/*.py" for room in ("analysis", "benchmarks", "bundle", "data", "examples")),
)
_COMMANDS += tuple(f"{room}/**/*.py" for room in ("keywords", "model_*", "recognition", "training"))
_PYTHON = re.compile(r"(\S*/)?python(3(\.\d+)?)?")
_BEGINS = re.compile(r"(\$ )?([A-Z_]+=\S+ )*((\S*/)?python3?|make) \S|echo .* \| python")
_OPTIONAL = re.compile(r"(?<= )\[(--[^]]*)\]")  # [--seed 2]: an optional argument
_FENCED = re.compile(r"^```.*?\n(.*?)^```", re.DOTALL | re.MULTILINE)
_INLINE = re.compile(r"(?<!`)`([^`]+)`(?!`)")


@dataclass(frozen=True)
class Command:
    """A call of Python or of make.

    Attributes:
        source: the file or parser that contains it.
        words: after ``python``: a script or ``-m`` and a module, and its arguments; or ``make`` and its own.
    """

    source: str
    words: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.source}: {' '.join(self.words)}"

    @property
    def program(self) -> str:
        """``train.py``, ``data.vocabularies`` or ``make``."""
        return self.words[1] if self.words[0] == "-m" else self.words[0]

    @property
    def arguments(self) -> tuple[str, ...]:
        """The arguments for the program's parser."""
        return self.words[2:] if self.words[0] == "-m" else self.words[1:]


@cache
def all_commands() -> tuple[Command, ...]:
    """The commands of all texts with their sources."""
    found: list[Command] = []
    for path in sorted(path for pattern in _PAGES for path in ROOT.glob(pattern)):
        text, source = path.read_text(encoding="utf-8"), str(path.relative_to(ROOT))
        if path.suffix == ".md":
            spans = [" ".join(span.split()) for span in _INLINE.findall(_FENCED.sub("", text))]
            text = "\n".join([*_FENCED.findall(text), *spans])
        else:
            text = re.sub(r"^# ?", "", text, flags=re.MULTILINE)
        found += commands_in(source, text)
    for program, parser in parsers():
        for text in _help_texts(parser):
            examples = re.findall(r"^  .*(?:\\\n.*)*", text, re.MULTILINE)
            found += commands_in(f"help of {program}", "\n".join(examples))
    return tuple(dict.fromkeys(found))


def commands_in(source: str, text: str) -> Iterator[Command]:
    """The calls of Python and make at the beginning of a line or after a pipe; a backslash continues it."""
    for line in map(str.strip, re.sub(r"\\\n\s*", " ", text).split("\n")):
        for call in re.split(r" (?:\|\|?|&&?|;) ", line) if _BEGINS.match(line) else ():
            words = shlex.split(re.sub(r" [0-9]?[<>].*", "", _OPTIONAL.sub(r"\1", call)), comments=True)
            while words and re.fullmatch(r"[A-Z_]+=.*|\$", words[0]):
                del words[0]
            if len(words) < 2:
                continue
            if _PYTHON.fullmatch(words[0]) and (words[1] == "-m" or words[1].endswith(".py")):
                choice = re.fullmatch(r"(.*)\{(.+,.+)\}(.*)", words[2] if words[1] == "-m" else words[1])
                names = [choice[1] + name + choice[3] for name in choice[2].split(",")] if choice else []
                for name in names:
                    yield Command(source, ("-m", name, *words[3:]))
                if not names:
                    yield Command(source, tuple(words[1:]))
            elif words[0] == "make":
                yield Command(source, tuple(words))


@cache
def makefile_targets() -> tuple[str, ...]:
    """The targets that ``make help`` lists."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    return tuple(re.findall(r"^([a-z-]+):.*## ", text, flags=re.MULTILINE))


@cache
def command_modules() -> tuple[str, ...]:
    """Scripts (``train.py``) and modules (``data.vocabularies``) that are commands, by their last lines."""
    names = []
    for path in sorted(path for pattern in _COMMANDS for path in ROOT.glob(pattern)):
        if 'if __name__ == "__main__":\n    run_command(main)' in path.read_text(encoding="utf-8"):
            inside = path.relative_to(ROOT)
            names.append(inside.name if len(inside.parts) == 1 else ".".join(inside.with_suffix("").parts))
    return tuple(names)


@cache
def module_of(program: str) -> ModuleType:
    """The module of a script or of ``python -m``, imported.

    Raises:
        ImportError, FileNotFoundError: there is none.
    """
    return load_script(program) if program.endswith(".py") else importlib.import_module(program)


@cache
def parsers() -> tuple[tuple[str, argparse.ArgumentParser], ...]:
    """Each command with its parser."""
    return tuple((program, parser_of(module_of(program))) for program in command_modules())


def parser_of(module: ModuleType) -> argparse.ArgumentParser | None:
    """The parser of a command; None if the module is no command."""
    if hasattr(module, "_parser"):
        return module._parser()
    return corpus_parser(module.CORPUS) if hasattr(module, "CORPUS") else None


def _help_texts(parser: argparse.ArgumentParser) -> Iterator[str]:
    """Description and epilog of a parser and of its subcommands."""
    yield from filter(None, (parser.description, parser.epilog))
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for subparser in action.choices.values():
                yield from _help_texts(subparser)
