"""Tests of recognition/phrases/search.py and segments.py: only whole phrases of the list are accepted."""

import itertools
import json
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model_speech.ctc.forward_backward import forward
from recognition.live.partial_results import PartialResultDecoder
from recognition.phrases.grammar import parse_grammar
from recognition.phrases.phrase_list import Phrase, list_phrases
from recognition.phrases.search import PhraseSearch
from recognition.recognizer import Recognizer
from streaming.speech.utterances import UtteranceSegmenter
from tests.support.scripted_acoustic import Scripted, speak
from utils.arrays import log_softmax
from utils.errors import ConfigError, PhraseError
from utils.features.settings import FeatureConfig
from utils.hypotheses.transcript_formats import FORMATS
from utils.vocabulary import BLANK, SPACE, Vocabulary

NAMES = ("ma1", "ma3", "ni3", "ni2", "hao3", "wo3", "shi4", "er4", "liang3", "shi2")
VOCABULARY = Vocabulary((*NAMES, SPACE, BLANK))
HOP = 0.1  # seconds from frame to frame


def _search(text: str, n_best: int = 1, threshold: float = 0.5) -> PhraseSearch:
    return PhraseSearch(list_phrases(parse_grammar(text)), VOCABULARY, threshold, n_best)


def _logits(spoken: str, certain: float = 12.0, seed: int = 0) -> np.ndarray:
    """A frame for each syllable, '.' for a blank and '-' for a space; blanks before, between and after."""
    logits = np.random.default_rng(seed).normal(0, 1, (2 * len(spoken.split()) + 1, len(VOCABULARY)))
    logits[::2, VOCABULARY.blank_index] += certain
    for index, name in enumerate(spoken.split()):
        token = {".": BLANK, "-": SPACE}.get(name, name)
        logits[2 * index + 1, VOCABULARY.index(token)] += certain
    return logits.astype(np.float32)


def test_a_phrase_with_its_slots_times_and_confidence():
    search = _search("你好\n我是<数字 20-20>\n妈")
    result = search.search(_logits("wo3 shi4 er4 shi2"), HOP, start=5.0)
    (match,) = result.matches
    assert result.accepted
    assert (match.text, match.slots, match.line) == ("我是二十", {"数字": 20}, 2)
    assert match.pinyin == ("wo3", "shi4", "er4", "shi2")
    assert [start for start, _ in match.times] == pytest.approx([5.05, 5.25, 5.45, 5.65], abs=0.05)
    assert 0.5 < match.confidence < 1
    assert -1 < match.score <= 0


def test_number_readings_and_sandhi_lead_to_the_same_phrase():
    search = _search("你好\n<数字 2-2>")
    assert search.search(_logits("liang3"), HOP).matches[0].text == "二"
    assert search.search(_logits("er4"), HOP).matches[0].slots == {"数字": 2}
    for spoken in ("ni3 hao3", "ni2 hao3", "- ni3 . - hao3 -"):
        result = search.search(_logits(spoken), HOP)
        assert result.accepted and result.matches[0].text == "你好"


@pytest.mark.parametrize(
    "spoken",
    [
        "ni3",
        "hao3",
        "ni3 hao3 wo3",
        "wo3 ni3 hao3",
        "wo3 shi4",
        "ni3 ma1 hao3",
        "ma3 hao3",
        ". . .",
        "ni3 hao3 ni3 hao3",
    ],
)
def test_halves_additions_and_other_speech_are_refused(spoken: str):
    """The list has only one phrase, so it wins every search and must be refused by its own score."""
    result = _search("你好").search(_logits(spoken), HOP)
    assert not result.accepted
    assert all(match.confidence < 0.3 for match in result.matches)  # silence fits no phrase at all


def test_similar_phrases_share_the_confidence_and_are_accepted_all_the_same():
    logits = _logits("ni3 hao3")
    logits[1, VOCABULARY.index("ni2")] = logits[1, VOCABULARY.index("ni3")]
    alone, similar = (
        _search(text, 2).search(logits, HOP) for text in ("你好", "你好\tni3 hao3\n泥好\tni2 hao3")
    )
    assert alone.accepted and similar.accepted
    assert [match.confidence for match in similar.matches] == pytest.approx(
        [alone.matches[0].confidence / 2] * 2, rel=0.01
    )


def test_noise_gets_no_phrase():
    search = _search("你好\n妈\n我是妈", n_best=3)
    rng = np.random.default_rng(3)
    for _ in range(20):
        result = search.search(rng.normal(0, 3, (20, len(VOCABULARY))).astype(np.float32), HOP)
        assert not result.accepted


