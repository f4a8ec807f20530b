"""Tests of recognition/phrases/spotter.py, windowed_logits.py and listen.py --word: phrases in a stream."""

import json

import numpy as np
import pytest

from model_speech.acoustic_logits import load_acoustic_logits
from model_speech.ctc.alignment import best_alignments
from recognition.live.windowed_logits import RIGHT_SECONDS, WINDOW_SECONDS, WindowedLogits
from recognition.phrases.grammar import parse_grammar
from recognition.phrases.phrase_list import list_phrases
from recognition.phrases.spotter import HALF_SYLLABLE, PhraseSpotter
from recognition.phrases.thresholds import PhraseThresholds
from tests.support.recordings import RECORDING
from tests.support.scripted_acoustic import Scripted, speak
from tests.support.scripts import load_script
from utils.arrays import log_softmax
from utils.audio.reading import read_audio
from utils.audio.samples import write_wav
from utils.errors import ConfigError, PhraseError
from utils.features.speech import extract_features
from utils.run_folder.run import PRETRAINED_SPEECH
from utils.vocabulary import BLANK, SPACE, Vocabulary

VOCABULARY = Vocabulary(("ma1", "ni3", "hao3", "wo3", "shi4", SPACE, BLANK))
ROW = 0.1
# For the scores of these tests; those of a model are lower, because it is not always certain.
THRESHOLDS = PhraseThresholds(
    (0.2, 1.0, 3.0),
    {1: (0.0, 0.0, 0.0), 2: (0.0, -1.6, -3.3), 3: (-4.7, -7.6, -9.9), 4: (-8.7, -14.0, -17.0)},
)


def _spotter(text: str, **settings: float) -> PhraseSpotter:
    return PhraseSpotter(
        list_phrases(parse_grammar(text)), VOCABULARY, ROW, thresholds=THRESHOLDS, **settings
    )


def _rows(spoken: str, certain: float = 12.0, seed: int = 0) -> np.ndarray:
    """A row for each syllable and '.', a blank, of a sequence."""
    names = [{".": BLANK, "-": SPACE}.get(name, name) for name in spoken.split()]
    logits = np.random.default_rng(seed).normal(0, 1, (len(names), len(VOCABULARY)))
    logits[np.arange(len(names)), [VOCABULARY.index(name) for name in names]] += certain
    return logits.astype(np.float32)


def test_phrases_are_found_anywhere_and_once():
    spotter = _spotter("妈我是\n你好妈我")
    rows = _rows(
        "wo3 . shi4 ma1 - wo3 . shi4 shi4 . wo3 ni3 hao3 . ma1 wo3 hao3" + " ." * 20 + " ma1 wo3 shi4"
    )
    found = spotter.feed(rows) + spotter.flush()
    assert [(each.keyword, each.seconds) for each in found] == [("妈我是", 0.8), ("妈我是", 4.0)]
    # From the middle of the first syllable's row.
    assert [each.start for each in found] == pytest.approx([0.35 - HALF_SYLLABLE, 3.75 - HALF_SYLLABLE])
    assert all(0.9 < each.score <= 1 for each in found)  # the second phrase lies in the refractory time
    spotter.reset()
    assert spotter.feed(rows[:0]) == []
    pieces = [each for row in rows for each in spotter.feed(row[None])]
    assert pieces + spotter.flush() == found


def test_the_score_is_that_of_the_whole_phrase():
    """The threshold is reached before the last syllable, which then raises the score."""
    spotter = _spotter("妈我是", alarms_per_hour=3.0)
    rows = _rows("ma1 . wo3 . shi4 . . . .", certain=8.0)
    assert -9.9 <= spotter.scores(rows)[3, 0] < -3.0
    spotter.reset()
    (found,) = spotter.feed(rows)
    assert found.seconds == pytest.approx(0.5) and found.score > 0.9


def test_of_phrases_that_differ_at_their_ends_the_spoken_one_is_found():
    """Also where the threshold of another is reached before the last syllable."""
    long = "ni3 hao3 . ma1 wo3 . shi4" + " ." * 20
    for text, spoken, expected in (
        ("你好妈我[好|是|妈]", long, "你好妈我是"),
        ("你好妈我好\n你好妈我是", long, "你好妈我是"),
        ("你好\n你好妈我", "ni3 hao3 . ma1 wo3" + " ." * 20, "你好妈我"),
        ("你好\n你好妈我", "ni3 hao3 . wo3 shi4" + " ." * 20, "你好"),
        ("你好\n你好妈我", "ni3 hao3", "你好"),
    ):
        spotter = _spotter(text, alarms_per_hour=3.0)
        found = spotter.feed(_rows(spoken, certain=20.0)) + spotter.flush()
        assert [each.keyword for each in found] == [expected], text
        assert spotter.flush() == []


def test_a_rate_without_thresholds_is_refused():
    with pytest.raises(ConfigError, match=r"0\.01 false alarms an hour: .* are for 0\.2 to 3"):
        _spotter("妈我是", alarms_per_hour=0.01)


