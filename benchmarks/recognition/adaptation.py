"""Measures adaptation to a speaker: error on the speaker's other sentences and on other speakers.

    python -m benchmarks.recognition.adaptation --run pretrained/audio_to_pinyin \\
        --speaker datasets/aishell/test_other_speaker.tsv --others datasets/common_voice_zh/dev.tsv

Adapts the model with `configs/speech/adapt.yaml` and 60 fixed utterances of the speaker, and scores all his
other utterances; then the same with learning sets of 1, 3 and 6 minutes. Arguments of the form `key=value`
change the recipe.
"""

from utils.command.entry import run_command

import argparse
import random
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.support.commands import run
from data.manifest import Utterance, read_manifest, write_manifest
from model_speech.acoustic_model import AcousticModel, load_acoustic_model
from model_speech.ctc.decoder import greedy_decode
from utils.audio.reading import read_audio
from utils.command.parser import CommandParser
from utils.features.speech import extract_features
from utils.files import write_json
from utils.metrics import ErrorCounts, count_errors, total
from utils.text_table import print_table

SEED, LEARNED = 16, 60  # the learning set of the project's check
MINUTES = (1.0, 3.0, 6.0)
RECIPE = "configs/speech/adapt.yaml"
_BATCH = 16

Scored = Sequence[tuple[Utterance, np.ndarray]]
"""Utterances with their features (frames, bins)."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Adapt with learning sets of several lengths and print the table."""
    options = _parser().parse_args(arguments)
    speaker = read_manifest(options.speaker)
    random.Random(SEED).shuffle(speaker)
    counts = [LEARNED] if options.quick else [LEARNED, *(_count(speaker, minutes) for minutes in MINUTES)]
    initial = load_acoustic_model(options.run)
    test, others = _features(initial, speaker[LEARNED:]), _features(initial, read_manifest(options.others))
    others_before = _error(initial, others).rate
    rows = []
    for count in counts:
        adapted, seconds = _adapt(options, speaker[:count], f"utterances_{count}")
        unseen = test[max(0, count - LEARNED) :]  # without those that this learning set takes
        rows.append(
            {
                "learned": count,
                "minutes": sum(utterance.seconds for utterance in speaker[:count]) / 60,
                "test": len(unseen),
                "before": _error(initial, unseen).rate,
                "after": _error(adapted, unseen).rate,
                "others_before": others_before,
                "others_after": _error(adapted, others).rate,
                "seconds": seconds,
            }
        )
        write_json(options.output / "results.json", rows)
    _print(rows)


def _count(utterances: Sequence[Utterance], minutes: float) -> int:
    """The number of first utterances that are at least this long together."""
    seconds = np.cumsum([utterance.seconds for utterance in utterances])
    return int(np.searchsorted(seconds, 60 * minutes)) + 1


def _adapt(
    options: argparse.Namespace, learned: Sequence[Utterance], name: str
) -> tuple[AcousticModel, float]:
    """The adapted model, and the time of the whole command including its start."""
    manifest, folder = options.output / f"{name}.tsv", options.output / name
    write_manifest(manifest, learned)
    shutil.rmtree(folder, ignore_errors=True)
    cache = f"data.cache={options.output / 'features'}"
    settings = [f"initialise_from={options.run}", f"data.train=[{manifest}]", cache, *options.overrides]
    began = time.perf_counter()
    run("train.py", "speech", "--config", RECIPE, "--run", str(folder), *settings)
    return load_acoustic_model(folder), time.perf_counter() - began


def _features(model: AcousticModel, utterances: Sequence[Utterance]) -> Scored:
    return [(u, extract_features(read_audio(u.audio), model.features)) for u in utterances]


def _error(model: AcousticModel, scored: Scored) -> ErrorCounts:
    """Errors in tonal syllables, decoded greedily."""
    counts = []
    by_length = sorted(scored, key=lambda pair: len(pair[1]))
    for start in range(0, len(by_length), _BATCH):
        utterances, features = zip(*by_length[start : start + _BATCH], strict=True)
        hypotheses = greedy_decode(*model.logits(features), model.vocabulary.blank_index)
        for utterance, hypothesis in zip(utterances, hypotheses, strict=True):
            tokens = model.vocabulary.decode(hypothesis.tokens)
            counts.append(count_errors(utterance.pinyin, tokens))
    return total(counts)


def _print(rows: Sequence[dict[str, float]]) -> None:
    print_table(
        "Tonal syllable error in per cent, greedy",
        ["learned", "minutes", "test", "before", "after", "change", "others", "after", "seconds"],
        [
            [
                f"{row['learned']}",
                f"{row['minutes']:.1f}",
                f"{row['test']}",
                f"{100 * row['before']:.1f}",
                f"{100 * row['after']:.1f}",
                f"{100 * (row['after'] / row['before'] - 1):+.0f} %",
                f"{100 * row['others_before']:.1f}",
                f"{100 * row['others_after']:.1f}",
                f"{row['seconds']:.0f}",
            ]
            for row in rows
        ],
    )


def _parser() -> CommandParser:
    parser = CommandParser(description=__doc__)
    parser.add_argument(
        "--run", default="pretrained/audio_to_pinyin", help="the model (default: %(default)s)"
    )
    parser.add_argument("--speaker", type=Path, required=True, help="manifest of the speaker")
    parser.add_argument("--others", type=Path, required=True, help="manifest of other speakers")
    parser.add_argument("--output", type=Path, default=Path("runs/adaptation"), help="default: %(default)s")
    parser.add_argument("--quick", action="store_true", help=f"only the {LEARNED} utterances, no curve")
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="changes of the recipe")
    return parser


if __name__ == "__main__":
    run_command(main)
