"""Perplexity of a hanzi for the language model and for the converter's n-grams, alone and interpolated.

    python -m benchmarks.model_language.perplexity [LIST.tsv ...] [--model RUN]

Ends of sentences count as a hanzi; hanzi outside a vocabulary are one unknown hanzi. Interpolated: the mean
of both probabilities. Without lists: those of the shared folder beside the checkout, each sentence once.
"""

from utils.command.entry import run_command

import argparse
from pathlib import Path

import numpy as np

from benchmarks.recognition.audio_to_pinyin import TEST
from benchmarks.support.open_text import SHARED
from data.text.pinyin_pairs import read_pairs
from model_language.registry import load_converter, load_language_model
from utils.run_folder.run import PRETRAINED, PRETRAINED_LANGUAGE_MODEL
from utils.text_table import print_table

LISTS = [SHARED / "transcripts" / "thchs_test.tsv", SHARED / "transcripts" / "aishell_dev.tsv", TEST]


def main() -> int:
    """Rate the sentences of each list and print the table."""
    options = _parser().parse_args()
    language_model, converter = load_language_model(options.model), load_converter(options.converter)
    rows = []
    for path in options.lists or LISTS:
        texts = list(dict.fromkeys(pair.hanzi for pair in read_pairs([str(path)]).pairs))
        ids = [converter.symbols.encode_hanzi(text).astype(np.int64) for text in texts]
        ngrams = np.concatenate([converter.ngrams.sentence_log_probs(each) for each in ids]).astype(float)
        network = np.concatenate(language_model.log_probs(texts)).astype(float)
        both = np.logaddexp(ngrams, network) - np.log(2)
        perplexities = (f"{np.exp(-logs.mean()):.0f}" for logs in (ngrams, network, both))
        rows.append((path.name, f"{len(texts):,}", *perplexities))
    columns = ("list", "sentences", "n-grams", "language model", "interpolated")
    print_table("perplexity of a hanzi", columns, rows)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("lists", type=Path, nargs="*", help="transcript lists or manifests")
    parser.add_argument("--model", type=Path, default=PRETRAINED_LANGUAGE_MODEL, help="a run of causal_cnn")
    parser.add_argument("--converter", type=Path, default=PRETRAINED, help="a run of combined")
    return parser


if __name__ == "__main__":
    run_command(main)
