"""Tests of Speech Commands with a small archive instead of the 2.4 GB: download, check, unpack, count."""

import hashlib
import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile

from data.corpora.speech_commands import ARCHIVES, TEN_WORDS, main, read_speech_commands
from data.keywords.clips import KeywordDataConfig, labels_of, read_keyword_clips
from tests.support.archives import tar_bytes
from utils.errors import CorpusError


def recording(seconds: float = 0.05) -> bytes:
    content = io.BytesIO()
    soundfile.write(content, np.full(round(16000 * seconds), 0.1), 16000, "PCM_16", format="WAV")
    return content.getvalue()


def members() -> dict[str, bytes]:
    """Members as in the archive: no enclosing folder, and names that begin with a dot."""
    speakers = ("bb05582b", "a69b9b3e", "0a7c2a8d", "00176480")
    names = [f"{word}/{speaker}_nohash_0.wav" for word in (*TEN_WORDS, "bed") for speaker in speakers]
    content = {f"./{name}": recording() for name in names}
    for name, speaker in (("testing_list.txt", "bb05582b"), ("validation_list.txt", "a69b9b3e")):
        content[f"./{name}"] = "".join(f"{n}\n" for n in names if speaker in n).encode()
    return content | {
        "./_background_noise_/hum.wav": recording(1.5),
        "./LICENSE": b"CC BY",
        "./README.md": b"",
    }


@pytest.fixture
def served(tmp_path, monkeypatch) -> bytes:
    """The complete archive, where the download puts it."""
    content = tar_bytes(members())
    made = replace(ARCHIVES[2], size=len(content), checksum=hashlib.sha256(content).hexdigest())
    monkeypatch.setitem(ARCHIVES, 2, made)

    def fetch(url: str, part: Path, *_) -> Path:
        part.write_bytes(content)
        return part

    monkeypatch.setattr("data.corpora.tools.download.fetch", fetch)
    return content


def test_download_to_clips(served, tmp_path, monkeypatch, capsys):
    folder = tmp_path / "corpora" / "words"
    for _ in range(2):  # nothing is downloaded again
        assert main(["--output", str(folder)]) == 0
        shown = capsys.readouterr().out
        assert "44 recordings of 11 words" in shown and "  dev        11" in shown
        assert [path.name for path in folder.parent.iterdir()] == ["words"]
    config = KeywordDataConfig(folder=str(folder), words=TEN_WORDS)
    clips = read_keyword_clips(config)
    assert labels_of(config, clips) == ("_silence_", "_unknown_", *TEN_WORDS)
    assert {clip.speaker for clip in clips["test"] if clip.speaker} == {"bb05582b"}
    # The lists agree with the rule that generated them.
    for name in ("validation_list.txt", "testing_list.txt"):
        (folder / name).unlink()
    by_rule = read_keyword_clips(config)
    assert {split: {c.id for c in each} for split, each in by_rule.items()} == {
        split: {c.id for c in each} for split, each in clips.items()
    }


def test_another_folder_is_not_taken_for_the_corpus(tmp_path):
    with pytest.raises(CorpusError, match=r"no validation_list\.txt, testing_list\.txt, _background_noise_"):
        read_speech_commands(tmp_path)
    with pytest.raises(SystemExit):
        main(["--version", "3"])
