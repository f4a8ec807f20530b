"""Tests of /v1/stream with a real service, real recordings and the `websockets` client."""

import asyncio
import io
import json
import os
import signal
import struct
import subprocess
import sys
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
import soundfile
import websockets
from websockets.exceptions import ConnectionClosed, InvalidStatus

import transcribe
from serving.endpoints.stream import LARGEST_MESSAGE
from serving.live.messages import final_message
from tests.support.recordings import RECORDINGS
from tests.support.service import PATIENCE, ROOT, TOKEN, Service, running_service, wait_until
from tests.support.talking import transcribed_live
from utils.audio.reading import read_audio, resample
from utils.hypotheses.recognition import Alternative, Recognition

RATE = 16_000
Message = dict[str, Any]


@pytest.fixture(scope="module")
def service(guarded_service: Service) -> Service:
    return guarded_service


@pytest.fixture(scope="module")
def speech() -> np.ndarray:
    """(samples,) int16 at 16 kHz."""
    return np.trunc(read_audio(RECORDINGS[2]) * 32767).astype("<i2")


def connect(
    service: Service, token: str | None = TOKEN, query: str = "", **options: Any
) -> websockets.connect:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return websockets.connect(
        f"{service.url.replace('http', 'ws')}/v1/stream{query}", additional_headers=headers, **options
    )


async def messages_of(socket: Any) -> list[Message]:
    """All messages until the server closes the connection, without the ``alive`` messages between them."""
    found = []
    try:
        while True:
            message = json.loads(await asyncio.wait_for(socket.recv(), PATIENCE))
            if message["type"] != "alive":
                found.append(message)
    except ConnectionClosed:
        return found


def talk(
    service: Service,
    chunks: Iterable[bytes | str],
    token: str | None = TOKEN,
    pause: float = 0.0,
    **start: Any,
) -> list[Message]:
    """Send `start` and the chunks, and return the messages of the server."""

    async def session() -> list[Message]:
        async with connect(service, token) as socket:
            receiving = asyncio.create_task(messages_of(socket))
            try:
                await socket.send(json.dumps({"type": "start", **start}))
                for chunk in chunks:
                    await socket.send(chunk)
                    await asyncio.sleep(pause)
            except ConnectionClosed:
                pass
            return await receiving

    return asyncio.run(session())


END = '{"type":"end"}'


def pieces(data: bytes, size: int = 3201) -> list[bytes]:
    """Chunks of an odd number of bytes, which divide samples."""
    return [data[start : start + size] for start in range(0, len(data), size)]


def finals(messages: list[Message]) -> list[Message]:
    return [message for message in messages if message["type"] == "final"]


def test_characters_have_those_of_other_hypotheses_as_alternatives():
    readings = [
        (("gong1", "shi4"), "公式"),
        (("gong1", "shi4"), "公事"),
        (("gong1",), "宫"),
        (("gong1", "shi4"), "攻势"),
    ]
    n_best = tuple(Alternative(pinyin, hanzi, -index) for index, (pinyin, hanzi) in enumerate(readings))
    message = final_message(0, Recognition(0.0, 1.0, ((0.1, 0.4), (0.5, 0.8)), n_best, confidence=(0.9, 0.4)))
    assert message["characters"] == [
        {"hanzi": "公", "alternatives": ["攻"]},
        {"hanzi": "式", "alternatives": ["事", "势"]},
    ]


