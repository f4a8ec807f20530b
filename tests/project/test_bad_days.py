"""Tests of commands with damaged input, full disks and Ctrl-C: the message, the exit code, remaining files.

Each command runs as from a shell (``tests/support/fork_server.py``): exit code 2 and one line that names the
file, what is wrong and what to do; the rest of the work is done; nothing is half-written; the same command
resumes when the cause is removed. Related tests are in:

damaged recordings, texts   test_audio, test_corpora, test_corpora_more, test_kaldi, test_feature_cache,
                            test_transcribe, test_recognizer, test_doctor
damaged runs and weights    test_recognizer, test_loop, test_vocabulary, test_run, test_doctor
missing corpora and lists   test_test, test_manifest, test_pinyin_pairs
full disks                  test_feature_cache, test_kaldi; their names: test_files, test_errors
SIGKILL and SIGTERM         test_kills, test_loop, test_feature_cache, test_transcribe, test_synthetic
workers that die            test_feature_cache, test_recognizer, test_synthetic, test_distribution
mutated files of all kinds  test_fuzz
"""

import os
import re
import shutil
import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile

from data.manifest import Utterance, read_manifest, write_manifest
from tests.support.corpus_files import rejected, write
from tests.support.fork_server import Ended
from tests.support.small_disk import small_disk
from tests.support.tiny_commands import bytes_of, check_run_is_whole, run_content, temporary_files
from utils.audio.samples import write_wav
from utils.run_folder.run import RunFolder

HEADER = "id\taudio\tseconds\tspeaker\tpinyin\thanzi\n"


def expect(ended: Ended, code: int, *parts: str) -> None:
    """Check a command's exit code and that its output has each part and no stack trace."""
    assert ended.code == code and "Traceback" not in ended.output, ended.output
    for part in parts:
        assert re.search(part, ended.output), f"not in the output: {part}\n{ended.output}"
    if code == 2:
        assert re.search(r"^error: .+(\nwhere: .+)?(\nhint: .+)?\s*\Z", ended.output, re.M), ended.output


# Damaged recordings and texts


@pytest.fixture(scope="module")
def damaged(commands, tiny_runs) -> Path:
    """``list.tsv``: ten sound recordings, two unusual and four unusable ones, with their originals."""
    folder = commands.folder / "damaged"
    sound = [
        replace(
            utterance, audio=Path(shutil.copy(utterance.audio, _made(folder / "wav") / utterance.audio.name))
        )
        for utterance in tiny_runs.utterances[:10]
    ]
    rng = np.random.default_rng(0)
    whole = 0.1 * rng.normal(size=16_000).astype(np.float32)
    write_wav(folder / "wav" / "silence.wav", np.zeros(16_000, np.float32))
    soundfile.write(folder / "wav" / "telephone.wav", 0.1 * rng.normal(size=(8_000, 2)), 8_000)
    for name in ("cut", "empty", "text", "gone"):
        write_wav(folder / "originals" / f"{name}.wav", whole)
    write(folder / "wav" / "cut.wav", (folder / "originals" / "cut.wav").read_bytes()[:10_000])
    write(folder / "wav" / "empty.wav", b"")
    write(folder / "wav" / "text.wav", "ni3 hao3\n" * 100)
    names = ("silence", "telephone", "cut", "empty", "text", "gone")
    odd = [Utterance(n, folder / "wav" / f"{n}.wav", 1.0, "s", ("ni3", "hao3"), "你好") for n in names]
    write_manifest(folder / "list.tsv", [*sound, *odd])
    write_manifest(folder / "odd" / "odd.tsv", odd[:2])
    return folder


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


UNUSABLE = {
    "cut": r"cut: the audio file is cut off: the header promises 32000 bytes, 9956 are there, .*cut\.wav",
    "empty": r"empty: the audio file is empty \(0 bytes\), .*empty\.wav, copy or download it again",
    "text": r"text: this is text, not audio.*, .*text\.wav, remove it",
    "gone": r"gone: no such audio file, .*gone\.wav",
}


