"""Tests of recognition/recognizer.py: the output does not depend on batches and windows."""

import itertools
import re
import shutil
from concurrent.futures import BrokenExecutor, Future
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import h5py
import numpy as np
import pytest

import recognition.recognizer as recognizer_module
from model_language.registry import load_converter, load_converter_with, load_joint_search
from model_speech.acoustic_model import AcousticModel, load_acoustic_model
from recognition import pieces
from recognition.inspection import inspection_of, token_scores
from recognition.recognizer import Recognizer
from recognition.voice_activity import Stretch
from tests.support.scripted_acoustic import Scripted, speak
from utils.audio.samples import write_wav
from utils.errors import AudioError, RunError, VocabularyError
from utils.files import write_text
from utils.hypotheses.recognition import (
    Alternative,
    Ending,
    Recognition,
    syllable_times,
)
from utils.hypotheses.whole_recordings import whole_recording
from utils.run_folder import checksums
from utils.run_folder.run import RunFolder
from utils.vocabulary import BLANK

RATE = 16_000
NOISE = np.random.default_rng(0).normal(0, 0.1, 5 * RATE).astype(np.float32)


@pytest.fixture(scope="module")
def acoustic(speech_run: Path) -> AcousticModel:
    return load_acoustic_model(speech_run)


class Echo:
    """A converter that writes the first letter of each syllable and counts its calls."""

    calls = 0

    def convert(self, sentences):
        self.calls += 1
        return ["".join(syllable[0] for syllable in sentence) for sentence in sentences]

    def word_starts(self, hanzi):
        return range(0, len(hanzi), 2)


def test_scripted_recognition():
    (utterance,) = Recognizer(Scripted(), Echo()).recognise([("one", speak(".m.n-h.."))])
    assert utterance.pinyin == ("ma1", "ni3", "hao3")
    assert utterance.hanzi == "mnh"
    assert utterance.segments[0].word_starts == (0, 2)
    assert utterance.seconds == pytest.approx(0.8)
    assert utterance.times == (
        pytest.approx((0.0, 0.25)),
        pytest.approx((0.25, 0.45)),
        pytest.approx((0.45, 0.8)),
    )
    assert (utterance.n_best[0].pinyin, utterance.n_best[0].score) == (utterance.pinyin, utterance.best.score)


def test_many_recordings_share_batches_and_keep_their_order():
    acoustic, converter = Scripted(), Echo()
    texts = ["m.n", "h", "w.h.n.m", ".", "n"] * 8
    recognised = list(
        Recognizer(acoustic, converter).recognise((str(i), speak(t)) for i, t in enumerate(texts))
    )
    assert [utterance.id for utterance in recognised] == [str(i) for i in range(40)]
    assert ["".join(utterance.hanzi) for utterance in recognised] == [t.replace(".", "") for t in texts]
    assert (len(acoustic.batches), converter.calls) == (1, 1)


def test_output_does_not_depend_on_windows_and_batches(monkeypatch):
    sources = [(str(i), speak("m.n.h-w."[: i % 8 + 1] * (i % 3 + 1))) for i in range(30)]
    at_once = list(Recognizer(Scripted(), Echo()).recognise(sources))
    monkeypatch.setattr(pieces, "BATCH_FRAMES", 20)
    acoustic = Scripted()
    monkeypatch.setattr(pieces, "WINDOW_SECONDS", 3.0)
    assert list(Recognizer(acoustic, Echo()).recognise(sources)) == at_once
    assert len(acoustic.batches) > 10
    assert max(acoustic.batches) > 1


def test_silence_gives_an_empty_recognition():
    (utterance,) = Recognizer(Scripted(), Echo()).recognise([("one", speak("...."))])
    assert (utterance.pinyin, utterance.hanzi, utterance.times) == ((), "", ())


def test_n_best():
    (utterance,) = Recognizer(Scripted(), Echo(), beam=8, n_best=3).recognise([("one", speak("m.h"))])
    assert utterance.n_best[0].pinyin == ("ma1", "hao3")
    assert len({hypothesis.pinyin for hypothesis in utterance.n_best}) == 3
    scores = [hypothesis.score for hypothesis in utterance.n_best]
    assert scores == sorted(scores, reverse=True)
    assert all(
        hypothesis.hanzi == "".join(s[0] for s in hypothesis.pinyin) for hypothesis in utterance.n_best
    )


