"""Tests of synthesised commands: reproducible bytes, disjoint voices, read back as labelled clips."""

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest
import soundfile

from data.keywords.clip_cache import load_clips
from data.keywords.clips import KeywordDataConfig, labels_of, read_keyword_clips
from data.manifest import read_manifest
from data.synthesis import acoustics, spoken_commands
from data.synthesis.spoken_commands import COMMANDS, OTHERS, CommandSettings, generate, main, plan_clips
from utils.audio.reading import SAMPLE_RATE

if importlib.util.find_spec("espeakng_loader") is None:
    pytest.skip("no synthesiser: pip install -r requirements/demo.txt", allow_module_level=True)

TINY = CommandSettings(voices=6, takes=1, others=2)


@pytest.fixture(scope="module", autouse=True)
def _short_noises():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(acoustics, "_NOISE_SECONDS", 5)
        yield


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("spoken") / "commands"
    assert generate(root, TINY, workers=2) == []
    return root


def test_the_plan_has_each_command_in_each_voice_and_no_voice_in_two_splits():
    plan = plan_clips(CommandSettings())
    assert {split: len(clips) for split, clips in plan.items()} == {"train": 4500, "dev": 500, "test": 1000}
    voices = {split: {clip.voice.name for clip in clips} for split, clips in plan.items()}
    assert {split: len(names) for split, names in voices.items()} == {"train": 90, "dev": 10, "test": 20}
    assert len(set.union(*voices.values())) == 120
    definitions = [{clip.voice.definition for clip in clips} - {""} for clips in plan.values()]
    assert sum(map(len, definitions)) == len(set.union(*definitions)) == 60
    paths = [clip.path for clips in plan.values() for clip in clips]
    assert len(set(paths)) == len(paths) == 6000
    assert {c.syllables for c in plan["train"] if c.label in ("开灯", "关灯", "上一首")} == {
        ("kai1", "deng1"),
        ("guan1", "deng1"),
        ("shang4", "yi4", "shou3"),
    }
    assert plan_clips(CommandSettings()) == plan != plan_clips(CommandSettings(seed=1))


def test_corpus_as_clips_for_training(corpus, tmp_path):
    config = KeywordDataConfig(folder=str(corpus), unknown_share=0.5)
    clips = read_keyword_clips(config)
    assert labels_of(config, clips) == ("_silence_", "_unknown_", *sorted(COMMANDS))
    for split, voices in (("train", 2), ("dev", 2), ("test", 2)):
        words = [clip for clip in clips[split] if clip.label in COMMANDS]
        assert len(words) == 16 * voices and len({clip.speaker for clip in words}) == voices
        assert sum(clip.label == "_unknown_" for clip in clips[split]) == 2 * voices
    store = load_clips(clips["train"], SAMPLE_RATE, SAMPLE_RATE, tmp_path)
    assert store.rejected == () and (np.abs(store.samples[:34].astype(int)).max(axis=1) > 300).all()
    noises = sorted(path.stem for path in (corpus / "_background_noise_").iterdir())
    assert noises == ["babble", "brown", "hum", "pink", "steps", "white"]
    for name in noises:
        samples, rate = soundfile.read(corpus / "_background_noise_" / f"{name}.wav")
        assert len(samples) == 5 * rate and 0.04 < np.sqrt(np.mean(samples**2)) < 0.06


def test_the_manifest_has_speaker_and_text_of_each_clip(corpus):
    rows = read_manifest(corpus / "manifest.tsv")
    assert len(rows) == 6 * 18 == len(list(corpus.glob("[!_]*/*.wav"))) + 12
    for row in rows:
        assert row.audio.name.startswith(f"{row.speaker}_nohash_") and row.audio.is_file()
        assert row.hanzi == row.audio.parent.name or row.hanzi in OTHERS
        assert 0.2 < row.seconds < 2.0


def test_command(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(spoken_commands, "COMMANDS", ("打开", "关闭"))
    monkeypatch.setattr(spoken_commands, "SMALL", CommandSettings(voices=6, takes=1, others=0))
    assert main(["--output", str(tmp_path / "commands"), "--small", "--workers", "1"]) == 0
    assert re.search(r"2 commands, 4 train, 4 dev, 4 test clips; \d+ s", capsys.readouterr().out)
