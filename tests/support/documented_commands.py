"""Finds the commands in the texts of the project and splits them into words as a shell does.

Commands come from README.md, docs, cards of models, the comments of configs and requirements, docstrings and
help texts of the code, the epilogs of all parsers, and what the targets of the Makefile run. In prose a
command is recognised between backticks; elsewhere at the beginning of a line or behind a pipe.
"""

import argparse
import ast
import importlib
import itertools
import re
import shlex
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType

from data.corpora.tools.command import corpus_parser
from tests.support.scripts import ROOT, load_script

ELLIPSIS = "…"
NAME = "NAME"  # stands for a value that code inserts into a string
_CODE = (
    "analysis",
    "benchmarks",
    "bundle",
    "data",
    "examples",
    "keywords",
    "model_*",
    "preflight",
    "recognition",
    "serving",
    "streaming",
    "training",
)
_OPERATORS = frozenset({"|", "||", "&", "&&", ";", "(", ")"})
_REDIRECTIONS = frozenset({"<", ">", ">>", ">&", "<<"})
_PYTHON = re.compile(r"(\S*/)?python(3(\.\d+)?)?")
_SETTING = re.compile(r"[A-Z_]+=.*|\$")  # a variable of the environment, or a prompt
_BRACES = re.compile(r"(.*?)\{([^{}=]*,[^{}=]*)\}(.*)")
_OPTIONAL = re.compile(r"(?<= )\[(--[^]]*)\]")  # [--seed 2]: an optional argument
_BEGINS = re.compile(r"(\$ )?([A-Z_]+=\S+ )*((\S*/)?python3?|make) \S|[^`]*\| ((\S*/)?python3?) \S")
_FENCED = re.compile(r"^```.*?\n(.*?)^```", re.DOTALL | re.MULTILINE)
_INLINE = re.compile(r"(?<!`)(`{1,2})(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)


@dataclass(frozen=True)
class Command:
    """A call of Python or of make.

    Attributes:
        source: the file or parser that contains it.
        words: after ``python``: a script or ``-m`` and a module, and its arguments; or ``make`` and its own.
        typed: the text that ``echo`` pipes into it.
        read: the file for its standard input.
    """

    source: str
    words: tuple[str, ...]
    typed: str | None = None
    read: str | None = None

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
    """The commands of all texts with their sources; repeated ones are not merged."""
    found = [command for path in text_files() for command in commands_of_file(path)]
    for program, parser in parsers():
        for text in _help_texts(parser):
            found += commands_in_lines(f"help of {program}", _indented(text, 2))
    found += commands_in_lines("Makefile", makefile_commands())
    return tuple(dict.fromkeys(found))


def text_files() -> list[Path]:
    """The files that may contain commands."""
    patterns = ("*.md", "docs/*.md", "pretrained/*/*.md", "configs/**/*.yaml", "*.txt", "Makefile", "*.py")
    patterns += tuple(f"{folder}/**/*.py" for folder in (*_CODE, "training", "utils"))
    return sorted({path for pattern in patterns for path in ROOT.glob(pattern)})


def commands_of_file(path: Path) -> list[Command]:
    """The commands in a file, by the kind of the file."""
    text = path.read_text(encoding="utf-8")
    source = str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else path.name
    if path.suffix == ".md":
        fenced, rest = _FENCED.findall(text), _FENCED.sub("", text)
        code = "\n".join([*fenced, _indented(rest, 4)])
        return [*commands_in_lines(source, code), *commands_in_prose(source, rest)]
    if path.suffix == ".py":
        texts = _strings(text)
    else:
        comments = (line.lstrip() for line in text.split("\n"))
        texts = ["\n".join(line.removeprefix("#") for line in comments if line.startswith("#"))]
    return [
        command
        for text in texts
        for command in (
            *commands_in_lines(source, text if text.startswith("python ") else _indented(text, 2)),
            *commands_in_prose(source, text),
        )
        if NAME not in command.program and "{" not in command.program
    ]


def _indented(text: str, spaces: int) -> str:
    """The lines indented by at least this many spaces, as examples are."""
    return "\n".join(line for line in text.split("\n") if line.startswith(" " * spaces))


def commands_in_lines(source: str, text: str) -> list[Command]:
    """Commands at the beginning of lines or after a pipe; a backslash at the end continues a line."""
    joined = re.sub(r"\\\n\s*", " ", text)
    lines = (line.strip() for line in joined.split("\n"))
    return [command for line in lines if _BEGINS.match(line) for command in commands_of_line(source, line)]


def commands_in_prose(source: str, text: str) -> list[Command]:
    """Commands between backticks, also across lines."""
    spans = (" ".join(found[2].split()) for found in _INLINE.finditer(text))
    return [command for span in spans if _BEGINS.match(span) for command in commands_of_line(source, span)]


def commands_of_line(source: str, line: str) -> Iterator[Command]:
    """The calls of Python and make in one line of a shell.

    Raises:
        ValueError: a quote is not closed.
    """
    lexer = shlex.shlex(_OPTIONAL.sub(r"\1", line), posix=True, punctuation_chars="();<>|&")
    lexer.whitespace_split = True
    typed = None
    for is_operator, group in itertools.groupby(lexer, key=lambda word: word in _OPERATORS):
        words = list(group)
        simple = list(itertools.dropwhile(_SETTING.fullmatch, _without_redirections(words)))
        if is_operator or len(simple) < 2:
            continue
        read = next((file for sign, file in itertools.pairwise(words) if sign == "<"), None)
        if _PYTHON.fullmatch(simple[0]) and (simple[1] == "-m" or simple[1].endswith(".py")):
            for expanded in itertools.product(*map(_expanded, simple[1:])):
                yield Command(source, expanded, typed, read)
        elif simple[0] == "make":
            yield Command(source, tuple(simple))
        typed = " ".join(simple[1:]) if simple[0] == "echo" else None


def _without_redirections(words: Sequence[str]) -> list[str]:
    return [
        word
        for before, word in itertools.pairwise(["", *words])
        if word not in _REDIRECTIONS and before not in _REDIRECTIONS
    ]


def _expanded(word: str) -> list[str]:
    """Expand braces as a shell does: ``a{b,c}`` → ab, ac."""
    found = _BRACES.fullmatch(word)
    return [found[1] + part + found[3] for part in found[2].split(",")] if found else [word]


def _strings(code: str) -> list[str]:
    """All strings of a module; formatted ones with :data:`NAME` for what they insert, docstrings dedented."""
    nodes = list(ast.walk(ast.parse(code)))
    formatted = [node for node in nodes if isinstance(node, ast.JoinedStr)]
    parts = {id(part) for node in formatted for part in ast.walk(node)}
    whole = [node for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    indent = {id(node.value): " " * node.col_offset for node in nodes if isinstance(node, ast.Expr)}
    return [
        *(
            node.value.replace(f"\n{indent.get(id(node), '')}", "\n")
            for node in whole
            if id(node) not in parts
        ),
        *(
            "".join(part.value if isinstance(part, ast.Constant) else NAME for part in node.values)
            for node in formatted
        ),
    ]


def makefile_commands() -> str:
    """The commands of all targets of the Makefile, one per line, as expanded by make."""
    texts = ["TEXT=a.txt b.txt", "NAMES=names.txt", "IN_DOMAIN=c.txt", "KEEP_OUT=test.tsv", "DEV=dev.tsv"]
    done = subprocess.run(
        ["make", "--dry-run", "--always-make", *makefile_targets(), *texts],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout


@cache
def makefile_targets() -> tuple[str, ...]:
    """The targets that ``make help`` lists."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    return tuple(re.findall(r"^([a-z-]+):.*## ", text, flags=re.MULTILINE))


@cache
def command_modules() -> tuple[str, ...]:
    """Scripts (``train.py``) and modules (``data.vocabularies``) that are commands, by their last lines."""
    files = [*ROOT.glob("*.py"), *(path for folder in _CODE for path in ROOT.glob(f"{folder}/**/*.py"))]
    names = []
    for path in sorted(files):
        if 'if __name__ == "__main__":\n    run_command(main)' in path.read_text(encoding="utf-8"):
            inside = path.relative_to(ROOT)
            names.append(inside.name if inside.parent == Path() else ".".join(inside.with_suffix("").parts))
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