def test_other_speech_and_long_pauses_inside_are_no_phrase():
    for spoken in ("ni3 wo3 . shi4 ma1 hao3 wo3 . shi4", "ma1 wo3" + " ." * 30 + " shi4", "ma1 wo3 . . ma1"):
        assert _spotter("妈我是").feed(_rows(spoken)) == []


def test_scores_are_the_best_over_all_beginnings():
    """Against the alignment of each stretch that ends with the last row."""
    spotter = _spotter("妈妈我")
    rows = np.random.default_rng(4).normal(0, 2, (9, len(VOCABULARY)))
    log_probs = log_softmax(rows)
    blank, space = VOCABULARY.blank_index, VOCABULARY.index(SPACE)
    log_probs[:, blank] = np.logaddexp(log_probs[:, blank], log_probs[:, space])
    log_probs[:, space] = -np.inf
    log_probs = np.maximum(log_probs, np.log(1e-5))
    relative = log_probs - log_probs.max(axis=1, keepdims=True)
    sequence = VOCABULARY.encode(["ma1", "ma1", "wo3"])
    scores = spotter.scores(rows)
    assert scores.shape == (9, 1) and np.isneginf(scores[:3]).all()  # a blank lies between equal syllables
    for end in range(4, 10):
        best = -np.inf
        for start in range(end - 3):
            part = relative[start:end].copy()
            part[-1, blank] = -1e9  # the phrase ends with its last syllable
            part[0, blank] = -1e9
            (alignment,) = best_alignments(part[None], [len(part)], [0], [sequence], blank)
            best = max(best, alignment.scores.sum())
        assert scores[end - 1, 0] == pytest.approx(best)


def test_fewer_allowed_alarms_ask_for_better_scores():
    rows = _rows("ma1 wo3 shi4", certain=5.0)
    rows[1, VOCABULARY.index("hao3")] = rows[1, VOCABULARY.index("wo3")] + 6.0
    assert not _spotter("妈我是", alarms_per_hour=0.2).feed(rows)
    spotter = _spotter("妈我是", alarms_per_hour=3.0)
    (found,) = spotter.feed(rows) + spotter.flush()
    assert found.score >= found.threshold == pytest.approx(np.exp(-9.9 / 3))
    with pytest.raises(ConfigError, match="false alarms an hour"):
        _spotter("妈我是", alarms_per_hour=0.0)
    with pytest.raises(PhraseError, match="does not know"):
        _spotter("打开灯")


def test_rows_of_a_window_do_not_depend_on_the_pieces():
    acoustic = Scripted()
    samples = speak("n.h..wm.n..h." * 6)
    whole = WindowedLogits(acoustic)
    expected = np.concatenate([whole.feed(samples), whole.flush()])
    stream, rng, found, start = WindowedLogits(acoustic), np.random.default_rng(0), [], 0
    stream.feed(samples[:5000])
    stream.flush()  # a reset must clear this
    while start < len(samples):
        size = int(rng.integers(0, 9000))
        found.append(stream.feed(samples[start : start + size]))
        start += size
    found.append(stream.flush())
    np.testing.assert_array_equal(np.concatenate(found), expected)
    logits, _ = acoustic.logits([np.log1p(samples[::1600, None] * 32768 * 0.54 * 1600)])
    np.testing.assert_array_equal(expected.argmax(axis=1), logits[0].argmax(axis=1))
    assert len(WindowedLogits(acoustic).flush()) == 0


def test_rows_come_in_time_and_are_those_of_the_recording():
    acoustic = load_acoustic_logits(PRETRAINED_SPEECH)
    samples, stream = read_audio(RECORDING), WindowedLogits(acoustic)
    first = stream.feed(samples[:32_000])
    assert 2.0 - RIGHT_SECONDS - 0.48 <= len(first) * acoustic.frame_seconds <= 2.0 - RIGHT_SECONDS
    rows = np.concatenate([first, stream.feed(samples[32_000:]), stream.flush()])
    _, (whole,) = acoustic.logits([extract_features(samples, acoustic.features)])
    assert len(rows) == whole
    assert WINDOW_SECONDS > 2


def test_listen_finds_typed_words(tmp_path, capsys, monkeypatch):
    listen = load_script("listen.py")
    monkeypatch.setattr("keywords.phrase_listening.load_acoustic_logits", lambda run: Scripted())
    monkeypatch.setattr(
        "keywords.phrase_listening.load_logit_stream", lambda run, acoustic: WindowedLogits(acoustic)
    )
    monkeypatch.setattr("keywords.phrase_listening.load_phrase_thresholds", lambda run: THRESHOLDS)
    raw = tmp_path / "talk.wav"
    write_wav(raw, speak("." * 9 + "m.n.h.w" + "." * 9))
    assert listen.main(["--word", "妈你好我", "--json", str(raw)]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    detection = json.loads(line)
    assert detection["keyword"] == "妈你好我" and detection["seconds"] == pytest.approx(1.6, abs=0.11)
    assert (
        detection["start"] == pytest.approx(0.9, abs=0.15)
        and detection["score"] >= detection["threshold"] > 0
    )
    with pytest.raises(ConfigError, match="--threshold is for a trained model"):
        listen.main(["--word", "妈你好我", "--threshold", "0.5", str(raw)])
