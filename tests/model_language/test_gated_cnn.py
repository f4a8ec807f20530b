"""Tests of the gated CNN: NumPy against Keras, candidates, confusions, corrupted rows, a tiny language."""

import json
from pathlib import Path

import keras
import numpy as np
import pytest
from scipy.sparse import csr_array

from bundle.export.packed_network import packed_text_network
from data.text.pinyin_pair_preparation import prepare_pairs
from model_language.networks.candidate_scorer import CandidateScorer
from model_language.networks.candidate_transformer import (
    CandidateTransformerConfig,
    build_candidate_transformer,
)
from model_language.networks.candidates import CandidateTables, build_tables
from model_language.networks.gated_cnn import GatedCnnConfig, RowsConfig, build_gated_cnn
from model_language.registry import load_converter
from model_language.vocabulary.lexicon import Lexicon
from model_language.vocabulary.symbols import PAD_ID, UNKNOWN_ID, Symbols, Tokens
from training.run import train_from_config
from training.tasks.candidate_network import (
    CONFUSED,
    MISRECOGNISED_FRACTIONS,
    CandidateNetworkTask,
    RowBatches,
    reading_matrix,
    text_rows,
)
from utils.errors import ConfigError
from utils.mandarin.confusion_statistics import shipped_statistics
from utils.mandarin.pinyin import full_inventory
from utils.run_folder.run import RunFolder
from utils.vocabulary import language_vocabulary

READINGS = {
    "shi4": "是事市式", "shi2": "时十石", "shi1": "师诗", "shi5": "匙", "si4": "四寺", "ma1": "妈",
    "ma3": "马码", "ma5": "吗", "de5": "的地得", "di4": "地第弟", "de2": "得德", "hua1": "花",
    "ta1": "他她它",
}  # fmt: skip
COUNTS = {
    "shi4": (90, 40, 20, 10), "shi2": (30, 20, 5), "shi1": (8, 4), "si4": (25, 3), "ma1": (9,), "ma3": (7, 2),
    "ma5": (50,), "de5": (400, 60, 40), "di4": (30, 20, 10), "de2": (12, 6), "hua1": (15,),
    "ta1": (70, 50, 20),
}  # fmt: skip
LINES = ("数学公式", "办理公事", "发动攻势", "他的公事", "跑得快", "慢慢地走")


@pytest.fixture(scope="module")
def symbols() -> Symbols:
    lexicon = Lexicon(READINGS)
    return Symbols(
        language_vocabulary([*READINGS, "huar1", "rua1"]), language_vocabulary(lexicon.hanzi), lexicon
    )


@pytest.fixture(scope="module")
def counts(symbols) -> np.ndarray:
    table = np.zeros((len(symbols.pinyin), len(symbols.hanzi)))
    for syllable, times in COUNTS.items():
        for character, count in zip(READINGS[syllable], times, strict=True):
            table[symbols.pinyin.index(syllable), symbols.hanzi.index(character)] = count
    return table


@pytest.fixture(scope="module")
def tables(symbols, counts) -> CandidateTables:
    return build_tables(symbols, csr_array(counts), choices=6)


@pytest.fixture(scope="module", params=["gated_cnn", "candidate_transformer"])
def model(request, symbols, tables):
    """A model with weights large enough that every part has an effect."""
    if request.param == "gated_cnn":
        gated = GatedCnnConfig(width=12, dilations=(1, 2, 4), choices=6)
        model = build_gated_cnn(gated, tables, len(symbols.hanzi))
    else:
        encoder = CandidateTransformerConfig(width=12, heads=2, blocks=2, reach=3, dropout=0.0, choices=6)
        model = build_candidate_transformer(encoder, tables, len(symbols.hanzi))
    random = np.random.default_rng(0)
    for weight in model.trainable_weights:
        weight.assign(weight.value + 0.4 * random.standard_normal(weight.shape))
    return model


