"""Tests of reading audio: every container, rate and channel count; every kind of damage is named."""

import io
import os
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.microphone import Microphone
from tests.support.recordings import FOLDER
from utils.audio import decoding
from utils.audio import microphone as microphone_module
from utils.audio.folders import find_recordings
from utils.audio.microphone import microphone_blocks
from utils.audio.properties import audio_seconds
from utils.audio.reading import audio_blocks, read_audio, resample
from utils.audio.samples import write_wav
from utils.errors import AudioError

RATE = 16_000


def tone(seconds: float = 0.5, rate: int = RATE, hertz: float = 440.0) -> np.ndarray:
    return (0.5 * np.sin(2 * np.pi * hertz * np.arange(int(seconds * rate)) / rate)).astype(np.float32)


def correlation(left: np.ndarray, right: np.ndarray) -> float:
    length = min(len(left), len(right))
    return float(np.corrcoef(left[:length], right[:length])[0, 1])


def put(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("subtype", ["PCM_U8", "PCM_16", "PCM_24", "PCM_32", "FLOAT", "DOUBLE"])
def test_wav_of_every_sample_width(tmp_path, subtype):
    soundfile.write(tmp_path / "a.wav", tone(), RATE, subtype=subtype)
    samples = read_audio(tmp_path / "a.wav")
    assert samples.dtype == np.float32 and samples.shape == (8000,)
    np.testing.assert_allclose(samples, tone(), atol=0.01 if subtype == "PCM_U8" else 1e-4)


@pytest.mark.parametrize("name", ["FLAC", "AIFF", "CAF", "AU", "W64", "RF64"])
def test_lossless_containers(tmp_path, name):
    soundfile.write(tmp_path / "a.audio", tone(), RATE, format=name, subtype="PCM_16")
    np.testing.assert_allclose(read_audio(tmp_path / "a.audio"), tone(), atol=1e-4)
    assert audio_seconds(tmp_path / "a.audio") == 0.5


@pytest.mark.parametrize(("name", "subtype"), [("OGG", "VORBIS"), ("OGG", "OPUS"), ("MP3", None)])
def test_lossy_containers(tmp_path, name, subtype):
    soundfile.write(tmp_path / "a.audio", tone(1.0), RATE, format=name, subtype=subtype)
    samples = read_audio(tmp_path / "a.audio")
    assert audio_seconds(tmp_path / "a.audio") == pytest.approx(1.0, abs=0.1)
    assert correlation(samples, tone(1.0)) > 0.98


@pytest.mark.parametrize("rate", [8000, 11_025, 22_050, 44_100, 48_000, 96_000])
def test_resampling_keeps_the_sound(tmp_path, rate):
    soundfile.write(tmp_path / "a.wav", tone(1.0, rate), rate)
    samples = read_audio(tmp_path / "a.wav")
    assert abs(len(samples) - RATE) <= 1
    inner = slice(1000, -1000)
    np.testing.assert_allclose(samples[:RATE][inner], tone(1.0)[: len(samples)][inner], atol=2e-3)
    assert audio_seconds(tmp_path / "a.wav") == 1.0


@pytest.mark.parametrize(("rate", "channels"), [(RATE, 1), (RATE, 2), (8000, 1), (44_100, 2)])
def test_blocks_side_by_side_are_the_whole(tmp_path, monkeypatch, rate, channels):
    sound = np.random.default_rng(0).uniform(-0.5, 0.5, (3 * rate + 17, channels)).astype(np.float32)
    soundfile.write(tmp_path / "a.flac", sound, rate)
    monkeypatch.setattr(decoding, "_BLOCK_FRAMES", 10_000)
    blocks = list(audio_blocks(tmp_path / "a.flac"))
    assert len(blocks) >= 4 and max(map(len, blocks)) < 2 * 10_000 * RATE / rate
    decoded = soundfile.read(tmp_path / "a.flac", dtype="float32", always_2d=True)[0].mean(axis=1)
    np.testing.assert_array_equal(np.concatenate(blocks), resample(decoded, rate, RATE))


@pytest.mark.parametrize("channels", [2, 6])
def test_channels_become_their_mean(tmp_path, channels):
    sound = np.random.default_rng(0).uniform(-0.5, 0.5, (2000, channels)).astype(np.float32)
    soundfile.write(tmp_path / "a.wav", sound, RATE, subtype="FLOAT")
    np.testing.assert_allclose(read_audio(tmp_path / "a.wav"), sound.mean(axis=1), atol=1e-6)


def test_channels_in_opposite_phase_do_not_become_silence(tmp_path):
    sound = tone(1.0)
    for channels in ([sound, -sound], [0.5 * sound, -sound], [sound, -0.9 * sound, 0 * sound]):
        soundfile.write(tmp_path / "a.wav", np.stack(channels, axis=1), RATE, subtype="FLOAT")
        loudest = max(channels, key=lambda channel: channel @ channel)
        np.testing.assert_allclose(read_audio(tmp_path / "a.wav"), loudest, atol=1e-6)


def test_one_of_two_speakers_in_opposite_phase_does_not_become_silence(tmp_path):
    sound = tone(2.0)
    right = np.concatenate([sound[:RATE], -sound[RATE:]])
    soundfile.write(tmp_path / "a.wav", np.stack([sound, right], axis=1), RATE, subtype="FLOAT")
    levels = np.abs(read_audio(tmp_path / "a.wav").reshape(20, -1)).mean(axis=1)
    assert levels.min() > 0.5 * levels.max()


def test_float_overshoot_is_clipped(tmp_path):
    soundfile.write(tmp_path / "a.wav", np.array([0.5, 1.5, -2.0, 0.0]), RATE, subtype="FLOAT")
    assert read_audio(tmp_path / "a.wav").tolist() == [0.5, 1.0, -1.0, 0.0]


def test_written_16_bit_values_come_back_exactly(tmp_path):
    integers = np.array([-32768, -1, 0, 1, 32767], np.int16)
    write_wav(tmp_path / "a.wav", integers / np.float32(32768))
    assert (read_audio(tmp_path / "a.wav") * 32768).astype(int).tolist() == integers.tolist()
    assert soundfile.info(tmp_path / "a.wav").subtype == "PCM_16"
    write_wav(tmp_path / "b.wav", np.array([2.0, -2.0]))
    assert read_audio(tmp_path / "b.wav").tolist() == [32767 / 32768, -1.0]


@settings(max_examples=25)
@given(st.integers(1, 400), st.sampled_from([8000, 16_000, 22_050, 48_000]), st.integers(1, 3))
def test_very_short_files_are_read_or_refused(tmp_path_factory, length, rate, channels):
    path = tmp_path_factory.mktemp("short") / "a.wav"
    soundfile.write(path, np.full((length, channels), 0.1), rate)
    try:
        assert len(read_audio(path)) == pytest.approx(length * RATE / rate, abs=1)
    except AudioError as error:
        assert "too short" in str(error) and length * RATE / rate < 1


def test_a_folder_without_recordings_is_named(tmp_path):
    (tmp_path / "readme.txt").write_text("no sound")
    with pytest.raises(AudioError, match=f"no recordings in this folder, {tmp_path}"):
        find_recordings(tmp_path)
    with pytest.raises(AudioError, match=r"can't read the folder \(No such file or directory\), .*none"):
        find_recordings(tmp_path / "none")


def test_linked_folders_are_followed_once(tmp_path):
    for folder in ("talks", "elsewhere"):
        write_wav(tmp_path / folder / "a.wav", np.zeros(100, np.float32))
    write_wav(tmp_path / "talks" / "2024" / "a.wav", np.zeros(100, np.float32))
    (tmp_path / "talks" / "1_link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "talks" / "1_current").symlink_to(tmp_path / "talks" / "2024")
    (tmp_path / "elsewhere" / "loop").symlink_to(tmp_path / "talks")
    found = [path.relative_to(tmp_path / "talks").as_posix() for path in find_recordings(tmp_path / "talks")]
    assert found == ["1_link/a.wav", "2024/a.wav", "a.wav"], "the real path, where a link leads to it too"


def test_a_subfolder_that_cannot_be_read_is_named(tmp_path, capsys, monkeypatch):
    for folder in ("lost+found", "talks"):
        write_wav(tmp_path / folder / "a.wav", np.zeros(100, np.float32))
    scandir = os.scandir

    def refused(path):
        if str(path).endswith("lost+found"):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refused)
    assert find_recordings(tmp_path) == [tmp_path / "talks" / "a.wav"]
    assert "lost+found" in capsys.readouterr().err


def test_missing(tmp_path):
    with pytest.raises(AudioError, match=r"no such audio file, .*none\.wav, check the path$"):
        read_audio(tmp_path / "none.wav")
    with pytest.raises(AudioError, match="a folder, not an audio file"):
        audio_seconds(tmp_path)
    os.mkfifo(tmp_path / "pipe.wav")
    with pytest.raises(AudioError, match="a pipe or device, not an audio file"):
        read_audio(tmp_path / "pipe.wav")


def _mp3(seconds: float, **settings: object) -> tuple[bytes, int]:
    """An MP3 file of uneven loudness that states its length, and the size of the frame that does."""
    content, rng = io.BytesIO(), np.random.default_rng(0)
    level = np.repeat([0.2, 0.0, 0.2], round(seconds * RATE / 3))
    soundfile.write(content, level * rng.standard_normal(len(level)), RATE, format="MP3", **settings)
    data = content.getvalue()
    return data, _first_frame_bytes(data)


def _first_frame_bytes(data: bytes) -> int:
    assert any(name in data[:100] for name in (b"Xing", b"Info")), "it states the number of frames"
    return data.index(data[:2], 4)


@pytest.mark.parametrize("mode", ["VARIABLE", "CONSTANT"])
@pytest.mark.parametrize("tag", [b"", b"ID3\x04\0\0\0\x02\0\0" + bytes(32768)], ids=["plain", "tagged"])
def test_an_mp3_file_that_does_not_state_its_length_is_read_to_its_end(tmp_path, mode, tag):
    data, first = _mp3(30, bitrate_mode=mode)
    path = tmp_path / "a.mp3"
    path.write_bytes(tag + data[first:])
    assert audio_seconds(path) == pytest.approx(30, abs=0.2)
    samples = read_audio(path)
    assert len(samples) / RATE == pytest.approx(30, abs=0.2)
    assert np.abs(samples[25 * RATE : 28 * RATE]).mean() > 0.05, "the loud part after the quiet one"
    path.write_bytes(data[first + 1000 :])  # begins within a frame
    assert len(read_audio(path)) / RATE == pytest.approx(30, abs=0.5)


@pytest.mark.parametrize(("rate", "channels"), [(22_050, 1), (8_000, 1), (RATE, 2)])
def test_joined_mp3_files_of_different_formats_are_read(tmp_path, rate, channels):
    content = io.BytesIO()
    soundfile.write(content, np.column_stack([tone(1.0, rate)] * channels), rate, format="MP3")
    path = put(tmp_path / "a.mp3", _mp3(3)[0] + content.getvalue())
    samples = read_audio(path)
    assert audio_seconds(path) == pytest.approx(4, abs=0.3) == len(samples) / RATE
    inner = samples[int(3.3 * RATE) : int(3.8 * RATE)]
    assert np.abs(np.fft.rfft(inner)).argmax() * RATE / len(inner) == pytest.approx(440, abs=4)


@pytest.mark.parametrize("stated", [0, 4000, 8001])
@pytest.mark.parametrize(
    "ending", [b"", b"LIST\4\0\0\0INFO", b"TAG" + bytes(125)], ids=["none", "list", "tag"]
)
def test_samples_behind_the_end_that_the_header_states_are_read(tmp_path, stated, ending):
    """A recorder that writes its header now and then was killed."""
    rng = np.random.default_rng(0)
    samples = rng.uniform(-0.5, 0.5, 8000).astype(np.float32)
    write_wav(tmp_path / "a.wav", samples)
    content = bytearray((tmp_path / "a.wav").read_bytes())
    content[40:44] = stated.to_bytes(4, "little")
    found = read_audio(put(tmp_path / "b.wav", bytes(content) + ending))
    np.testing.assert_allclose(found[:8000], samples, atol=1e-4)
    assert audio_seconds(tmp_path / "b.wav") == pytest.approx(0.5, abs=0.005)


def test_what_a_cut_wav_file_has_is_read_before_the_error(tmp_path):
    write_wav(tmp_path / "a.wav", tone())
    content = (tmp_path / "a.wav").read_bytes()
    blocks = []
    with pytest.raises(AudioError, match=r"promises 16000 bytes, 7956 are there, 0\.2 s can be decoded"):
        for block in audio_blocks(put(tmp_path / "b.wav", content[:8000])):
            blocks.append(block)
    assert sum(map(len, blocks)) == 3978


def test_a_wav_file_whose_recorder_was_killed_is_read(tmp_path):
    path, samples = tmp_path / "a.wav", np.linspace(-0.5, 0.5, 8000, dtype=np.float32)
    write_wav(path, samples)
    data = bytearray(path.read_bytes())
    assert data[36:40] == b"data"
    data[40:44] = bytes(4)
    for riff_size in (0, 36, 0xFFFFFFFF):
        data[4:8] = riff_size.to_bytes(4, "little")
        path.write_bytes(data)
        np.testing.assert_allclose(read_audio(path), samples, atol=1e-4)
        assert audio_seconds(path) == 0.5
    chunks = [name + (4).to_bytes(4, "little") + b"INFO" for name in (b"LIST", b"id3 ", b"cue ")]
    for content in (data[:44], *(data[:44] + chunk for chunk in chunks), data[:44] + b"".join(chunks)):
        path.write_bytes(content)
        with pytest.raises(AudioError, match="holds no samples"):
            read_audio(path)


def test_empty(tmp_path):
    with pytest.raises(AudioError, match=r"empty \(0 bytes\)"):
        read_audio(put(tmp_path / "a.wav", b""))


def test_no_samples(tmp_path):
    soundfile.write(tmp_path / "a.wav", np.zeros(0), RATE)
    for read in (read_audio, audio_seconds):
        with pytest.raises(AudioError, match=r"holds no samples, .*a\.wav"):
            read(tmp_path / "a.wav")


@pytest.mark.parametrize(
    "content", [b"ni3 hao3 shi4 jie4\n" * 50, b"\x00" * 999, b"RIFF", b"fLaC\x00", b"\xff\xfb"]
)
@pytest.mark.parametrize("name", ["a.wav", "a.raw", "a.mp3"])
def test_not_audio(tmp_path, name, content):
    for read in (read_audio, audio_seconds):
        with pytest.raises(AudioError, match=r"audio.*a\.(wav|raw|mp3), "):
            read(put(tmp_path / name, content))


@pytest.mark.parametrize("name", ["WAV", "AIFF", "AU", "W64", "RF64", "CAF", "FLAC", "MP3"])
@pytest.mark.parametrize("share", [0.3, 0.5, 0.95])
def test_cut_off(tmp_path, name, share):
    noise = np.random.default_rng(0).normal(size=4 * RATE) * 0.1
    soundfile.write(tmp_path / "whole", noise, RATE, format=name)
    content = (tmp_path / "whole").read_bytes()
    path = put(tmp_path / "cut.audio", content[: int(len(content) * share)])
    with pytest.raises(AudioError, match=r"cut off|not readable as audio.*cut\.audio"):
        read_audio(path)


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8, 0.99])
def test_a_cut_off_ogg_recording_is_not_taken_for_a_shorter_one(tmp_path, share):
    """Of several pages: libsndfile reads those that are there."""
    recording = FOLDER / "common_voice_18735239.ogg"
    content = recording.read_bytes()
    path = put(tmp_path / "cut.ogg", content[: int(len(content) * share)])
    for read in (read_audio, audio_seconds):
        with pytest.raises(AudioError, match=r"cut off: the last page of this Ogg file lacks \d+ bytes"):
            read(path)
    assert len(read_audio(recording)) > RATE