def test_unusable_recordings_in_prepare(commands, damaged):
    output = commands.folder / "damaged_out"
    ended = commands.run("prepare listed", "prepare", damaged, "--output", output)
    expect(ended, 0, "rejected .see rejected.tsv.", "sample rate too low")
    reasons = {name: reason for name, (_, reason, _) in rejected(output).items()}
    assert reasons == {
        "cut": "the audio file is cut off",
        "empty": "the audio file is empty",
        "text": "this is text, not audio",
        "gone": "no such audio file",
        "telephone": "sample rate too low",
    }
    assert {"silence", "T00_000"} <= {utterance.id for utterance in read_manifest(output / "list.tsv")}


def test_unusable_recordings_in_train(commands, damaged, tiny_runs):
    """Missing files are reported before the work, others by name; features of sound recordings are kept."""
    run, cache = commands.folder / "damaged_run", commands.folder / "damaged_features"
    arguments = tiny_runs.training(run, cache, damaged / "list.tsv", training__epochs=1)
    expect(
        commands.run("train", *arguments),
        2,
        r"error +\S+list\.tsv: line 17 \(gone\)",
        "1 error in the data would waste",
    )
    assert not list(cache.rglob("*.npy"))
    ended = commands.run("train", "--no-checks", *arguments)
    expect(
        ended,
        2,
        r"4 of 16 recordings are not usable",
        *UNUSABLE.values(),
        r"failed\.tsv\nhint: correct them, or remove",
    )
    kept = {path.name for path in cache.rglob("*.index.npy")}
    shutil.copytree(damaged / "wav", damaged / "broken", copy_function=os.link)
    for name in UNUSABLE:
        (damaged / "wav" / f"{name}.wav").unlink(missing_ok=True)
        shutil.copy(damaged / "originals" / f"{name}.wav", damaged / "wav" / f"{name}.wav")
    try:
        expect(
            commands.run("train", *arguments),
            0,
            "16 training and 4 dev utterances",
            r"epoch 1/1 .* train_loss",
        )
    finally:
        shutil.rmtree(damaged / "wav")
        (damaged / "broken").rename(damaged / "wav")
    assert kept and kept < {path.name for path in cache.rglob("*.index.npy")}


def test_unusable_recordings_in_test(commands, damaged, tiny_runs):
    output = commands.folder / "damaged_results"
    arguments = ["speech", tiny_runs.speech, "--output", output, "--manifest"]
    ended = commands.run("test", *arguments, damaged / "list.tsv")
    expect(
        ended,
        2,
        r"1 of 16 recordings do not exist, e\.g\. \S+gone\.wav\n"
        r"where: \S+list\.tsv\nhint: prepare the corpus again",
    )
    broken = [utterance for utterance in read_manifest(damaged / "list.tsv") if utterance.id != "gone"]
    write_manifest(damaged / "odd" / "there.tsv", broken)
    assert bytes_of(output) == {}
    expect(
        commands.run("test", *arguments, damaged / "odd" / "there.tsv"),
        1,
        r"cut off.*\nwhere: .*cut\.wav\nhint: copy or download it again",
        r"3 of 15 recordings could not be read: cut, empty, text",
    )
    assert len((output / "hypotheses.tsv").read_text(encoding="utf-8").splitlines()) == 1 + 12
    expect(commands.run("test", *arguments, damaged / "odd" / "odd.tsv"), 0, "written: .*hypotheses")
    hypotheses = (output / "hypotheses.tsv").read_text(encoding="utf-8").splitlines()
    assert len(hypotheses) == 3 and hypotheses[1].startswith("silence\t")


# Disks


