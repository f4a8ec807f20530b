"""Tests of the near neighbours of phrases in benchmarks/recognition/phrases.py."""

from benchmarks.support.near_phrases import with_neighbours
from recognition.phrases.grammar import parse_grammar
from recognition.phrases.phrase_list import list_phrases


def test_each_phrase_gets_a_tone_a_final_and_a_syllable_away():
    words = ["北京", "上海", "语音"]
    lines = with_neighbours(words).split("\n")
    assert lines[:3] == words and len(lines) == 3 + 9
    assert lines == with_neighbours(words).split("\n")
    assert lines != with_neighbours(words, seed=1).split("\n")
    listed = list_phrases(parse_grammar("\n".join(lines)))
    ways = [way for phrase in listed for way in phrase.pronunciations]
    assert len(listed) == 12 and len(set(ways)) == len(ways)
    tone, final, syllable = (phrase.pronunciations[0] for phrase in listed[3:6])
    (changed,) = [(ours, other) for ours, other in zip(("bei3", "jing1"), tone, strict=True) if ours != other]
    assert changed[0][:-1] == changed[1][:-1]
    assert sum(ours != other for ours, other in zip(("bei3", "jing1"), final, strict=True)) == 1
    assert sum(ours != other for ours, other in zip(("bei3", "jing1"), syllable, strict=True)) == 1
