"""A language run's folder → what its export begins with: the network, its symbols, sentences.

The artefacts give logits over all hanzi, as the network does. Which hanzi a syllable may become is a table
in the bundle (``lexicon.tsv``), not a part of the graph: a logit that means "impossible" would leave int8 no
steps for the others.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bundle.check.clips import evenly
from bundle.export.source import Clips, ExportSource, data_section
from data.text.pinyin_pairs import Pair, read_pairs
from model_language.registry import load_network
from model_language.vocabulary.symbols import PAD_ID, UNKNOWN_ID, Symbols
from utils.errors import ConfigError, UserError
from utils.run_folder.checksum_files import file_hash
from utils.run_folder.run import open_run

EXPORTED = ("transformer", "published_transformer", "cbhg")
LONGEST_SYLLABLES = 40
"""Longer sentences are left out of the proof; the artefacts take any length."""
CALIBRATION_SENTENCES = 200
GOLDEN_SENTENCES = 6
_TRAINING_SENTENCES = 5000  # the first so many are read to calibrate with
PINYIN, LEXICON = "pinyin.txt", "lexicon.tsv"
"""Files of the bundle: the input tokens, a line an id; and the hanzi that each may become."""


def language_source(
    run: str | Path, weights: str = "best", overrides: Sequence[str] = (), most_tests: int = 1000
) -> ExportSource:
    """Read a language run and its texts; without them the golden sentences are random syllables.

    Args:
        run: the folder that the training wrote.
        weights: ``best``, ``last`` or a path.
        overrides: ``data.test=[…]`` and the like: where the texts are now.
        most_tests: test sentences that error rates are measured on, spread evenly over the list.

    Raises:
        RunError: a part of the run is missing or damaged.
        ConfigError: the model is no network that is exported, or an override isn't about the data.
    """
    folder = open_run(run, "language")
    name = (folder.config().get("model") or {}).get("name")
    if name not in EXPORTED:
        what = f"a language model '{name}' can't be exported"
        hint = f"it runs on NumPy alone, with convert.py; exported are: {', '.join(EXPORTED)}"
        raise ConfigError(what, where=folder.path, hint=hint)
    model, symbols = load_network(folder.path, weights)
    data = data_section(folder, overrides)
    try:
        tests = _sentences(symbols, data.get("test") or data.get("dev") or [], most_tests)
        calibration = _sentences(
            symbols, data.get("train") or [], CALIBRATION_SENTENCES, limit=_TRAINING_SENTENCES
        )
        dev = data.get("dev") if data.get("test") else []  # without a test list the dev list is the test
        development = _sentences(symbols, dev or [], most_tests)
    except (UserError, OSError) as error:
        print(f"note: no accuracy and no int8, the texts can't be read: {error}", file=sys.stderr)
        tests = calibration = development = _padded(symbols, [])
    golden = tests.spread(GOLDEN_SENTENCES)
    return ExportSource(
        kind="language",
        model=model,
        features={},
        features_hash="",
        labels=tuple(symbols.hanzi.tokens),
        decoding={"search": "best hanzi of each syllable", "candidates": LEXICON},
        config_hash=file_hash(folder.config_file),
        frame_seconds=0.0,
        calibration=calibration,
        tests=tests,
        golden=golden if len(golden) else _random_sentences(symbols),
        development=development,
        row_stride=1,
        obstacles=("a sentence is converted as a whole",),
        candidates=symbols.candidates,
        tables=_tables(symbols),
    )


def _tables(symbols: Symbols) -> dict[str, str]:
    """Texts with which the bundle can be used alone; what the lexicon's rules give is written out."""
    tokens = symbols.hanzi.tokens
    lines = (
        f"{syllable}\t{''.join(tokens[hanzi] for hanzi in row if hanzi > UNKNOWN_ID)}\n"
        for syllable, row in zip(symbols.pinyin.tokens, symbols.candidates, strict=True)
    )
    return {PINYIN: "".join(f"{token}\n" for token in symbols.pinyin.tokens), LEXICON: "".join(lines)}


def _sentences(symbols: Symbols, lists: Sequence[str], most: int, limit: int = 0) -> Clips:
    if not lists:
        return _padded(symbols, [])
    pairs = [
        pair for pair in read_pairs(lists, limit).pairs
        if len(pair.pinyin) == len(pair.hanzi) <= LONGEST_SYLLABLES
    ]  # fmt: skip
    return _padded(symbols, [pairs[row] for row in evenly(len(pairs), most)])


def _padded(symbols: Symbols, pairs: Sequence[Pair]) -> Clips:
    """Ids of sentences, padded to the longest one; a hanzi that the model doesn't know is never right."""
    lengths = np.array([len(pair.pinyin) for pair in pairs], np.int32)
    shape = (len(pairs), lengths.max(initial=1))
    inputs, references = np.full(shape, PAD_ID, np.int32), np.full(shape, -1, np.int32)
    for row, pair in enumerate(pairs):
        syllables, hanzi = symbols.encode_pair(pair.pinyin, pair.hanzi)
        inputs[row, : len(syllables)] = syllables
        references[row, : len(hanzi)] = np.where(hanzi == UNKNOWN_ID, len(symbols.hanzi), hanzi)
    return Clips(inputs, references, lengths)


def _random_sentences(symbols: Symbols) -> Clips:
    rng = np.random.default_rng(0)
    lengths = np.linspace(1, LONGEST_SYLLABLES, GOLDEN_SENTENCES).astype(np.int32)
    drawn = rng.integers(UNKNOWN_ID + 1, len(symbols.pinyin), (len(lengths), LONGEST_SYLLABLES))
    inputs = np.where(np.arange(LONGEST_SYLLABLES) < lengths[:, None], drawn, PAD_ID).astype(np.int32)
    return Clips(inputs, np.full((len(lengths), 1), -1, np.int32), lengths)
