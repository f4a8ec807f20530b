"""Tests of reading the formats of phones and browsers, encoded by FFmpeg, against the original samples."""

import io
from pathlib import Path

import av
import numpy as np
import pytest

from data.keywords.folders import read_recordings
from utils.audio.folders import find_recordings
from utils.audio.reading import audio_seconds, read_audio, read_channels
from utils.errors import AudioError

RATE = 48000
SECONDS = 3.0
TONE = (0.5 * np.sin(2 * np.pi * 440 * np.arange(int(SECONDS * RATE)) / RATE)).astype(np.float32)
FORMATS = {
    "a.mp4": ("mp4", "aac"),
    "a.m4a": ("ipod", "aac"),
    "a.webm": ("webm", "libopus"),
    "a.aac": ("adts", "aac"),
}


def encoded(form: str, codec: str, layout: str = "stereo") -> bytes:
    content = io.BytesIO()
    planes = np.stack([TONE] * (2 if layout == "stereo" else 1))
    with av.open(content, "w", format=form) as container:
        track = container.add_stream(codec, rate=RATE, layout=layout)
        frame = av.AudioFrame.from_ndarray(planes, "fltp", layout)
        frame.sample_rate = RATE
        size = track.codec_context.frame_size or 1024
        for part in av.AudioResampler(track.format.name, layout, RATE, frame_size=size).resample(frame):
            container.mux(track.encode(part))
        container.mux(track.encode(None))
    return content.getvalue()


@pytest.mark.parametrize("name", FORMATS)
def test_the_decoded_sound_is_the_encoded_sound(tmp_path: Path, name):
    path = tmp_path / name
    path.write_bytes(encoded(*FORMATS[name]))
    assert audio_seconds(path) == pytest.approx(SECONDS, abs=0.1)
    samples, rate = read_channels(path)
    assert (samples.shape[1], rate) == (2, RATE)
    mono = read_audio(path)
    assert len(mono) == pytest.approx(SECONDS * 16000, abs=1600)
    middle = mono[8000:40000]
    spectrum = np.abs(np.fft.rfft(middle * np.hanning(len(middle))))
    assert spectrum.argmax() * 16000 / len(middle) == pytest.approx(440, abs=1)
    assert np.sqrt(np.mean(middle**2)) == pytest.approx(0.5 / np.sqrt(2), rel=0.05)


def test_a_folder_gives_the_recordings_that_are_read_without_a_note(tmp_path: Path, capsys):
    (tmp_path / "words" / "yes").mkdir(parents=True)
    path = tmp_path / "words" / "yes" / "a.m4a"
    path.write_bytes(encoded(*FORMATS["a.m4a"]))
    assert find_recordings(tmp_path) == [path]
    assert [clip.audio for clip in read_recordings(tmp_path / "words", 10.0, 10.0)] == [path]
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("kept", [0.0, 0.02, 0.5, 0.9])
@pytest.mark.parametrize("name", ["a.mp4", "a.webm"])
def test_damaged_files_are_errors_or_shorter(tmp_path: Path, name, kept):
    content = encoded(*FORMATS[name])
    path = tmp_path / name
    path.write_bytes(content[: 16 + int(kept * len(content))])
    try:
        assert len(read_audio(path)) < SECONDS * 16000  # a stream may end anywhere
    except AudioError as error:
        assert error.hint


def test_a_video_without_sound(tmp_path: Path):
    content = io.BytesIO()
    with av.open(content, "w", format="mp4") as container:
        track = container.add_stream("mpeg4", rate=10)
        track.width, track.height, track.pix_fmt = 32, 32, "yuv420p"
        container.mux(track.encode(av.VideoFrame(32, 32, "yuv420p")))
        container.mux(track.encode(None))
    (tmp_path / "a.mp4").write_bytes(content.getvalue())
    with pytest.raises(AudioError, match="no audio"):
        read_audio(tmp_path / "a.mp4")


def test_lists_of_other_files_are_not_followed(tmp_path: Path):
    (tmp_path / "a.mp4").write_bytes(b"ffconcat version 1.0\nfile /etc/passwd\n")
    (tmp_path / "b.mp4").write_bytes(b"#EXTM3U\nhttp://127.0.0.1/x.ts\n")
    for name in ("a.mp4", "b.mp4"):
        with pytest.raises(AudioError, match="this is text"):
            read_audio(tmp_path / name)


@pytest.mark.parametrize(
    ("magic", "frame_type", "size"), [(b"#!AMR\n", 7, 32), (b"#!AMR-WB\n", 8, 61)], ids=["narrow", "wide"]
)
def test_amr_states_no_length_and_is_not_taken_for_cut_off(tmp_path, magic, frame_type, size):
    """FFmpeg estimates the length of such a file; its estimate is 3 % too long."""
    frames = bytes([frame_type << 3 | 4]) + bytes(size - 1)
    path = tmp_path / "a.amr"
    path.write_bytes(magic + 40 * 50 * frames)
    assert audio_seconds(path) == pytest.approx(40, abs=0.1)
