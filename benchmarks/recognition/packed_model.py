"""Compares the syllables of the shipped acoustic model with those of the Keras run that it was made from.

    python -m benchmarks.recognition.packed_model --run runs/audio_to_pinyin

Decodes all recordings of the test sets greedily with both. For each list it prints the syllables of the
Keras model, and how many of them the packed model also recognises (an alignment of least edit distance).
Needs the project's shared recordings, prepared by ``benchmarks.recognition.audio_to_pinyin --only prepare``.
"""

from utils.command.entry import run_command

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rapidfuzz.distance import Levenshtein

from benchmarks.recognition.audio_to_pinyin import PACKED, RUN, TESTS, WORK
from data.manifest import read_manifest
from model_speech.acoustic_model import load_acoustic_model
from recognition.loading import load_acoustic_logits
from recognition.recognizer import Recognizer
from utils.text_table import print_table


def main(arguments: Sequence[str] | None = None) -> int:
    """Recognise all recordings with both models and print the table."""
    options = _parser().parse_args(arguments)
    packed, trained = load_acoustic_logits(options.packed), load_acoustic_model(options.run, options.weights)
    # The packed model may have another time between feature frames than the training.
    recognizers = [Recognizer(replace(trained, features=packed.features)), Recognizer(packed)]
    rows, total, differing = [], 0, 0
    for title, (folder, split) in TESTS.items():
        sources = [(u.id, u.audio) for u in read_manifest(options.data / folder / f"{split}.tsv")]
        pairs = zip(*(recognizer.recognise(sources) for recognizer in recognizers), strict=True)
        syllables = edits = 0
        for keras, packed in pairs:
            syllables += len(keras.pinyin)
            edits += Levenshtein.distance(keras.pinyin, packed.pinyin)
        rows.append((title, str(len(sources)), str(syllables), f"{1 - edits / max(syllables, 1):.2%}"))
        total, differing = total + syllables, differing + edits
    rows.append(("all", "", str(total), f"{1 - differing / max(total, 1):.2%}"))
    print_table("the packed model", ("list", "recordings", "syllables", "the same"), rows)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--run", type=Path, default=RUN, help="the Keras run (default: %(default)s)")
    parser.add_argument("--weights", default="best", help="its weights (default: %(default)s)")
    parser.add_argument("--packed", type=Path, default=PACKED, help="the packed run (default: %(default)s)")
    parser.add_argument("--data", type=Path, default=WORK, metavar="FOLDER", help="the prepared lists")
    return parser


if __name__ == "__main__":
    run_command(main)