def test_n_best_of_joined_pieces_has_no_twins():
    ways = [
        [Alternative(("ma1",), "m", -1.0), Alternative(("ma1", "ni3"), "mn", -1.5)],
        [Alternative(("ni3", "ni3"), "nn", -1.0), Alternative(("ni3",), "n", -1.2)],
    ]
    segments = [Recognition(0.0, 1.0, (), tuple(own)) for own in ways]
    joined = whole_recording("one", 2.0, segments, n_best=4)
    assert [(one.hanzi, one.score) for one in joined.n_best] == [("mnn", -2.0), ("mn", -2.2), ("mnnn", -2.5)]


def _every_ten_seconds(blocks, rate):
    """Stands in for the voice activity detection, which would find no speech in these sounds."""
    samples = np.concatenate(list(blocks))
    for start in range(0, len(samples), 10 * rate):
        yield Stretch(start, samples[start : start + 10 * rate])


def test_n_best_of_a_long_recording_combines_its_pieces(monkeypatch):
    monkeypatch.setattr(pieces, "speech_stretches", _every_ten_seconds)
    text = "m.h." * 40 + "." * 20 + "n.w." * 40  # 34 s
    (utterance,) = Recognizer(Scripted(), Echo(), beam=4, n_best=4).recognise([("long", speak(text))])
    assert utterance.hanzi == text.replace(".", "")
    assert utterance.seconds == pytest.approx(34.0)
    assert len(utterance.n_best) == 4
    assert len({hypothesis.pinyin for hypothesis in utterance.n_best}) == 4
    starts = [start for start, _ in utterance.times]
    assert starts == sorted(starts)
    assert utterance.times[-1][0] > 33.0
    assert utterance.times[0] == pytest.approx((0.0, 0.15))  # 0.2 s of silence were added before it


def test_a_bad_file_is_raised_or_reported(tmp_path: Path):
    bad = tmp_path / "bad.wav"
    bad.write_text("no audio")
    sources = [("good", speak("m")), ("bad", bad), ("none", np.zeros(0, np.float32)), ("last", speak("n"))]
    with pytest.raises(AudioError, match=r"bad\.wav"):
        list(Recognizer(Scripted()).recognise(sources))
    reported = []
    recognised = list(
        Recognizer(Scripted()).recognise(sources, on_error=lambda name, error: reported.append(name))
    )
    assert [utterance.id for utterance in recognised] == ["good", "last"]
    assert reported == ["bad", "none"]


def test_syllable_times_meet_half_way_and_stay_near():
    assert syllable_times([], 0.1, 1.0) == []
    assert syllable_times([4], 0.1, 1.0) == [pytest.approx((0.2, 0.7))]
    assert syllable_times([4], 0.1, 1.0, start=3.0) == [pytest.approx((3.2, 3.7))]
    assert syllable_times([4], 0.1, 1.0, lead_seconds=0.2) == [pytest.approx((0.4, 0.9))]
    early = syllable_times([0, 1, 4], 0.1, 1.0, lead_seconds=-0.2)  # two middles before the start
    assert early == [pytest.approx((0.0, 0.005)), pytest.approx((0.005, 0.13)), pytest.approx((0.13, 0.5))]
    late = syllable_times([0, 8, 9], 0.1, 1.0, lead_seconds=0.3)  # two middles after the end
    assert late[1:] == [pytest.approx((0.74, 0.995)), pytest.approx((0.995, 1.0))]
    times = syllable_times([0, 1, 9], 0.1, 0.93)
    assert times == [pytest.approx((0.0, 0.1)), pytest.approx((0.1, 0.4)), pytest.approx((0.68, 0.93))]


def test_segments_have_times_in_the_recording_and_an_ending(monkeypatch):
    monkeypatch.setattr(pieces, "speech_stretches", _every_ten_seconds)
    sources = [("long", speak(".m" + "." * 198 + ".h.")), ("short", speak("n"))]
    found = [(name, list(events)) for name, events in Recognizer(Scripted(), Echo()).segments(sources)]
    assert [name for name, _ in found] == ["long", "short"]
    *segments, ending = found[0][1]
    assert [(segment.start, pytest.approx(segment.end), segment.best.hanzi) for segment in segments] == [
        (0, 10, "m"),
        (10, 20, ""),
        (20, 20.3, "h"),
    ]
    assert segments[2].times == (pytest.approx((20.0, 20.3)),)
    assert ending == Ending(pytest.approx(20.3))