def test_other_sound_behind_an_ogg_recording_is_an_error(tmp_path):
    content = (FOLDER / "common_voice_18735239.ogg").read_bytes()
    path = put(tmp_path / "a.ogg", content + b"\xff\xfb\x90\x00" * 2000)
    with pytest.raises(AudioError, match="8000 bytes after the last page of this Ogg file can't be read"):
        read_audio(path)


@pytest.mark.parametrize("size", [0xFFFFFFFF, 0x7FFFFFFF, 0xFFFFFFFF - 44])
def test_wav_from_a_pipe_has_no_size_in_its_header(tmp_path, size):
    write_wav(tmp_path / "a.wav", tone())
    content = bytearray((tmp_path / "a.wav").read_bytes())
    content[4:8] = content[40:44] = size.to_bytes(4, "little")
    assert len(read_audio(put(tmp_path / "b.wav", bytes(content)))) == 8000


def test_flac_from_a_pipe_has_no_length_in_its_header(tmp_path):
    soundfile.write(tmp_path / "a.flac", tone(), RATE)
    content = bytearray((tmp_path / "a.flac").read_bytes())
    # STREAMINFO: 36 bits of total samples end at byte 26 (fLaC 4 + block header 4 + 18).
    content[21] &= 0xF0
    content[22:26] = bytes(4)
    path = put(tmp_path / "b.flac", bytes(content))
    assert len(read_audio(path)) == 8000
    assert audio_seconds(path) == 0.5


