"""Tests of the transcription interface with OpenAI's unmodified client, against output of transcribe.py."""

import io
import json
import math
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import openai
import pytest
import soundfile

from tests.support.recordings import RECORDINGS
from tests.support.scripts import load_script
from tests.support.service import PATIENCE
from utils.audio.reading import read_audio
from utils.audio.samples import write_wav

RATE = 16000
COPIES = 4  # requests for each recording at the same time


@pytest.fixture(scope="module")
def client(open_service):
    return openai.OpenAI(base_url=f"{open_service.url}/v1", api_key="none", timeout=PATIENCE, max_retries=0)


@pytest.fixture(scope="module")
def recordings(tmp_path_factory) -> list[Path]:
    """Three clips and a recording that is long enough to be cut."""
    folder = tmp_path_factory.mktemp("recordings")
    pause = np.zeros(RATE, np.float32)
    parts = [part for path in RECORDINGS * 2 for part in (read_audio(path), pause)]
    write_wav(folder / "long.wav", np.concatenate(parts))
    return [*RECORDINGS, folder / "long.wav"]


@pytest.fixture(scope="module")
def transcripts(recordings, tmp_path_factory) -> dict[str, dict]:
    """The JSON of transcribe.py by the names of the recordings."""
    folder = tmp_path_factory.mktemp("transcripts")
    load_script("transcribe.py").main([*map(str, recordings), "--format", "json", "--output", str(folder)])
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*.json")}


def syllables(transcript: dict) -> list[tuple]:
    return [
        (each["hanzi"], each["pinyin"], each["start"], each["end"], each["confidence"])
        for segment in transcript["segments"]
        for each in segment["syllables"]
    ]


def test_texts_and_times_are_those_of_the_command(client, recordings, transcripts):
    """Also while the workers process the same recordings for other clients."""
    granularities = ["word", "segment"]

    def words_of(path: Path):
        answer = client.audio.transcriptions.create(
            file=path,
            model="whisper-1",
            response_format="verbose_json",
            timestamp_granularities=granularities,
        )
        return path, answer

    with ThreadPoolExecutor(len(recordings) * COPIES) as pool:
        answers = list(pool.map(words_of, recordings * COPIES))
    for path, answer in answers:
        expected = transcripts[path.stem]
        found = [(w.word, w.pinyin, w.start, w.end, w.confidence) for w in answer.words]
        assert found == syllables(expected)
        assert answer.text == expected["text"] == "".join(segment.text for segment in answer.segments)
        assert float(answer.duration) == expected["seconds"]
        assert len(answer.segments) >= sum(bool(segment["hanzi"]) for segment in expected["segments"])
        assert all(0 <= segment.no_speech_prob < 0.5 for segment in answer.segments)
        assert all(-3 < segment.avg_logprob < 0 for segment in answer.segments)


def test_every_format(client, transcripts):
    path = RECORDINGS[-1]
    text = transcripts[path.stem]["text"]

    def create(form: str, **more):
        return client.audio.transcriptions.create(
            file=path, model="gpt-4o-transcribe", response_format=form, language="zh", temperature=0.2, **more
        )

    assert create("json").text == text
    assert create("text") == f"{text}\n"
    assert create("srt").splitlines()[0] == "1"
    assert create("srt").splitlines()[2] == text
    assert create("vtt").splitlines()[0] == "WEBVTT"
    assert create("vtt").replace(".", ",").splitlines()[2:4] == create("srt").splitlines()[1:3]
    assert create("verbose_json").words is None
    assert create("verbose_json", timestamp_granularities=["word"]).segments is None
    with_logs = create("json", include=["logprobs"])
    assert [log.token for log in with_logs.logprobs] == list(transcripts[path.stem]["hanzi"])
    confidence = [each[-1] for each in syllables(transcripts[path.stem])]
    assert [math.exp(log.logprob) for log in with_logs.logprobs] == pytest.approx(confidence, abs=1e-3)


def test_a_stream_of_events(client, recordings, transcripts):
    for path in recordings[-2:]:
        with path.open("rb") as file:
            events = list(client.audio.transcriptions.create(file=file, model="whisper-1", stream=True))
        deltas = [event.delta for event in events if event.type == "transcript.text.delta"]
        spoken = [segment["text"] for segment in transcripts[path.stem]["segments"] if segment["hanzi"]]
        assert deltas == spoken
        assert [events[-1].type, events[-1].text] == ["transcript.text.done", "".join(deltas)]


def test_the_prompt_is_a_list_of_words(client):
    """A word of the prompt wins over its homophone; a sentence, as clients of OpenAI send, has no effect."""

    def text(prompt: str) -> str:
        return client.audio.transcriptions.create(file=RECORDINGS[-1], model="x", prompt=prompt).text

    plain = text("")
    assert text("以下是普通话的句子。\nHello, world!") == plain
    assert text("吾法 wu2 fa3 50") == plain.replace("无法", "吾法")


def test_silence_and_noise_are_not_speech(client, tmp_path):
    def answer(samples: np.ndarray):
        write_wav(tmp_path / "sound.wav", samples.astype(np.float32))
        return client.audio.transcriptions.create(
            file=tmp_path / "sound.wav", model="x", response_format="verbose_json"
        )

    silent = answer(np.zeros(2 * RATE))
    assert silent.text == ""
    assert not silent.segments
    noise = answer(0.1 * np.random.default_rng(1).standard_normal(4 * RATE))
    assert all(segment.no_speech_prob > 0.6 for segment in noise.segments)


