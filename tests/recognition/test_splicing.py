"""Tests of recognition/splicing: recordings cut at their syllables and joined in new combinations."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from data.manifest import Utterance, read_manifest, write_manifest
from recognition.splicing import splice
from recognition.splicing.plan import RUN_SYLLABLES, find_runs, plan_utterances
from recognition.splicing.snippets import Snippet, cut_recordings, find_cuts, successive_runs
from tests.support.recordings import FOLDER, SYLLABLES
from tests.support.scripted_acoustic import Scripted, speak
from utils.audio.reading import SAMPLE_RATE, read_audio, write_wav
from utils.errors import ConfigError, CorpusError
from utils.run_folder.run import PRETRAINED_SPEECH

RECORDING = "common_voice_18735239.ogg"
PINYIN = tuple(SYLLABLES[RECORDING].split())
HANZI = "此外一些其他国际比赛也使用此规则"


def _snippets(recording: int, lengths: list[int], missing: tuple[int, ...] = ()) -> list[Snippet]:
    ends = np.cumsum([0, *lengths])
    return [
        Snippet(recording, position, int(ends[position]), int(ends[position + 1]))
        for position in range(len(lengths))
        if position not in missing
    ]


def test_cuts_are_in_the_pauses_before_the_onsets():
    """Three bursts of noise of 0.2 s after pauses of 50 ms; their beginnings are known to 40 ms."""
    rng = np.random.default_rng(0)
    samples = 1e-4 * rng.normal(size=SAMPLE_RATE)
    starts = np.array([0.2, 0.45, 0.7])
    for start in starts:
        begin = int(start * SAMPLE_RATE)
        samples[begin : begin + SAMPLE_RATE // 5] += rng.normal(size=SAMPLE_RATE // 5)
    cuts = find_cuts(samples, starts + np.array([0.0, 0.04, -0.04])) / SAMPLE_RATE
    for cut, start in zip(cuts, starts, strict=False):
        assert start - 0.2 < cut <= start
    assert np.all(cuts[1:3] >= starts[1:] - 0.05) and 0.9 <= cuts[3] < 1.0


def test_only_syllables_that_the_model_recognises_are_used(tmp_path):
    """``hao3`` is in the second text, and something else in its recording; the third text is too long."""
    texts = {"a": "m.n.w...", "b": "m.n.w...", "c": "mn"}
    references = {"a": ("ma1", "ni3", "wo3"), "b": ("ma1", "hao3", "wo3"), "c": ("ma1",) * 5}
    for name, text in texts.items():
        write_wav(tmp_path / f"{name}.wav", speak(text))
    utterances = [
        Utterance(name, tmp_path / f"{name}.wav", 0.5, "s", pinyin, "字" * len(pinyin))
        for name, pinyin in references.items()
    ]
    unknown = Utterance("d", tmp_path / "a.wav", 0.5, "s", ("shi4",), "是")
    found = list(cut_recordings(Scripted(), [*utterances, unknown], lead_seconds=0.06))
    assert [snippet.position for snippet in found[0]] == [0, 1, 2]
    assert 1 not in [snippet.position for snippet in found[1]]
    assert found[2:] == [[], []]
    assert all(first.end == second.start for first, second in zip(found[0], found[0][1:], strict=False))


def test_runs_end_where_a_syllable_is_missing_and_at_the_end_of_a_recording():
    snippets = [*_snippets(0, [10] * 6, missing=(2,)), *_snippets(1, [10] * 3), *_snippets(2, [10])]
    runs = find_runs(snippets)
    assert [[(s.recording, s.position) for s in run] for run in runs] == [
        [(0, 0), (0, 1)],
        [(0, 3), (0, 4), (0, 5)],
        [(1, 0), (1, 1), (1, 2)],
    ]


def test_utterances_are_of_one_speaker_and_depend_on_the_seed_alone():
    own = {
        name: [s for number in range(start, start + count) for s in _snippets(number, [10] * 7)]
        for name, start, count in (("a", 0, 40), ("b", 40, 10), ("few", 50, 3))
    }
    planned = plan_utterances(own, 90, seed=1)
    assert planned == plan_utterances(own, 90, seed=1) != plan_utterances(own, 90, seed=2)
    speakers = [{snippet.recording >= 40 for snippet in snippets} for snippets in planned]
    assert len(planned) == 90 and all(map(len, speakers)) and not any(len(s) > 1 for s in speakers)
    assert all(snippet.recording < 50 for snippets in planned for snippet in snippets)
    of_b = sum(True in found for found in speakers)
    assert 15 <= of_b <= 45  # expected: 30, as a has four times the runs of b
    for snippets in planned:
        runs = successive_runs(snippets)
        assert 2 <= len(runs) <= 4
        assert all(RUN_SYLLABLES[0] <= len(run) <= RUN_SYLLABLES[1] for run in runs)
        assert all(run[-1].end - run[0].start == 10 * len(run) for run in runs)
    assert plan_utterances({"few": own["few"]}, 5, seed=1) == []


def test_a_run_of_a_recording_sounds_as_it_was_recorded(tmp_path):
    rng = np.random.default_rng(3)
    samples = rng.uniform(-0.3, 0.3, SAMPLE_RATE).astype(np.float32)
    write_wav(tmp_path / "a.wav", samples)
    samples = read_audio(tmp_path / "a.wav")
    joined = splice.join(_snippets(0, [4000, 3000, 5000])[1:], [tmp_path / "a.wav"])
    background = len(joined) - 8000
    at = np.flatnonzero(
        [np.array_equal(joined[n : n + 7000], samples[4500:11500]) for n in range(background)]
    )
    assert len(at) == 1


def test_the_recordings_of_a_speaker_get_one_level(tmp_path):
    rng = np.random.default_rng(4)
    for name, level in (("a", 0.2), ("b", 0.05), ("c", 0.001)):
        write_wav(tmp_path / f"{name}.wav", level * rng.normal(size=SAMPLE_RATE).astype(np.float32))
    paths = [tmp_path / f"{name}.wav" for name in "abc"]
    snippets = [Snippet(number, 0, 2000, 6000) for number in range(3)]
    joined = splice.join(snippets, paths)
    parts = [joined[2600 + 4000 * n :][:3000].std() for n in range(3)]
    assert parts[1] == pytest.approx(parts[0], rel=0.05)
    assert parts[2] == pytest.approx(0.001 * 10 ** (12 / 20), rel=0.1)  # no more than 12 dB


@pytest.mark.parametrize("sizes", [(0, 500), (500, 0), (40, 500), (500, 500)])
def test_cross_fades_keep_a_constant_signal(sizes):
    left, right = (np.ones(size, np.float32) for size in sizes)
    joined = splice.cross_fade(left, right)
    assert len(joined) == sum(sizes) - min(128, *sizes) and np.allclose(joined, 1.0)


def _manifest(folder: Path, copies: int, speaker: str = "s") -> Path:
    utterances = []
    for number in range(copies):
        audio = folder / f"{number}.ogg"
        shutil.copy(FOLDER / RECORDING, audio)
        utterances.append(Utterance(f"u{number}", audio, 3.0, speaker, PINYIN, HANZI))
    write_manifest(folder / "train.tsv", utterances)
    return folder / "train.tsv"


def _arguments(manifest: Path, output: Path) -> list[str]:
    return [str(PRETRAINED_SPEECH), "--manifest", str(manifest), "--output", str(output), "--count", "6"]


def test_spliced_recordings_have_the_texts_of_their_parts(tmp_path, capsys):
    """A real recording, eight times; the same command writes the same bytes."""
    manifest = _manifest(tmp_path, 8)
    for output in ("first", "second"):
        assert splice.main(_arguments(manifest, tmp_path / output)) == 0
    assert "written" in capsys.readouterr().out
    first, second = (read_manifest(tmp_path / name / "train.tsv") for name in ("first", "second"))
    reading = dict(zip(HANZI, PINYIN, strict=True))
    assert len(first) == 6
    for utterance, again in zip(first, second, strict=True):
        assert [reading[char] for char in utterance.hanzi] == list(utterance.pinyin)
        assert 4 <= len(utterance.pinyin) <= 24 and utterance.speaker == "s"
        assert utterance.audio.read_bytes() == again.audio.read_bytes()
        assert utterance.seconds == pytest.approx(len(read_audio(utterance.audio)) / SAMPLE_RATE, abs=1e-3)


def test_with_a_single_run_recordings_are_cut_into_pieces(tmp_path):
    manifest = _manifest(tmp_path, 8)
    assert splice.main([*_arguments(manifest, tmp_path / "pieces"), "--runs", "1", "1"]) == 0
    pieces = read_manifest(tmp_path / "pieces" / "train.tsv")
    assert len(pieces) == 6
    for piece in pieces:
        assert 2 <= len(piece.pinyin) <= 6 and piece.hanzi in HANZI
        assert piece.seconds < 3.0


@pytest.mark.parametrize("runs", [("3", "2"), ("2", "9")])
def test_an_impossible_number_of_runs_is_an_error(tmp_path, runs):
    with pytest.raises(ConfigError, match=f"--runs {runs[0]} {runs[1]}"):
        splice.main([*_arguments(_manifest(tmp_path, 1), tmp_path / "out"), "--runs", *runs])


@pytest.mark.parametrize(("copies", "speaker"), [(2, "s"), (9, "")])
def test_too_few_recordings_of_a_speaker_are_an_error(tmp_path, copies, speaker):
    with pytest.raises(CorpusError, match="no speaker has enough syllables"):
        splice.main(_arguments(_manifest(tmp_path, copies, speaker), tmp_path / "out"))
    assert not (tmp_path / "out").exists()