def test_speech_too_short_for_any_phrase():
    result = _search("你好我是妈").search(_logits("")[:1], HOP)
    assert (result.matches, result.accepted) == ((), False)


def test_a_vocabulary_may_have_no_space():
    phrases = list_phrases(parse_grammar("你好\n妈"))
    space, logits = VOCABULARY.index(SPACE), _logits("ni3 . hao3")
    logits[:, space] = -100.0
    without = PhraseSearch(phrases, Vocabulary((*NAMES, BLANK))).search(np.delete(logits, space, axis=1), HOP)
    (match,), (expected,) = without.matches, _search("你好\n妈").search(logits, HOP).matches
    assert (match.text, match.times) == (expected.text, expected.times)
    assert match.confidence == pytest.approx(expected.confidence)


def test_words_outside_the_vocabulary_are_an_error():
    phrases = list_phrases(parse_grammar("你好\n打开灯"))
    with pytest.raises(PhraseError, match="does not know da3, deng1, kai1 of '打开灯'") as caught:
        PhraseSearch(phrases, VOCABULARY, source="list.txt")
    assert caught.value.where == "list.txt:2"


def test_homophones_are_found():
    search = _search("你好\n妈\n嬷\n泥好\tni2 hao3")
    assert [(later.text, first.text) for later, first in search.homophones()] == [
        ("嬷", "妈"),
        ("泥好", "你好"),
    ]
    assert search.search(_logits("ma1"), HOP).matches[0].text == "妈"
    assert search.search(_logits("ma1"), HOP).accepted


@pytest.mark.parametrize("threshold", [-0.1, 1.1])
def test_thresholds_are_checked(threshold: float):
    with pytest.raises(ConfigError, match="phrase threshold"):
        _search("你好", threshold=threshold)


SYLLABLES = st.lists(st.sampled_from(NAMES), min_size=1, max_size=4).map(tuple)


@given(
    ways=st.lists(st.lists(SYLLABLES, min_size=1, max_size=3, unique=True), min_size=1, max_size=8),
    seed=st.integers(0, 10**6),
)
def test_the_best_phrase_is_that_of_a_search_by_hand(ways, seed):
    """Against the CTC forward pass of each pronunciation: a path is at most as probable as the sum of all."""
    phrases = [Phrase(str(index), index + 1, {}, tuple(each)) for index, each in enumerate(ways)]
    logits = np.random.default_rng(seed).normal(0, 4, (9, len(VOCABULARY)))
    search = PhraseSearch(phrases, VOCABULARY, n_best=len(phrases))
    matches = search.search(logits, HOP).matches
    merged = log_softmax(logits)
    blank, space = VOCABULARY.blank_index, VOCABULARY.index(SPACE)
    merged[:, blank] = np.logaddexp(merged[:, blank], merged[:, space])
    merged[:, space] = -np.inf
    merged = np.maximum(merged, np.log(1e-5))  # no class is less probable in a frame
    free = merged.max(axis=1).sum()
    for match in matches:
        alphas = forward(merged, np.array(VOCABULARY.encode(match.pinyin)), blank)
        total = np.logaddexp(*(alpha[-1, -1] for alpha in alphas))
        path = match.score * len(match.pinyin) + free
        assert path <= total + 1e-3
        assert match.pinyin in phrases[int(match.text)].pronunciations
    assert len(matches) == len(phrases)
    paths = [match.score * len(match.pinyin) for match in matches]
    assert paths == sorted(paths, reverse=True)


def _recognizer(text: str, **settings: object) -> Recognizer:
    phrases = list_phrases(parse_grammar(text))
    return Recognizer(Scripted(), phrases=PhraseSearch(phrases, Scripted.vocabulary, **settings))


def _events(recognizer: Recognizer, samples: np.ndarray) -> list[list[object]]:
    return [[name, *events] for name, events in recognizer.segments([("talk", samples)])]


def test_recordings_give_phrases_or_their_free_syllables():
    recognizer = _recognizer("你好\n妈我")
    sources = [("a", speak(".n.h.")), ("b", speak(".n.h.w.")), ("c", speak("...."))]
    first, second, third = recognizer.recognise(sources)
    assert (first.hanzi, first.pinyin, len(first.times)) == ("你好", ("ni3", "hao3"), 2)
    assert first.phrases[0].accepted and first.phrases[0].matches[0].text == "你好"
    assert (second.hanzi, second.pinyin) == ("", ("ni3", "hao3", "wo3"))
    assert not second.phrases[0].accepted
    assert (third.hanzi, third.pinyin, third.times) == ("", (), ())