def test_full_disk_in_prepare(commands, tiny_runs):
    lines = "".join(f"{n}\t{tiny_runs.utterances[0].audio}\t1\ts\tma1\t妈\n" for n in range(1000))
    corpus = write(commands.folder / "many" / "train.tsv", HEADER + lines).parent
    with small_disk(commands.folder / "disk_of_prepare", 40) as disk:
        arguments = ["prepare", corpus, "--output", disk.path / "out"]
        ended = commands.run("prepare listed", *arguments)
        expect(
            ended,
            2,
            r"No space left on device\nwhere: \S+/out/train\.tsv\n"
            "hint: free some space, then run the same command",
        )
        assert bytes_of(disk.path) == {} and temporary_files(disk.path) == []
        disk.free(200)
        expect(commands.run("prepare listed", *arguments), 0)
        assert len(read_manifest(disk.path / "out" / "train.tsv")) == 1000


def test_full_disk_in_train(commands, tiny_runs, nightly):
    """The run folder's disk is full when the run begins, at its first checkpoint, at its first weights."""
    moments = ((8, r"\S+"), (150, r"\S+state\.npz"), (600, r"best\.weights\.h5"))
    with small_disk(commands.folder / "disk_of_train", 8) as disk:
        run = RunFolder(disk.path / "run")
        cache = commands.folder / "tiny" / "features"
        arguments = tiny_runs.training(run.path, cache, training__checkpoint_steps=100)
        for kilobytes, file in moments if nightly else moments[2:]:
            disk.free(kilobytes)
            ended = commands.run("train", *arguments)
            location = rf"where: {re.escape(str(run.path))}/{file}"
            expect(ended, 2, rf"No space left on device\n{location}\nhint: free some space")
            check_run_is_whole(run)
            assert temporary_files(disk.path) == [] and not run.metrics.exists()
        assert run.checkpoint.exists() and not run.best_weights.exists()
        disk.free(4_000)
        expect(commands.run("train", *arguments), 0, "resumed at epoch 1", "epoch 4/4")
        found, expected = run_content(run), run_content(RunFolder(tiny_runs.speech))
        assert found.pop("config") != expected.pop("config") and found == expected


def test_full_disk_in_test_and_transcribe(commands, tiny_runs):
    with small_disk(commands.folder / "disk_of_results", 16) as disk:
        results = ["speech", tiny_runs.speech, "--output", disk.path / "results"]
        ended = commands.run("test", *results)
        expect(ended, 2, r"No space left on device\nwhere: \S+results\.json\nhint: free some space")
        assert "T02_010" not in ended.output  # reported before the work
        texts = [tiny_runs.utterances[0].audio.parent, *tiny_runs.both, "--format", "textgrid"]
        texts += ["--output", disk.path / "texts"]
        expect(
            commands.run("transcribe", *texts),
            2,
            r"No space left on device\nwhere: \S+\.TextGrid\nhint: free some space",
        )
        early = bytes_of(disk.path)
        assert 0 < len(early) < 14 and temporary_files(disk.path) == []
        disk.free(300)
        expect(commands.run("transcribe", *texts), 0, f"{len(early)} of 14 were transcribed before")
        now = bytes_of(disk.path)
        assert len(now) == 14 and early.items() <= now.items() and all(now.values())
        expect(commands.run("test", *results), 0, "written: ")


def test_read_only_disk(commands, tiny_runs):
    """Nothing can be written, which is reported before the work; existing files can be used."""
    with small_disk(commands.folder / "read_only", 4_000) as disk:
        for run in (tiny_runs.speech, tiny_runs.language):
            shutil.copytree(run, disk.path / run.name)
        begun = tiny_runs.training(disk.path / "begun", commands.folder / "tiny" / "features")
        (disk.path / "begun").mkdir()
        shutil.copy(tiny_runs.speech / "config.yaml", disk.path / "begun")
        disk.read_only()
        remedy = r"Read-only file system\nwhere: {}\nhint: choose another path: this disk is read-only"
        new = tiny_runs.training(disk.path / "new", commands.folder / "tiny" / "features")
        recording = tiny_runs.utterances[0].audio
        few = write(commands.folder / "few" / "train.tsv", f"{HEADER}a\t{recording}\t1\ts\tma1\t妈\n").parent
        both = ["--speech", disk.path / "speech", "--language", disk.path / "language"]
        for command, arguments, file in (
            ("train", new, r"\S+/new"),
            ("train", begun, r"\S+/begun/\S+"),
            ("test", ["speech", disk.path / "speech"], r"\S+/test"),
            ("transcribe", [recording, *both, "--output", disk.path / "texts"], r"\S+/texts"),
            ("transcribe", [recording, *both, "--output", disk.path], rf"\S+/{recording.stem}\.txt"),
            (
                "prepare listed",
                ["prepare", few, "--output", disk.path / "out"],
                r"\S+/out",
            ),
        ):
            expect(commands.run(command, *arguments), 2, remedy.format(file))
        expect(commands.run("transcribe", recording, *both), 0)
        output = commands.folder / "results_of_read_only"
        expect(commands.run("test", "speech", disk.path / "speech", "--output", output), 0, "written: ")


