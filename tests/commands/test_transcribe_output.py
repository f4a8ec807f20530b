"""Tests of the output folder of transcribe.py: other files, edited transcripts, kills, two processes."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

import transcribe
from bundle.pack import pack
from tests.support.scripts import exit_code
from tests.support.tiny_commands import TinyRuns, bytes_of, temporary_files
from utils.audio.samples import write_wav
from utils.errors import AudioError, RunError, TranscriptError
from utils.hypotheses.live import partial_path, write_live_transcript
from utils.hypotheses.recognition import Alternative, Ending, Recognition
from utils.hypotheses.transcript_formats import FORMATS
from utils.hypotheses.transcript_marks import TranscriptMarks

NOISE = np.random.default_rng(0).normal(0, 0.1, 16_000).astype(np.float32)
REFERENCE = "他自己写的文本\n"


@pytest.fixture(scope="module")
def runs(
    speech_run: Path, language_run: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, str, str, str]:
    folder = tmp_path_factory.mktemp("packed") / "speech"
    pack(speech_run, folder)
    return "--speech", str(folder), "--language", str(language_run)


@pytest.fixture
def talk(tmp_path: Path) -> Path:
    write_wav(tmp_path / "talk.wav", NOISE)
    return tmp_path / "talk.wav"


@pytest.mark.parametrize("form", list(FORMATS))
def test_a_file_of_another_origin_is_not_replaced(talk, runs, form, capsys, monkeypatch):
    reference = talk.with_suffix(FORMATS[form].suffix)
    reference.write_text(REFERENCE, encoding="utf-8")
    monkeypatch.setattr(transcribe, "_recognizer", None)  # it is refused before the models are loaded
    call = [str(talk), *runs, "--format", form, "--output", str(talk.parent)]
    assert exit_code(transcribe.main, call) == 2
    assert capsys.readouterr().err == (
        "error: this file was not written by transcribe.py; it would be replaced\n"
        f"where: {reference}\n"
        "hint: choose another --output folder, or move or delete this file\n"
    )
    assert reference.read_text(encoding="utf-8") == REFERENCE


def test_a_link_of_another_origin_is_not_replaced(talk, runs):
    talk.with_suffix(".txt").symlink_to("nowhere")
    with pytest.raises(TranscriptError, match=r"not written by transcribe\.py"):
        transcribe.main([str(talk), *runs, "--output", str(talk.parent)])
    assert talk.with_suffix(".txt").is_symlink()


def test_an_edited_transcript_is_kept(talk, runs, capsys):
    call, transcript = [str(talk), *runs, "--output", str(talk.parent)], talk.with_suffix(".txt")
    assert transcribe.main(call) == 0
    transcript.write_text(REFERENCE, encoding="utf-8")
    assert transcribe.main(call) == 0
    assert "1 of 1 were transcribed before: skipped" in capsys.readouterr().err
    with pytest.raises(TranscriptError, match=r"edited after transcribe.py had written it.*talk\.txt"):
        transcribe.main([*call, "--beam", "2"])
    assert transcript.read_text(encoding="utf-8") == REFERENCE
    transcript.unlink()
    assert transcribe.main([*call, "--beam", "2"]) == 0
    assert transcript.read_text(encoding="utf-8") != REFERENCE


@pytest.mark.parametrize("name", ["stdin.txt", "stdin.partial.txt"])
def test_live_sound_does_not_replace_an_earlier_transcript(tmp_path, runs, name):
    (tmp_path / name).write_text(REFERENCE, encoding="utf-8")
    with pytest.raises(TranscriptError, match=r"this file exists, and live audio") as caught:
        transcribe.main(["-", "--rate", "16000", *runs, "--output", str(tmp_path)])
    assert caught.value.where == tmp_path / name
    assert (tmp_path / name).read_text(encoding="utf-8") == REFERENCE


SEGMENT = Recognition(0.0, 1.0, ((0.1, 0.3), (0.4, 0.6)), (Alternative(("ni3", "hao3"), "你好", -1.0),))
UNPLUGGED = AudioError("the microphone gives no more audio", hint="check that it is still connected")


@pytest.mark.parametrize("form", [form for form in FORMATS if form != "textgrid"])
def test_each_segment_of_live_audio_is_on_disk_when_it_ends(tmp_path, form):
    """A killed process has lost only the utterance that was being spoken."""
    transcript = tmp_path / f"microphone{FORMATS[form].suffix}"
    written = []

    def events():
        for _ in range(2):
            yield SEGMENT
            written.append(partial_path(transcript).read_text(encoding="utf-8"))
        yield Ending(2.0)

    write_live_transcript(transcript, FORMATS[form], "microphone", events())
    assert not partial_path(transcript).exists()
    whole = transcript.read_text(encoding="utf-8")
    assert whole == "".join(FORMATS[form].write("microphone", [SEGMENT, SEGMENT, Ending(2.0)]))
    assert all(whole.startswith(text) for text in written)
    assert 2 * written[0].count("好") == written[1].count("好") > 0


def test_a_stopped_live_transcript_stays_under_its_partial_name(tmp_path):
    def events():
        yield SEGMENT
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_live_transcript(tmp_path / "stdin.txt", FORMATS["text"], "stdin", events())
    assert bytes_of(tmp_path) == {"stdin.partial.txt": "你好\n".encode()}


def test_a_live_transcript_does_not_replace_a_file_that_appears_in_the_meantime(tmp_path):
    transcript = tmp_path / "stdin.txt"

    def events():
        yield SEGMENT
        transcript.write_text(REFERENCE, encoding="utf-8")
        yield Ending(1.0)

    with pytest.raises(TranscriptError, match=r"the transcript is in .*stdin\.partial\.txt"):
        write_live_transcript(transcript, FORMATS["text"], "stdin", events())
    assert transcript.read_text(encoding="utf-8") == REFERENCE
    assert partial_path(transcript).read_text(encoding="utf-8") == "你好\n"


class Listening:
    """A recogniser with fixed events for each source."""

    sample_rate = 16_000

    def __init__(self, events):
        self._events = events

    def segments(self, sources):
        for name, _ in sources:
            yield name, iter(self._events)

    def speed(self):
        return "1 s of audio"


@pytest.mark.parametrize("before", [[SEGMENT], []])
def test_a_microphone_that_fails_leaves_what_was_recognised(tmp_path, runs, capsys, monkeypatch, before):
    monkeypatch.setattr(transcribe, "_recognizer", lambda *_: Listening([*before, Ending(1.0, UNPLUGGED)]))
    assert transcribe.main(["--microphone", *runs, "--output", str(tmp_path)]) == 1
    written = {name: text for name, text in bytes_of(tmp_path).items() if not name.startswith(".")}
    printed = capsys.readouterr().err
    assert UNPLUGGED.message in printed
    assert written == ({"microphone.txt": "你好\n".encode()} if before else {})
    assert (f"what was recognised before is in {tmp_path / 'microphone.txt'}" in printed) == bool(before)


def test_of_two_live_calls_with_one_folder_the_second_is_refused(talk, runs, monkeypatch):
    """The first one writes its transcript when its sound ends, while the second one is heard."""
    live = ["-", "--rate", "16000", *runs, "--output", str(talk.parent)]
    calls = []

    def first(jobs, _load, _options, _marks):
        calls.append("first")
        with pytest.raises(RunError, match=f"another process writes this folder .process {os.getpid()} on"):
            transcribe.main(live)
        assert transcribe.main([str(talk), *live[3:]]) == 0  # recordings have names of their own
        write_live_transcript(jobs[0].target, FORMATS["text"], "stdin", [SEGMENT, Ending(1.0)])
        return []

    recordings = transcribe._transcribe
    monkeypatch.setattr(transcribe, "_transcribe", lambda *given: (recordings if calls else first)(*given))
    assert transcribe.main(live) == 0
    assert (talk.parent / "stdin.txt").read_text(encoding="utf-8") == "你好\n"
    assert talk.with_suffix(".txt").is_file()
    with pytest.raises(TranscriptError, match="this file exists"):
        transcribe.main(live)


def test_a_file_that_appears_during_the_recognition_is_kept_and_the_rest_done(
    talk, runs, capsys, monkeypatch
):
    write_wav(talk.with_name("other.wav"), NOISE)
    reference = talk.with_suffix(".txt")

    def written_meanwhile(name, events):
        reference.write_text(REFERENCE, encoding="utf-8")
        yield from FORMATS["ctm"].write(name, events)

    monkeypatch.setitem(FORMATS, "text", FORMATS["text"].__class__(".txt", written_meanwhile))
    call = [str(talk), str(talk.with_name("other.wav")), *runs, "--output", str(talk.parent)]
    assert transcribe.main(call) == 1
    printed = capsys.readouterr().err
    assert "this file was not written by transcribe.py" in printed
    assert f"1 of 2 files could not be transcribed completely: {talk}" in printed
    assert reference.read_text(encoding="utf-8") == REFERENCE
    assert talk.with_name("other.txt").is_file()


def test_two_processes_write_into_the_same_folder(talk):
    """Each sees the other's transcripts as such, though both have begun with an empty folder."""
    transcript, settings = talk.with_suffix(".txt"), {"beam": 1}
    first, second = (TranscriptMarks(talk.parent, settings) for _ in range(2))
    first.write(transcript, talk, ["文本\n"])
    second.write(transcript, talk, ["文本\n"])
    assert TranscriptMarks(talk.parent, settings).is_finished(transcript, talk)