def test_phrases_between_pauses_are_found_one_by_one():
    samples = speak(".n.h." + "." * 12 + "m.w" + "." * 12 + "h.h")
    ((_, *segments, ending),) = _events(_recognizer("你好\n妈我"), samples)
    assert [segment.best.hanzi for segment in segments] == ["你好", "妈我", ""]
    assert [segment.phrase.accepted for segment in segments] == [True, True, False]
    assert segments[0].start == 0 and segments[-1].end == pytest.approx(ending.seconds)
    assert all(left.end == pytest.approx(right.start) for left, right in itertools.pairwise(segments))
    assert segments[1].times[0][0] == pytest.approx(1.7, abs=0.3)


def test_the_result_is_the_accepted_phrase_and_scores_descend():
    """The second phrase fits worse, but its score for each of its three syllables is higher."""
    probabilities = np.full((7, len(VOCABULARY)), 1e-5, np.float32)
    probabilities[::2, VOCABULARY.blank_index] = 0.99
    for row, name, probability in [
        (1, "ma1", 0.65),
        (1, "ma3", 0.33),
        (3, BLANK, 0.52),
        (3, "ni3", 0.46),
        (5, "hao3", 0.95),
    ]:
        probabilities[row, VOCABULARY.index(name)] = probability
    logits = np.log(probabilities)
    acoustic = SimpleNamespace(
        features=FeatureConfig(),
        vocabulary=VOCABULARY,
        frame_seconds=HOP,
        logits=lambda features: (logits[None], np.array([len(logits)])),
    )
    recognizer = Recognizer(acoustic, phrases=_search("马好\n马你好", n_best=2), n_best=2)
    (found,) = recognizer.recognise([("a", speak(".n.h."))])
    matches = found.phrases[0].matches
    assert [match.text for match in matches] == ["马好", "马你好"]
    assert matches[0].score < matches[1].score
    assert [each.hanzi for each in found.n_best] == ["马好", "马你好"]
    assert (found.hanzi, len(found.times)) == ("马好", 2)
    assert found.n_best[0].score > found.n_best[1].score
    assert found.best.score == pytest.approx(np.log(0.33 / 0.65), abs=1e-5)


def test_transcripts_of_phrases():
    recognizer = _recognizer("你5\n你5 = ni3 ma1 wo3\n妈", n_best=2)
    ((_, *events),) = _events(recognizer, speak("n.m.w" + "." * 12 + "h.h"))
    written = {form: "".join(entry.write("talk", events)) for form, entry in FORMATS.items()}
    assert written["text"] == "你5\n(hao3 hao3)\n"
    assert "你5" in written["srt"] and "(hao3 hao3)" in written["srt"]
    assert 'text = "你5"' in written["textgrid"] and 'text = "hao3"' in written["textgrid"]
    first, second = json.loads(written["json"])["segments"]
    assert (first["hanzi"], first["pinyin"], first["accepted"]) == ("你5", "ni3 ma1 wo3", True)
    assert [each["hanzi"] for each in first["syllables"]] == ["你5", "", ""]
    assert first["phrases"][0]["text"] == "你5" and first["phrases"][0]["slots"] == {}
    assert len(first["phrases"]) == 2 and 0.5 < first["phrases"][0]["confidence"] < 1
    assert (second["hanzi"], second["pinyin"], second["accepted"]) == ("", "hao3 hao3", False)
    assert second["phrases"][0]["confidence"] < 0.5


def test_phrases_on_a_stream():
    search = _search("你好\n妈")
    acoustic = SimpleNamespace(features=FeatureConfig(), vocabulary=VOCABULARY, frame_seconds=HOP)
    segmenter = UtteranceSegmenter(
        VOCABULARY, PartialResultDecoder(Recognizer(acoustic, phrases=search)), HOP
    )
    rows = np.concatenate([_logits("ni3 hao3"), _logits(". " * 8), _logits("wo3 shi4"), _logits(". " * 8)])
    events = [event for row in rows for event in segmenter.feed(row[None])] + segmenter.flush()
    partials = [" ".join(event.pinyin) for event in events if not event.is_final]
    accepted, refused = (event for event in events if event.is_final)
    assert partials == ["ni3", "ni3 hao3", "wo3", "wo3 shi4"]
    assert (accepted.best.hanzi, accepted.phrase.accepted) == ("你好", True)
    assert (refused.best.pinyin, refused.best.hanzi, refused.phrase.accepted) == (("wo3", "shi4"), "", False)
    assert accepted.times[1][1] <= refused.start <= refused.times[0][0]


def test_phrases_and_a_converter_are_refused():
    search = _recognizer("你好").phrases
    with pytest.raises(ConfigError, match="phrases need no converter"):
        Recognizer(Scripted(), converter=object(), phrases=search)
