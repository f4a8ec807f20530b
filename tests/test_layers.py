"""The architecture, held on the syntax trees: who may import whom, and how a module looks."""

from __future__ import annotations

import ast
import re
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from training.commands import RECIPES
from utils.config import load_config

ROOT = Path(__file__).parents[1]
PACKAGES = (
    "analysis",
    "bundle",
    "data",
    "model_keyword",
    "model_language",
    "model_speech",
    "preflight",
    "streaming",
    "training",
    "utils",
)
# What each part may import of ours, itself apart. Scripts may import everything but scripts.
ALLOWED = {
    "utils": set(),
    "data": {"utils"},
    "model_speech": {"utils"},
    "model_language": {"utils"},
    "analysis": {"data", "utils"},
    "streaming": {"data", "model_keyword", "model_speech", "utils"},
    "bundle": {"data", "model_keyword", "model_language", "model_speech", "streaming", "utils"},
    "model_keyword": {"utils"},
    "training": {"data", "model_keyword", "model_speech", "model_language", "utils"},
    "pipeline": {"data", "model_speech", "model_language", "utils"},
    "preflight": {"data", "model_keyword", "model_speech", "model_language", "training", "utils"},
}
# Commands that lie in the package that a user looks for them in, and join what lies above it.
COMMANDS = {
    "streaming/listen.py": {"bundle"},
    "streaming/long_audio.py": {"analysis"},
    "streaming/calibration.py": {"analysis"},
    "model_keyword/wake_word.py": {"analysis", "bundle", "data", "streaming", "training"},
    "model_keyword/wake_word_request.py": {"data"},
}
MODULES = sorted(
    path
    for folder in (ROOT, *(ROOT / name for name in PACKAGES))
    for path in (folder.glob("*.py") if folder == ROOT else folder.rglob("*.py"))
)
SCRIPTS = {path.stem for path in MODULES if path.parent == ROOT} - {"pipeline"}
FRAMEWORKS = {"keras", "tensorflow", "jax", "torch"}
# Imports inside a function. Scripts may (utils/quiet.py says why: --help answers without loading TensorFlow);
# elsewhere only what is optional: the synthesiser, the backend that KERAS_BACKEND names, and networks where
# an n-gram model will do.
LATE_IMPORTS = {
    "utils/quiet.py": {"keras", "tensorflow"},
    "data/corpora/espeak.py": {"espeakng_loader"},
    "training/step.py": {"tensorflow", "jax", "torch"},
    "training/profiling.py": {"tensorflow"},
    "utils/devices.py": {"keras", "tensorflow", "jax", "torch"},
    "utils/run_lock.py": {"fcntl"},
    "preflight/machine.py": {"tensorflow", "jax"},
    "model_language/to_hanzi.py": {"model_language"},
    "model_keyword/wake_word.py": {"bundle", "training"},  # as a script: a wrong word is told at once
    "utils/pypinyin_data.py": {"pypinyin"},
    "utils/checksums.py": {"fcntl"},
}
ENTRIES = {"__name__ == '__main__'", "TYPE_CHECKING"}
LONGEST = 400


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def part(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imports(node: ast.AST) -> set[str]:
    """First names of all modules imported anywhere inside ``node``."""
    found = set()
    for inner in ast.walk(node):
        if isinstance(inner, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in inner.names}
        elif isinstance(inner, ast.ImportFrom):
            assert inner.level == 0, f"line {inner.lineno}: relative import, write the whole name"
            found.add((inner.module or "").partition(".")[0])
    return found


def functions(node: ast.AST) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [inner for inner in ast.walk(node) if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef)]


def public_definitions(module: ast.Module) -> list[ast.FunctionDef | ast.ClassDef]:
    """Functions and classes of the module, and methods of its classes, but for names with an underscore."""
    classes = [node for node in module.body if isinstance(node, ast.ClassDef) and node.name[0] != "_"]
    return [
        node
        for owner in (module, *classes)
        for node in owner.body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name[0] != "_"
    ]


def test_there_is_something_to_look_at():
    assert {part(path) for path in MODULES} >= {*PACKAGES, "train"}


