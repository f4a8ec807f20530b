"""Tests that requirements/run.txt is enough to transcribe, convert pinyin, run and verify exports."""

import ast
import json
import re
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.recordings import RECORDING
from utils.metrics import count_errors

ROOT = Path(__file__).parents[2]
BUNDLE = ROOT / "pretrained" / "audio_to_pinyin_streaming" / "export"
ARTEFACT = "litert/stream_external_dynamic.tflite"
USES = """
import json
import sys
from pathlib import Path
from tests.support.scripts import load_script
load_script("convert.py").main([sys.argv[1]])
load_script("transcribe.py").main([sys.argv[2]])
load_script("transcribe.py").main([sys.argv[2], "--stream", "--no-joint"])
load_script("listen.py")
load_script("examples/recognise_exported.py")
load_script("examples/stream_keyword.py")
load_script("examples/stream_speech.py")
assert load_script("export.py").main(["verify", sys.argv[3]]) == 0
import bundle.runtimes.litert, bundle.runtimes.onnx
from bundle.check import measure_artefact
measure_artefact.main([sys.argv[3], sys.argv[4], "--result", sys.argv[5]])  # what verify runs in a process
assert not {"tensorflow", "keras", "jax", "torch", "rapidfuzz"} & set(sys.modules)
files = [module.__file__ for module in sys.modules.values() if getattr(module, "__file__", None)]
print(json.dumps(files))
"""


def requirements(path: Path) -> set[str]:
    """Names of the distributions in a requirements file and in those that it includes."""
    found = set()
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("-r "):
            found |= requirements(path.parent / line[3:])
        elif line and line[0] != "#":
            found.add(re.split(r"[<>=]", line)[0].lower())
    return found


def test_the_lock_has_hashes_and_one_version_in_range_of_each_requirement():
    text = (ROOT / "requirements" / "serve.lock").read_text(encoding="utf-8")
    assert "://" not in text, "no address of an index"
    entries = [line for line in text.replace("\\\n", " ").splitlines() if line[0] not in " #"]
    assert all(re.search(r" --hash=sha256:[0-9a-f]{64}", entry) for entry in entries)
    locked = [Requirement(entry.partition(" --hash")[0]) for entry in entries]
    ranges = [
        Requirement(line)
        for name in ("run.txt", "serve.txt")
        for line in (ROOT / "requirements" / name).read_text(encoding="utf-8").splitlines()
        if line and not line.startswith(("#", "-r"))
    ]
    for python in ("3.11", "3.12", "3.13"):
        system = {"python_version": python, "python_full_version": f"{python}.0", "sys_platform": "linux"}
        versions = {
            canonicalize_name(each.name): str(each.specifier)[2:]
            for each in locked
            if not each.marker or each.marker.evaluate(system)
        }
        for needed in ranges:
            assert needed.specifier.contains(versions[canonicalize_name(needed.name)]), needed


def test_run_txt_is_enough_to_transcribe_to_convert_and_to_run_and_verify_exports(tmp_path: Path):
    lines = tmp_path / "lines.txt"
    lines.write_text("ni3 hao3\n", encoding="utf-8")
    words = [str(lines), str(RECORDING), str(BUNDLE), ARTEFACT, str(tmp_path / "result.json")]
    done = subprocess.run(
        [sys.executable, "-c", USES, *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    answer, transcript, live, verified, _, files = done.stdout.splitlines()
    assert verified.startswith(f"passed   {ARTEFACT}: ")
    assert answer == "你好"
    assert all(count_errors("如果无法控制", text).rate < 0.5 for text in (transcript, live))
    loaded = set(map(Path, json.loads(files)))
    ours = {path for path in loaded if path.is_relative_to(ROOT) and not path.is_relative_to(sys.prefix)}
    assert len(ours) > 50
    imported = {
        name.partition(".")[0]
        for path in ours
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        for name in _imports(node)
    }
    distributions = packages_distributions()
    needed = {distributions[name][0].lower().replace("_", "-") for name in imported & distributions.keys()}
    assert needed <= requirements(ROOT / "requirements" / "run.txt")


def _imports(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
