"""Tests of transcribe.py and utils/hypotheses/transcript_formats.py: any file, beside damaged ones."""

import io
import itertools
import json
import os
import re
import shutil
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile

import transcribe
from bundle.pack import pack
from recognition import loading, options
from tests.support.recordings import RECORDING
from tests.support.scripts import exit_code
from utils.audio.reading import read_audio
from utils.audio.samples import write_wav
from utils.errors import AudioError, ConfigError, RunError, UserError
from utils.hypotheses.recognition import Alternative, Ending, Recognition
from utils.hypotheses.transcript_formats import FORMATS, print_transcript
from utils.hypotheses.transcript_marks import MARKS
from utils.stop_signals import Stopped

RATE = 16_000
NOISE = np.random.default_rng(0).normal(0, 0.1, 2 * RATE).astype(np.float32)


def _segment(
    pinyin: str, hanzi: str, times: list[tuple[float, float]], start: float, end: float
) -> Recognition:
    return Recognition(start, end, tuple(times), (Alternative(tuple(pinyin.split()), hanzi, -1.5),))


TALK = [
    _segment("ni3 hao3", "你好", [(0.1, 0.3), (0.3, 0.5)], 0.0, 0.7),
    _segment("ma5", "吗", [(3661.2, 3661.4567)], 3661.0, 3662.0),
    Ending(3662.0),
]
WITHOUT_HANZI = [_segment("ni3 hao3", "", [(0.1, 0.3), (0.3, 0.5)], 0.0, 0.7), Ending(0.7)]
SILENCE = [Ending(2.0)]


def _written(form: str, events: list[Recognition | Ending]) -> str:
    return "".join(FORMATS[form].write("talk", events))


def test_text_has_a_line_for_each_segment():
    assert _written("text", TALK) == "你好\n吗\n"
    assert _written("text", WITHOUT_HANZI) == "ni3 hao3\n"
    assert _written("text", SILENCE) == "\n"
    assert _written("text", [_segment("", "", [], 0, 1), *TALK]) == "你好\n吗\n"


def test_text_comes_while_the_recording_is_read():
    events = iter(TALK)
    lines = FORMATS["text"].write("talk", events)
    assert next(lines) == "你好\n"
    assert next(events) is TALK[1]


def test_json():
    value = json.loads(_written("json", TALK))
    expected = {"id": "talk", "hanzi": "你好吗", "pinyin": "ni3 hao3 ma5", "seconds": 3662, "score": -3}
    assert {key: value[key] for key in expected} == expected
    segment = value["segments"][1]
    assert (segment["start"], segment["end"], segment["hanzi"], segment["pinyin"]) == (
        3661,
        3662,
        "吗",
        "ma5",
    )
    assert segment["syllables"] == [{"pinyin": "ma5", "hanzi": "吗", "start": 3661.2, "end": 3661.457}]
    assert segment["n_best"] == [{"hanzi": "吗", "pinyin": "ma5", "score": -1.5}]
    assert json.loads(_written("json", SILENCE)) == {
        "id": "talk",
        "segments": [],
        "seconds": 2.0,
        "hanzi": "",
        "text": "",
        "pinyin": "",
        "score": 0.0,
    }


def _cut_off_after(events):
    yield from events
    raise AudioError("cut off", where="bad.wav")


@pytest.mark.parametrize("read", [0, 1])
def test_a_recording_that_fails_leaves_no_part_of_a_json_line(capsys, read):
    with pytest.raises(AudioError):
        print_transcript("json", "bad.wav", _cut_off_after(TALK[:read]), several=True)
    print_transcript("json", "talk", TALK, several=True)
    assert [json.loads(line)["id"] for line in capsys.readouterr().out.splitlines()] == ["talk"]


@pytest.mark.parametrize("form", ["json", "vtt"])
def test_nothing_is_printed_for_a_recording_that_cannot_be_read(capsys, form):
    with pytest.raises(AudioError):
        print_transcript(form, "bad.wav", _cut_off_after([]), several=False)
    assert capsys.readouterr().out == ""


def test_ctm_of_several_recordings_names_each_once_a_line(capsys):
    for name in ("a", "b"):
        print_transcript("ctm", name, TALK, several=True)
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [fields[0] for fields in lines] == ["a"] * 3 + ["b"] * 3
    assert {len(fields) for fields in lines} == {6}