def test_a_recording_gives_what_transcribe_gives(service, speech):
    messages = talk(service, [*pieces(speech.tobytes()), END], pause=0.1)  # as fast as spoken
    shown = json.loads(transcribed_live(speech, "json"))
    ready, *between, end = messages
    assert ready == {
        "type": "ready",
        "rate": 16000,
        "model": "audio_to_pinyin",
        "look_ahead_ms": 1008,
        "alive_seconds": 5.0,
    }
    assert end == {"type": "end", "seconds": pytest.approx(len(speech) / RATE, abs=0.001)}
    (final,) = finals(messages)
    (segment,) = shown["segments"]
    assert final["hanzi"] == shown["hanzi"]
    syllables = [{name: each[name] for name in each if name != "hanzi"} for each in segment["syllables"]]
    rounded = [
        {**each, "start": round(each["start"], 2), "end": round(each["end"], 2)}
        for each in final["syllables"]
    ]
    assert [each["pinyin"] for each in rounded] == [each["pinyin"] for each in syllables]
    assert [each["confidence"] for each in rounded] == [each["confidence"] for each in syllables]
    assert final["alternatives"][0]["hanzi"] == final["hanzi"] and len(final["alternatives"]) > 1
    assert [each["hanzi"] for each in final["characters"]] == list(final["hanzi"])
    assert final["phrase"] is None
    partials = [message for message in between if message["type"] == "partial"]
    assert len(partials) > 1 and between.index(partials[0]) == 0
    assert all(
        partial["utterance"] == 0 and partial["stable"] <= len(partial["syllables"]) for partial in partials
    )
    assert all(len(partial["hanzi"]) == len(partial["syllables"]) for partial in partials)


def test_without_a_second_pass_the_text_is_that_of_the_streaming_model(service, speech):
    (final,) = finals(talk(service, [speech.tobytes(), END], second_pass=False))
    shown = json.loads(transcribed_live(speech, "json", "--no-second-pass"))
    assert final["hanzi"] == shown["hanzi"]
    (revised,) = finals(talk(service, [speech.tobytes(), END]))
    assert [each["confidence"] for each in final["syllables"]] != [
        each["confidence"] for each in revised["syllables"]
    ]


def test_a_file_gives_what_transcribe_gives_for_it(service, tmp_path, capsys):
    """Although its sample rate is another one, and it has two channels."""
    sounds = [resample(read_audio(path), RATE, 44_100) for path in RECORDINGS]
    pause = np.zeros(44_100, np.float32)
    sound = np.concatenate([part for each in sounds for part in (each, pause)])
    soundfile.write(tmp_path / "long.flac", np.stack([sound, 0.5 * sound], axis=1), 44_100)
    assert transcribe.main([str(tmp_path / "long.flac"), "--format", "json"]) == 0
    expected = json.loads(capsys.readouterr().out)
    data = (tmp_path / "long.flac").read_bytes()
    messages = talk(service, [*pieces(data, 100_000), END], encoding="file")
    assert [message["type"] for message in messages] == ["ready", *["final"] * len(finals(messages)), "end"]
    assert "".join(final["hanzi"] for final in finals(messages)) == expected["hanzi"]
    spans = [(round(final["start"], 2), round(final["end"], 2)) for final in finals(messages)]
    segments = [segment for segment in expected["segments"] if segment["hanzi"]]
    assert spans == [(round(segment["start"], 2), round(segment["end"], 2)) for segment in segments]
    assert messages[-1]["seconds"] == expected["seconds"]


@pytest.mark.parametrize(
    ("data", "start", "code"),
    [
        (b"no sound" * 100, {}, "invalid_audio"),
        (bytes(1_100_000), {}, "too_large"),
        (b"RIFF", {"phrases": "打开[客厅"}, "invalid_audio"),
    ],
)
def test_a_file_that_cannot_be_recognised_is_explained(service, data, start, code):
    *_, error = talk(service, [*pieces(data, 500_000), END], encoding="file", **start)
    assert (error["type"], error["code"]) == ("error", code) and error["message"] and error["hint"]


def test_any_rate_and_all_at_once(service, speech):
    at_44100 = resample(speech.astype(np.float32) / 32768, RATE, 44_100)
    sound = np.clip(at_44100 * 32768, -32768, 32767).astype("<i2").tobytes()
    (final,) = finals(talk(service, [sound, END], rate=44_100))
    assert final["hanzi"].startswith("如果")


