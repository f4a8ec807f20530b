"""Tonal syllable error and hanzi CER of the joint search on dev speakers for a grid of its weights.

    python -m benchmarks.recognition.joint_weights [RUN] [--language 0.6 1] [--bonus 3 4] [--rescoring 0 0.3]

The acoustic model and the confusion networks are computed once. Use dev speakers, never a test set.
"""

from utils.command.entry import run_command

import argparse
from itertools import product
from pathlib import Path

from tqdm import tqdm

from benchmarks.support.shared_lists import prepared_list
from data.manifest import read_manifest
from model_language.registry import load_converter, load_joint_search, load_language_model
from model_speech.acoustic_logits import load_acoustic_logits
from model_speech.ctc.decoder import greedy_decode
from model_speech.ctc.posteriors import confusion_network
from recognition.pieces import Piece
from utils.audio.reading import read_audio
from utils.metrics import count_errors, total
from utils.run_folder.run import PRETRAINED, PRETRAINED_LANGUAGE_MODEL, PRETRAINED_SPEECH
from utils.text_table import print_table


def main() -> int:
    """Recognise the recordings with each pair of weights and print the table."""
    options = _parser().parse_args()
    acoustic, converter = load_acoustic_logits(options.run), load_converter(PRETRAINED)
    utterances = read_manifest(options.manifest or prepared_list("common_voice_zh/dev"))
    networks = []
    for utterance in tqdm(utterances, "acoustic model", disable=None):
        samples = read_audio(utterance.audio, acoustic.features.sample_rate)
        piece = Piece.of_samples(0.0, samples, acoustic.features)
        logits, lengths = acoustic.logits([piece.features])
        best = greedy_decode(logits, lengths, acoustic.vocabulary.blank_index)[0]
        networks.append(confusion_network(logits[0, : lengths[0]], best, acoustic.vocabulary))
    rows = []
    language_model = load_language_model(PRETRAINED_LANGUAGE_MODEL) if any(options.rescoring) else None
    grid = list(product(options.language, options.bonus, options.rescoring))
    for language, bonus, rescoring in tqdm(grid, "weights", disable=None):
        search = load_joint_search(converter, None, language, bonus, rescoring, language_model)
        found = [hypotheses[0] for hypotheses in search.search(networks)]
        rates = (
            total(
                count_errors(u.pinyin, best.pinyin) for u, best in zip(utterances, found, strict=True)
            ).rate,
            total(count_errors(u.hanzi, best.hanzi) for u, best in zip(utterances, found, strict=True)).rate,
        )
        weights = (f"{weight:g}" for weight in (language, bonus, rescoring))
        rows.append((*weights, *(f"{100 * rate:.1f}" for rate in rates)))
    columns = ("language", "bonus", "rescoring", "tonal syllable error", "CER")
    print_table("joint search, %", columns, rows, left=0)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path, nargs="?", default=PRETRAINED_SPEECH, help="a speech run")
    parser.add_argument("--manifest", type=Path, help="recordings of dev speakers (Common Voice's)")
    parser.add_argument("--language", type=float, nargs="+", default=[0.6, 0.8, 1.0, 1.2])
    parser.add_argument("--bonus", type=float, nargs="+", default=[1.0, 3.0, 5.0])
    parser.add_argument("--rescoring", type=float, nargs="+", default=[0.0])
    return parser


if __name__ == "__main__":
    run_command(main)
