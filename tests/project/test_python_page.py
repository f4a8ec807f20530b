"""Tests that every code block of docs/python.md runs, in the order of the page, each section separately."""

import re
import shutil
from pathlib import Path

import pytest

from tests.support.fork_server import ForkServer
from tests.support.tiny_corpus import write_tiny_corpus

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
SECTIONS = {
    title: re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    for title, text in re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
}


@pytest.fixture
def workplace(tmp_path: Path, speech_run: Path, language_run: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder of the page, with tiny runs and recordings."""
    shutil.copytree(speech_run, tmp_path / "runs" / "demo" / "speech")
    shutil.copytree(language_run, tmp_path / "runs" / "demo" / "language")
    manifest = write_tiny_corpus(tmp_path / "datasets" / "mine", utterances=8)
    for split in ("train", "dev"):
        shutil.copy(manifest, manifest.with_name(f"{split}.tsv"))
    recordings = sorted((tmp_path / "datasets" / "mine").rglob("*.wav"))
    shutil.copy(recordings[0], tmp_path / "talk.wav")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_each_section_has_code():
    assert len(SECTIONS) == 6 and all(SECTIONS.values())


@pytest.mark.parametrize("title", SECTIONS)
def test_blocks_run(title: str, workplace: Path, capsys: pytest.CaptureFixture[str], commands: ForkServer):
    """A section that registers a model runs in a separate process, because other tests must not have it."""
    code = "\n".join(SECTIONS[title])
    if "MODELS[" in code:
        begin = f"import os, sys\nos.chdir({str(workplace)!r})\n"
        begin += "sys.stdout = open('printed.txt', 'w', encoding='utf-8')\n"
        ended = commands.run("python", begin + code)
        assert ended.code == 0, ended.output
        printed = (workplace / "printed.txt").read_text(encoding="utf-8")
    else:
        for block in SECTIONS[title]:
            exec(compile(block, "docs/python.md", "exec"), {"__name__": "docs_python"})
        printed = capsys.readouterr().out
    assert printed
    for expected in re.findall(r"print\(.*\)  # (?:.*: )?([\d.]+|[一-龥]+)$", code, re.MULTILINE):
        assert expected in printed
