"""Tests of what FFmpeg decodes: all sound comes out, or an error or a note says how many seconds do not."""

import io
import subprocess
import sys
from pathlib import Path

import av
import numpy as np
import pytest

from data.keywords.folders import read_recordings
from tests.support.encoded_audio import RATE, SECONDS, TONE, encoded
from utils.audio.folders import find_recordings
from utils.audio.reading import audio_blocks, audio_seconds, read_audio, read_channels
from utils.errors import AudioError

STEREO = (np.stack([TONE, TONE]),)
FORMATS = {
    "a.mp4": ("mp4", "aac"),
    "a.m4a": ("ipod", "aac"),
    "a.webm": ("webm", "libopus"),
    "a.aac": ("adts", "aac"),
}


@pytest.mark.parametrize("name", FORMATS)
def test_the_decoded_sound_is_the_encoded_sound(tmp_path: Path, name):
    path = tmp_path / name
    path.write_bytes(encoded(*FORMATS[name], STEREO))
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


def assert_tones(samples: np.ndarray, seconds: float) -> None:
    """The samples at 16 kHz are the tone almost everywhere, and of this length."""
    assert len(samples) / 16_000 == pytest.approx(seconds, abs=0.15)
    frames = samples[: len(samples) // 800 * 800].reshape(-1, 800)
    loud = np.sqrt(np.mean(frames**2, axis=1)) > 0.3
    assert loud.sum() * 0.05 > seconds - 0.4


@pytest.mark.parametrize(
    ("form", "codec"),
    [("wav", "mp3"), ("wav", "adpcm_ms"), ("w64", "pcm_s24le"), ("caf", "alac"), ("flv", "mp3")],
)
def test_rare_codings_are_read(tmp_path: Path, form, codec):
    (tmp_path / "a").write_bytes(encoded(form, codec, rate=44_100, tracks=[TONE[:44_100]]))
    assert_tones(read_audio(tmp_path / "a"), 1.0)


def test_sound_of_other_tracks_is_named_once(tmp_path: Path, capsys):
    path = tmp_path / "a.mkv"
    path.write_bytes(encoded("matroska", "aac", tracks=[TONE, TONE[:RATE]]))
    for _ in range(2):
        assert_tones(read_audio(path), SECONDS)
    assert capsys.readouterr().err.count("a.mkv is read") == 1


@pytest.mark.parametrize(("form", "codec"), [("matroska", "libopus"), ("mp3", "libmp3lame")])
def test_the_sound_before_a_cut_is_read_and_the_error_counts_the_seconds(tmp_path: Path, form, codec):
    content = encoded(form, codec)
    path = tmp_path / "a"
    path.write_bytes(content[: len(content) // 2])
    blocks = []
    with pytest.raises(AudioError, match=r"cut off: the header promises 3\.\d s, 1\.\d s can be decoded"):
        for block in audio_blocks(path):
            blocks.append(block)
    assert 1.0 < sum(map(len, blocks)) / 16_000 < 2.0


def test_web_pages_and_other_text_are_named(tmp_path: Path):
    for name, content, kind in (
        ("a.mp3", b"<!DOCTYPE html><html><head><title>404 Not Found</title>", r"text \(HTML\)"),
        ("b.m4a", '{"error": "不存在"}'.encode(), "text"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(AudioError, match=f"this is {kind}, not audio") as caught:
            read_audio(tmp_path / name)
        assert "ffmpeg" not in str(caught.value)


def test_a_wav_file_does_not_import_ffmpeg(tmp_path: Path):
    (tmp_path / "a.wav").write_bytes(encoded("wav", "pcm_s16le"))
    code = f"import sys; from utils.audio.reading import read_audio; read_audio({str(tmp_path / 'a.wav')!r})"
    subprocess.run([sys.executable, "-c", f"{code}; assert 'av' not in sys.modules"], check=True)
