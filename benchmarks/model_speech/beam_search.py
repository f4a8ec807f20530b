"""The beam search on the posteriors of a real model: effect of pruned classes and of worker processes.

    python benchmarks/model_speech/beam_search.py
    python benchmarks/model_speech/beam_search.py --speech RUN --manifest LIST.tsv [--syllables RUN]

The default is the demo's model and test set. With --syllables it also prints the syllable error rate for a
grid of fusion weights and insertion bonuses: tune on a dev set, never on a test set.
"""

from utils.command.entry import run_command

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from unittest import mock

import numpy as np

from data.manifest import Utterance, read_manifest
from model_speech.acoustic_model import AcousticModel, load_acoustic_model
from model_speech.ctc import prefix_beam
from model_speech.ctc.decoder import Decoder
from model_speech.ctc.decoder import decoding as decoding_in
from model_speech.ctc.greedy import Hypothesis
from recognition.loading import load_fusion
from utils.audio.reading import read_audio
from utils.features.speech import extract_features
from utils.metrics import count_errors, total
from utils.text_table import print_table
from utils.vocabulary import SPACE

BATCH = 16
BEAM = 10
WEIGHTS, BONUSES = (0.0, 0.2, 0.3, 0.4, 0.5, 0.6), (0.0, 1.0, 2.0, 2.5, 3.0, 4.0)
Batch = tuple[np.ndarray, np.ndarray]


def main() -> int:
    """Compute the posteriors once, decode them with several settings and print the tables."""
    options = _parser().parse_args()
    acoustic = load_acoustic_model(options.speech)
    utterances = read_manifest(options.manifest)[: options.limit]
    utterances.sort(key=lambda utterance: utterance.seconds)
    batches = _posteriors(acoustic, utterances)
    blank = acoustic.vocabulary.blank_index
    _print_speed(batches, Decoder(blank, BEAM), len(utterances))
    if options.syllables:
        fusion = load_fusion(options.syllables, acoustic.vocabulary, 1.0, 0.0)
        rows = []
        for weight in WEIGHTS:
            fusions = [type(fusion)(fusion.model, fusion.ids, weight, bonus) for bonus in BONUSES]
            found = [_search(batches, Decoder(blank, BEAM, fusion=fusion))[0] for fusion in fusions]
            errors = [_error_rate(acoustic, utterances, hypotheses) for hypotheses in found]
            rows.append((str(weight), *(f"{100 * error:.1f}" for error in errors)))
        headings = ("weight", *(f"bonus {bonus}" for bonus in BONUSES))
        print_table("syllable error rate, %", headings, rows)
    return 0


def _posteriors(acoustic: AcousticModel, utterances: Sequence[Utterance]) -> list[Batch]:
    batches = []
    for start in range(0, len(utterances), BATCH):
        clips = [
            read_audio(utterance.audio, acoustic.features.sample_rate)
            for utterance in utterances[start : start + BATCH]
        ]
        logits, lengths = acoustic.logits([extract_features(clip, acoustic.features) for clip in clips])
        batches.append((np.asarray(logits)[:, : lengths.max()], lengths))
    return batches


def _print_speed(batches: Sequence[Batch], decoder: Decoder, utterances: int) -> None:
    best, seconds = _search(batches, decoder)
    with mock.patch.object(prefix_beam, "_viable_count", lambda _, scores: scores.shape[1]):
        _, full_seconds = _search(batches, decoder)
        with mock.patch.object(prefix_beam, "MIN_PROBABILITY", 1e-30):
            full, _ = _search(batches, decoder)
    differing = sum(pruned.tokens != other.tokens for pruned, other in zip(best, full, strict=True))
    search_seconds = {
        "greedy": _search(batches, Decoder(decoder.blank))[1],
        "up to 40 classes in every frame": full_seconds,
        "classes that can still reach the beam": seconds,
        "the same in 1 process": _in_processes(batches, decoder, 1),
        "the same in 2 processes": _in_processes(batches, decoder, 2),
    }
    rows = [(name, f"{utterances / taken:.0f}") for name, taken in search_seconds.items()]
    print_table(f"beam {decoder.beam}, {utterances} utterances", ("search", "utterances/s"), rows)
    print(f"{differing} of {utterances} best hypotheses differ from those of the full search")


def _search(batches: Sequence[Batch], decoder: Decoder) -> tuple[list[Hypothesis], float]:
    """The best hypothesis of each utterance, and the seconds of the search."""
    began = time.perf_counter()
    best = [hypotheses[0] for batch in batches for hypotheses in decoder.decode(*batch)]
    return best, time.perf_counter() - began


def _in_processes(batches: Sequence[Batch], decoder: Decoder, workers: int) -> float:
    """Seconds with worker processes, without their start."""
    with decoding_in(decoder, workers) as submit:
        for future in [submit(*batches[0]) for _ in range(workers)]:
            future.result()
        began = time.perf_counter()
        for future in [submit(*batch) for batch in batches]:
            future.result()
        return time.perf_counter() - began


def _error_rate(
    acoustic: AcousticModel, utterances: Sequence[Utterance], best: Sequence[Hypothesis]
) -> float:
    decoded = (
        [t for t in acoustic.vocabulary.decode(hypothesis.tokens) if t != SPACE] for hypothesis in best
    )
    return total(
        count_errors(utterance.pinyin, syllables)
        for utterance, syllables in zip(utterances, decoded, strict=True)
    ).rate


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--speech", type=Path, default=Path("runs/demo/speech"), metavar="RUN")
    parser.add_argument("--manifest", type=Path, default=Path("datasets/demo/test.tsv"), metavar="LIST")
    parser.add_argument("--syllables", type=Path, metavar="RUN", help="run of a syllable_ngram")
    parser.add_argument("--limit", type=int, help="use only this many utterances")
    return parser


if __name__ == "__main__":
    run_command(main)
