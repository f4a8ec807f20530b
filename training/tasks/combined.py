"""A trained network and its texts in; the converter that comes with this project, out."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import numpy as np

from data.text.dictionary_text import dictionary_lines, read_dictionary
from data.text.pinyin_pair_dataset import PairDataset, hanzi_table
from data.text.pinyin_pair_preparation import prepare_pairs
from data.text.pinyin_pairs import read_pairs
from model_language.converters.combined import (
    NETWORK_FILE,
    NGRAMS_FILE,
    FusedConfig,
    fused_parts,
    load_fused_converter,
)
from model_language.converters.noisy_channel import HEARD_FILE, build_heard
from model_language.networks.candidates import TABLES_FILE, ContextTables, heard_as
from model_language.networks.gated_cnn import ContextConfig, context_weights
from model_language.networks.gated_cnn_file import save_weights_file
from model_language.ngram.build import build_packed
from model_language.ngram.packed import save_packed
from model_language.ngram.words import WORDS_FILE, pack_words, save_words
from model_language.registry import load_network, read_model_config
from model_language.vocabulary.symbols import PAD_ID, UNKNOWN_ID, Symbols
from training.tasks.gated import reading_matrix
from training.tasks.language_config import LanguageConfig
from utils.errors import ConfigError
from utils.files import write_json, write_text
from utils.mandarin.confusion_statistics import shipped_statistics
from utils.mandarin.pinyin import without_tone
from utils.metrics import count_errors, total
from utils.run_folder.run import RunFolder, open_run

log = logging.getLogger("train")


def make_fused(config: LanguageConfig, run: RunFolder) -> dict[str, float]:
    """Put a converter together in ``run``; what is there of it already is kept.

    Returns:
        character error rates of the dev sentences, toned and toneless.

    Raises:
        ConfigError: the network's run is missing or no context network.
        CorpusError, RunError: see the message.
    """
    model, data = config.model, config.data
    if not model.network_run:
        hint = "train one first: configs/language/pinyin_to_hanzi_network.yaml"
        raise ConfigError("model.network_run names no run", hint=hint)
    source = open_run(model.network_run, task="language")
    trained = read_model_config(source)
    if not isinstance(trained, ContextConfig):
        hint = "train one: configs/language/pinyin_to_hanzi_network.yaml"
        raise ConfigError(
            f"'{source.path}' is a run of model.name={trained.name}, no context network", hint=hint
        )
    rows = trained.rows
    network, symbols = load_network(source.path)
    symbols.save(run.path)
    tables = ContextTables.load(source.vocabulary(TABLES_FILE))
    save_weights_file(run.path / NETWORK_FILE, context_weights(network, tables))
    dataset = prepare_pairs(data.train, data.cache, spoken=rows.spoken, seed=config.seed)
    heard = build_heard(
        symbols,
        reading_matrix(dataset.count_readings(), symbols, rows.particles).toarray(),
        tables.candidates,
        heard_as(symbols, shipped_statistics()),
        model.others,
    )
    heard.save(run.path / HEARD_FILE)
    if not (run.path / NGRAMS_FILE).is_file():
        ids = np.concatenate(list(_token_ids(dataset, symbols, model, config.seed)))
        save_packed(run.path / NGRAMS_FILE, build_packed(ids, len(symbols.hanzi), model.order, model.ngrams))
    if model.words:
        save_words(run.path / WORDS_FILE, pack_words(read_dictionary(), symbols))
    parts = fused_parts(run, model)
    names = ", ".join(str(path.relative_to(run.path)) for path in parts)
    size = sum(path.stat().st_size for path in parts)
    write_text(run.path / "model_summary.txt", f"{names}: {size / 1e6:.1f} MB\n")
    return _evaluate(config, run)


def _token_ids(dataset: PairDataset, symbols: Symbols, model: FusedConfig, seed: int) -> Iterator[np.ndarray]:
    """Hanzi ids of all texts, and of words of the dictionary, with one 0 before, between and after lines."""
    table = hanzi_table(symbols.hanzi.tokens, end=PAD_ID, unknown=UNKNOWN_ID)
    yield np.zeros(1, np.int32)
    for shard in dataset.shards:
        yield table[shard.hanzi].astype(np.int32)
    if model.dictionary:
        known = frozenset(symbols.hanzi.tokens)
        words = {word: times for word, times in read_dictionary().items() if known.issuperset(word)}
        lines = dictionary_lines(words, model.dictionary, seed=seed)
        text = "".join(f"{line}\n" for line in lines)
        yield table[np.frombuffer(text.encode("utf-16-le"), np.uint16)].astype(np.int32)


def _evaluate(config: LanguageConfig, run: RunFolder) -> dict[str, float]:
    dev = read_pairs(config.data.dev, cache=config.data.cache).pairs
    converter = load_fused_converter(run, config.model)
    figures = {}
    for name, pinyin in (
        ("dev_character_error_rate", [pair.pinyin for pair in dev]),
        ("dev_toneless_error_rate", [tuple(map(without_tone, pair.pinyin)) for pair in dev]),
    ):
        counted = total(
            count_errors(pair.hanzi, hanzi)
            for pair, hanzi in zip(dev, converter.convert(pinyin), strict=True)
        )
        figures[name] = counted.rate
        log.info("%s %.4f", name, counted.rate)
    write_json(run.metrics, {"best": figures, "last": figures, "metric": "dev_character_error_rate"})
    return figures