def test_a_header_with_a_false_length_does_not_fill_the_memory(tmp_path):
    soundfile.write(tmp_path / "a.flac", tone(), RATE)
    content = bytearray((tmp_path / "a.flac").read_bytes())
    content[21] |= 0x0F
    content[22:26] = b"\xff" * 4
    with pytest.raises(AudioError, match="cut off"):
        read_audio(put(tmp_path / "b.flac", bytes(content)))


def test_an_impossible_rate_is_refused(tmp_path):
    soundfile.write(tmp_path / "a.wav", tone(), 1)
    with pytest.raises(AudioError, match="sample rate of 1 Hz"):
        read_audio(tmp_path / "a.wav")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_not_a_number(tmp_path, value):
    soundfile.write(tmp_path / "a.wav", np.array([0.1, value, 0.2]), RATE, subtype="FLOAT")
    with pytest.raises(AudioError, match=r"1 samples are NaN or infinite, .*a\.wav"):
        read_audio(tmp_path / "a.wav")


def test_integers_in_a_float_file(tmp_path):
    soundfile.write(tmp_path / "a.wav", np.array([100.0, -12_345.0]), RATE, subtype="FLOAT")
    with pytest.raises(AudioError, match=r"float samples up to 12345, .*divide by 32768"):
        read_audio(tmp_path / "a.wav")


