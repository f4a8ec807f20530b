"""Tests of recognition/phrases/thresholds.py and fit_thresholds.py: thresholds of phrases in a stream."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from data.manifest import Utterance
from keywords import phrase_listening
from recognition.live.windowed_logits import WindowedLogits
from recognition.phrases import fit_thresholds
from recognition.phrases.grammar import parse_grammar
from recognition.phrases.phrase_list import list_phrases
from recognition.phrases.spotter import PhraseSpotter
from recognition.phrases.thresholds import DEFAULT, PhraseThresholds, load_phrase_thresholds
from tests.support.scripted_acoustic import Scripted
from utils.config import save_yaml
from utils.errors import ConfigError, RunError
from utils.files import write_json
from utils.run_folder import checksums
from utils.run_folder.run import PRETRAINED_SPEECH
from utils.vocabulary import BLANK, SPACE, Vocabulary

OTHERS = tuple(f"{syllable}{tone}" for syllable in ("ba", "di", "guo", "lu", "tian") for tone in range(1, 5))
VOCABULARY = Vocabulary(("ma1", "ni3", "hao3", "wo3", "shi4", *OTHERS, SPACE, BLANK))
ROW = 0.1
WORDS = ["妈我", "我是", "你好", "妈我是", "我是妈", "妈我是你", "是我妈你", "香港", "ABC"]


def _recordings(count: int = 40) -> tuple[list[np.ndarray], list[Utterance]]:
    """Random rows of logits for utterances whose text is 我."""
    rng = np.random.default_rng(0)
    rows = [rng.normal(0, 3, (60, len(VOCABULARY))).astype(np.float32) for _ in range(count)]
    return rows, [Utterance(f"u{n}", Path("a.wav"), 6.0, "s", ("wo3",), "我") for n in range(count)]


def _model() -> SimpleNamespace:
    return SimpleNamespace(vocabulary=VOCABULARY, frame_seconds=ROW)


def test_thresholds_admit_the_false_alarms_that_they_promise(monkeypatch):
    """Counted by the spotter itself on the same rows; its refractory time omits some."""
    monkeypatch.setattr(fit_thresholds, "RATES", (60.0, 200.0))
    rows, utterances = _recordings()
    found = fit_thresholds.fit_thresholds(rows, utterances, WORDS, _model())
    assert found.alarms_per_hour == (60.0, 200.0) and sorted(found.scores) == [1, 2, 3, 4]
    hours = 2 * sum(map(len, rows)) * ROW / 3600
    for rate, score in zip(found.alarms_per_hour, found.scores[3], strict=True):
        alarms = 0
        for word in ("妈我是", "我是妈"):
            spotter = PhraseSpotter(list_phrases(parse_grammar(word)), VOCABULARY, ROW, rate, found)
            for logits in rows:
                spotter.reset()
                alarms += len(spotter.feed(logits))
        assert 0.6 * rate * hours <= alarms <= rate * hours + 1, score


def test_a_run_has_its_own_thresholds(tmp_path, monkeypatch):
    run = tmp_path / "run"
    checksums.begin(run)
    assert load_phrase_thresholds(run) is DEFAULT
    own = PhraseThresholds((0.5, 2.0), {1: (0.0, -1.0), 2: (-20.0, -30.0)})
    write_json(run / "phrase_thresholds.json", {"alarms_per_hour": own.alarms_per_hour, "scores": own.scores})
    assert load_phrase_thresholds(run) == own
    monkeypatch.setattr(phrase_listening, "load_acoustic_logits", lambda run: Scripted())
    monkeypatch.setattr(phrase_listening, "load_logit_stream", lambda run, acoustic: WindowedLogits(acoustic))
    phrases = list_phrases(parse_grammar("妈你好"))
    listener = phrase_listening.open_phrase_listener(phrases, run, alarms_per_hour=1.0)
    vocabulary = Scripted().vocabulary
    rows = np.zeros((3, len(vocabulary)), np.float32)
    rows[[0, 1, 2], [vocabulary.index(s) for s in ("ma1", "ni3", "hao3")]] = 2.0
    rows[:, vocabulary.index("wo3")] = 8.0  # the score is 3 × -6
    other = phrase_listening.open_phrase_listener(phrases, tmp_path)
    for spotter, finds in ((listener.spotter, True), (other.spotter, False)):
        assert bool(spotter.feed(rows) + spotter.flush()) == finds


def test_the_default_is_that_of_the_shipped_model():
    assert load_phrase_thresholds(PRETRAINED_SPEECH) == DEFAULT


def test_an_adapted_run_has_the_thresholds_of_its_initial_run(tmp_path, capsys):
    own = PhraseThresholds((0.5, 2.0), {1: (0.0, -1.0)})
    for name, source in (("initial", ""), ("adapted", str(tmp_path / "initial"))):
        checksums.begin(tmp_path / name)
        save_yaml(tmp_path / name / "config.yaml", {"task": "speech", "initialise_from": source})
    assert load_phrase_thresholds(tmp_path / "adapted") is DEFAULT
    assert f"note: {tmp_path / 'adapted'} has no phrase_thresholds.json" in capsys.readouterr().err
    write_json(
        tmp_path / "initial" / "phrase_thresholds.json",
        {"alarms_per_hour": own.alarms_per_hour, "scores": own.scores},
    )
    assert load_phrase_thresholds(tmp_path / "adapted") == own
    assert not capsys.readouterr().err
    other = {"task": "speech", "model": {"name": "dfcnn"}, "initialise_from": str(tmp_path / "initial")}
    save_yaml(tmp_path / "adapted" / "config.yaml", other)
    assert load_phrase_thresholds(tmp_path / "adapted") is DEFAULT


def test_thresholds_between_the_rates_and_for_long_phrases():
    assert DEFAULT.at(1.0, [1, 2, 9]).tolist() == [0.0, -4.4, -20.8]
    between = DEFAULT.at(0.2 * 5**0.5, [3])
    assert between[0] == pytest.approx((-11.4 - 13.4) / 2)
    with pytest.raises(ConfigError, match="above 0"):
        DEFAULT.at(0.0, [2])


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[]",
        '{"alarms_per_hour": [1], "scores": {"2": [0]}}',
        '{"alarms_per_hour": [], "scores": {"1": []}}',
        '{"alarms_per_hour": [0, 1], "scores": {"1": [0, 0]}}',
        '{"alarms_per_hour": [1, 2], "scores": {"1": [0]}}',
        '{"alarms_per_hour": [2, 1], "scores": {"1": [0, 0]}}',
    ],
)
def test_damaged_thresholds_are_named(tmp_path, content):
    (tmp_path / "phrase_thresholds.json").write_text(content)
    with pytest.raises(RunError, match="thresholds of phrases are damaged"):
        load_phrase_thresholds(tmp_path)
