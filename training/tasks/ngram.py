"""Estimates n-gram models, and makes the combined converter around them: language models without epochs.

N-gram models are counted in the training pairs. For the combined converter the weights of a trained gated CNN
are copied, n-grams are counted in its texts, the emission probabilities of the noisy channel are estimated
from the readings in the texts and from the shipped confusion statistics, and the words of a dictionary are
packed. ``model_language.converters.combined`` describes it; ``pretrained/pinyin_to_hanzi`` was built so. All
are tested on the dev sentences.
"""

import logging
import shutil
from collections.abc import Iterator, Sequence

import numpy as np

from data.text.dictionary_text import add_names, dictionary_lines, read_dictionary
from data.text.pinyin_pair_dataset import PairDataset, hanzi_table
from data.text.pinyin_pair_preparation import prepare_pairs
from data.text.pinyin_pairs import Pair, read_pairs
from model_language.array_files import save_arrays
from model_language.converters.base import Converter
from model_language.converters.combined import (
    combined_parts,
    load_combined_converter,
)
from model_language.converters.combined_config import CombinedConfig
from model_language.converters.ngram import NgramConverter, NgramModel
from model_language.converters.noisy_channel import build_emissions
from model_language.networks.candidates import TABLES_FILE, CandidateTables, confusion_matrix
from model_language.ngram.kneser_ney import ngram_counts
from model_language.ngram.packed import build_packed
from model_language.ngram.syllables import SyllableNgram
from model_language.ngram.words import pack_words
from model_language.registry import CANDIDATE_NETWORKS, read_model_config
from model_language.vocabulary.symbols import PAD_ID, UNKNOWN_ID, Symbols
from training.tasks.candidate_network import reading_matrix
from training.tasks.language_config import LanguageConfig
from utils.errors import require
from utils.files import replacing, write_json, write_text
from utils.mandarin.confusion_statistics import shipped_statistics
from utils.mandarin.pinyin import without_tone
from utils.metrics import count_errors, total
from utils.run_folder.run import RunFolder, open_run

log = logging.getLogger("train")


def count_ngrams(
    config: LanguageConfig,
    run: RunFolder,
    symbols: Symbols,
    train_pairs: Sequence[Pair],
    dev_pairs: Sequence[Pair],
) -> dict[str, float]:
    """Estimate an n-gram model by counting, without epochs; the run folder has the usual files."""
    model = NgramModel.train(train_pairs, config.model, symbols)
    model.save(run.ngram)
    rate = character_error_rate(
        converter=NgramConverter(model, symbols, config.model.beam),
        pinyin=[pair.pinyin for pair in dev_pairs],
        hanzi=[pair.hanzi for pair in dev_pairs],
    )
    return save_results(
        run,
        summary=f"interpolated Kneser-Ney, {ngram_counts(model.ngrams)}",
        metrics={"dev_character_error_rate": rate},
    )


def count_syllables(
    config: LanguageConfig, run: RunFolder, train_pairs: Sequence[Pair], dev_pairs: Sequence[Pair]
) -> dict[str, float]:
    """Estimate an n-gram model of syllables for the beam search; the metric is the perplexity of dev."""
    model = SyllableNgram.train((pair.pinyin for pair in train_pairs), config.model)
    model.vocabulary.save(run.vocabulary("pinyin.txt"))
    model.save(run.syllable_ngram)
    return save_results(
        run,
        summary=f"interpolated Kneser-Ney over syllables, {ngram_counts(model.ngrams)}",
        metrics={"dev_perplexity": model.perplexity(pair.pinyin for pair in dev_pairs)},
    )


