"""Tests of demo.py: stages are plain commands, exit codes are passed on."""

import json
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest

import demo
from demo import Stage, demo_stages, main, recordings, run_stage
from tests.support.tiny_corpus import write_tiny_corpus

ROOT = Path(__file__).parents[2]


@pytest.fixture
def elsewhere(tmp_path, monkeypatch) -> Path:
    monkeypatch.setattr(demo, "ROOT", tmp_path)
    return tmp_path


def python(code: str) -> str:
    return f"python -c {shlex.quote(code)}"


def test_listed_commands_are_those_that_run(capsys):
    assert main(["--list"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert listed == [command for stage in demo_stages() for command in stage.commands]
    assert len(listed) == 6
    for command in listed:
        script = command.split()[1]
        assert script == "-m" or (ROOT / script).is_file()


def test_the_configs_read_what_the_corpus_stage_writes():
    for name in ("speech", "language"):
        text = (ROOT / "configs" / "demo" / f"{name}.yaml").read_text("utf-8")
        assert all(f"{demo.DATASET}/{split}.tsv" in text for split in ("train", "dev", "test"))


def test_a_stage_runs_its_commands_in_order_and_prints_them(elsewhere, capfd):
    stage = Stage("a test", (python("print('one')"), python("print('two')")))
    assert run_stage(stage) == 0
    assert capfd.readouterr().out.splitlines() == [
        f"$ {stage.commands[0]}",
        "one",
        f"$ {stage.commands[1]}",
        "two",
    ]


@pytest.mark.parametrize(
    ("code", "expected"), [("raise SystemExit(3)", 3), ("import os; os.kill(os.getpid(), 15)", 143)]
)
def test_a_failing_command_ends_the_stage_with_its_code(elsewhere, capfd, code, expected):
    assert run_stage(Stage("a test", (python(code), python("print('never')")))) == expected
    assert "\nnever" not in capfd.readouterr().out


def test_sigterm_ends_the_running_command_too(tmp_path):
    """The command records its start and the SIGTERM that it receives; both processes end."""
    child = (
        "import pathlib, signal, sys, time\n"
        "def end(number, frame): pathlib.Path('ended').touch(); sys.exit(143)\n"
        "signal.signal(signal.SIGTERM, end); pathlib.Path('began').touch(); time.sleep(600)"
    )
    parent = (
        "import sys; from pathlib import Path; import demo; demo.ROOT = Path('.'); "
        f"sys.exit(demo.run_stage(demo.Stage('a test', ({python(child)!r},))))"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen([sys.executable, "-c", parent], cwd=tmp_path, env=environment) as process:
        end = time.monotonic() + 200
        while not (tmp_path / "began").is_file() and time.monotonic() < end:
            time.sleep(0.05)
        process.terminate()
        assert process.wait(timeout=200) == 143
    assert (tmp_path / "ended").is_file()


def test_a_failing_stage_ends_the_demo(elsewhere, monkeypatch, capfd):
    stages = [Stage("this one fails", (python("raise SystemExit(2)"),)), Stage("never", ())]
    monkeypatch.setattr(demo, "demo_stages", lambda: stages)
    assert main([]) == 2
    shown = capfd.readouterr()
    assert "'this one fails' ended with exit code 2" in shown.err
    assert "never" not in shown.out


def test_recordings_are_of_different_speakers(elsewhere):
    manifest = write_tiny_corpus(elsewhere / "datasets", utterances=12)
    chosen = recordings(manifest.relative_to(elsewhere))
    assert len(chosen) == 4
    assert len({path.stem.partition("_")[0] for path in chosen}) == 4
    assert all(not path.is_absolute() and (elsewhere / path).is_file() for path in chosen)


def test_results_are_printed(elsewhere, capsys):
    manifest = write_tiny_corpus(elsewhere / demo.DATASET, utterances=4)
    manifest.rename(manifest.with_name("test.tsv"))
    for audio in recordings():
        transcript = elsewhere / demo.TRANSCRIPTS / f"{audio.stem}.json"
        transcript.parent.mkdir(parents=True, exist_ok=True)
        transcript.write_text('{"hanzi": ""}', encoding="utf-8")
    rates = {"syllable_error_rate": 0.05, "cer": 0.075, "sentence_error_rate": 0.5}
    results = {"utterances": 4, "speakers": 4, **rates, "intervals": {name: [0.04, 0.6] for name in rates}}
    (elsewhere / demo.TEST).mkdir()
    (elsewhere / demo.TEST / "results.json").write_text(json.dumps(results), encoding="utf-8")
    demo._print_results(90.0)
    shown = capsys.readouterr().out.replace("\u202f", " ")
    for text in (
        "7.5 %",
        "95 % interval 4.0 % to 60.0 %",
        "1 min 30 s",
        "runs/demo/report/report.html",
        "(nothing)",
    ):
        assert text in shown
