"""Checks that the folders of ``analysis`` import each other in one direction only."""

import ast
from pathlib import Path

import pytest

import analysis

FOLDER = Path(analysis.__file__).parent
# Each folder imports only from those before it.
ORDER = ("inputs", "errors", "intervals", "results", "page", "weights", "runs", "keyword", "demo")


@pytest.mark.parametrize("name", ORDER)
def test_a_folder_imports_only_from_those_before_it(name):
    allowed = {f"analysis.{other}" for other in ORDER[: ORDER.index(name) + 1]}
    for path in (FOLDER / name).glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module.startswith("analysis."):
                assert ".".join(node.module.split(".")[:2]) in allowed, f"{path.name}: {node.module}"


def test_all_folders_are_in_the_order():
    assert {path.parent.name for path in FOLDER.glob("*/__init__.py")} == set(ORDER)
