"""Runs the examples in the docstrings of the product, so that none of them is false."""

import doctest
import importlib

import pytest

from tests.support.scripts import ROOT

FOLDERS = [
    folder
    for folder in sorted(ROOT.iterdir())
    if (folder / "__init__.py").is_file() and folder.name != "tests"
]
MODULES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for folder in FOLDERS
    for path in sorted(folder.rglob("*.py"))
    if ">>> " in path.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("module", MODULES)
def test_examples_are_true(module):
    found = doctest.testmod(importlib.import_module(module), optionflags=doctest.ELLIPSIS)
    assert found.attempted and not found.failed