def test_segments_come_before_the_recording_has_ended(monkeypatch):
    read = []

    def blocks():
        for second in range(60):
            read.append(second)
            yield speak("m.n.h.w.m.")

    def as_they_come(blocks, rate):
        yield from (Stretch(n * rate, block) for n, block in enumerate(blocks))

    monkeypatch.setattr(pieces, "speech_stretches", as_they_come)
    ((_, events),) = itertools.islice(Recognizer(Scripted(), Echo()).segments([("live", blocks())]), 1)
    assert next(events).best.hanzi == "mnhwm"
    assert len(read) == 1
    assert sum(isinstance(event, Recognition) for event in events) == 59


def test_a_recording_that_breaks_off_has_its_text_and_ends_with_its_error():
    def blocks():
        yield speak("m.n.")
        raise AudioError("cut off", where="talk")

    sources = [("a", blocks()), ("b", speak("h"))]
    events, others = (list(events) for _, events in Recognizer(Scripted()).segments(sources))
    *segments, ending = events
    assert [segment.best.pinyin for segment in segments] == [("ma1", "ni3")]
    assert (ending.error.message, ending.seconds) == ("cut off", pytest.approx(0.4))
    assert [segment.best.pinyin for segment in others[:-1]] == [("hao3",)]


@pytest.mark.parametrize("in_blocks", [False, True])
def test_samples_that_are_no_numbers_are_an_error_of_their_recording(in_blocks):
    damaged = speak("m.n.h.")
    damaged[3000] = np.nan
    sources = [("a", iter([speak("m."), damaged]) if in_blocks else damaged), ("b", speak("h"))]
    errors = []
    (found,) = Recognizer(Scripted()).recognise(
        sources, lambda name, error: errors.append((name, error.message, error.where))
    )
    assert (found.id, found.pinyin) == ("b", ("hao3",))
    assert errors == [("a", "samples are NaN or infinite", "a")]


def test_worker_processes_decode_the_same():
    sources = [(str(i), speak("m.n.h-w."[: i % 8 + 1] * (i % 3 + 1))) for i in range(12)]
    here = list(Recognizer(Scripted(), Echo(), beam=3, n_best=2).recognise(sources))
    assert list(Recognizer(Scripted(), Echo(), beam=3, n_best=2, workers=1).recognise(sources)) == here


@pytest.mark.parametrize("known", [False, True], ids=["with a batch", "before the next batch"])
def test_a_worker_process_that_dies_is_reported(monkeypatch, known):
    def died(decoder, workers):
        def submit(logits, lengths):
            if known:
                raise BrokenExecutor("killed")
            future = Future()
            future.set_exception(BrokenExecutor("killed"))
            return future

        return nullcontext(submit)

    monkeypatch.setattr(recognizer_module, "decoding", died)
    with pytest.raises(RunError, match=r"a decoding process died.*fewer --workers"):
        list(Recognizer(Scripted(), workers=1).recognise([("one", speak("m"))]))


def test_files_and_samples_give_the_same_recognition(speech_run, language_run, tmp_path, acoustic):
    converter = load_converter(language_run)
    write_wav(tmp_path / "noise.wav", NOISE)
    recognizer = Recognizer(acoustic, converter)
    samples = np.round(NOISE * 32768).astype(np.float32) / 32768
    file, array = recognizer.recognise([("a", tmp_path / "noise.wav"), ("b", samples)])
    assert (file.pinyin, file.hanzi, file.times) == (array.pinyin, array.hanzi, array.times)
    assert len(file.hanzi) == len(file.pinyin) == len(file.times)
    assert all(0 <= start < end <= file.seconds for start, end in file.times)
    assert acoustic.frame_seconds == 0.08


def _copy(run: Path, folder: Path) -> RunFolder:
    shutil.copytree(run, folder)
    return RunFolder(folder)


@pytest.mark.parametrize(
    ("part", "old", "new", "message"),
    [
        ("config.yaml", "(?s).*", "task: speech\n", "no section 'features'"),
        ("config.yaml", "name: compact", "name: compost", "unknown model 'compost'"),
        ("vocabulary/acoustic.txt", "(?s).*", "ma1\nma1\n", "twice"),
    ],
)
def test_a_wrong_part_is_explained(speech_run, tmp_path, part, old, new, message):
    path = _copy(speech_run, tmp_path / "run").path / part
    write_text(path, re.sub(old, new, path.read_text(encoding="utf-8"), count=1))
    with pytest.raises((RunError, VocabularyError), match=message):
        load_acoustic_model(tmp_path / "run")