def make_combined(config: LanguageConfig, run: RunFolder) -> dict[str, float]:
    """Build a combined converter in ``run``; existing n-grams are kept.

    Returns:
        Character error rates of the dev sentences, toned and toneless.

    Raises:
        ConfigError: the run of the network is missing or has another model.
        CorpusError, RunError: see the message.
    """
    model, data = config.model, config.data
    require(
        model.network_run,
        "model.network_run is empty",
        hint="train a network first: configs/language/pinyin_to_hanzi_network.yaml",
    )
    source = open_run(model.network_run, task="language")
    trained = read_model_config(source)
    require(
        trained.name in CANDIDATE_NETWORKS and source.packed_network.is_file(),
        f"'{source.path}' is no packed network over candidates",
        hint="configs/language/pinyin_to_hanzi_network.yaml, then python -m bundle.pack RUN FOLDER",
    )
    require(
        not data.limit,
        "data.limit with model.name=combined",
        hint="leave it out: all texts of data.train are counted",
    )
    rows = trained.rows
    symbols = Symbols.load(source.path)
    symbols.save(run.path)
    tables = CandidateTables.load(source.vocabulary(TABLES_FILE))
    with replacing(run.packed_network) as temporary:
        shutil.copyfile(source.part(source.packed_network), temporary)
    dataset = prepare_pairs(data.train, data.cache, spoken=rows.spoken, seed=config.seed)
    emissions = build_emissions(
        symbols,
        reading_matrix(dataset.count_readings(), symbols, rows.particles).toarray(),
        tables.candidates,
        confusion_matrix(symbols, shipped_statistics()),
        model.others,
    )
    emissions.save(run.emissions)
    if not run.ngrams.is_file():
        ids = np.concatenate(list(_token_ids(dataset, symbols, model, config.seed)))
        save_arrays(run.ngrams, build_packed(ids, len(symbols.hanzi), model.order, model.ngrams))
    if model.words:
        words = read_dictionary()
        if model.names:
            add_names(words, model.names)
        save_arrays(run.words, pack_words(words, symbols))
    parts = combined_parts(run, model)
    names = ", ".join(str(path.relative_to(run.path)) for path in parts)
    size = sum(path.stat().st_size for path in parts)
    return save_results(run, f"{names}: {size / 1e6:.1f} MB", _evaluate(config, run))


def _token_ids(
    dataset: PairDataset, symbols: Symbols, model: CombinedConfig, seed: int
) -> Iterator[np.ndarray]:
    """Hanzi ids of all texts and of words of the dictionary, with a 0 before, between and after the lines."""
    table = hanzi_table(symbols.hanzi.tokens, end=PAD_ID, unknown=UNKNOWN_ID)
    yield np.zeros(1, np.int32)
    for shard in dataset.shards:
        yield table[shard.hanzi].astype(np.int32)
    if model.dictionary:
        known = frozenset(symbols.hanzi.tokens)
        lines = dictionary_lines(
            words={word: count for word, count in read_dictionary().items() if known.issuperset(word)},
            count=model.dictionary,
            seed=seed,
        )
        text = "".join(f"{line}\n" for line in lines)
        yield table[np.frombuffer(text.encode("utf-16-le"), np.uint16)].astype(np.int32)


def _evaluate(config: LanguageConfig, run: RunFolder) -> dict[str, float]:
    dev = read_pairs(config.data.dev, cache=config.data.cache)
    converter = load_combined_converter(run, config.model)
    hanzi, pinyin = [pair.hanzi for pair in dev], [pair.pinyin for pair in dev]
    toneless = [tuple(map(without_tone, syllables)) for syllables in pinyin]
    return {
        "dev_character_error_rate": character_error_rate(converter, pinyin, hanzi),
        "dev_toneless_error_rate": character_error_rate(converter, toneless, hanzi),
    }


def character_error_rate(
    converter: Converter, pinyin: Sequence[Sequence[str]], hanzi: Sequence[str]
) -> float:
    """Character error rate of a converter."""
    converted = converter.convert(pinyin)
    return total(count_errors(reference, text) for reference, text in zip(hanzi, converted, strict=True)).rate


def save_results(run: RunFolder, summary: str, metrics: dict[str, float]) -> dict[str, float]:
    """Write ``model_summary.txt`` and ``metrics.json`` of a model that is estimated without epochs.

    Args:
        run: the run folder.
        summary: one line about the model.
        metrics: name → value; the first one is the model's main metric.

    Returns:
        The metrics.
    """
    write_text(run.model_summary, f"{summary}\n")
    for name, value in metrics.items():
        log.info("%s %.4f", name, value)
    write_json(run.metrics, {"best": metrics, "last": metrics, "metric": next(iter(metrics))})
    return metrics