def recorded(microphone: Microphone, monkeypatch, rate: int) -> list[np.ndarray]:
    """The blocks of a microphone until it is unplugged."""
    monkeypatch.setitem(sys.modules, "sounddevice", microphone)
    monkeypatch.setattr(microphone_module, "_TIMEOUT_SECONDS", 0.01)
    blocks = []
    with pytest.raises(AudioError, match="no more audio"):
        for block in microphone_blocks(rate, 0.05):
            blocks.append(block)
    return blocks


def test_a_microphone_of_another_rate_is_resampled(monkeypatch):
    sound = tone(1.0, 48_000)
    found = np.concatenate(recorded(Microphone(sound, 48_000), monkeypatch, RATE))
    expected = resample(sound, 48_000, RATE)
    assert len(expected) - RATE // 10 < len(found) <= len(expected)
    np.testing.assert_allclose(found, expected[: len(found)], atol=1e-4)


def test_a_microphone_that_does_not_start_is_refused(monkeypatch):
    """It opens, but another program has it."""
    microphone = Microphone(tone(), RATE)

    def start():
        raise microphone.PortAudioError("Error starting stream: Device unavailable [PaErrorCode -9985]")

    monkeypatch.setattr(microphone, "start", start)
    monkeypatch.setitem(sys.modules, "sounddevice", microphone)
    with pytest.raises(AudioError, match=r"can't be opened .*Device unavailable.*connect one"):
        next(microphone_blocks(RATE, 0.05))