# Ctrl-C


def interrupt(commands, name: str, *arguments: object, **moment: object) -> Ended:
    """Press Ctrl-C: exit code 130, one line about it, and no remaining process."""
    ended = commands.run(name, *arguments, send=signal.SIGINT, **moment)
    expect(ended, 130)
    assert ended.output.splitlines()[-1] == "stopped by Ctrl-C"
    return ended


def test_ctrl_c_in_prepare(commands, tiny_runs):
    """Ctrl-C while segments are cut by threads."""
    root, output = commands.folder / "long", commands.folder / "long_out"
    audio = tiny_runs.utterances[0].audio
    names = [f"r{n:03}" for n in range(100)]
    write(root / "train" / "wav.scp", "".join(f"{name} {audio}\n" for name in names))
    write(root / "train" / "text", "".join(f"{name}-{n} 你好\n" for name in names for n in range(20)))
    lines = (f"{name}-{n} {name} {n / 100} {n / 100 + 0.2}\n" for name in names for n in range(20))
    write(root / "train" / "segments", "".join(lines))
    arguments = ["prepare", root, "--output", output, "--workers", 2]
    interrupt(commands, "prepare kaldi", *arguments, condition=(output / "segments" / "train").is_dir)
    cut = bytes_of(output)
    # On a fast machine all segments may already be cut; the lists are not written in any case.
    assert not (output / "train.tsv").exists() and temporary_files(output) == []
    expect(commands.run("prepare kaldi", *arguments), 0)
    assert cut.items() < bytes_of(output).items() and len(read_manifest(output / "train.tsv")) == 2000


def test_ctrl_c_in_train(commands, tiny_runs, nightly):
    """Ctrl-C between two steps; the resumed result is the same. With --nightly also while processes compute
    features.
    """
    run = RunFolder(commands.folder / "stopped")
    cache = commands.folder / ("stopped_features" if nightly else "tiny/features")
    arguments = tiny_runs.training(run.path, cache, data__workers=2)
    if nightly:
        interrupt(commands, "train", *arguments, condition=lambda: list(cache.rglob("settings.json")))
    ended = interrupt(commands, "train", *arguments, condition=run.history.is_file)
    expect(ended, 130, "Ctrl-C: a checkpoint is written at epoch ., step .*the same command goes on from it")
    expect(commands.run("train", *arguments), 0, "resumed at epoch")
    assert run_content(run) == run_content(RunFolder(tiny_runs.speech))
    assert temporary_files(run.path) == []


def test_ctrl_c_in_test_and_transcribe(commands, tiny_runs):
    results, texts = commands.folder / "stopped_results", commands.folder / "stopped_texts"
    arguments = ["speech", tiny_runs.speech, "--output", results]
    interrupt(commands, "test", *arguments, condition=results.is_dir)
    assert bytes_of(results) == {}
    expect(commands.run("test", *arguments), 0)
    assert len(bytes_of(results)) == 2
    arguments = [tiny_runs.utterances[0].audio.parent, *tiny_runs.both, "--output", texts]
    interrupt(commands, "transcribe", *arguments, condition=texts.is_dir)
    assert temporary_files(texts) == []
    expect(commands.run("transcribe", *arguments), 0)
    assert len(bytes_of(texts)) == 14