def test_srt_has_a_cue_for_each_stretch_of_speech():
    assert _written("srt", TALK) == (
        "1\n00:00:00,100 --> 00:00:00,500\n你好\n\n2\n01:01:01,200 --> 01:01:01,457\n吗\n"
    )
    assert _written("srt", SILENCE) == ""


def _cues(count: int, gaps: dict[int, float] | None = None, hanzi: str = "", **changes: object) -> list[str]:
    """The texts of the subtitles of syllables of 0.2 s with these seconds of silence before some of them."""
    starts = [0.2 * i + sum(gap for at, gap in (gaps or {}).items() if at <= i) for i in range(count)]
    times = [(start, start + 0.2) for start in starts]
    segment = _segment("ma1 " * count, hanzi or "妈" * count, times, 0, times[-1][1])
    segment = replace(segment, **changes)
    return [cue.splitlines()[2] for cue in _written("srt", [segment, Ending(times[-1][1])]).split("\n\n")]


def test_srt_cuts_long_speech_into_lines():
    assert list(map(len, _cues(24))) == [24]
    assert list(map(len, _cues(26))) == [13, 13]  # no line of two characters
    assert list(map(len, _cues(50))) == [17, 16, 17]
    assert list(map(len, _cues(26, {10: 0.2}))) == [10, 16]
    assert list(map(len, _cues(26, {10: 0.2, 15: 0.4}))) == [15, 11]
    assert list(map(len, _cues(26, {2: 0.4}))) == [13, 13]
    assert list(map(len, _cues(26, {2: 0.6}))) == [2, 24]


def test_srt_cuts_no_word():
    """Neither where the middle is inside a word, nor where a speaker pauses inside one."""
    starts = (*range(13), 15, *range(17, 26))
    assert list(map(len, _cues(26, word_starts=starts))) == [12, 14]
    assert list(map(len, _cues(26, {14: 0.7}, word_starts=starts))) == [12, 14]
    latin = "妈" * 11 + "wifi6" + "妈" * 10
    assert _cues(26, hanzi=latin) == ["妈" * 11, "wifi6" + "妈" * 10]


def test_srt_cuts_behind_punctuation():
    labels = (*"妈" * 8, "妈，", *"妈" * 17)
    assert list(map(len, _cues(26, {15: 0.4}, labels=labels))) == [10, 17]  # the mark counts
    labels = (*"妈" * 2, "妈，", *"妈" * 23)
    assert list(map(len, _cues(26, labels=labels))) == [14, 13]  # too near the beginning


@pytest.mark.parametrize("gaps", [{}, {25: 0.6}], ids=["long", "pause"])
def test_srt_cuts_no_number_in_digits(gaps):
    """The syllables after the first one of a number have no text of their own."""
    labels = (*"妈" * 23, "123", "", "", "", "")
    assert "".join(_cues(28, gaps, labels=labels)) == "妈" * 23 + "123"


def test_ctm_words_do_not_overlap():
    """Neither the beginning nor the length may be rounded alone."""
    times = [(0.1005, 0.2010), (0.2010, 0.3015)]
    lines = [
        line.split() for line in _written("ctm", [_segment("ni3 hao3", "你好", times, 0, 1)]).splitlines()
    ]
    (start, length), (following, _) = ((float(fields[2]), float(fields[3])) for fields in lines)
    assert round(start + length, 3) <= following


def test_textgrid_tiles_the_whole_recording():
    text = _written("textgrid", TALK)
    assert text.startswith('File type = "ooTextFile"\nObject class = "TextGrid"\n')
    assert re.findall(r'name = "(\w+)"', text) == ["hanzi", "pinyin"]
    tier = text.split("item [2]")[1]
    edges = re.findall(
        r"^ {12}xmin = ([\d.]+)\n {12}xmax = ([\d.]+)\n {12}text = \"(.*)\"", tier, re.MULTILINE
    )
    assert [label for _, _, label in edges] == ["", "ni3", "hao3", "", "ma5", ""]
    assert edges[0][0] == "0.0000" and edges[-1][1] == "3662.0000"
    assert all(left[1] == right[0] for left, right in itertools.pairwise(edges))
    assert "intervals: size = 6" in tier


