"""Greedy syllable errors of the first and of the later syllables of utterances, at several levels.

    python -m benchmarks.recognition.start_of_speech [RUN …] [--first 6] [--gain-db -24 -12 0 12]

At its start, a stream has little to normalise the features by: neither the loudness of the recording nor the
spectrum of its microphone is known. Use dev speakers, never a test set.
"""

from utils.command.entry import run_command

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from tqdm import tqdm

from analysis.errors.alignment import align
from benchmarks.recognition.audio_to_pinyin import DEV, PACKED, STREAMING
from data.manifest import Utterance, read_manifest
from model_speech.acoustic_logits import AcousticLogits
from model_speech.ctc.greedy import greedy_decode
from recognition.loading import load_acoustic_logits
from utils.audio.reading import read_audio
from utils.features.speech import extract_features
from utils.mandarin.syllable_distance import syllable_distance
from utils.text_table import print_table


def main() -> int:
    """Recognise the recordings with each model at each level, print the table."""
    options = _parser().parse_args()
    utterances = read_manifest(options.manifest)
    rows = []
    for run in options.runs:
        acoustic = load_acoustic_logits(run)
        for gain_db in tqdm(options.gain_db, run.name, disable=None):
            first, later = _errors(acoustic, utterances, gain_db, options.first)
            rates = (first[0] / first[1], later[0] / later[1], (first[0] + later[0]) / (first[1] + later[1]))
            rows.append((run.name, f"{gain_db:+g} dB", *(f"{100 * rate:.1f}" for rate in rates)))
    columns = ("model", "level", f"first {options.first} syllables", "later", "all")
    print_table("tonal syllable error, greedily, %", columns, rows)
    return 0


def _errors(
    acoustic: AcousticLogits, utterances: Sequence[Utterance], gain_db: float, first: int
) -> tuple[np.ndarray, np.ndarray]:
    """Errors and reference syllables, (2,): of the first syllables of each utterance, and of the later ones.

    An inserted syllable belongs to the next reference syllable.
    """
    counts = np.zeros((2, 2), np.int64)
    for utterance in utterances:
        samples = read_audio(utterance.audio, acoustic.features.sample_rate)
        louder = np.clip(samples * np.float32(10.0 ** (gain_db / 20.0)), -1.0, 1.0)
        logits, lengths = acoustic.logits([extract_features(louder, acoustic.features)])
        (best,) = greedy_decode(logits, lengths, acoustic.vocabulary.blank_index)
        position = 0
        for pair in align(utterance.pinyin, acoustic.vocabulary.decode(best.tokens), syllable_distance):
            counts[int(position >= first)] += (not pair.is_correct, pair.reference is not None)
            position += pair.reference is not None
    return counts[0], counts[1]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    packed = [PACKED, PACKED.with_name(STREAMING)]
    parser.add_argument(
        "runs", type=Path, nargs="*", default=packed, metavar="RUN", help="packed speech runs"
    )
    parser.add_argument("--manifest", type=Path, default=DEV, help="recordings of dev speakers")
    parser.add_argument("--first", type=int, default=6, help="number of syllables that count as the start")
    parser.add_argument("--gain-db", type=float, nargs="+", default=[0.0], help="change of the level")
    return parser


if __name__ == "__main__":
    run_command(main)
