"""How well the probability of no speech tells speech from other sounds; with --fit also its weights.

    python -m benchmarks.recognition.no_speech DATA/common_voice_zh/dev.tsv --noise DATA/noise --fit
    python -m benchmarks.recognition.no_speech DATA/common_voice_zh/test.tsv --noise DATA/noise --seed 1

The other sounds are those of data/corpora/nonspeech.py, with another seed than in training. Printed: of
the recordings of speech the fraction that a client would drop (a probability above 0.6, the limit of OpenAI's
own programs), and of the other sounds the fraction that gets no text, that is dropped, and that is neither.
"""

import argparse
import csv
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

from data.corpora.nonspeech import generate
from model_language.registry import load_converter
from recognition.confidence import load_calibration
from recognition.loading import load_acoustic_logits, load_joint_search_for
from recognition.no_speech import WEIGHTS, features, no_speech_probability
from recognition.recognizer import Recognizer
from utils.audio.reading import find_recordings
from utils.cli import positive
from utils.errors import run_command
from utils.hypotheses.recognition import Ending, Segment
from utils.run_folder.run import PRETRAINED, PRETRAINED_SPEECH

DROPPED = 0.6


def main(arguments: Sequence[str] | None = None) -> None:
    """Recognise speech and other sounds, print fractions and weights."""
    options = _parser().parse_args(arguments)
    converter = load_converter(PRETRAINED)
    recognizer = Recognizer(
        load_acoustic_logits(PRETRAINED_SPEECH),
        converter,
        joint=load_joint_search_for(PRETRAINED_SPEECH, converter),
        calibration=load_calibration(PRETRAINED_SPEECH),
    )
    with options.manifest.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines, delimiter="\t"))  # texts without pinyin will do
    files = [options.manifest.parent / row["audio"] for row in rows[:: max(1, len(rows) // options.count)]]
    speech = list(_segments(recognizer, files))
    with tempfile.TemporaryDirectory() as folder:
        noises = find_recordings(options.noise) if options.noise else []
        generate(Path(folder), options.count, options.seed + 1000, noises)
        other = list(_segments(recognizer, find_recordings(folder)))
    if options.fit:
        print("weights:", _fitted(speech, other))
    spoken = np.array([no_speech_probability(segment) for segment in speech])
    with_text = np.array([no_speech_probability(segment) for segment in other if segment.times])
    silent = 1 - len(with_text) / len(other)
    dropped = np.sum(with_text > DROPPED) / len(other)
    print(f"speech: {len(spoken)} segments, {np.mean(spoken > DROPPED):.1%} dropped")
    print(f"other sounds: {len(other)}, {silent:.1%} without text, {dropped:.1%} dropped, ", end="")
    print(f"{1 - silent - dropped:.1%} neither")


def _segments(recognizer: Recognizer, files: Iterable[Path]) -> Iterator[Segment]:
    for _, events in recognizer.segments((str(path), path) for path in files):
        yield from (event for event in events if not isinstance(event, Ending))


def _fitted(speech: Sequence[Segment], other: Sequence[Segment]) -> dict[str, float]:
    """The weights of a logistic regression; both kinds count equally, large weights cost a little."""
    groups = [[list(features(each).values()) for each in group if each.times] for group in (speech, other)]
    inputs = np.array([*groups[0], *groups[1]])  # (segments, features)
    wanted = np.repeat([0.0, 1.0], [len(groups[0]), len(groups[1])])
    shares = np.repeat([0.5 / len(groups[0]), 0.5 / max(1, len(groups[1]))], [len(group) for group in groups])

    def loss(weights: np.ndarray) -> float:
        logits = inputs @ weights[1:] + weights[0]
        cost = np.logaddexp(0.0, logits) - wanted * logits
        return float(shares @ cost + 1e-3 * np.square(weights[1:]).sum())

    found = minimize(loss, np.zeros(inputs.shape[1] + 1)).x.round(3).tolist()
    return dict(zip(("bias", *WEIGHTS), found, strict=True))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("manifest", type=Path, help="recordings of speech")
    parser.add_argument("--noise", type=Path, metavar="DIR", help="recordings of noise")
    parser.add_argument("--count", type=positive, default=300, help="of each kind (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the other sounds (default: %(default)s)")
    parser.add_argument("--fit", action="store_true", help="print weights fitted on these sounds")
    return parser


if __name__ == "__main__":
    run_command(main)