@pytest.mark.parametrize(
    ("fields", "param", "message"),
    [
        ({"language": "en"}, "language", "Mandarin"),
        ({"response_format": "xml"}, "response_format", "json"),
        ({"temperature": 7}, "temperature", "1"),
        ({"file": ("a.wav", b"")}, "file", "empty"),
        ({"file": ("a.wav", b"RIFF" + bytes(100))}, "file", "not readable"),
        ({"file": ("../../etc/passwd", b"text" * 100)}, "file", "this is text"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_invalid_requests_are_named(client, open_service, fields, param, message, stream):
    with pytest.raises(openai.BadRequestError) as caught:
        client.audio.transcriptions.create(
            **{"file": RECORDINGS[-1], "model": "x", "stream": stream, **fields}
        )
    error = caught.value.body
    assert error["param"] == param
    assert message in error["message"]
    assert error["type"] == "invalid_request_error"
    assert error["hint"]
    assert not [part for part in ("/tmp", "/work", "passwd", "upload-") if part in json.dumps(error)]


def test_a_recording_that_is_cut_off(client):
    content = io.BytesIO()
    soundfile.write(content, read_audio(RECORDINGS[0]), RATE, format="WAV")
    with pytest.raises(openai.BadRequestError, match="cut off"):
        client.audio.transcriptions.create(file=("a.wav", content.getvalue()[:50_000]), model="x")


def test_models(client):
    names = [model.id for model in client.models.list()]
    assert names == ["audio_to_pinyin", "pinyin_to_hanzi"]
    assert client.models.retrieve(names[0]).id == names[0]
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("whisper-1")


def test_pinyin_becomes_hanzi(client):
    answer = client.post(
        "/convert", body={"text": "jin1 tian1\nta1 hao3", "n_best": 3, "words": "塔 ta1 50"}, cast_to=object
    )
    assert answer["text"] == "今天\n塔好"
    assert len(answer["lines"][0]["n_best"]) == 3
    reasons = answer["lines"][0]["sentences"][0]["characters"][0]
    assert reasons["hanzi"] == "今"
    assert sum(reasons["lead"].values()) > 0
    for second_pass, hanzi in ((False, "买了八是票"), (True, "买了巴士票")):
        body = {"text": "mai3 le5 ba1 shi4 piao4", "second_pass": second_pass}
        assert client.post("/convert", body=body, cast_to=object)["text"] == hanzi
    with pytest.raises(openai.BadRequestError, match="not pinyin"):
        client.post("/convert", body={"text": "hello", "strict": True}, cast_to=object)
    with pytest.raises(openai.BadRequestError, match="line 2"):
        client.post("/convert", body={"text": "ni3", "words": "你 ni3\nabc"}, cast_to=object)
    with pytest.raises(openai.BadRequestError, match="nbest"):
        client.post("/convert", body={"text": "ni3", "nbest": 3}, cast_to=object)


def test_each_channel_has_a_text(client, transcripts, tmp_path):
    first, second = (read_audio(path) for path in RECORDINGS[:2])
    call = np.zeros((len(first) + len(second), 2), np.float32)
    call[: len(first), 0], call[-len(second) :, 1] = first, second
    soundfile.write(tmp_path / "call.wav", call, RATE)
    expected = [transcripts[path.stem]["text"] for path in RECORDINGS[:2]]

    def post(form: str, **more):
        create = client.audio.transcriptions.create
        return create(file=tmp_path / "call.wav", model="a", response_format=form, extra_body=more)

    found = post("diarized_json", channel_names="客服,客户")
    segments = [(each.speaker, each.text) for each in found.segments]
    assert segments == list(zip(("客服", "客户"), expected, strict=True))
    text = post("text", channels="separate")
    assert text.splitlines() == [f"left: {expected[0]}", f"right: {expected[1]}"]
    assert post("json", channels="first").text == expected[0]
    for names in ("客服", "客服,客户,经理"):
        message = f"channels: 2, names for them: {len(names.split(','))}"
        with pytest.raises(openai.BadRequestError, match=message):
            post("json", channels="separate", channel_names=names)
    with pytest.raises(openai.BadRequestError, match="a name occurs twice"):
        post("json", channels="separate", channel_names="客服,客服")
    with pytest.raises(openai.BadRequestError, match="names of channels that are not separate"):
        post("json", channel_names="客服,客户")
    with pytest.raises(openai.BadRequestError, match="separate channels"):
        post("json", channels="separate", stream=True)


def test_only_phrases_of_a_list(client):
    def post_phrases(phrases: str, **more):
        files = {"file": ("a.ogg", RECORDINGS[-1].read_bytes())}
        options = {"headers": {"Content-Type": "multipart/form-data"}}
        body = {"phrases": phrases, **more}
        return client.post("/phrases", body=body, files=files, options=options, cast_to=object)

    found = post_phrases("如果[无法|可以]<做什么>\n<做什么> = 控制 | 停止\n关灯")
    assert found["text"] == "如果无法控制"
    assert found["utterances"][0]["phrases"][0]["slots"] == {"做什么": "控制"}
    refused = post_phrases("关灯\n开灯")
    assert refused["text"] == ""
    assert refused["utterances"][0]["accepted"] is False
    with pytest.raises(openai.BadRequestError, match="phrases:1"):
        post_phrases("打开[客厅")


def test_the_interface_is_documented_with_examples(open_service):
    status, text = open_service.get("/openapi.json")
    assert status == 200
    paths = json.loads(text)["paths"]
    assert {"/v1/audio/transcriptions", "/v1/convert", "/v1/phrases", "/v1/models"} <= paths.keys()
    assert "example" in text
    status, page = open_service.get("/docs")
    assert status == 200
    assert all(f"{path}</code>" in page for path in paths)
    assert "重庆路 chong2 qing4 lu4" in page
    assert "http" not in page, "it loads nothing from other servers"
