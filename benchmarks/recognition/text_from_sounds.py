"""Sounds without speech: how many give no text, at the threshold that keeps 99 % of the speech.

    python -m benchmarks.recognition.text_from_sounds [--run pretrained/audio_to_pinyin]

Ten-second sounds that no training has seen: hum, music, clicks, noise and wind of other seeds, and pieces of
the two recordings of noise that are kept out of the training. Two scores tell speech from them: the mean
confidence of a segment's syllables (``--minimum-confidence``), and the probability of speech that the
service reports (:mod:`recognition.no_speech`). The threshold of each is chosen on dev speakers: the highest
at which at most 1 % of their recordings come out empty. Printed are, at this threshold and without one, the
sounds without text and the recordings of test speakers without text.

Needs the project's shared recordings, prepared by ``benchmarks.recognition.audio_to_pinyin --only prepare``.
"""

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from tqdm import tqdm

from benchmarks.recognition.audio_to_pinyin import HELD_OUT_NOISE, WORK
from benchmarks.support.open_text import SHARED
from benchmarks.support.tables import print_table
from data.corpora.nonspeech import SOUNDS, make_sound, pieces_of
from data.manifest import read_manifest
from model_language.registry import load_converter
from recognition.confidence import load_calibration
from recognition.loading import load_acoustic_logits, load_joint_search_for
from recognition.no_speech import no_speech_probability
from recognition.pieces import Source
from recognition.recognizer import Recognizer
from utils.audio.reading import read_audio
from utils.errors import run_command
from utils.hypotheses.recognition import Segment
from utils.run_folder.run import PRETRAINED, PRETRAINED_SPEECH

SECONDS = 10.0
SOUNDS_OF_A_KIND, PIECES_OF_A_RECORDING, SEED = 20, 25, 1001
EMPTY = 0.01  # of the recordings of speech
DEV = ("common_voice_zh/dev", "dspspeech20/dev")
SCORES = ("mean confidence", "probability of speech")
TEST = ("common_voice_zh/test", "aishell1_two_speakers/test_other_speaker", "dspspeech20/test")


def main() -> int:
    """Recognise everything once; choose the threshold; print the table."""
    options = _parser().parse_args()
    acoustic, converter = load_acoustic_logits(options.run), load_converter(PRETRAINED)
    joint = load_joint_search_for(options.run, converter)
    recognizer = Recognizer(acoustic, converter, joint=joint, calibration=load_calibration(options.run))
    dev = scores(recognizer, _speech(options.data, DEV), "dev speakers")
    speech = scores(recognizer, _speech(options.data, TEST), "test speakers")
    sounds = list(_sounds(options.noise))
    other = scores(recognizer, sounds, "sounds")
    kinds = np.array([name.rpartition("_")[0] for name, _ in sounds])
    rows = [_row("none", 0.0, speech.max(axis=1), other.max(axis=1), kinds)]
    for column, name in enumerate(SCORES):
        threshold = float(np.quantile(dev[:, column], EMPTY, method="lower"))
        rows.append(_row(name, threshold, speech[:, column], other[:, column], kinds))
    title = f"{len(speech)} recordings of test speakers, {len(sounds)} sounds of {SECONDS:g} s"
    print_table(
        title, ("score", "threshold", "speech without text", "sounds without text", "worst kind"), rows
    )
    return 0


def _row(
    name: str, threshold: float, speech: np.ndarray, other: np.ndarray, kinds: np.ndarray
) -> tuple[str, ...]:
    """A row of the table; scores of 0 are those of recordings without a syllable."""
    empty, silent = (speech < threshold) | (speech == 0), (other < threshold) | (other == 0)
    by_kind = {kind: float(silent[kinds == kind].mean()) for kind in dict.fromkeys(kinds.tolist())}
    worst = min(by_kind, key=lambda kind: by_kind[kind])
    silence = f"{silent.mean():.1%}"
    return name, f"{threshold:.4f}", f"{empty.mean():.1%}", silence, f"{worst} {by_kind[worst]:.0%}"


def scores(recognizer: Recognizer, sources: Sequence[Source], name: str) -> np.ndarray:
    """For each recording the highest of each score of its segments, 0 if there is no syllable: (N, 2)."""
    highest = []
    for _, events in tqdm(recognizer.segments(sources), name, len(sources), disable=None):
        spoken = [event for event in events if isinstance(event, Segment) and event.times]
        means = max((float(np.mean(segment.confidence)) for segment in spoken), default=0.0)
        speech = max((1.0 - no_speech_probability(segment) for segment in spoken), default=0.0)
        highest.append((means, speech))
    return np.array(highest)


def _speech(data: Path, lists: Iterable[str]) -> list[Source]:
    return [(u.id, u.audio) for name in lists for u in read_manifest(data / f"{name}.tsv")]


def _sounds(folder: Path) -> Iterable[tuple[str, np.ndarray]]:
    kinds = [(name, sound, SOUNDS_OF_A_KIND) for name, sound in SOUNDS.items()]
    for name in HELD_OUT_NOISE:
        recording = read_audio(next(folder.rglob(f"{name}.*")))
        kinds.append((name, pieces_of(recording), PIECES_OF_A_RECORDING))
    for kind, (name, sound, count) in enumerate(kinds):
        for number in range(count):
            rng = np.random.default_rng([SEED, kind, number])
            yield f"{name}_{number}", make_sound(sound, rng, (SECONDS, SECONDS))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--run", type=Path, default=PRETRAINED_SPEECH, help="default: the model that ships")
    parser.add_argument("--data", type=Path, default=WORK, metavar="FOLDER", help="the prepared lists")
    noise = SHARED / "audio" / "noise"
    parser.add_argument("--noise", type=Path, default=noise, metavar="FOLDER", help="recordings of noise")
    return parser


if __name__ == "__main__":
    run_command(main)
