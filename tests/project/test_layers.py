"""Checks the architecture on the syntax trees: allowed imports, and the form of modules and folders."""

import ast
import re
import tomllib
from collections import Counter
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from tests.project.test_requirements import requirements
from training.run import RECIPES
from utils.config import load_config

ROOT = Path(__file__).parents[2]
# The packages from the lowest tier up. A module imports from its own package and from lower tiers only;
# packages of the same tier do not import each other. Scripts are above all packages.
TIERS = (
    ("utils",),
    ("data", "model_keyword", "model_language", "model_speech"),
    ("analysis", "streaming"),
    ("bundle", "recognition", "training"),
    ("keywords", "preflight", "serving"),
)
PACKAGES = tuple(package for tier in TIERS for package in tier)
TIER_OF = {package: number for number, tier in enumerate(TIERS) for package in tier}
MOST_MODULES = 14  # limit for a folder, without __init__.py
CATALOGUES = {"data/corpora", "model_keyword/models", "model_language/networks", "model_speech/models"}
MODULES = sorted(
    path
    for folder in (ROOT, *(ROOT / name for name in PACKAGES))
    for path in (folder.glob("*.py") if folder == ROOT else folder.rglob("*.py"))
)
SCRIPTS = {path.stem for path in MODULES if path.parent == ROOT}
FRAMEWORKS = {"keras", "tensorflow", "jax", "torch"}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
ENTRIES = {"__name__ == '__main__'", "TYPE_CHECKING"}


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


PATHS = {name(path).removesuffix(".py").removesuffix("/__init__").replace("/", "."): path for path in MODULES}


def imported_modules(path: Path) -> set[str]:
    """Names of our modules that ``path`` imports anywhere, also for type checking only."""
    found = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= (names & PATHS.keys()) | {node.module}
    return found & PATHS.keys()


def package_of(module: str) -> str:
    return module.partition(".")[0]


def test_imports_go_downward():
    """Tier by tier, in all sub-folders, without exceptions."""
    offences = []
    for path in MODULES:
        package = part(path)
        for module in imported_modules(path):
            other = package_of(module)
            if other in SCRIPTS:
                offences.append(f"{name(path)} imports the script {module}")
            elif package not in SCRIPTS and package != other and TIER_OF[package] <= TIER_OF[other]:
                offences.append(f"{name(path)} imports {module}")
        offences += [
            f"{name(path)} imports {module}" for module in imports(tree(path)) & {"tests", "benchmarks"}
        ]
    assert not offences


def test_no_module_imports_itself_through_others():
    waiting = {name: imported_modules(path) - {name} for name, path in PATHS.items()}
    while free := [module for module, others in waiting.items() if not others & waiting.keys()]:
        for module in free:
            del waiting[module]
    assert not waiting, "these modules import each other in a circle"


def test_folders_stay_small():
    """A catalogue, a folder with one corpus or network per file, may have more modules."""
    sizes = Counter(path.parent for path in MODULES if path.name != "__init__.py" and path.parent != ROOT)
    crowded = {name(folder): size for folder, size in sizes.items() if size > MOST_MODULES}
    assert crowded.keys() <= CATALOGUES, crowded


def test_data_and_analysis_import_no_models_and_models_no_single_backend():
    frameworks = {"data": FRAMEWORKS, "analysis": FRAMEWORKS}
    frameworks |= dict.fromkeys(("model_speech", "model_language"), FRAMEWORKS - {"keras"})
    # They import torch or TensorFlow where they read files that nothing else can read.
    readers = ("model_speech/whisper_weights.py", "model_language/legacy_checkpoint.py")
    offences = [
        f"{name(path)} imports {module}"
        for path in MODULES
        for module in imports(tree(path)) & frameworks.get(part(path), set())
        if name(path) not in readers
    ]
    assert not offences


def test_modules_imported_at_the_top_are_requirements():
    """An import at the top of a module fails in every environment without the package."""
    required = requirements(ROOT / "requirements.txt")
    for_serving = required | requirements(ROOT / "requirements" / "serve.txt")
    distributions = packages_distributions()
    offences = [
        f"{name(path)} imports {module}"
        for path in MODULES
        for node in tree(path).body
        if isinstance(node, ast.Import | ast.ImportFrom)
        for module in imports(node) & (set(distributions) - {"jax", "torch"})  # a step_*.py of each backend
        if not (for_serving if part(path) == "serving" else required)
        & {each.lower().replace("_", "-") for each in distributions[module]}
    ]
    assert not offences


def test_modules_have_no_effects_at_import():
    """Module level: docstring, imports, definitions, constants, and the call of main in a script."""
    harmless = (ast.Import, ast.ImportFrom, *FUNCTIONS, ast.ClassDef, ast.Assign, ast.AnnAssign)
    offences = []
    for path in MODULES:
        for node in tree(path).body:
            is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            is_entry = isinstance(node, ast.If) and ast.unparse(node.test) in ENTRIES
            if not (isinstance(node, harmless) or is_text or is_entry):
                offences.append(f"{name(path)}:{node.lineno} runs at import: {ast.unparse(node)[:60]}")
    assert not offences


def test_every_python_folder_has_a_tier():
    made = ("runs", "datasets")  # made by users; a run may contain a virtual environment
    folders = [path for path in ROOT.iterdir() if path.is_dir() and path.name not in made]
    folders = [path for path in folders if not path.name.startswith(".")]
    with_code = {folder.name for folder in folders if next(folder.rglob("*.py"), None)}
    assert with_code <= {*PACKAGES, "tests", "benchmarks", "examples"}


def test_every_package_is_installed():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    installed = settings["tool"]["setuptools"]["packages"]["find"]["include"]
    assert sorted(installed) == sorted(f"{package}*" for package in (*PACKAGES, "pretrained"))


CONFIGS = sorted((ROOT / "configs").rglob("*.yaml"))


@pytest.mark.parametrize("path", CONFIGS, ids=name)
def test_every_recipe_loads_and_begins_with_its_command(path):
    first_lines = path.read_text(encoding="utf-8").partition("\n\n")[0]
    assert re.search(rf"python train\.py (\w+) --config {name(path)}|python -m benchmarks\.\w+", first_lines)
    folder = path.parent.name
    task = folder if folder in RECIPES else next(task for task in RECIPES if task in path.stem)
    schema, variants, _ = RECIPES[task]
    load_config(schema, path, variants=variants)
