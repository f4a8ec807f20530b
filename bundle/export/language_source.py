"""Reads a language run folder for an export: its network, vocabularies, and sentences to check it.

The artefacts return logits of all hanzi, as the network does. The possible hanzi of a syllable are a table in
the bundle (``lexicon.tsv``), not a part of the graph: with logits for "impossible", the range of int8 would
be too wide for the others.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bundle.check.scoring import evenly
from bundle.export.source import Clips, ExportSource, read_splits, usable_items
from data.text.pinyin_pairs import Pair, read_pairs
from model_language.registry import MODELS, load_network
from model_language.vocabulary.symbols import PAD_ID, UNKNOWN_ID, Symbols
from utils.arrays import pad_rows
from utils.errors import ConfigError
from utils.run_folder.checksum_files import file_hash
from utils.run_folder.run import open_run

MAX_SYLLABLES = 40
"""Longer sentences are not used in the checks; the artefacts take any length."""
CALIBRATION_SENTENCES = 200  # of the training texts, for int8
GOLDEN_SENTENCES = 6  # on which every artefact is compared with the model
_TRAINING_SENTENCES = 5000  # read for the calibration, from the start of the lists
PINYIN, LEXICON = "pinyin.txt", "lexicon.tsv"
"""Files of the bundle: the input tokens, one per line; the possible hanzi of each."""


def language_source(
    run: str | Path, weights: str = "best", overrides: Sequence[str] = (), max_tests: int = 1000
) -> ExportSource:
    """Read a language run and its texts. Without texts the golden sentences are random syllables.

    Raises:
        RunError: a file of the run is missing or damaged.
        ConfigError: the model can't be exported, or an override concerns another section.
    """
    folder = open_run(run, "language")
    name = (folder.config().get("model") or {}).get("name")
    if name not in MODELS or not MODELS[name].exported:
        exported = ", ".join(name for name, entry in MODELS.items() if entry.exported)
        raise ConfigError(
            f"a language model '{name}' can't be exported",
            where=folder.path,
            hint=f"use it with convert.py, which needs only NumPy; models that can be exported: {exported}",
        )
    model, symbols = load_network(folder.path, weights)
    data = folder.data_section(overrides)
    limits = {"test": 0, "dev": 0, "train": _TRAINING_SENTENCES}
    splits = read_splits(
        lambda: {split: _pairs(split, data[split], n) for split, n in limits.items() if data.get(split)},
        lambda pairs, count: _padded(symbols, [pairs[row] for row in evenly(len(pairs), count)]),
        {"test": max_tests, "dev": max_tests, "train": CALIBRATION_SENTENCES},
        empty=_padded(symbols, []),
    )
    return ExportSource(
        kind="language",
        model=model,
        features={},
        features_hash="",
        labels=tuple(symbols.hanzi.tokens),
        decoding={"search": "best hanzi of each syllable", "candidates": LEXICON},
        config_hash=file_hash(folder.config_file),
        frame_seconds=0.0,
        **splits,
        golden=splits["tests"].spread(GOLDEN_SENTENCES) or _random_sentences(symbols),
        row_stride=1,
        obstacles=("a sentence is converted as a whole",),
        candidates=symbols.candidates,
        tables=_tables(symbols),
    )


def _tables(symbols: Symbols) -> dict[str, str]:
    """Text files of the bundle; the lexicon includes the candidates that its rules give."""
    tokens = symbols.hanzi.tokens
    lines = (
        f"{syllable}\t{''.join(tokens[hanzi] for hanzi in row if hanzi > UNKNOWN_ID)}\n"
        for syllable, row in zip(symbols.pinyin.tokens, symbols.candidates, strict=True)
    )
    return {PINYIN: "".join(f"{token}\n" for token in symbols.pinyin.tokens), LEXICON: "".join(lines)}


def _pairs(split: str, lists: Sequence[str], limit: int) -> list[Pair]:
    """The sentences of a split that aren't too long, among the first ``limit`` (0: all)."""
    read = read_pairs(lists, limit)
    others = f"sentences longer than {MAX_SYLLABLES} syllables, or without a hanzi for each syllable"
    return usable_items(
        split, read, lambda pair: len(pair.pinyin) == len(pair.hanzi) <= MAX_SYLLABLES, others
    )


def _padded(symbols: Symbols, pairs: Sequence[Pair]) -> Clips:
    """Ids of sentences, padded to the longest one; a hanzi that the model doesn't know is always an error."""
    encoded = [symbols.encode_pair(pair.pinyin, pair.hanzi) for pair in pairs]
    references = [np.where(hanzi == UNKNOWN_ID, len(symbols.hanzi), hanzi) for _, hanzi in encoded]
    syllables = [ids for ids, _ in encoded]
    lengths = np.array([len(ids) for ids in syllables], np.int32)
    return Clips(pad_rows(syllables, fill=PAD_ID), pad_rows(references, fill=-1), lengths)


def _random_sentences(symbols: Symbols) -> Clips:
    rng = np.random.default_rng(0)
    lengths = np.linspace(1, MAX_SYLLABLES, GOLDEN_SENTENCES).astype(np.int32)
    drawn = rng.integers(UNKNOWN_ID + 1, len(symbols.pinyin), (len(lengths), MAX_SYLLABLES))
    inputs = np.where(np.arange(MAX_SYLLABLES) < lengths[:, None], drawn, PAD_ID).astype(np.int32)
    return Clips(inputs, np.full((len(lengths), 1), -1, np.int32), lengths)
