"""Tests of miniature Kaldi data folders: plain, with segments, with commands, damaged."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
import soundfile

from data.corpora import kaldi
from data.corpora.tools.kaldi_segments import KaldiSegment, cut_segments
from data.corpora.tools.transcripts import BRACKETS, UNKNOWN_WORDS, make_candidate
from data.manifest import read_manifest
from tests.support.corpus_files import rejected, wav, write
from utils.errors import CorpusError

RATE = 16000


def ramp(path: Path, seconds: float, channels: int = 1, rate: int = RATE) -> Path:
    """A recording in which each sample is its own position: sample n is n / 32768."""
    path.parent.mkdir(parents=True, exist_ok=True)
    samples = np.arange(round(seconds * rate), dtype=np.int16)[:, None].repeat(channels, axis=1)
    soundfile.write(path, samples, rate, subtype="PCM_16")
    return path


def positions(path: Path) -> tuple[int, int]:
    """First and last position of a part of a ramp."""
    samples, _ = soundfile.read(path, dtype="int16")
    assert (np.diff(samples) == 1).all()
    return int(samples[0]), int(samples[-1])


def prepare(root: Path, output: Path, expected_exit: int = 0) -> dict[str, str]:
    """Prepare and return the reasons of the rejected candidates."""
    assert kaldi.main(["prepare", str(root), "--output", str(output)]) == expected_exit
    return {name: reason for name, (_, reason, _) in rejected(output).items()}


@pytest.fixture
def recipe(tmp_path) -> Path:
    """``s5/data/{train,test}``, the recordings beside ``data``, named from ``s5`` as recipes do."""
    s5 = tmp_path / "s5"
    for name in ("a", "b", "c", "gone"):
        write(s5 / "corpus" / f"{name}.wav", wav())
    (s5 / "corpus" / "gone.wav").unlink()
    train = "a corpus/a.wav\nb corpus/b.wav\ngone corpus/gone.wav\nsilent corpus/a.wav\ngb corpus/a.wav\n"
    write(s5 / "data" / "train" / "wav.scp", train)
    lines = "a 他 跑 得 很快\nb 我 去 银 行\ngone 没有\nghost 没有\nlatin <UNK> 你好\n"
    write(s5 / "data" / "train" / "text", lines.encode() + b"gb " + "你好".encode("gb18030") + b"\n")
    write(s5 / "data" / "train" / "utt2spk", "a s1\nbroken line of utt2spk\n")
    write(s5 / "data" / "test" / "wav.scp", f"c {s5 / 'corpus' / 'c.wav'}\n")
    write(s5 / "data" / "test" / "text", "c 再见\n")
    return s5


def test_recipe_with_splits(recipe, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # the working folder doesn't matter
    reasons = prepare(recipe / "data", tmp_path / "out")
    a, b = read_manifest(tmp_path / "out" / "train.tsv")
    assert (a.speaker, " ".join(a.pinyin)) == ("s1", "ta1 pao3 de5 hen3 kuai4")
    assert (b.speaker, " ".join(b.pinyin)) == ("", "wo3 qu4 yin2 hang2")
    assert a.audio == recipe / "corpus" / "a.wav"
    assert read_manifest(tmp_path / "out" / "test.tsv")[0].hanzi == "再见"
    assert reasons == {
        "gone": "no such audio file",
        "silent": "transcript missing",
        "gb": "transcript is not UTF-8",
        "ghost": "transcript without a recording",
        "latin": "transcript without a recording",
    }
    summary = json.loads((tmp_path / "out" / "summary.json").read_text(encoding="utf-8"))
    assert summary["notes"] == {"no speaker in utt2spk": 1}
    assert prepare(recipe / "data" / "train", tmp_path / "single") == reasons
    assert not (tmp_path / "single" / "test.tsv").exists()


@pytest.mark.parametrize("encoding", ["gb18030", "utf-16", "utf-16-le"])
def test_a_list_in_another_encoding_is_named_with_the_command_that_converts_it(recipe, tmp_path, encoding):
    write(recipe / "data" / "train" / "text", "a 他跑得很快\nb 我去银行\n".encode(encoding))
    name = encoding.upper().replace("16-", "16")
    with pytest.raises(CorpusError, match=rf"not UTF-8.*train/text, convert it: iconv -f {name} -t"):
        prepare(recipe / "data", tmp_path / "out")


def test_commands_are_rejected_and_never_run(recipe, tmp_path):
    scp = recipe / "data" / "train" / "wav.scp"
    evil = f"touch {tmp_path / 'evil'}; cat corpus/a.wav"
    scp.write_text(f"a {evil} |\nb corpus/b.wav\nnothing\nb corpus/a.wav\n", encoding="utf-8")
    reasons = prepare(recipe / "data", tmp_path / "out", expected_exit=1)
    assert reasons["a"] == "wav.scp names a command, which is not run"
    assert f"{scp}:1: {evil} |" in rejected(tmp_path / "out")["a"][2]
    assert reasons["nothing"] == "not a line of wav.scp"
    assert reasons["b"] == "duplicate recording in wav.scp"
    scp.write_text(f"a {evil} |\nb | {evil}\n", encoding="utf-8")
    with pytest.raises(
        CorpusError,
        match=rf"all 2 recordings are commands.*{scp}:1.*sph2pipe, ffmpeg and flac.*write the recordings",
    ):
        kaldi.main(["prepare", str(recipe / "data"), "--output", str(tmp_path / "out")])
    assert not (tmp_path / "evil").exists()


@pytest.mark.parametrize("missing", ["text", "wav.scp"])
def test_what_a_data_folder_must_have(recipe, tmp_path, missing):
    (recipe / "data" / "train" / missing).unlink()
    with pytest.raises(CorpusError, match="text" if missing == "text" else "no data folder here"):
        kaldi.main(["prepare", str(recipe / "data" / "train"), "--output", str(tmp_path / "out")])


SEGMENTS = """u1 long 0.25 0.75
u2 long 0.75 1.5
u3 long 1.6 2.3
u4 long 1.9 -1
../u5 long 0.1 0.2
late long 0.5 2.6
beyond long 2.5 2.6
backwards long 0.5 0.5
words long a b
infinite long 0 inf
four long 0.5
other none 0.5 1.0
command pipe 0.5 1.0
u1 long 0.3 0.4
silent long 0.2 0.4
"""


@pytest.fixture
def segmented(tmp_path) -> Path:
    folder = tmp_path / "data" / "train"
    ramp(tmp_path / "audio" / "long.wav", 2.0)
    write(folder / "wav.scp", "long audio/long.wav\npipe sph2pipe x.sph |\n")
    write(folder / "segments", SEGMENTS)
    names = [line.split()[0] for line in SEGMENTS.splitlines()]
    write(folder / "text", "".join(f"{name} 你好\n" for name in dict.fromkeys(names) if name != "silent"))
    write(folder / "utt2spk", "".join(f"{name} s1\n" for name in dict.fromkeys(names)))
    return folder


def test_segments_are_cut_to_the_sample(segmented, tmp_path):
    output = tmp_path / "out"
    reasons = prepare(segmented, output)
    train = {utterance.id: utterance for utterance in read_manifest(output / "train.tsv")}
    assert {name: positions(utterance.audio) for name, utterance in train.items()} == {
        "u1": (4000, 11999),
        "u2": (12000, 23999),
        "u3": (25600, 31999),  # ends 0.3 s after the recording, which Kaldi allows
        "u4": (30400, 31999),
        "../u5": (1600, 3199),
    }
    assert train["u1"].seconds == 0.5 and train["u1"].speaker == "s1"
    assert all(utterance.audio.is_relative_to(output / "segments" / "train") for utterance in train.values())
    assert reasons == {
        "late": "segment exceeds the end of its recording",
        "beyond": "segment exceeds the end of its recording",
        "backwards": "not a valid start and end",
        "words": "not a valid start and end",
        "infinite": "not a valid start and end",
        "four": "not a line of segments",
        "other": "no such recording in wav.scp",
        "command": "wav.scp names a command, which is not run",
        "u1": "duplicate segment",
        "silent": "transcript missing",
    }


def test_segments_are_written_once_and_again_when_something_changed(segmented, tmp_path):
    output = tmp_path / "out"
    prepare(segmented, output)
    first = {utterance.id: utterance.audio for utterance in read_manifest(output / "train.tsv")}
    manifest = (output / "train.tsv").read_bytes()
    marks = {name: audio.stat().st_mtime_ns for name, audio in first.items()}
    first["u2"].unlink()  # a run that was killed before it came to u2
    prepare(segmented, output)
    assert (output / "train.tsv").read_bytes() == manifest
    again = {name for name, audio in first.items() if audio.stat().st_mtime_ns != marks[name]}
    assert again == {"u2"}
    write(segmented / "segments", SEGMENTS.replace("u1 long 0.25 0.75", "u1 long 0.25 0.5"))
    prepare(segmented, output)
    assert positions(read_manifest(output / "train.tsv")[1].audio) == (4000, 7999)
    recording = ramp(tmp_path / "audio" / "long.wav", 1.9)  # another recording of the same name
    later = max(marks.values()) + 10**9
    os.utime(recording, ns=(later, later))
    prepare(segmented, output)
    assert positions(first["u3"]) == (25600, 30399)


@pytest.mark.parametrize("content", [wav(2.0)[:20_000], b"", b"no audio", None])
def test_segments_of_a_recording_that_cannot_be_read(segmented, tmp_path, content):
    recording = tmp_path / "audio" / "long.wav"
    recording.unlink() if content is None else recording.write_bytes(content)
    write(tmp_path / "audio" / "good.wav", wav(1.0))
    with (segmented / "wav.scp").open("a") as file:
        file.write("good audio/good.wav\n")
    with (segmented / "segments").open("a") as file:
        file.write("fine good 0.0 0.5\n")
    with (segmented / "text").open("a", encoding="utf-8") as file:
        file.write("fine 你好\n")
    reasons = prepare(segmented, tmp_path / "out")
    found = {utterance.id for utterance in read_manifest(tmp_path / "out" / "train.tsv")}
    before_the_cut = {"../u5"} if content and content.startswith(b"RIFF") else set()
    assert found == {"fine"} | before_the_cut
    assert reasons["u2"] == reasons["u4"] == "the segment's recording can't be read"


def test_segments_keep_rate_and_take_the_mean_of_channels(tmp_path):
    stereo = np.stack([np.full(8000, 1000), np.full(8000, 3000)], axis=1).astype(np.int16)
    soundfile.write(tmp_path / "a.wav", stereo, 8000)
    found = cut_segments(tmp_path / "a.wav", [KaldiSegment("u", "a", 0.25, 0.5)], tmp_path / "cut")
    samples, rate = soundfile.read(found["u"], dtype="int16")
    assert (rate, samples.shape, set(samples)) == (8000, (2000,), {2000})


@pytest.mark.parametrize(
    ("written", "hanzi", "pinyin"),
    [
        ("[笑声]如果无法控制", "如果无法控制", "ru2 guo3 wu2 fa3 kong4 zhi4"),
        ("<noise> 你好（laugh）", "你好", "ni3 hao3"),
        ("<|zh|>【掌声】谢谢{sil}大家(笑)", "谢谢大家", "xie4 xie4 da4 jia1"),
        ("該地區", "該地區", "gai1 di4 qu1"),
        ("看著 我們", "看著我們", "kan4 zhe5 wo3 men5"),
    ],
)
def test_tags_are_left_out_and_traditional_characters_are_read(written, hanzi, pinyin):
    candidate = make_candidate("u", "train", Path("u.wav"), "s", written)
    assert (candidate.problem, candidate.hanzi, " ".join(candidate.pinyin)) == (None, hanzi, pinyin)
    assert bool(candidate.note) == (written[0] in "[<")


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("<unk>你好", UNKNOWN_WORDS),
        ("你好((听不清))", UNKNOWN_WORDS),
        ("<SPOKEN_NOISE> 你好", UNKNOWN_WORDS),
        ("他（她）去了", BRACKETS),
        ("【上海】有限公司", BRACKETS),
        ("[笑声你好", BRACKETS),
    ],
)
def test_texts_with_unknown_words_or_brackets_are_rejected(written, reason):
    problem = make_candidate("u", "train", Path("u.wav"), "s", written).problem
    assert problem is not None and problem.reason == reason and problem.detail
