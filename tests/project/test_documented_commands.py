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
    commands_in_prose,
    commands_of_file,
    commands_of_line,
    makefile_targets,
    module_of,
    parser_of,
    parsers,
    text_files,
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
    task = getattr(options, "task", None) or ("speech" if of_speech else "keyword")
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


WRONG = {
    "train.py speach --config configs/demo/speech.yaml": "invalid choice: 'speach'",
    "train.py speech --config configs/speech/none.yaml": "no such recipe",
    "train.py speech --config configs/demo/speech.yaml model.widht=3": "model.widht",
    "train.py speech --config CONFIG trainig.epochs=3": "trainig",
    "train.py language data.train=[a.txt]": "--config",
    "test.py keyword RUN --stream a.flac": "--stream",
    "test.py pipeline RUN": "language_run",
    "convert.py --n-best none lines.txt": "not a whole number",
    "inspect_model.py transfer RUN NEW": "--vocabulary",
    "export.py verify": "bundle",
    "-m data.corpora.thchs30 fetch DIR": "invalid choice",
    "-m data.corpora.none prepare DIR": "no such module",
    "-m benchmarks.peers.compare --ruonds 3": "--ruonds",
    "doctor.py --config configs/demo/speech.yaml data.batch=3": "data.batch",
    "transcribe.py … --stram": "unknown options",
    "gone.py --help": "no such script",
    "-m streaming.speech.stream": "no command",
}
FILES = {
    "fence.md": "Text.\n\n```\n{} \\\n    --x  # why\n```\n",
    "inline.md": "Text: `{}`\nand more.\n",
    "recipe.yaml": "# About it.\n#   {}\nfeatures: {{}}\n",
    "module.py": '"""Module.\n\n    {}\n"""\n',
    "epilog.py": 'EXAMPLES = """examples:\n  echo a | {} > file\n"""\n',
    "requirements.txt": "# pip\n#   KERAS_BACKEND=jax {}\n",
}


@pytest.mark.parametrize(("wrong", "reason"), WRONG.items(), ids=WRONG)
def test_a_wrong_command_is_a_problem(wrong, reason):
    (command,) = commands_of_line("here", f"python {wrong}")
    assert reason in problem(command)


@pytest.mark.parametrize(("name", "text"), FILES.items(), ids=FILES)
def test_a_wrong_command_is_found_in_every_kind_of_text(tmp_path, name, text):
    (tmp_path / name).write_text(text.format("python train.py speach --config CONFIG"), encoding="utf-8")
    (found,) = commands_of_file(tmp_path / name)
    assert found.words[:2] == ("train.py", "speach")
    assert problem(found)


_BLOCK = re.compile(r"^```[^\n]*\n(.*?)^```|((?:^ {4}[^\n]*\n)+)", re.DOTALL | re.MULTILINE)
_CONTINUED = re.compile(
    r"^ *(?:[A-Z_]+=\S+ )*python3? [^\n]*[^\\\n]\n *([\"']?[\w.]+=\S.*|--?\w.*)", re.MULTILINE
)


def cut_off_lines(page: str) -> list[str]:
    """Lines of code blocks with arguments of the command before, which has no backslash at its end."""
    blocks = (fenced or indented for fenced, indented in _BLOCK.findall(page))
    return [line for block in blocks for line in _CONTINUED.findall(block)]


def test_no_command_of_a_page_is_cut_off_at_the_end_of_a_line():
    pages = [path for path in text_files() if path.suffix == ".md"]
    assert len(pages) > 20
    assert not {path: lines for path in pages if (lines := cut_off_lines(path.read_text(encoding="utf-8")))}


def test_a_command_that_is_cut_off_is_found():
    lines = ["python a.py x.wav", "python train.py speech --run runs/a", '"data.train=[a.tsv]" python b.py']
    fenced = "\n".join(["```", *lines, "```", ""])
    indented = "".join(f"    {line}\n" for line in lines)
    assert cut_off_lines(fenced) == cut_off_lines(indented) == lines[2:]
    assert not cut_off_lines(fenced.replace("runs/a\n", "runs/a \\\n"))


def test_targets_of_make():
    for line, right in (("make demo", True), ("make dmeo", False), ("make converter TXT=a.txt", False)):
        (command,) = commands_of_line("here", line)
        assert (problem(command) is None) is right


def test_text_without_a_command_has_none():
    for text in ("`python`, `test.py`; `utils/files.py` makes them.", "make sure of it: pythons, `make`"):
        assert not commands_in_prose("here", text)
    assert not commands_in_lines("here", "pythons train.py\nWe python train.py or not\n")


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