def test_textgrid_without_hanzi_or_speech():
    text = _written("textgrid", SILENCE)
    assert re.findall(r'name = "(\w+)"', text) == ["pinyin"]
    assert "intervals: size = 1" in text
    assert re.findall(r'name = "(\w+)"', _written("textgrid", WITHOUT_HANZI)) == ["pinyin"]


@pytest.fixture
def talks(tmp_path: Path) -> Path:
    """Recordings of several formats, two with the same name, one damaged."""
    folder = tmp_path / "talks"
    write_wav(folder / "a.wav", NOISE)
    write_wav(folder / "deep" / "b.wav", NOISE[: RATE // 2])
    stereo = np.stack([NOISE, NOISE], axis=1)
    soundfile.write(folder / "a.mp3", stereo, 22_050, format="MP3")
    soundfile.write(folder / "c.ogg", NOISE, 8_000, format="OGG")
    (folder / "broken.flac").write_text("not audio")
    (folder / "notes.txt").write_text("no recording")
    return folder


@pytest.fixture(scope="module")
def packed_run(speech_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The speech run without a framework, whose loading takes longer than these recordings."""
    folder = tmp_path_factory.mktemp("packed") / "speech"
    pack(speech_run, folder)
    return folder


@pytest.fixture
def runs(packed_run: Path, language_run: Path) -> list[str]:
    return ["--speech", str(packed_run), "--language", str(language_run)]


def test_a_folder_with_a_broken_file(talks, speech_run, language_run, tmp_path, capsys):
    output, runs = tmp_path / "out", ["--speech", str(speech_run), "--language", str(language_run)]
    assert transcribe.main([str(talks), *runs, "--format", "json", "--output", str(output)]) == 1
    printed = capsys.readouterr().err
    assert printed.count("error: ") == 1
    assert re.search(r"^error: .+\nwhere: .*broken\.flac\n", printed, re.MULTILINE)
    written = {path.relative_to(output).as_posix() for path in output.rglob("*.json")}
    assert written == {"a.wav.json", "a.mp3.json", "c.json", "deep/b.json"}
    value = json.loads((output / "deep/b.json").read_text())
    assert value["seconds"] == 0.5
    assert len(value["hanzi"]) == len(value["segments"][0]["syllables"])


@pytest.mark.parametrize("form", list(FORMATS))
def test_one_file_is_printed_as_it_would_be_written(talks, runs, tmp_path, capsys, form):
    arguments = [str(talks / "a.wav"), *runs, "--format", form]
    assert transcribe.main(arguments) == 0
    printed = capsys.readouterr().out
    assert transcribe.main([*arguments, "--output", str(tmp_path)]) == 0
    assert (tmp_path / f"a{FORMATS[form].suffix}").read_text() == printed


def test_several_files_are_printed_a_line_each(talks, runs, capsys):
    files = [str(talks / "a.wav"), str(talks / "c.ogg")]
    assert transcribe.main([*files, *runs]) == 0
    assert [line.split("\t")[0] for line in capsys.readouterr().out.splitlines()] == files
    assert transcribe.main([*files, *runs, "--format", "json", "--beam", "3", "--n-best", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(line)["id"] for line in lines] == files
    assert all(1 <= len(json.loads(line)["segments"][0]["n_best"]) <= 2 for line in lines)


def test_recordings_without_speech_are_named(tmp_path, capsys):
    """By the shipped model: that of the other tests hears syllables in everything."""
    silence = tmp_path / "silence.wav"
    write_wav(silence, np.zeros(RATE, np.float32))
    assert transcribe.main([str(silence), str(RECORDING)]) == 0
    assert f"note: no speech was found in 1 of 2 files: {silence}\n" in capsys.readouterr().err
    assert transcribe.main([str(RECORDING), "--minimum-confidence", "0.999"]) == 0
    assert "note: no speech of a confidence of 0.999 was found in 1 of 1 files" in capsys.readouterr().err


def test_several_subtitle_files_need_a_folder(talks, runs):
    with pytest.raises(UserError, match="give --output DIR for the 2 srt files"):
        transcribe.main([str(talks / "a.wav"), str(talks / "c.ogg"), *runs, "--format", "srt"])


def test_a_missing_file_gives_an_error_line(talks, runs, capsys):
    assert transcribe.main([str(talks / "none.wav"), str(talks / "c.ogg"), *runs]) == 1
    captured = capsys.readouterr()
    assert "no such audio file" in captured.err and "1 of 2 files could not be transcribed" in captured.err
    assert captured.out.startswith(str(talks / "c.ogg"))


def test_without_runs_the_shipped_models_search_together(
    talks, tmp_path, monkeypatch, packed_run, language_run
):
    """The joint search is the default unless another search is requested."""
    shipped = tmp_path / "shipped"
    monkeypatch.setattr(options, "PRETRAINED", language_run)
    monkeypatch.setattr(options, "PRETRAINED_SPEECH", shipped)
    with pytest.raises(RunError, match=r"shipped acoustic model is missing.*--speech RUN"):
        transcribe.main([str(talks / "a.wav")])
    shutil.copytree(packed_run, shipped)
    searches = []
    monkeypatch.setattr(loading, "load_joint_search_for", lambda *_, **__: searches.append("joint"))
    for search in ([], ["--joint"], ["--no-joint"], ["--beam", "2"]):
        searches.append(search)
        assert transcribe.main([str(talks / "a.wav"), *search]) == 0
    assert searches == [[], "joint", ["--joint"], "joint", ["--no-joint"], ["--beam", "2"]]


def test_with_a_speech_run_alone_our_converter_writes_the_hanzi(
    talks, tmp_path, monkeypatch, speech_run, language_run
):
    monkeypatch.chdir(tmp_path)  # a folder without the demo's runs
    call = [str(talks / "a.wav"), "--speech", str(speech_run)]
    monkeypatch.setattr(options, "PRETRAINED", language_run)
    assert transcribe.main(call) == 0
    monkeypatch.setattr(options, "PRETRAINED", tmp_path / "none")
    with pytest.raises(RunError, match="none"):
        transcribe.main(call)


def _times(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in folder.glob("*.txt")}


def test_a_second_run_resumes_where_the_first_stopped(talks, runs, tmp_path, capsys):
    output = tmp_path / "out"
    call = [str(talks / "a.wav"), str(talks / "c.ogg"), *runs, "--output", str(output)]
    assert transcribe.main(call) == 0
    first = _times(output)
    (output / "c.txt").unlink()
    assert transcribe.main(call) == 0
    assert "1 of 2 were transcribed before" in capsys.readouterr().err
    assert _times(output)["a.txt"] == first["a.txt"] and (output / "c.txt").is_file()
    assert transcribe.main([*call, "--format", "json"]) == 0
    assert (output / "a.json").is_file()


@pytest.mark.parametrize("change", ["settings", "recording", "model"])
def test_transcripts_with_other_settings_are_made_again(
    talks, runs, tmp_path, capsys, monkeypatch, speech_run, change
):
    output, call = tmp_path / "out", [str(talks / "a.wav"), *runs, "--output", str(tmp_path / "out")]
    assert transcribe.main(call) == 0
    if change == "settings":
        call += ["--beam", "2"]
    elif change == "recording":
        later = time.time() + 5
        os.utime(talks / "a.wav", (later, later))
    else:
        monkeypatch.setattr(options, "weights_state", lambda run: [["best.weights.h5", 1, 2]])
    before = _times(output)
    assert transcribe.main(call) == 0
    assert "transcribed before" not in capsys.readouterr().err
    assert _times(output) != before


def test_a_transcript_is_never_taken_for_that_of_another_recording(talks, runs, tmp_path, capsys):
    other = tmp_path / "other" / "a.wav"
    other.parent.mkdir()
    other.write_bytes((talks / "a.wav").read_bytes())
    os.utime(other, ns=(0, (talks / "a.wav").stat().st_mtime_ns))  # same name, size and time
    output = tmp_path / "out"
    to = [*runs, "--output", str(output)]
    assert transcribe.main([str(talks / "a.wav"), *to]) == 0
    first = _times(output)
    with pytest.raises(UserError, match=r"a\.txt is the transcript of .*a\.wav, not of .*other/a\.wav"):
        transcribe.main([str(other), *to])
    assert _times(output) == first and "transcribed before" not in capsys.readouterr().err
    with pytest.raises(UserError, match="2 files would be written as"):
        transcribe.main([str(talks / "a.wav"), str(other), *to])


def test_a_recording_that_was_moved_is_not_transcribed_again(talks, runs, tmp_path, capsys):
    to = [*runs, "--output", str(tmp_path / "out")]
    assert transcribe.main([str(talks / "a.wav"), *to]) == 0
    (tmp_path / "moved").mkdir()
    (talks / "a.wav").rename(tmp_path / "moved" / "a.wav")
    assert transcribe.main([str(tmp_path / "moved" / "a.wav"), *to]) == 0
    assert "1 of 1 were transcribed before" in capsys.readouterr().err


def test_the_incomplete_mark_of_a_killed_process_costs_only_its_own_transcript(talks, runs, tmp_path, capsys):
    output = tmp_path / "out"
    call = [str(talks / "a.wav"), str(talks / "c.ogg"), *runs, "--output", str(output)]
    assert transcribe.main(call) == 0
    content = (output / MARKS).read_bytes()
    (output / MARKS).write_bytes(content[:-20])
    (output / "c.txt").unlink()  # it gets its name after its mark
    for done in (1, 2):
        assert transcribe.main(call) == 0
        assert f"{done} of 2 were transcribed before" in capsys.readouterr().err


def test_a_list_of_files(talks, runs, tmp_path, capsys):
    listed = tmp_path / "files.txt"
    listed.write_text(f"{talks / 'a.wav'}\n\n{talks / 'c.ogg'}\n", encoding="utf-8")
    assert transcribe.main(["--list", str(listed), *runs]) == 0
    names = [line.split("\t")[0] for line in capsys.readouterr().out.splitlines()]
    assert names == [str(talks / "a.wav"), str(talks / "c.ogg")]


def test_an_empty_or_missing_list_is_refused(tmp_path, runs, capsys):
    (tmp_path / "empty.txt").write_text("\n")
    with pytest.raises(UserError, match="the list names no file"):
        transcribe.main(["--list", str(tmp_path / "empty.txt"), *runs])
    with pytest.raises(UserError, match="can't read the list"):
        transcribe.main(["--list", str(tmp_path / "none.txt"), *runs])
    with pytest.raises(SystemExit):
        transcribe.main(runs)
    assert "give recordings, folders, --list FILE, or --microphone" in capsys.readouterr().err


def _pipe(monkeypatch, content: bytes) -> None:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(content)))


@pytest.mark.parametrize("name", ["a.wav", "a.mp3"])
def test_a_pipe_with_a_sound_file(talks, runs, capsys, monkeypatch, name):
    assert transcribe.main([str(talks / name), *runs]) == 0
    expected = capsys.readouterr().out
    _pipe(monkeypatch, (talks / name).read_bytes())
    assert transcribe.main(["-", *runs]) == 0
    assert capsys.readouterr().out == expected


def test_a_pipe_with_raw_sound(talks, runs, tmp_path, capsys, monkeypatch):
    assert transcribe.main([str(talks / "a.wav"), *runs]) == 0
    expected = capsys.readouterr().out
    integers = np.clip(np.rint(NOISE * 32768), -32768, 32767).astype("<i2")
    _pipe(monkeypatch, integers.tobytes())
    assert transcribe.main(["-", "--rate", "16000", *runs, "--output", str(tmp_path)]) == 0
    assert (tmp_path / "stdin.txt").read_text() == expected
    _pipe(monkeypatch, b"")
    assert transcribe.main(["-", "--rate", "16000", *runs]) == 1
    assert "error: there are no samples\nwhere: standard input\n" in capsys.readouterr().err
    _pipe(monkeypatch, (talks / "a.wav").read_bytes())  # the header of a sound file has precedence
    assert transcribe.main(["-", "--rate", "8000", *runs]) == 0
    assert capsys.readouterr().out == expected
    _pipe(monkeypatch, "这不是声音".encode())
    assert transcribe.main(["-", "--rate", "16000", *runs]) == 1
    assert "this is text, not audio: it begins with '这不是声音'" in capsys.readouterr().err


@pytest.mark.parametrize("form", ["text", "json"])
def test_sound_before_ctrl_c_gets_its_text(talks, runs, capsys, monkeypatch, form):
    """Without --stream too: the text, and JSON that is complete."""
    assert transcribe.main([str(talks / "a.wav"), *runs, "--format", form]) == 0
    expected = capsys.readouterr().out

    @contextmanager
    def stopped_pipe(stream, rate, sample_rate, seconds):
        yield iter([read_audio(talks / "a.wav", sample_rate)])
        raise Stopped

    monkeypatch.setattr("utils.audio.piped.open_pipe", stopped_pipe)
    with pytest.raises(Stopped):
        transcribe.main(["-", *runs, "--format", form])
    shown = capsys.readouterr().out
    if form == "json":
        shown, expected = ({**json.loads(text), "id": ""} for text in (shown, expected))
    assert shown == expected


def test_spaces_and_quotes_of_a_phrase_are_written_as_the_formats_require():
    event = replace(TALK[0], labels=('打开 "客厅"', ""))
    assert _written("ctm", [event]).split()[4] == '打开_"客厅"'
    assert 'text = "打开 ""客厅"""' in _written("textgrid", [event, Ending(1.0)])


def test_fusion_needs_a_beam_and_a_run_of_its_kind(talks, runs, language_run):
    file = str(talks / "a.wav")
    with pytest.raises(ConfigError, match="needs a beam search"):
        transcribe.main([file, *runs, "--syllables", str(language_run), "--beam", "1"])
    with pytest.raises(RunError, match="a run of 'ngram', not of 'syllable_ngram'"):
        transcribe.main([file, *runs, "--syllables", str(language_run)])
    with pytest.raises(ConfigError, match="below 0"):
        transcribe.main([file, *runs, "--fusion-weight", "-1"])


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "x"])
def test_weights_are_finite_numbers(value, capsys):
    """With NaN every comparison of scores is false, so a search would return an arbitrary text."""
    names = ("fusion-weight", "insertion-bonus", "language-weight", "joint-bonus", "rescoring-weight")
    for option in (f"--{name}" for name in names):
        with pytest.raises(SystemExit) as ended:
            transcribe.main(["a.wav", f"{option}={value}"])
        assert ended.value.code == 2
        assert f"argument {option}: '{value}' is not a finite number" in capsys.readouterr().err


def test_joint_search_and_user_words(talks, runs, tmp_path, capsys):
    words = tmp_path / "words.txt"
    words.write_text("妮 ni3\n", encoding="utf-8")
    # The random model is never certain: the bonus makes the search find syllables.
    joint = ["--joint", "--joint-bonus", "50", "--n-best", "2", "--words", str(words)]
    call = [str(talks / "a.wav"), *runs, *joint, "--format", "json"]
    assert transcribe.main(call) == 0
    segment = json.loads(capsys.readouterr().out)["segments"][0]
    assert 1 <= len(segment["n_best"]) <= 2
    assert len(segment["hanzi"]) > 0
    assert len(segment["n_best"][0]["confidence"]) == len(segment["hanzi"]) == len(segment["syllables"])
    words.write_text("妮 blorp\n", encoding="utf-8")
    with pytest.raises(UserError, match="'妮' has no valid pinyin: 'blorp' is no"):
        transcribe.main(call)
    with pytest.raises(ConfigError, match="--language-weight"):
        transcribe.main([str(talks / "a.wav"), *runs, "--joint", "--language-weight", "-1"])


PHRASES = "你好\n(请)打开<房间>的灯\n<房间> = 客厅 | 卧室\n音量<数字 0-100>\n"


@pytest.fixture
def phrases(tmp_path: Path) -> Path:
    path = tmp_path / "phrases.txt"
    path.write_text(PHRASES, encoding="utf-8")
    return path


def test_phrases_are_accepted_or_refused(talks, packed_run, phrases, capsys):
    """The model is random: with a threshold of 0 its best phrase is accepted, with 1 none is."""
    call = [str(talks / "a.wav"), "--speech", str(packed_run), "--phrases", str(phrases)]
    assert transcribe.main([*call, "--phrase-threshold", "0", "--n-best", "3", "--format", "json"]) == 0
    (segment,) = json.loads(capsys.readouterr().out)["segments"]
    best = segment["phrases"][0]
    assert segment["accepted"] and segment["hanzi"] == best["text"] and len(segment["phrases"]) == 3
    assert {"text", "slots", "line", "pinyin", "score", "confidence"} == best.keys()
    assert segment["pinyin"] == best["pinyin"] and len(segment["syllables"]) == len(best["pinyin"].split())
    assert transcribe.main([*call, "--phrase-threshold", "1"]) == 0
    line = capsys.readouterr().out
    assert re.fullmatch(r"\(([a-z]+[1-5] ?)+\)\n|\n", line)
    assert transcribe.main([*call, "--phrase-threshold", "0"]) == 0
    assert capsys.readouterr().out == f"{best['text']}\n"


def test_phrases_that_sound_the_same_are_named(talks, packed_run, phrases, capsys):
    phrases.write_text("语音\n余音\tyu3 yin1", encoding="utf-8")
    call = [str(talks / "a.wav"), "--speech", str(packed_run), "--phrases", str(phrases)]
    assert transcribe.main(call) == 0
    assert "'余音' (line 2) sounds like '语音' (line 1)" in capsys.readouterr().err


def test_other_phrases_give_other_transcripts(talks, packed_run, phrases, tmp_path, capsys):
    """Existing transcripts are kept only for the same phrases: another list makes them again."""
    output = tmp_path / "out"
    call = [
        str(talks / "a.wav"),
        "--speech",
        str(packed_run),
        "--phrases",
        str(phrases),
        "--output",
        str(output),
    ]
    assert transcribe.main([*call, "--phrase-threshold", "0"]) == 0
    assert transcribe.main([*call, "--phrase-threshold", "0"]) == 0
    assert "1 of 1 were transcribed before" in capsys.readouterr().err
    phrases.write_text("妈妈", encoding="utf-8")
    assert transcribe.main([*call, "--phrase-threshold", "0"]) == 0
    assert (output / "a.txt").read_text(encoding="utf-8") == "妈妈\n"


@pytest.mark.parametrize(
    ("search", "message"),
    [
        ("--n-best 5 --format json", "5 hypotheses from a beam of 1"),
        ("--n-best 5", "--n-best 5 with --format text, add --format json"),
        ("--rate 16000", "--rate is the sample rate of raw audio from a pipe"),
        ("--phrase-threshold 0.9", "--phrase-threshold without --phrases"),
        ("--beam 5 --language-model run", "--language-model without the joint search"),
        ("--beam 5 --rescoring-weight 0", "--rescoring-weight without the joint search"),
        ("--beam 5 --joint-bonus 1", "--joint-bonus without the joint search"),
        ("--beam 5 --language-weight 1", "--language-weight without the joint search"),
        ("--phrases FILE --joint", "--phrases can't be combined with --joint"),
        ("--phrases FILE --words words.txt", "--phrases can't be combined with --words"),
        ("--phrases FILE --language runs/ngram", "--phrases can't be combined with --language"),
        ("--phrases FILE --rescoring-weight 0.2", "--phrases can't be combined with --rescoring-weight"),
        ("--phrases FILE --language-model run", "--phrases can't be combined with --language-model"),
        ("--phrases FILE --minimum-confidence 0.9", "--phrases can't be combined with --minimum-conf"),
    ],
)
def test_options_that_do_not_go_together_are_refused(talks, packed_run, phrases, search, message):
    call = [str(talks / "a.wav"), "--speech", str(packed_run), *search.replace("FILE", str(phrases)).split()]
    with pytest.raises(UserError, match=message):
        transcribe.main(call)


def test_a_wrong_phrase_file_ends_the_command(talks, packed_run, phrases, capsys):
    phrases.write_text("你好\n打开[客厅|卧室的灯\n", encoding="utf-8")
    call = [str(talks / "a.wav"), "--speech", str(packed_run), "--phrases", str(phrases)]
    for more, message in (
        ([], f"error: '[' is not closed by ']'\nwhere: {phrases}:2\nhint: one phrase a line"),
        (["--phrase-threshold", "1.5"], "argument --phrase-threshold: '1.5' is not a number from 0 to 1"),
    ):
        assert exit_code(transcribe.main, [*call, *more]) == 2
        assert message in capsys.readouterr().err
