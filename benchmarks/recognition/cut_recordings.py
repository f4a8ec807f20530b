"""Errors on recordings that are cut close to the speech, with and without the silence that is added there.

    python -m benchmarks.recognition.cut_recordings [RUN] [--manifest dev.tsv]

Each recording is recognised as it is, and cut so that 0 to 0.12 s are left before its first and after its
last sound (evenly distributed, with a fixed seed). Both are decoded without and with
:func:`utils.audio.padding.with_pauses`. Use dev speakers, never a test set.
"""

from utils.command.entry import run_command

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from tqdm import tqdm

from analysis.errors.alignment import align
from benchmarks.recognition.audio_to_pinyin import DEV
from benchmarks.support.error_rates import joint_error_rates
from data.manifest import Utterance, read_manifest
from model_language.registry import load_converter
from model_language.search.joint import JointSearch
from model_speech.acoustic_logits import AcousticLogits
from model_speech.ctc.greedy import greedy_decode
from model_speech.ctc.posteriors import confusion_network
from recognition.loading import load_acoustic_logits, load_joint_search_for
from utils.audio.levels import moving_power
from utils.audio.padding import with_pauses
from utils.audio.reading import read_audio
from utils.features.speech import extract_features
from utils.mandarin.syllable_distance import syllable_distance
from utils.metrics import count_errors, total
from utils.run_folder.run import PRETRAINED, PRETRAINED_SPEECH
from utils.text_table import print_table

LONGEST_PAUSE = 0.12  # seconds that may be left before the first and after the last sound
SOUND_DB = -30.0  # level of a sound, relative to the loudest 25 ms
_WINDOW_SECONDS = 0.025


def main() -> int:
    """Recognise the recordings in each form, print the table."""
    options = _parser().parse_args()
    acoustic = load_acoustic_logits(options.run)
    joint = load_joint_search_for(options.run, load_converter(PRETRAINED))
    utterances, rate = read_manifest(options.manifest), acoustic.features.sample_rate
    whole = [read_audio(utterance.audio, rate) for utterance in utterances]
    rng = np.random.default_rng(0)
    cut = [_cut(samples, rate, *rng.uniform(0.0, LONGEST_PAUSE, 2)) for samples in whole]
    rows = []
    for name, recordings in {"as recorded": whole, "cut": cut}.items():
        padded = [with_pauses(samples, rate)[0] for samples in recordings]
        changed = sum(len(after) > len(before) for before, after in zip(recordings, padded, strict=True))
        rows.append((name, "", *_rates(acoustic, joint, utterances, recordings)))
        rows.append((name, f"added to {changed}", *_rates(acoustic, joint, utterances, padded)))
    columns = ("recordings", "silence", "greedy", "first", "last", "joint search")
    print_table(
        f"{len(utterances)} recordings, tonal syllable error (joint: / CER), %", columns, rows, left=2
    )
    return 0


def _cut(samples: np.ndarray, rate: int, before: float, after: float) -> np.ndarray:
    """The samples (n,) with at most so many seconds before the first and after the last sound."""
    power = moving_power(samples, rate, _WINDOW_SECONDS)
    sounds = np.flatnonzero(power > power.max() * 10.0 ** (SOUND_DB / 10.0))
    return samples[max(0, sounds[0] - round(before * rate)) : sounds[-1] + round(after * rate)]


def _rates(
    acoustic: AcousticLogits,
    joint: JointSearch,
    utterances: Sequence[Utterance],
    recordings: Sequence[np.ndarray],
) -> list[str]:
    """Errors in % of greedy decoding, of its first and last syllables, and of the joint search."""
    vocabulary, networks, greedy, edges = acoustic.vocabulary, [], [], []
    for utterance, samples in zip(tqdm(utterances, "recognising", disable=None), recordings, strict=True):
        logits, lengths = acoustic.logits([extract_features(samples, acoustic.features)])
        (best,) = greedy_decode(logits, lengths, vocabulary.blank_index)
        hypothesis = vocabulary.decode(best.tokens)
        pairs = align(utterance.pinyin, hypothesis, syllable_distance)
        of_reference = [pair.is_correct for pair in pairs if pair.reference is not None]
        edges.append((not of_reference[0], not of_reference[-1]))
        greedy.append(count_errors(utterance.pinyin, hypothesis))
        networks.append(confusion_network(logits[0, : lengths[0]], best, vocabulary, ()))
    rates = (
        total(greedy).rate,
        *np.mean(edges, axis=0),
        *joint_error_rates(utterances, joint.search(networks)),
    )
    shown = [f"{100 * rate:.1f}" for rate in rates]
    return [*shown[:3], " / ".join(shown[3:])]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path, nargs="?", default=PRETRAINED_SPEECH, help="a packed speech run")
    parser.add_argument("--manifest", type=Path, default=DEV, help="recordings of dev speakers")
    return parser


if __name__ == "__main__":
    run_command(main)