def test_words_and_phrases_of_a_stream(service, speech):
    (final,) = finals(
        talk(service, [speech.tobytes(), END], phrases="如果无法控制\n打开<房间>的灯\n<房间> = 客厅")
    )
    assert (final["hanzi"], final["phrase"]["accepted"]) == ("如果无法控制", True)
    assert final["phrase"]["phrases"][0]["confidence"] > 0.5 and final["characters"] == []
    (plain,) = finals(talk(service, [speech.tobytes(), END]))
    (worded,) = finals(talk(service, [speech.tobytes(), END], words="茹果 ru2 guo3 10"))
    assert plain["hanzi"].startswith("如果") and worded["hanzi"].startswith("茹果")


def test_opus_as_browsers_record_it(service, speech):
    av = pytest.importorskip("av")
    for form in ("webm", "ogg"):
        file = io.BytesIO()
        with av.open(file, "w", format=form) as container:
            stream = container.add_stream("libopus", rate=48_000, layout="mono")
            frame = av.AudioFrame.from_ndarray(speech[None], format="s16", layout="mono")
            frame.sample_rate = RATE
            for part in (frame, None):
                for resampled in av.AudioResampler("s16", "mono", 48_000).resample(part) if part else [None]:
                    container.mux(stream.encode(resampled))
        messages = talk(service, [*pieces(file.getvalue(), 500), END], encoding="opus", pause=0.005)
        (final,) = finals(messages)
        assert final["hanzi"].startswith("如果"), form
        assert any(message["type"] == "partial" for message in messages)
        assert messages[-1]["seconds"] == pytest.approx(len(speech) / RATE, abs=0.1)


