"""Tests of what FFmpeg decodes: all sound comes out, or an error or a note says how many seconds do not."""

import io
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import av
import numpy as np
import pytest

from utils.audio.folders import find_recordings
from utils.audio.properties import audio_seconds, read_channels
from utils.audio.reading import audio_blocks, read_audio
from utils.errors import AudioError

RATE = 48_000
SECONDS = 3.0
TONE = (0.5 * np.sin(2 * np.pi * 440 * np.arange(int(SECONDS * RATE)) / RATE)).astype(np.float32)
SILENCE = np.zeros_like(TONE)
STEREO = (np.stack([TONE, TONE]),)
FORMATS = {
    "a.mp4": ("mp4", "aac"),
    "a.m4a": ("ipod", "aac"),
    "a.webm": ("webm", "libopus"),
    "a.aac": ("adts", "aac"),
}


def encoded(form: str, codec: str, tracks: Sequence[np.ndarray] = (TONE,), rate: int = RATE) -> bytes:
    """A file of FFmpeg's format ``form``.

    Args:
        codec: FFmpeg's name of it.
        tracks: (samples,) for mono, or (channels, samples) for stereo and 7.1, float32; of any
            number of tracks.
        rate: Hz.
    """
    content = io.BytesIO()
    with av.open(content, "w", format=form) as container:
        planes = [np.atleast_2d(samples) for samples in tracks]
        layouts = [{1: "mono", 2: "stereo", 8: "7.1"}[len(channels)] for channels in planes]
        streams = [container.add_stream(codec, rate=rate, layout=layout) for layout in layouts]
        for stream, channels, layout in zip(streams, planes, layouts, strict=True):
            frame = av.AudioFrame.from_ndarray(channels.T.reshape(1, -1), "flt", layout)
            frame.sample_rate = rate
            size = stream.codec_context.frame_size or 1024
            to_codec = av.AudioResampler(stream.format.name, layout, rate, frame_size=size)
            for part in [*to_codec.resample(frame), *to_codec.resample(None), None]:
                container.mux(stream.encode(part))
    return content.getvalue()


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