def test_imports_go_downward():
    offences = []
    for path in MODULES:
        ours = imports(tree(path)) & {*ALLOWED, *SCRIPTS, "tests", "benchmarks"}
        allowed = ALLOWED.get(part(path), set(ALLOWED)) | ({part(path)} - SCRIPTS)
        allowed |= COMMANDS.get(name(path), set())
        offences += [f"{name(path)} imports {module}" for module in ours - allowed]
    assert not offences


def test_data_and_analysis_know_no_models_and_models_no_single_backend():
    frameworks = {"data": FRAMEWORKS, "analysis": FRAMEWORKS}
    frameworks |= dict.fromkeys(("model_speech", "model_language"), FRAMEWORKS - {"keras"})
    offences = [
        f"{name(path)} imports {module}"
        for path in MODULES
        for module in imports(tree(path)) & frameworks.get(part(path), set())
    ]
    assert not offences


def test_imports_are_at_the_top():
    offences = [
        f"{name(path)}:{function.lineno} imports {module}"
        for path in MODULES
        if part(path) not in SCRIPTS
        for function in functions(tree(path))
        for module in imports(function) - LATE_IMPORTS.get(name(path), set())
    ]
    assert not offences


def test_what_is_imported_at_the_top_is_required():
    """An import at the top of a module fails for everybody whose environment lacks the package."""
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    required = {re.split(r"[<>=]", line)[0].lower() for line in lines if line and line[0] != "#"}
    distributions = packages_distributions()
    offences = [
        f"{name(path)} imports {module}"
        for path in MODULES
        for node in tree(path).body
        if isinstance(node, ast.Import | ast.ImportFrom)
        for module in imports(node) & (set(distributions) - {"jax", "torch"})  # a step_*.py of each backend
        if not required & {each.lower().replace("_", "-") for each in distributions[module]}
    ]
    assert not offences


def test_nothing_happens_at_import():
    """Module level: docstring, imports, definitions, constants, and the call of main in a script."""
    harmless = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign)
    offences = []
    for path in MODULES:
        for node in tree(path).body:
            is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            is_entry = isinstance(node, ast.If) and ast.unparse(node.test) in ENTRIES
            if not (isinstance(node, harmless) or is_text or is_entry):
                offences.append(f"{name(path)}:{node.lineno} runs at import: {ast.unparse(node)[:60]}")
    assert not offences


def test_modules_stay_short():
    lengths = {name(path): len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES}
    assert not {module: lines for module, lines in lengths.items() if lines > LONGEST}


def test_what_is_public_says_what_it_does():
    offences = []
    for path in filter(lambda path: path.read_text(encoding="utf-8").strip(), MODULES):
        if not ast.get_docstring(tree(path)):
            offences.append(f"{name(path)} doesn't say its place in the flow")
        offences += [
            f"{name(path)}:{node.lineno} {node.name} has no docstring"
            for node in public_definitions(tree(path))
            if not ast.get_docstring(node)
        ]
    assert not offences


def test_no_place_of_one_machine_is_written_down():
    place = re.compile(r"(?<![\w.])(/work|/root|/home)\b|shared/data")
    offences = [
        f"{name(path)}:{number} names {found[0]}"
        for path in MODULES
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if (found := place.search(line))
    ]
    assert not offences


def test_every_python_folder_is_known_here():
    folders = [path for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith(".")]
    with_code = {folder.name for folder in folders if next(folder.rglob("*.py"), None)}
    assert with_code <= {*PACKAGES, "tests", "benchmarks", "examples"}


CONFIGS = sorted((ROOT / "configs").rglob("*.yaml"))


@pytest.mark.parametrize("path", CONFIGS, ids=name)
def test_every_recipe_loads_and_begins_with_its_command(path):
    first_lines = path.read_text(encoding="utf-8").partition("\n\n")[0]
    assert re.search(rf"python train\.py (\w+) --config {name(path)}|python -m benchmarks\.\w+", first_lines)
    task = next(task for task in RECIPES if task in name(path))
    schema, variants, _ = RECIPES[task]
    load_config(schema, path, variants=variants)