def test_the_example_client_prints_the_recognised_text(service):
    command = [sys.executable, "examples/live_client.py", str(RECORDINGS[2]), "--token", TOKEN]
    command += ["--url", service.url.replace("http", "ws") + "/v1/stream"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("如果") and "ru2 guo3" in done.stderr
    assert len((ROOT / "examples" / "live_client.py").read_text().splitlines()) <= 66


# Access


def test_without_a_token_nothing_is_recognised(service, speech):
    (error,) = talk(service, [speech.tobytes(), END], token=None)
    assert (error["type"], error["code"]) == ("error", "token") and "Bearer" not in error["message"]
    with pytest.raises(InvalidStatus, match="401"):
        asyncio.run(_once(connect(service, "wrong" * 8)))


async def _once(connection: Any) -> Any:
    async with connection as socket:
        return socket.subprotocol


def test_a_token_may_come_in_three_ways(service):
    async def started(socket_: Any, **start: str) -> Message:
        async with socket_ as socket:
            await socket.send(json.dumps({"type": "start", **start}))
            return json.loads(await asyncio.wait_for(socket.recv(), PATIENCE))

    bearer = [f"bearer.{TOKEN}"]
    for socket, start in (
        (connect(service), {}),
        (connect(service, None, subprotocols=bearer), {}),
        (connect(service, None), {"token": TOKEN}),
    ):
        assert asyncio.run(started(socket, **start))["type"] == "ready"
    assert asyncio.run(_once(connect(service, None, subprotocols=["speech", *bearer]))) == "speech"


def test_pages_of_other_origins_are_refused(service):
    with pytest.raises(InvalidStatus, match="403"):
        asyncio.run(_once(connect(service, origin="https://example.org")))
    assert asyncio.run(_once(connect(service, origin=service.url))) is None


# Errors


@pytest.mark.parametrize(
    ("first", "code"),
    [
        ("no JSON", "invalid_message"),
        ("[" * 100_000, "invalid_message"),
        ('{"type":"end"}', "invalid_message"),
        ('{"type":"start","rate":1}', "invalid_message"),
        ('{"type":"start","encoding":"mp3"}', "invalid_message"),
        ('{"type":"start","speed":2}', "invalid_message"),
        ('{"type":"start","phrases":"打开[客厅"}', "invalid_search"),
        ("null", "invalid_message"),
        (b"\0\0", "invalid_message"),
    ],
)
def test_a_wrong_beginning_is_explained(service, first, code):
    async def session() -> list[Message]:
        async with connect(service) as socket:
            await socket.send(first)
            return await messages_of(socket)

    *_, error = asyncio.run(session())
    assert (error["type"], error["code"]) == ("error", code) and error["message"] and error["hint"]
    assert str(ROOT) not in json.dumps(error)


def test_too_many_words_are_named_with_the_limit(service):
    (error,) = talk(service, [], words="喆\n" * 25_001)
    assert error["message"] == "'words' in the message 'start' has more than 50,000 characters"
    assert error["hint"].startswith("send at most 50,000; ")


@pytest.mark.parametrize(
    ("search", "where"),
    [({"phrases": "开灯\n关灯\n打开[客厅"}, "phrases:3"), ({"words": "喆门\n喆 zhe9"}, "line 2")],
)
def test_an_error_in_words_or_phrases_names_the_line(service, search, where):
    *_, error = talk(service, [], **search)
    assert error["code"] == "invalid_search" and where in error["message"]


def test_the_log_has_no_address_and_no_query(service):
    """Of a stream it has a line of its own; a refused connection is no error."""
    ended = len(service.events("stream"))

    async def session() -> None:
        async with connect(service, query="?token=SECRET") as socket:
            await socket.send('{"type":"start"}')
            await socket.recv()  # ready: the stream takes longer than the log rounds to
        with pytest.raises(InvalidStatus):
            await _once(connect(service, token="not the right token"))

    asyncio.run(session())
    line = service.wait_for("stream", ended + 1)[-1]
    assert line["seconds"] > 0 and len(line["id"]) == 12
    assert service.get("/healthz")[0] == 200
    log = service.log.read_text(encoding="utf-8")
    assert "SECRET" not in log and "WebSocket" not in log and "handshake" not in log


def test_a_wrong_message_ends_the_stream_after_its_finals(service, speech):
    *_, final, error = talk(service, [speech.tobytes(), '{"type":"pause"}'])
    assert (final["type"], error["code"]) == ("final", "invalid_message")


def test_a_message_that_is_too_large_is_named(service):
    *_, error = talk(service, [bytes(LARGEST_MESSAGE + 2)])
    assert (error["type"], error["code"]) == ("error", "message_size")
    assert f"more than {LARGEST_MESSAGE:,} bytes" in error["message"]


def test_sound_that_is_no_opus(service):
    for sound in (b"RIFF" + bytes(5000), b"\x1a\x45\xdf\xa3" + os.urandom(20_000), b"OggS" + bytes(20_000)):
        *_, error = talk(service, [sound, END], encoding="opus")
        assert (error["type"], error["code"]) == ("error", "invalid_audio")


def test_a_silent_client_gets_its_finals_and_is_left(service, speech):
    *_, final, error = talk(service, [speech.tobytes()])
    assert (final["type"], error["code"]) == ("final", "idle")


def test_a_client_with_nothing_to_read_gets_alive_messages(open_service):
    async def types() -> list[str]:
        async with connect(open_service, None) as socket:
            await socket.send('{"type":"start"}')
            found = [json.loads(await asyncio.wait_for(socket.recv(), PATIENCE)) for _ in range(2)]
            await socket.send(END)
            return [message["type"] for message in found + await messages_of(socket)]

    assert asyncio.run(types()) == ["ready", "alive", "end"]


def test_messages_without_sound_do_not_keep_a_stream(service):
    """The stream is ended after three seconds without sound, in the middle of twenty of empty messages."""
    sent = []
    *_, error = talk(service, (sent.append(b"") or b"" for _ in range(100)), pause=0.2)
    assert error["code"] == "idle" and len(sent) < 100


def test_broken_frames_harm_nobody(service, speech):
    host, port = service.url.removeprefix("http://").split(":")

    async def broken(data: bytes) -> None:
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(
            f"GET /v1/stream HTTP/1.1\r\nHost: {host}:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
            f"Authorization: Bearer {TOKEN}\r\n\r\n".encode()
        )
        await reader.readuntil(b"\r\n\r\n")
        writer.write(data)
        await asyncio.wait_for(reader.read(), PATIENCE)  # the server closes the connection
        writer.close()

    huge = struct.pack(">BBQ", 0x82, 0xFF, 1 << 40) + bytes(4)
    for data in (b"\x81\x05hello", b"\xff" * 50, huge, b"\x82\xfe", os.urandom(500)):
        asyncio.run(broken(data))
    assert finals(talk(service, [speech.tobytes(), END]))


def test_more_streams_than_allowed_are_refused_and_places_become_free(service):
    def all_have_ended() -> bool:
        authorization = {"Authorization": f"Bearer {TOKEN}"}
        return "speech_live_streams 0.0" in service.get("/metrics", **authorization)[1]

    async def crowd() -> list[str]:
        sockets = [await connect(service) for _ in range(5)]
        answers = []
        for socket in sockets:
            await socket.send('{"type":"start"}')
            message = json.loads(await asyncio.wait_for(socket.recv(), PATIENCE))
            answers.append(message.get("code") or message["type"])
        for socket in sockets:
            await socket.close()
        return answers

    wait_until(all_have_ended, "the end of earlier streams")
    assert asyncio.run(crowd()) == ["ready"] * 4 + ["streams"]
    wait_until(all_have_ended, "the end of all streams")


def test_clients_without_a_token_take_no_places(service):
    """They may show it in their first message, but have not yet."""

    async def crowd() -> tuple[str, int]:
        silent = [await connect(service, None) for _ in range(8)]
        refused = 0
        try:
            await connect(service, None)
        except InvalidStatus as error:
            refused = error.response.status_code
        async with connect(service) as socket:
            await socket.send('{"type":"start"}')
            first = json.loads(await asyncio.wait_for(socket.recv(), PATIENCE))["type"]
        for socket in silent:
            await socket.close()
        return first, refused

    assert asyncio.run(crowd()) == ("ready", 429)


def test_a_dead_worker_ends_its_own_streams_only(service, speech):
    ready = service.wait_for("a worker of live streams is ready", 2)

    async def two() -> list[list[Message]]:
        async with connect(service) as first, connect(service) as second:
            for socket in (first, second):
                await socket.send('{"type":"start"}')
                await asyncio.wait_for(socket.recv(), PATIENCE)
            receiving = [asyncio.create_task(messages_of(socket)) for socket in (first, second)]
            os.kill(ready[0]["pid"], signal.SIGKILL)
            for socket in (first, second):
                try:
                    for message in (speech.tobytes(), END):
                        await socket.send(message)
                except ConnectionClosed:
                    pass
            return await asyncio.gather(*receiving)

    endings = sorted((messages[-1]["type"], len(finals(messages))) for messages in asyncio.run(two()))
    assert endings == [("end", 1), ("error", 0)]
    service.wait_for("a worker of live streams is ready", len(ready) + 1)
    assert finals(talk(service, [speech.tobytes(), END]))


def test_the_end_of_the_service_sends_the_finals_first(speech):
    """And does not wait for a stream that has not started."""
    with running_service("--workers", "1", "--receive-seconds", "600") as service:

        async def sessions() -> tuple[list[Message], list[Message]]:
            async with connect(service, None) as waiting, connect(service, None) as socket:
                await socket.send('{"type":"start"}')
                await socket.send(speech.tobytes())
                before: list[Message] = []
                while not before or len(before[-1].get("syllables", ())) < 2:
                    before.append(json.loads(await asyncio.wait_for(socket.recv(), PATIENCE)))
                service.process.send_signal(signal.SIGTERM)
                return await messages_of(waiting), [*before, *await messages_of(socket)]

        (refused,), (*_, final, error) = asyncio.run(sessions())
        assert refused["code"] == error["code"] == "shutdown"
        assert (final["type"], final["hanzi"][:2]) == ("final", "如果")
        assert service.process.wait(PATIENCE) == 128 + signal.SIGTERM