def assert_tones(samples: np.ndarray, seconds: float) -> None:
    """The samples at 16 kHz are the tone almost everywhere, and of this length."""
    assert len(samples) / 16_000 == pytest.approx(seconds, abs=0.15)
    frames = samples[: len(samples) // 800 * 800].reshape(-1, 800)
    loud = np.sqrt(np.mean(frames**2, axis=1)) > 0.3
    assert loud.sum() * 0.05 > seconds - 0.4


@pytest.mark.parametrize(
    ("form", "codec"),
    [
        ("ipod", "aac"), ("mp4", "aac"), ("mov", "pcm_s16le"), ("webm", "libopus"), ("matroska", "pcm_s16le"),
        ("flac", "flac"), ("adts", "aac"), ("ogg", "libopus"), ("mp3", "libmp3lame"), ("wav", "pcm_s16le"),
        ("aiff", "pcm_s16be"), ("caf", "alac"), ("au", "pcm_s16be"),  ("tta", "tta"),
        ("avi", "mp3"), ("mpegts", "aac"), ("mp2", "mp2"),
    ],
)  # fmt: skip
def test_joined_files_are_read_to_the_end_of_the_last(tmp_path: Path, form, codec):
    content = encoded(form, codec)
    path = tmp_path / "a"
    path.write_bytes(content + content)
    assert_tones(read_audio(path), 2 * SECONDS)
    assert audio_seconds(path) == pytest.approx(2 * SECONDS, abs=0.15)


@pytest.mark.parametrize(("form", "codec"), [("wav", "pcm_s16le"), ("ogg", "libopus")])
def test_joined_files_of_different_rates_are_read(tmp_path: Path, form, codec):
    path = tmp_path / "a"
    other = encoded(form, codec, rate=24_000, tracks=[np.stack([TONE[::2], TONE[::2]])])
    path.write_bytes(encoded(form, codec) + other)
    assert len(read_audio(path)) / 16_000 == pytest.approx(2 * SECONDS, abs=0.05)


@pytest.mark.parametrize(
    ("form", "codec"),
    [("wav", "mp3"), ("wav", "adpcm_ms"), ("w64", "pcm_s24le"), ("caf", "alac"), ("flv", "mp3")],
)
def test_rare_codings_are_read(tmp_path: Path, form, codec):
    (tmp_path / "a").write_bytes(encoded(form, codec, rate=44_100, tracks=[TONE[:44_100]]))
    assert_tones(read_audio(tmp_path / "a"), 1.0)


def test_the_channels_of_a_cinema_are_read_as_samples_of_their_own(tmp_path: Path):
    """Eight channels: PyAV's planes of such a frame cannot be used."""
    path, sound = tmp_path / "a.mka", np.outer(np.arange(8) / 8, TONE).astype(np.float32)
    path.write_bytes(encoded("matroska", "pcm_s16le", [sound]))
    samples, _ = read_channels(path)
    assert samples.shape == sound.T.shape
    assert np.abs(samples - sound.T).max() < 0.01


@pytest.mark.parametrize("form", ["matroska", "mp4"])
def test_a_silent_first_track_gives_way_to_one_with_sound(tmp_path: Path, form, capsys):
    path = tmp_path / "a"
    path.write_bytes(encoded(form, "aac", tracks=[SILENCE, TONE]))
    assert_tones(read_audio(path), SECONDS)
    assert not capsys.readouterr().err, "silence is no loss"


def test_sound_of_other_tracks_is_named_once(tmp_path: Path, capsys):
    path = tmp_path / "a.mkv"
    path.write_bytes(encoded("matroska", "aac", tracks=[TONE, TONE[:RATE]]))
    for _ in range(2):
        assert_tones(read_audio(path), SECONDS)
    assert capsys.readouterr().err.count("a.mkv is read, not 1.0 s of track 2") == 1


@pytest.mark.parametrize(
    ("form", "codec"),
    [("matroska", "libopus"), ("flac", "flac"), ("mp3", "libmp3lame"), ("avi", "libmp3lame")],
)
def test_the_sound_before_a_cut_is_read_and_the_error_counts_the_seconds(tmp_path: Path, form, codec):
    content = encoded(form, codec)
    path = tmp_path / "a"
    path.write_bytes(content[: len(content) // 2])
    blocks = []
    with pytest.raises(AudioError, match=r"cut off: the header promises 3\.\d s, 1\.\d s can be decoded"):
        for block in audio_blocks(path):
            blocks.append(block)
    assert 1.0 < sum(map(len, blocks)) / 16_000 < 2.0


@pytest.mark.parametrize(
    ("form", "codec"), [("ipod", "aac"), ("caf", "alac"), ("matroska", "aac"), ("webm", "libopus")]
)
def test_damage_in_the_middle_is_an_error_with_its_seconds(tmp_path: Path, form, codec):
    noise = np.random.default_rng(0).uniform(-0.5, 0.5, 20 * RATE).astype(np.float32)
    content = bytearray(encoded(form, codec, tracks=[noise]))
    begin, length = len(content) // 3, len(content) // 6
    content[begin : begin + length] = bytes(length)
    path = tmp_path / "a"
    path.write_bytes(content)
    with pytest.raises(AudioError, match=r"damaged: \d+\.\d s can't be decoded, \d+\.\d s can be decoded"):
        read_audio(path)


@pytest.mark.parametrize("ending", [b"TAG" + bytes(125), bytes(3000)], ids=["tag", "zeros"])
@pytest.mark.parametrize(
    ("form", "codec"), [("flac", "flac"), ("ipod", "aac"), ("webm", "libopus"), ("wav", "mp3")]
)
def test_what_follows_the_sound_is_no_damage(tmp_path: Path, form, codec, ending):
    (tmp_path / "a").write_bytes(encoded(form, codec) + ending)
    assert_tones(read_audio(tmp_path / "a"), SECONDS)


def test_web_pages_and_other_text_are_named(tmp_path: Path):
    for name, content, kind in (
        ("a.mp3", b"<!DOCTYPE html><html><head><title>404 Not Found</title>", r"text \(HTML\)"),
        ("b.m4a", '{"error": "不存在"}'.encode(), "text"),
        ("c.flac", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 12345\n", "text"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(AudioError, match=f"this is {kind}, not audio") as caught:
            read_audio(tmp_path / name)
        assert "ffmpeg" not in str(caught.value)


def test_a_recording_without_the_index_at_its_end_is_cut_off(tmp_path: Path):
    content = encoded("ipod", "aac")
    (tmp_path / "a.m4a").write_bytes(content[: content.index(b"moov") - 4])
    with pytest.raises(AudioError, match="cut off: its index") as caught:
        read_audio(tmp_path / "a.m4a")
    assert "ffmpeg" not in str(caught.value)


def test_a_folder_gives_what_the_decoder_reads_whatever_its_name(tmp_path: Path, capsys):
    for name in ("a.weba", "b.ts", "c.unknown", "without"):
        form, codec = ("mpegts", "aac") if name == "b.ts" else ("webm", "libopus")
        (tmp_path / name).write_bytes(encoded(form, codec, tracks=[TONE[:RATE]]))
    (tmp_path / "noise.npy").write_bytes(b"\x93NUMPY" + np.random.default_rng(0).bytes(3000))
    (tmp_path / "page.ts").write_text("const x = 1;\n")
    assert [path.name for path in find_recordings(tmp_path)] == ["a.weba", "b.ts", "c.unknown", "without"]
    assert capsys.readouterr().err.count("1 files of ") == 1


def test_a_wav_file_does_not_import_ffmpeg(tmp_path: Path):
    (tmp_path / "a.wav").write_bytes(encoded("wav", "pcm_s16le"))
    code = f"import sys; from utils.audio.reading import read_audio; read_audio({str(tmp_path / 'a.wav')!r})"
    subprocess.run([sys.executable, "-c", f"{code}; assert 'av' not in sys.modules"], check=True)
