"""Tests of words and their frequencies: packing, lookup, the best division into words against all others."""

import itertools

import numpy as np
import pytest

from model_language.array_files import save_arrays
from model_language.ngram.words import LONGEST_WORD, WordUnigram, pack_words, read_words
from model_language.vocabulary.lexicon import Lexicon
from model_language.vocabulary.symbols import Symbols, language_vocabulary
from utils.errors import RunError

USES = {
    "天": 400, "气": 200, "今": 30, "明": 60, "好": 500, "很": 450, "今天": 300, "天气": 90, "明天": 250,
    "天气预报": 12, "好天气": 3, "很好": 0, "预报": 20, "天天": 8, "预": 1, "报": 70, "今天天气很好啊": 9,
    "外人": 50,
}  # fmt: skip
HANZI = sorted(set("今明天气很好预报也"))


@pytest.fixture(scope="module")
def symbols() -> Symbols:
    lexicon = Lexicon({"a1": HANZI})
    return Symbols(language_vocabulary(lexicon.syllables), language_vocabulary(HANZI), lexicon)


@pytest.fixture(scope="module")
def words(symbols) -> WordUnigram:
    return WordUnigram(pack_words(USES, symbols))


def log_probability(word: str) -> float:
    """As :func:`pack_words` documents it: all words within the vocabulary, and every hanzi."""
    kept = {
        name: times for name, times in USES.items() if len(name) <= LONGEST_WORD and set(name) <= set(HANZI)
    }
    kept |= {hanzi: USES.get(hanzi, 0) for hanzi in HANZI}
    # <pad> and <unk> also have a share, with a count of 0.
    total = sum((times + 0.5) ** 0.9 for times in kept.values()) + 2 * 0.5**0.9
    return float(np.log((kept[word] + 0.5) ** 0.9 / total)) if word in kept else -np.inf


def best_division(text: str, borders: set[int] = frozenset()) -> float:
    scores = []
    for cuts in itertools.product((False, True), repeat=len(text) - 1):
        if not all(cuts[border - 1] for border in borders):
            continue
        ends = [position + 1 for position, cut in enumerate(cuts) if cut] + [len(text)]
        parts = [text[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]
        scores.append(sum(log_probability(part) for part in parts))
    return max(scores)


def encoded(symbols: Symbols, texts: list[str]) -> np.ndarray:
    result = np.zeros((len(texts), max(map(len, texts))), np.int64)
    for row, text in zip(result, texts, strict=True):
        row[: len(text)] = symbols.encode_hanzi(text)
    return result


def test_the_score_of_a_path_is_that_of_its_best_division(symbols, words):
    texts = ["今天天气很好", "天气预报", "好天气预报也好", "也", "明天天天天气", "今", "很好天气预报天气预"]
    worth = words.scores(encoded(symbols, texts))
    # Hanzi are stored in half precision; there are fewer words than levels, so words are exact.
    assert worth == pytest.approx([best_division(text) for text in texts], abs=0.02)


def test_no_word_crosses_a_known_border(symbols, words):
    text, ends = "天气预报很好今天", np.zeros((1, 8), bool)
    ends[0, [1, 6]] = True
    (score,) = words.scores(encoded(symbols, [text]), ends)
    assert score == pytest.approx(best_division(text, {2, 7}), abs=0.02)
    assert score < words.scores(encoded(symbols, [text]))[0]


def test_the_words_of_the_best_segmentation(symbols, words):
    def cut(text: str) -> str:
        starts = [*words.word_starts(symbols.encode_hanzi(text)), len(text)]
        return " ".join(text[first:end] for first, end in itertools.pairwise(starts))

    assert cut("今天天气很好") == "今天 天气 很 好"
    assert cut("明天天气预报也好") == "明天 天气预报 也 好"
    assert cut("也□气今") == "也 □ 气 今"
    assert words.word_starts(symbols.encode_hanzi("")) == []


def test_missing_words_are_not_found(symbols, words):
    rare = words.scores(encoded(symbols, ["□天", "气今"]))
    alone = {hanzi: log_probability(hanzi) for hanzi in HANZI}
    assert rare[0] == pytest.approx(min(alone.values()) + alone["天"], abs=0.02)
    assert rare[1] == pytest.approx(alone["气"] + alone["今"], abs=0.02)


def test_a_random_dictionary_is_unpacked_unchanged():
    rng = np.random.default_rng(0)
    hanzi = [chr(0x4E00 + number) for number in range(300)]
    lexicon = Lexicon({"a1": hanzi})
    symbols = Symbols(language_vocabulary(lexicon.syllables), language_vocabulary(hanzi), lexicon)
    uses = {"".join(rng.choice(hanzi, n)): int(n * 100) for n in rng.integers(2, LONGEST_WORD + 1, 4000)}
    model = WordUnigram(pack_words(uses, symbols))
    text = encoded(symbols, list(uses))
    # With one frequency per length, a word scores higher than its hanzi, which have a count of 0.
    total = sum((times + 0.5) ** 0.9 for times in uses.values()) + 302 * 0.5**0.9
    expected = [np.log((times + 0.5) ** 0.9 / total) for times in uses.values()]
    assert model.scores(text) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("planted", ["missing", "short", "code"])
def test_a_damaged_file_is_named(symbols, tmp_path, planted):
    path = tmp_path / "words.npz"
    arrays = pack_words(USES, symbols)
    if planted == "short":
        arrays["codes_3"] = arrays["codes_3"][:-1]
    if planted == "code":
        arrays["codes_2"] = arrays["codes_2"] + np.uint8(64)
    if planted != "missing":
        save_arrays(path, arrays)
    with pytest.raises(RunError, match="words"):
        read_words(path, 1.0)
