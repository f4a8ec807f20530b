"""Tests of channels that are recognised separately, with the shipped models on a call of two recordings."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile

import transcribe
from recognition import load
from recognition.channels import channel_names, interleaved, recognise_channels
from recognition.options import FIRST, SEPARATE
from utils.audio.properties import channel_count
from utils.audio.reading import read_audio
from utils.errors import ConfigError
from utils.hypotheses.recognition import Ending, Recognition
from utils.hypotheses.transcript_formats import FORMATS

RECORDINGS = sorted((Path(__file__).parents[2] / "examples" / "recordings").glob("*.ogg"))[:2]


@pytest.fixture(scope="module")
def recognizer():
    return load()


@pytest.fixture(scope="module")
def call(tmp_path_factory) -> Path:
    """Two people, one on each side; the second one begins before the first one has ended."""
    first, second = (read_audio(path) for path in RECORDINGS)
    both = np.zeros((len(first) + len(second) - 16_000, 2), np.float32)
    both[: len(first), 0] = first
    both[-len(second) :, 1] = second
    path = tmp_path_factory.mktemp("call") / "call.wav"
    soundfile.write(path, both, 16_000)
    return path


def events_of(recognizer, files, channels, names=()):
    return {name: list(events) for name, events in recognise_channels(recognizer, files, channels, names)}


def test_each_channel_has_the_text_of_its_recording(recognizer, call):
    alone = [recognizer.transcribe(path).text for path in RECORDINGS]
    files = [("mono", RECORDINGS[0]), ("call", call), ("again", call)]
    found = events_of(recognizer, files, SEPARATE)
    assert list(found) == ["mono", "call", "again"]
    assert [(event.channel, event.text) for event in found["call"][:-1]] == list(
        zip(("left", "right"), alone, strict=True)
    )
    assert [event.text for event in found["again"][:-1]] == alone
    assert [event.channel for event in found["mono"][:-1]] == [""]
    assert isinstance(found["call"][-1], Ending)
    assert found["call"][-1].seconds == pytest.approx(soundfile.info(call).duration)


def test_the_first_channel_alone(recognizer, call):
    (segment, _) = events_of(recognizer, [("call", call)], FIRST)["call"]
    assert segment.text == recognizer.transcribe(RECORDINGS[0]).text


def test_formats_name_the_channels(recognizer, call):
    events = events_of(recognizer, [("call", call)], SEPARATE, ("客服", "客户"))["call"]
    written = {name: "".join(form.write("call", events)) for name, form in FORMATS.items()}
    assert [line[:3] for line in written["text"].splitlines()] == ["客服:", "客户:"]
    assert "客服: 该地区" in written["srt"]
    assert "<v 客户>此外" in written["vtt"]
    assert {line.split()[1] for line in written["ctm"].splitlines()} == {"客服", "客户"}
    assert [segment["channel"] for segment in json.loads(written["json"])["segments"]] == ["客服", "客户"]
    marked = [replace(event, channel="<甲>") for event in events[:-1]]
    assert "<v &lt;甲&gt;>此外" in "".join(FORMATS["vtt"].write("call", [*marked, events[-1]]))
    titles = [line.split('"')[1] for line in written["textgrid"].splitlines() if "name =" in line]
    assert titles == ["客服: hanzi", "客服: pinyin", "客户: hanzi", "客户: pinyin"]


def test_subtitles_of_channels_are_in_the_order_of_their_starts(recognizer, call):
    left, right, ending = events_of(recognizer, [("call", call)], SEPARATE)["call"]
    early = replace(right, times=tuple((start / 100, end / 100) for start, end in right.times))
    written = "".join(FORMATS["srt"].write("call", [left, early, ending]))
    assert written.index("right: ") < written.index("left: ")


def test_a_damaged_file_is_reported_once(recognizer, call, tmp_path):
    broken = tmp_path / "broken.wav"
    broken.write_bytes(call.read_bytes()[:40_000])
    found = events_of(recognizer, [("broken", broken), ("call", call)], SEPARATE)
    assert found["broken"][-1].error is not None
    assert len(found["call"]) == 3


@pytest.mark.parametrize(("names", "fits"), [(("客服",), "mono"), (("客服", "客户"), "call")])
def test_a_file_with_not_as_many_channels_as_names_does_not_end_the_others(
    recognizer, call, tmp_path, names, fits
):
    (tmp_path / "broken.wav").write_bytes(b"no sound")
    files = [("call", call), ("broken", tmp_path / "broken.wav"), ("mono", RECORDINGS[0])]
    found = events_of(recognizer, files, SEPARATE, names)
    assert [event.channel for event in found.pop(fits)[:-1]] == list(names)
    assert "names for them" not in str(found.pop("broken")[-1].error)
    ((error,),) = found.values()
    assert f"channels: {3 - len(names)}, names for them: {len(names)}" in str(error.error)


def test_names_of_channels():
    assert channel_names(2, ()) == ("left", "right")
    assert channel_names(3, ()) == ["1", "2", "3"]
    for count, names in ((3, ("a", "b")), (2, ("a", "b", "c"))):
        with pytest.raises(ConfigError, match=f"channels: {count}, names for them: {len(names)}"):
            channel_names(count, names)


def test_segments_of_channels_are_in_the_order_of_their_speech():
    """A short recording is one piece in each channel, although one side may speak later."""

    def channel(*starts: float) -> list[Recognition | Ending]:
        return [*(Recognition(0.0, 9.0, ((start, start + 0.2),)) for start in starts), Ending(9.0)]

    found = list(interleaved([channel(3.0, 5.0), channel(1.0, 4.0), channel()], ("a", "b", "c")))
    assert [event.channel for event in found[:-1]] == ["b", "a", "b", "a"]
    assert found[-1] == Ending(9.0)


def test_channels_are_counted(call, tmp_path):
    assert channel_count(call) == 2
    assert channel_count(tmp_path / "missing.wav") == 1


def test_channels_of_live_audio_are_refused():
    with pytest.raises(ConfigError, match="--channels is for files"):
        transcribe.main(["-", "--rate", "8000", "--channels", "separate"])
    with pytest.raises(ConfigError, match="--channel-names without"):
        transcribe.main([str(RECORDINGS[0]), "--channel-names", "a,b"])
    with pytest.raises(ConfigError, match="a name occurs twice: a，b,a"):
        transcribe.main([str(RECORDINGS[0]), "--channels", "separate", "--channel-names", "a，b,a"])