def test_last_weights_are_selected_by_name(speech_run, tmp_path):
    run = _copy(speech_run, tmp_path / "run")
    with pytest.raises(RunError, match=r"last\.weights\.h5"):
        load_acoustic_model(run.path, weights="last")
    shutil.copy(run.best_weights, run.last_weights)
    checksums.accept(run.path)
    assert load_acoustic_model(run.path, weights="last").time_stride == 8


def test_weights_of_another_model_are_refused(speech_run, tmp_path):
    stray = tmp_path / "stray.weights.h5"
    shutil.copy(RunFolder(speech_run).best_weights, stray)
    with h5py.File(stray, "a") as file:
        names: list[str] = []
        file.visit(names.append)
        kernel = next(name for name in names if getattr(file[name], "ndim", 0) == 3)
        del file[kernel]
        file[kernel] = np.zeros((3, 3, 3))
    with pytest.raises(RunError, match="another model than config"):
        load_acoustic_model(speech_run, weights=str(stray))


def test_a_missing_weights_path_is_named(speech_run, tmp_path):
    with pytest.raises(RunError, match=r"no such weights file.*none\.weights\.h5"):
        load_acoustic_model(speech_run, weights=str(tmp_path / "none.weights.h5"))


def test_inspection_of_the_recognised_syllables(acoustic):
    found = inspection_of(Recognizer(Scripted()), speak(".m.n-h.."))
    assert found.frame_seconds == 0.1
    assert [found.classes[i] for i in found.posteriors.argmax(axis=1)] == [
        *("_", "ma1", "_", "ni3", " ", "hao3", "_", "_")
    ]
    real = inspection_of(Recognizer(acoustic), np.pad(NOISE, RATE // 2))
    # The noise is from 0.5 to 5.5 s.
    assert real.posteriors.shape[1] == len(real.classes) and -0.1 < real.start < 0.5
    assert 5.5 < real.start + len(real.posteriors) * real.frame_seconds < 6.0
    np.testing.assert_allclose(real.posteriors.sum(axis=1), 1, rtol=1e-5)
    assert (real.classes[-1], real.posteriors.dtype) == (BLANK, np.float32)
    assert inspection_of(Recognizer(acoustic), np.zeros(21 * RATE, np.float32)) is None


def test_scores_include_the_alignments_that_the_search_pruned(acoustic):
    samples = NOISE[: 2 * RATE]
    recognizer = Recognizer(acoustic, beam=4, n_best=4)
    (found,) = recognizer.recognise([("noise", samples)])
    scores = token_scores(recognizer, samples, [hypothesis.pinyin for hypothesis in found.n_best])
    # With an untrained model a narrow beam follows only a part of the alignments.
    assert all(whole >= hypothesis.score for whole, hypothesis in zip(scores, found.n_best, strict=True))
    assert token_scores(recognizer, samples, [["no such syllable"]]) == [-np.inf]
    assert token_scores(recognizer, np.zeros(21 * RATE, np.float32), [["ma1"]]) is None
    # The score of a joint search does not consist of syllables only.
    joint = SimpleNamespace(has_ngrams=False)
    assert token_scores(Recognizer(acoustic, Echo(), joint=joint), samples, [["ma1"]]) is None


def test_the_joint_search_equals_the_cascade_where_syllables_are_certain(language_run):
    """The scripted model is nearly certain (e^5 to 1): with a small language weight both agree."""
    converter = load_converter(language_run)
    plain = Recognizer(Scripted(), converter)
    joint = Recognizer(
        Scripted(),
        converter,
        joint=load_joint_search(converter, language=0.01, bonus=0.0),
    )
    sources = [("a", speak("n.h.w")), ("b", speak(".")), ("c", speak("m.m.h.n.w.h"))]
    for first, second in zip(plain.recognise(sources), joint.recognise(sources), strict=True):
        assert (first.pinyin, first.hanzi, first.times) == (second.pinyin, second.hanzi, second.times)
        assert len(second.n_best[0].confidence) == len(second.hanzi)
        assert all(0 < share <= 1 for share in second.n_best[0].confidence)


def test_user_words_reach_the_joint_search_and_the_cascade(language_run, tmp_path):
    words = tmp_path / "words.txt"
    words.write_text("妮郝 ni3hao3 99\n", encoding="utf-8")
    converter = load_converter_with(words, language_run)
    joint = load_joint_search(converter, language=0.1)
    for recognizer in (Recognizer(Scripted(), converter), Recognizer(Scripted(), converter, joint=joint)):
        (found,) = recognizer.recognise([("a", speak("w.n.h"))])
        assert found.hanzi == "我妮郝"