def test_what_a_microphone_has_recorded_in_the_meantime_is_one_block(monkeypatch):
    (block,) = recorded(Microphone(tone(0.5), RATE), monkeypatch, RATE)
    np.testing.assert_array_equal(block, tone(0.5))


def test_files_that_cannot_be_read_are_named_once(tmp_path, capsys):
    put(tmp_path / "talk.adx", b"\x80\0\1")
    for name in ("talk.txt", "talk.trn", "cover.png", "a.hash"):
        put(tmp_path / name, "今天\n".encode())
    with pytest.raises(AudioError, match="no recordings in this folder"):
        find_recordings(tmp_path)
    write_wav(tmp_path / "a.wav", np.zeros(100, np.float32))
    for _ in range(2):
        assert find_recordings(tmp_path) == [tmp_path / "a.wav"]
    messages = capsys.readouterr().err
    assert messages.count("1 files of ") == messages.count("talk.adx") == 1
    assert "ffmpeg -i FILE" in messages and "talk.t" not in messages


def test_neither_hidden_files_nor_folders_are_taken_for_recordings(tmp_path):
    for name in ("b.wav", "album.flac/a.wav", ".hidden/c.wav"):
        write_wav(tmp_path / name, np.zeros(100, np.float32))
    put(tmp_path / "._b.wav", b"\0\5\26\7")  # made by macOS
    assert find_recordings(tmp_path) == [tmp_path / "album.flac" / "a.wav", tmp_path / "b.wav"]
