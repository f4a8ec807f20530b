"""Tests of input from a pipe: its first bytes distinguish raw samples, audio files and text."""

import io
import struct
from pathlib import Path

import av
import numpy as np
import pytest
import soundfile

from utils.audio.piped import open_pipe
from utils.audio.reading import read_audio
from utils.errors import AudioError

RATE = 16_000
SOUND = np.random.default_rng(3).uniform(-0.5, 0.5, 6000).astype(np.float32)
PCM = (SOUND * 32767).astype("<i2").tobytes()


def samples_of(content: bytes, rate: int | None = RATE) -> np.ndarray:
    with open_pipe(io.BytesIO(content), rate, RATE) as sound:
        return np.concatenate(list(sound))


def audio_file(form: str) -> bytes:
    content = io.BytesIO()
    soundfile.write(content, SOUND, RATE, format=form)
    return content.getvalue()


@pytest.mark.parametrize("form", ["WAV", "FLAC", "OGG", "MP3", "AIFF", "W64", "AU", "CAF", "RF64"])
@pytest.mark.parametrize("rate", [None, RATE])
def test_an_audio_file_is_decoded_and_not_read_as_samples(form: str, rate: int | None, tmp_path: Path):
    content = audio_file(form)
    (tmp_path / "file").write_bytes(content)
    np.testing.assert_array_equal(samples_of(content, rate), read_audio(tmp_path / "file", RATE))


@pytest.mark.parametrize("first", [b"", b"\xff\xfb\x90\x64", b"\xff\xff\xff\xff"])
def test_raw_samples_pass_unchanged_also_where_they_begin_as_an_mp3_frame_does(first: bytes):
    expected = np.frombuffer(first + PCM, "<i2").astype(np.float32) / 32768
    np.testing.assert_array_equal(samples_of(first + PCM), expected)


def test_raw_samples_come_in_blocks_of_a_second_and_are_resampled():
    integers = np.array([-32768, -1, 0, 1, 32767] * 9000, "<i2")
    with open_pipe(io.BytesIO(integers.tobytes()), RATE, RATE) as sound:
        blocks = list(sound)
    assert [len(block) for block in blocks] == [16_000, 16_000, 13_000]
    assert (np.concatenate(blocks) * 32768).astype(int).tolist() == integers.tolist()
    assert len(samples_of(integers.tobytes(), 8000)) == pytest.approx(2 * len(integers), abs=2)


class Endless(io.RawIOBase):
    """A recorder that never stops: a WAV header of unknown length, samples, then endless silence."""

    def __init__(self, rate: int, channels: int = 1):
        header = struct.pack("<4sI4s", b"RIFF", 0xFFFFFFFF, b"WAVE")
        header += struct.pack(
            "<4sIHHIIHH", b"fmt ", 16, 1, channels, rate, 2 * channels * rate, 2 * channels, 16
        )
        header += struct.pack("<4sI4s4sI", b"LIST", 4, b"INFO", b"data", 0xFFFFFFFF)
        self._first = header + PCM

    def read(self, size: int = -1) -> bytes:
        assert 0 <= size < 100_000, "reading to the end would never finish"
        part, self._first = self._first[:size], self._first[size:]
        return part + bytes(size - len(part))


def test_the_wav_of_a_live_recorder_is_read_as_it_arrives_at_the_rate_of_its_header():
    with open_pipe(Endless(8000), 44_100, 8000, seconds=0.1) as blocks:
        np.testing.assert_array_equal(next(blocks), np.frombuffer(PCM, "<i2")[:800] / np.float32(32768))


def test_the_channels_of_a_live_recorder_are_mixed_as_they_arrive():
    with open_pipe(Endless(8000, channels=2), 44_100, 8000, seconds=0.1) as blocks:
        expected = np.frombuffer(PCM, "<i2")[:1600].reshape(800, 2).astype(np.float32) / np.float32(32768)
        np.testing.assert_array_equal(next(blocks), expected.mean(axis=1))


@pytest.mark.parametrize("encoding", ["utf-8", "gb18030"])
@pytest.mark.parametrize("text", ["今天天气很好，我们去公园散步。\n" * 300, '{"error": "not found"}\n'])
def test_text_is_named(text: str, encoding: str):
    with pytest.raises(
        AudioError, match=f"this is text, not audio: it begins with .{text[:6]}.*standard input"
    ):
        samples_of(text.encode(encoding))


@pytest.mark.parametrize("codec", ["mp3", "aac", "ac3"])
def test_frames_without_a_name_are_an_audio_file(codec: str):
    content = io.BytesIO()
    with av.open(content, "w", format={"aac": "adts"}.get(codec, codec)) as container:
        track = container.add_stream(codec, rate=RATE if codec != "ac3" else 48_000, layout="mono")
        frame = av.AudioFrame.from_ndarray(SOUND[None], "fltp", "mono")
        frame.sample_rate = RATE
        size = track.codec_context.frame_size
        to_codec = av.AudioResampler(track.format.name, "mono", track.rate, frame_size=size)
        for part in [*to_codec.resample(frame), *to_codec.resample(None), None]:
            container.mux(track.encode(part))
    assert len(samples_of(content.getvalue())) == pytest.approx(len(SOUND), abs=3500)


@pytest.mark.parametrize(
    ("content", "rate", "message"),
    [
        (b"", RATE, "no samples"),
        (b"", None, "no samples"),
        (b"\0\0\0", RATE, "half a sample at the end, of 3 bytes"),
        (PCM, None, "not an audio file of a known format.*--rate HZ"),
        (PCM, 16, "a sample rate of 16 Hz, .*--rate 16000"),
        (b"\0\0\0\x18ftypM4A " + PCM, RATE, "cut off: its index"),
        (audio_file("FLAC")[:2000], RATE, "cut off|not readable"),
    ],
    ids=["empty", "empty_file", "half", "unknown", "kilohertz", "m4a", "cut_off"],
)
def test_unreadable_input_is_refused(content: bytes, rate: int | None, message: str):
    with pytest.raises(AudioError, match=message) as caught:
        samples_of(content, rate)
    assert caught.value.where == "standard input"  # not a temporary file
