"""Tests of the combined converter on a tiny language: search against all paths, corrections, wrong parts."""

import itertools
import json
from pathlib import Path

import numpy as np
import pytest

from bundle.pack import pack
from model_language.converters.combined import (
    load_combined_converter,
)
from model_language.converters.combined_config import CombinedConfig
from model_language.converters.explanation import leads_of_characters
from model_language.converters.user_word_converter import UserWordConverter, search_once
from model_language.pinyin_to_hanzi import PinyinToHanzi
from model_language.registry import load_converter
from model_language.search.grid import WordEnd, known_word_ends
from model_language.search.user_words import UserWord, UserWords
from training.run import train_from_config
from utils.errors import ConfigError
from utils.mandarin.pinyin import hanzi_to_pinyin
from utils.run_folder.run import RunFolder

LINES = ("数学公式", "办理公事", "发动攻势", "他的公事", "跑得快", "慢慢地走", "她去了北京", "历史的背景")
NETWORK = (
    "model.name=gated_cnn", "model.width=16", "model.dilations=[1,2]", "model.choices=8",
    "model.rows.steps=60", "data.batch_syllables=512", "data.batch_sentences=32", "training.epochs=1",
    "optimiser.learning_rate=0.02",
)  # fmt: skip
COMBINED = (
    "model.name=combined", "model.dictionary=0", "model.ngrams=500", "model.order=3",
    "model.ngram=0.6", "model.words=0.4",
)  # fmt: skip
# 攻式 is in none of the lines.
DICTIONARY = {"公式": 50, "公事": 40, "攻势": 30, "数学": 90, "背景": 60, "北京": 90, "慢慢地": 5, "攻式": 1}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Both runs: ``network`` and ``combined``."""
    folder = tmp_path_factory.mktemp("combined")
    text = folder / "text.txt"
    text.write_text("\n".join(np.random.default_rng(0).choice(LINES, 300)) + "\n", encoding="utf-8")
    (folder / "recipe.yaml").write_text("task: language\n", encoding="utf-8")
    train(folder, "trained", *NETWORK)
    pack(folder / "trained", folder / "network")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("training.tasks.ngram.read_dictionary", lambda: DICTIONARY)
        train(folder, "combined", *COMBINED, f"model.network_run={folder / 'network'}")
    return folder


def train(folder: Path, name: str, *overrides: str) -> None:
    text = folder / "text.txt"
    data = [f"data.train=[{text}]", f"data.dev=[{text}]", f"data.cache={folder / 'cache'}"]
    train_from_config("language", folder / "recipe.yaml", [*data, *overrides], folder / name)


@pytest.fixture(scope="module")
def converter(folder):
    return load_converter(folder / "combined")


def test_the_training_text_is_converted_with_and_without_tones(folder, converter):
    pinyin = [hanzi_to_pinyin(line) for line in LINES]
    assert converter.convert(pinyin) == list(LINES)
    toneless = [[syllable[:-1] for syllable in sentence] for sentence in pinyin]
    assert converter.convert(toneless) == list(LINES)
    assert converter.convert([[], pinyin[0], []]) == ["", LINES[0], ""]
    best = json.loads((folder / "combined" / "metrics.json").read_text(encoding="utf-8"))["best"]
    assert best == {"dev_character_error_rate": 0.0, "dev_toneless_error_rate": 0.0}


def test_recognition_errors_are_corrected(converter):
    """zh-z, tones, n-ng: the hanzi do not have the given readings, but the words are in the dictionary."""
    assert converter.convert([["shu4", "xue2", "gong1", "shi2"]]) == ["数学公式"]
    assert converter.convert([["man4", "man4", "di4", "zou4"]]) == ["慢慢地走"]


def test_the_error_rate_with_the_highest_score_wins(folder):
    """Of three rates, in sentences without errors, with one, and with several."""
    rates = (0.3, 0.05, 1e-4)
    several, *single = (
        load_combined_converter(
            RunFolder(folder / "combined"), CombinedConfig(words=0.4, ngram=0.6, error_rates=some)
        )
        for some in (rates, *([rate] for rate in rates))
    )
    winners = set()
    sentences = ("shu4 xue2 gong1 shi4", "su4 xue2 gong1 shi4", "su4 xue4 gong4 shi2", "ban4 li3 gong4 shi2")
    for sentence in map(str.split, sentences):
        texts = [option.convert([sentence])[0] for option in single]
        scores = [option.scores([sentence], [text])[0] for option, text in zip(single, texts, strict=True)]
        best = int(np.argmax(scores))
        assert several.convert([sentence]) == [texts[best]]
        assert several.scores([sentence], [texts[best]]) == pytest.approx([scores[best]], abs=1e-4)
        winners.add(best)
    assert len(winners) > 1
    together = several.convert([sentence.split() for sentence in sentences])
    assert together == [several.convert([sentence.split()])[0] for sentence in sentences]


@pytest.mark.parametrize("rates", [(), (0.1, 0.1), (0.01, 0.1), (1.0,), (0.1, 0.0)])
def test_error_rates_must_descend(rates):
    with pytest.raises(ConfigError, match=r"model\.error_rates"):
        CombinedConfig(error_rates=rates)


@pytest.mark.parametrize("second", ["shi4", WordEnd("shi4")], ids=["borders unknown", "border known"])
def test_the_search_finds_the_best_of_all_paths(converter, nightly, second):
    sentence = ("gong1", second, "de5", "bei4")
    grid = converter.grid([sentence])
    own = [
        [(int(hanzi), float(score)) for hanzi, score in zip(ids, scores, strict=True) if hanzi > 0]
        for ids, scores in zip(grid.candidates[0], grid.scores[0], strict=True)
    ]
    likely = [sorted(found, key=lambda pair: -pair[1])[: 9 if nightly else 5] for found in own]
    texts = [converter.symbols.decode([hanzi for hanzi, _ in path]) for path in itertools.product(*likely)]
    scores = converter.scores([sentence] * len(texts), texts)
    best = texts[int(np.argmax(scores))]
    assert converter.convert([sentence]) == [best]
    found = UserWordConverter(converter, UserWords()).explain([sentence], 5, reasons=False)[0].n_best
    assert found[0].hanzi == best
    assert found[0].score == pytest.approx(max(scores), abs=1e-3)
    for way, score in zip(found, converter.scores([sentence] * 5, [way.hanzi for way in found]), strict=True):
        assert way.score == pytest.approx(score, abs=1e-3)


def test_a_batch_is_converted_as_each_sentence_alone(converter):
    sentences = [hanzi_to_pinyin(a + b) for a, b in itertools.product(LINES, repeat=2)]
    assert converter.convert(sentences) == [converter.convert([sentence])[0] for sentence in sentences]


def test_odd_and_long_input(converter):
    odd = ["hng5", "rua1", "yo1", "zzz", "", "den4"]
    assert len(converter.convert([odd])[0]) == len(odd)
    long = ["shi4"] * 3000
    assert len(converter.convert([long])[0]) == 3000


def test_user_words_win_and_reasons_add_up(converter):
    words = UserWords([UserWord("宫", (frozenset({"gong1"}),), 30.0)])
    guided = UserWordConverter(converter, words)
    assert guided.convert([hanzi_to_pinyin("他的公事")]) == ["他的宫事"]
    explained = guided.explain([hanzi_to_pinyin("他的公事")])[0]
    assert [span.word.hanzi for span in explained.user_words] == ["宫"]
    character = explained.characters[2]
    assert character.hanzi == "宫" and character.lead["user words"] == 30.0
    assert sum(character.lead.values()) > 0


def test_the_run_of_another_network_is_refused(folder):
    with pytest.raises(ConfigError, match=r"network_run is empty"):
        train(folder, "none", *COMBINED)
    with pytest.raises(ConfigError, match="no packed network over candidates"):
        train(folder, "wrong", *COMBINED, f"model.network_run={folder / 'combined'}")


def test_typed_pinyin_is_not_corrected(folder, converter):
    """gong4 is not a reading of 公, nor shi2 of 式."""
    sentence = ["shu4", "xue2", "gong1", "shi2"]
    assert converter.convert([sentence]) == ["数学公式"]
    typed = converter.typed()
    (hanzi,) = typed.convert([sentence])
    for syllable, character in zip(sentence, hanzi, strict=True):
        assert character in typed.symbols.lexicon.candidates(syllable)
    found = UserWordConverter(typed, UserWords()).explain([sentence], 5, reasons=False)[0].n_best
    assert found[0].score >= typed.scores([sentence], [hanzi])[0] - 1e-3
    assert all(conversion.hanzi[3] in typed.symbols.lexicon.candidates("shi2") for conversion in found)
    pinyin = [hanzi_to_pinyin(line) for line in LINES]
    assert typed.convert(pinyin) == list(LINES)
    assert PinyinToHanzi(folder / "combined")(" ".join(sentence)) == hanzi
    assert PinyinToHanzi(folder / "combined", recognised=True)(" ".join(sentence)) == "数学公式"


@pytest.mark.parametrize("sentence", [[""], ["", "ni3"], ["ni3", "", "hao3"]])
def test_an_empty_syllable_is_unknown(converter, sentence):
    for base in (converter, converter.typed()):
        guided = UserWordConverter(base, UserWords([UserWord("宫", (frozenset({"gong1"}),), 30.0)]))
        (hanzi,) = guided.convert([sentence])
        assert len(hanzi) == len(sentence)
        assert [found.hanzi for found in guided.best([sentence])] == [hanzi]
        assert guided.explain([sentence], 2)[0].n_best[0].hanzi == hanzi


@pytest.mark.parametrize("every", [None, 3], ids=["borders unknown", "borders known"])
def test_reasons_are_those_of_the_whole_sentence(converter, every):
    """An exchanged hanzi changes the division into words only in its surroundings."""
    words = UserWords([UserWord("宫", (frozenset({"gong1"}),), 2.0)])
    sentence = list(hanzi_to_pinyin("".join(LINES) * 2))
    if every:
        sentence[1::every] = map(WordEnd, sentence[1::every])
    ends = known_word_ends([sentence] * 2)
    found = search_once([sentence], [words.spans(sentence)], converter, count=4)
    best = found.sequences[0, 0].astype(np.int64)
    for position, (_, runner_up, lead) in enumerate(leads_of_characters(found, 0)):
        if not runner_up or runner_up not in converter.symbols.hanzi:
            continue
        both = np.stack([best, best])
        both[1, position] = converter.symbols.hanzi.index(runner_up)
        first, second = found.paths.scores(both, ends)
        assert lead["words"] == pytest.approx(first - second, abs=1e-4)