@pytest.fixture(scope="module")
def text(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("context") / "text.txt"
    random = np.random.default_rng(0)
    path.write_text("\n".join(random.choice(LINES, 400)) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def dataset(text):
    return prepare_pairs([text], text.parent / "cache")


def hanzi_of(symbols: Symbols, row: np.ndarray) -> str:
    return "".join(symbols.hanzi.tokens[number] for number in row if number)


def token(symbols: Symbols, syllable: str) -> int:
    if syllable in symbols.pinyin:
        return symbols.pinyin.index(syllable)
    return len(symbols.pinyin) + Tokens(symbols).toneless.index(syllable)


# --- the network ----------------------------------------------------------------------------------------


def log_probs(model, syllables: np.ndarray, tables: CandidateTables) -> np.ndarray:
    logits = np.asarray(keras.ops.convert_to_numpy(model({"syllables": np.asarray(syllables)})), np.float64)
    logits = logits - logits.max(axis=-1, keepdims=True)
    found = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    return np.where(tables.candidates[syllables] > PAD_ID, found, -np.inf)


@pytest.fixture(scope="module")
def packed(model, tmp_path_factory) -> CandidateScorer:
    path = tmp_path_factory.mktemp("packed") / "network.onnx"
    path.write_bytes(packed_text_network(model).SerializeToString())
    return CandidateScorer(path)


@pytest.mark.parametrize("length", [1, 2, 3, 5, 17])
def test_the_packed_network_equals_keras(model, packed, tables, length):
    """Also for rows shorter than the dilations, and with pauses in the middle of a row."""
    random = np.random.default_rng(length)
    syllables = random.integers(1, len(tables.bases), (4, length)).astype(np.int32)
    syllables[1, length // 2 :] = PAD_ID
    syllables[2, length // 3] = PAD_ID
    expected = log_probs(model, syllables, tables)
    possible = np.isfinite(expected)
    found = packed.log_probs(syllables)
    np.testing.assert_allclose(found[possible], expected[possible], atol=1e-4)
    assert (found[~possible] < -1e8).all()
    assert np.exp(found[3]).sum(axis=-1) == pytest.approx(np.ones(length), abs=1e-5)


def test_padding_has_no_influence(model, tables):
    row = np.array([[3, 5, 7, 4]], np.int32)
    alone = log_probs(model, row, tables)
    longer = log_probs(model, np.pad(row, ((0, 1), (0, 9))), tables)
    np.testing.assert_allclose(longer[:1, :4], alone, atol=1e-5)


# --- candidates -----------------------------------------------------------------------------------------


def test_two_thirds_of_the_candidates_have_the_reading_the_most_frequent_first(symbols, tables):
    row = tables.candidates[token(symbols, "shi4")]
    assert hanzi_of(symbols, row[:4]) == "是事市式"
    assert len(hanzi_of(symbols, row)) == 6


def test_the_other_candidates_are_most_often_misrecognised_as_the_syllable(symbols, counts, tables):
    """count · P(recognised | spoken), by brute force over all pairs."""
    channel = shipped_statistics().matrix(list(COUNTS))
    recognised = full_inventory().index("shi4")
    weights: dict[str, float] = {}
    for row, (spoken, times) in enumerate(COUNTS.items()):
        for character, count in zip(READINGS[spoken], times, strict=True):
            weights[character] = weights.get(character, 0.0) + count * channel[row, recognised]
    others = sorted((c for c in weights if c not in READINGS["shi4"]), key=lambda c: -weights[c])
    assert hanzi_of(symbols, tables.candidates[token(symbols, "shi4")][4:]) == "".join(others[:2])


def test_toneless_syllables_become_the_most_frequent_of_all_tones(symbols, tables):
    row = token(symbols, "shi")
    assert hanzi_of(symbols, tables.candidates[row]) == "是事时十市式"
    assert set(hanzi_of(symbols, tables.rare[row])) == set("石师诗匙")


def test_every_syllable_becomes_something_and_padding_nothing(symbols, tables):
    assert not tables.candidates[PAD_ID].any()
    assert (tables.candidates[1:, 0] > PAD_ID).all()
    assert tables.candidates[UNKNOWN_ID].tolist() == [UNKNOWN_ID, 0, 0, 0, 0, 0]
    assert hanzi_of(symbols, tables.candidates[token(symbols, "huar1")][:1]) == "花"  # erhua, uncounted
    assert hanzi_of(symbols, tables.candidates[token(symbols, "shi5")][:1]) == "匙"  # uncounted


def test_confusions_are_drawn_as_often_as_they_happen(symbols, tables):
    drawn = tables.confusions[token(symbols, "shi4")]
    assert token(symbols, "shi4") not in drawn and PAD_ID not in drawn
    row = shipped_statistics().matrix(["shi4"])[0]
    there = [full_inventory().index(name) for name in symbols.pinyin.tokens if name in full_inventory()]
    share = row[full_inventory().index("shi2")] / row[there].sum()
    assert np.mean(drawn == token(symbols, "shi2")) == pytest.approx(share, abs=1 / len(drawn))
    assert not tables.confusions[[PAD_ID, UNKNOWN_ID]].any()


# --- rows -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def world(dataset):
    """A vocabulary of the syllables and hanzi of ``text``."""
    found = list(dataset.count_readings().named())
    readings = {"di4": "地", "de2": "得", "de5": ""} | dict.fromkeys((s for s, _, _ in found), "")
    for syllable, character, _ in found:
        readings[syllable] += character
    symbols = Symbols(
        language_vocabulary(full_inventory()),
        language_vocabulary({c for _, c, _ in found}),
        Lexicon(readings),
    )
    counts = reading_matrix(dataset.count_readings(), symbols, particles=0.4)
    return symbols, build_tables(symbols, counts, choices=6)


CLEAN = RowsConfig(joined=0.0, particles=0.0, toneless=0.0, mixed=0.0, confused=0.0)


def batches(world, dataset, config: RowsConfig, size: int = 64, length: int = 8, seed: int = 1) -> RowBatches:
    symbols, tables = world
    return RowBatches(text_rows(dataset, symbols, length), tables, symbols, config, size, seed)


def test_batches_are_a_function_of_seed_and_number(world, dataset):
    config = RowsConfig()
    first, second, other = (batches(world, dataset, config, size=9, seed=seed) for seed in (1, 1, 2))
    undisturbed = [first.batch(number) for number in range(40)]  # more than once through the text
    for number in (39, 5, 26):
        resumed = second.batch(number)
        assert resumed.ids == undisturbed[number].ids
        np.testing.assert_array_equal(resumed.syllables, undisturbed[number].syllables)
        np.testing.assert_array_equal(resumed.choices, undisturbed[number].choices)
    assert other.batch(5).ids != undisturbed[5].ids


def test_shards_of_a_batch_are_its_rows(world, dataset):
    found = batches(world, dataset, RowsConfig())
    whole, parts = found.batch(3), [found.batch(3, (index, 2)) for index in range(2)]
    assert whole.ids == parts[0].ids
    np.testing.assert_array_equal(whole.syllables[1::2], parts[1].syllables)
    np.testing.assert_array_equal(whole.choices[::2], parts[0].choices)


def test_clean_rows_are_the_text_and_choices_its_hanzi(world, dataset):
    symbols, tables = world
    batch = batches(world, dataset, CLEAN).batch(0)
    hanzi = np.take_along_axis(
        tables.candidates[batch.syllables], np.maximum(batch.choices - 1, 0)[..., None], axis=-1
    )[..., 0]
    there = batch.syllables != PAD_ID
    assert (batch.choices[there] > 0).all() and not batch.choices[~there].any()
    lines = set(LINES)
    for row in np.where(there, hanzi, PAD_ID):
        inner = "".join(symbols.hanzi.tokens[number] if number else "\n" for number in row).split("\n")[1:-1]
        assert set(filter(None, inner)) <= lines


def test_rows_are_corrupted_at_the_configured_fractions(world, dataset):
    symbols, tables = world
    shares = {"toneless": 0.3, "mixed": 0.2, "confused": 0.25}
    clean, worse = (
        batches(world, dataset, RowsConfig(**{**vars(CLEAN), **given}), size=4000).batch(0).syllables
        for given in ({}, shares)
    )
    there = clean > 0
    np.testing.assert_array_equal(there, worse > 0)
    bare = there & (worse >= len(symbols.pinyin))
    tones_missing = bare.sum(axis=1) / np.maximum(there.sum(axis=1), 1)
    assert np.mean(tones_missing == 1) == pytest.approx(0.3, abs=0.03)
    assert np.mean((tones_missing > 0) & (tones_missing < 1)) == pytest.approx(0.2, abs=0.03)
    misrecognised = there & (tables.toneless[worse] != tables.toneless[clean])
    toned = there & (tones_missing == 0)[:, None]  # half of the rows, and a few mixed ones
    wrong = toned & (worse != clean)
    assert wrong.sum() / toned.sum() == pytest.approx(
        0.25 / 0.51 * MISRECOGNISED_FRACTIONS[CONFUSED], rel=0.15
    )
    assert not misrecognised[tones_missing == 1].any()
    assert misrecognised.any()


def test_fractions_of_rows_are_checked():
    with pytest.raises(ConfigError, match=r"model\.rows: 0\.5 \+ 0\.4 \+ 0\.2"):
        RowsConfig(toneless=0.5, mixed=0.4, confused=0.2)
    with pytest.raises(ConfigError, match=r"model\.rows\.joined is 1\.5"):
        RowsConfig(joined=1.5)


# --- training -------------------------------------------------------------------------------------------

TINY = (
    "model.name=gated_cnn",
    "model.width=16",
    "model.dilations=[1,2]",
    "model.choices=8",
    "model.rows.steps=40",
    "data.batch_syllables=512",
    "data.batch_sentences=32",
    "optimiser.learning_rate=0.03",
    "training.epochs=2",
)


def arguments(text: Path) -> list[str]:
    return [*TINY, f"data.train=[{text}]", f"data.dev=[{text}]", f"data.cache={text.parent / 'cache'}"]


@pytest.fixture(scope="module")
def run(text, tmp_path_factory) -> RunFolder:
    folder = tmp_path_factory.mktemp("runs")
    (folder / "recipe.yaml").write_text("task: language\n", encoding="utf-8")
    train_from_config("language", folder / "recipe.yaml", arguments(text), folder / "run")
    return RunFolder(folder / "run")


def test_a_tiny_language_is_learnt(run):
    """公式, 公事 and 攻势 sound the same: only the surrounding words distinguish them."""
    best = json.loads(run.metrics.read_text(encoding="utf-8"))["best"]
    assert best["dev_character_error_rate"] == 0 and best["dev_loss"] < 0.1
    assert best["dev_toneless_error_rate"] < 0.05
    converter = load_converter(run.path)
    assert converter.convert([["shu4", "xue2", "gong1", "shi4"], ["fa", "dong", "gong", "shi"]]) == [
        "数学公式", "发动攻势",
    ]  # fmt: skip


def test_losses_are_the_cross_entropy_of_each_row(world, dataset):
    symbols, tables = world
    config = GatedCnnConfig(width=8, dilations=(1,), choices=6)
    model = build_gated_cnn(config, tables, len(symbols.hanzi))
    found = batches(world, dataset, config.rows, size=5)
    task = CandidateNetworkTask(model, tables, symbols, found, steps=3, dev=[])
    batch = next(task.batches(epoch=2, first_step=1))
    assert batch.ids == found.batch(4).ids and task.steps(7) == 3
    losses = np.asarray(keras.ops.convert_to_numpy(task.losses(task.arrays(batch), training=False)))
    logs = log_probs(model, batch.syllables, tables)
    expected = np.zeros(batch.choices.shape)
    for position in zip(*np.nonzero(batch.choices), strict=True):
        expected[position] = -logs[(*position, batch.choices[position] - 1)]
    np.testing.assert_allclose(losses, expected.mean(axis=1), rtol=1e-4)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("data.limit=3", r"data\.limit cannot be used with"),
        ("initialise_from=runs/other", "initialise_from cannot be used with"),
        ("data.train=[list.tsv]", "not on lists: list.tsv"),
        ("data.batch_sentences=600", "is too small for 600 rows"),
    ],
)
def test_unsuitable_settings_are_refused_before_training(text, tmp_path, override, message):
    (tmp_path / "recipe.yaml").write_text("task: language\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=message):
        train_from_config(
            "language", tmp_path / "recipe.yaml", [*arguments(text), override], tmp_path / "run"
        )