def test_kills_between_any_two_changes(commands, tiny_runs: TinyRuns):
    """A transcript is the old or the new one, and the same command finishes the work."""
    recording, folder = tiny_runs.utterances[0].audio, commands.folder / "kept_transcripts"

    def call(output: Path, readings: int) -> list[object]:
        search = ["--beam", 3, "--n-best", readings, "--format", "json"]
        return [recording, *tiny_runs.both, *search, "--output", output]

    for readings in (1, 2):
        ended = commands.run("transcribe", *call(folder / str(readings), readings))
        assert ended.code == 0, ended.output
    old, new = (bytes_of(folder / str(readings)) for readings in (1, 2))
    assert old != new
    for before in (folder / "none", folder / "1"):
        undisturbed = None
        for change in range(1, 9):
            output = folder / f"{before.name}_{change}"
            shutil.copytree(before, output) if before.exists() else output.mkdir()
            killed = commands.run("transcribe", *call(output, 2), at_change=change)
            assert killed.code in (-9, 0), killed.output
            assert bytes_of(output) in (old, new) or not (before.exists() or bytes_of(output))
            again = commands.run("transcribe", *call(output, 2))
            assert again.code == 0, again.output
            assert bytes_of(output) == new and temporary_files(output) == []
            undisturbed = killed.code == 0
            if undisturbed:
                break
        assert undisturbed and change >= 4  # temporary file, mark, new name
