"""Measures how many non-speech sounds give no text, also at a threshold that keeps 99 % of the speech.

    python -m benchmarks.recognition.no_speech [--run pretrained/audio_to_pinyin]

Ten-second sounds that are not in the training data: hum, music, clicks, noise and wind of other seeds, and
pieces of the two recordings of noise that are kept out of the training. The mean confidence of a segment's
syllables (``--minimum-confidence``) distinguishes speech from them. Its threshold is chosen on dev speakers:
the highest at which at most 1 % of their recordings get no text. The table has the sounds and the recordings
of test speakers without text, with this threshold and without one.

Needs the project's shared recordings.
"""

from utils.command.entry import run_command

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from tqdm import tqdm

from benchmarks.support.shared_lists import SHARED, prepared_list
from data.corpora.nonspeech import SOUNDS, make_sound, pieces_of
from data.manifest import read_manifest
from model_language.registry import load_converter
from model_speech.acoustic_logits import load_acoustic_logits
from recognition.confidence import load_calibration
from recognition.loading import load_joint_search_for
from recognition.pieces import Source
from recognition.recognizer import Recognizer
from utils.audio.folders import find_recordings
from utils.audio.reading import read_audio
from utils.command.parser import CommandParser
from utils.hypotheses.recognition import Recognition
from utils.run_folder.run import PRETRAINED, PRETRAINED_SPEECH
from utils.text_table import print_table

SECONDS = 10.0
SOUNDS_OF_A_KIND, PIECES_OF_A_RECORDING, SEED = 20, 25, 1001
EMPTY = 0.01  # fraction of the speech recordings
HELD_OUT_NOISE = ("pink_noise", "exercise_bike")  # recordings that are in no training data
DEV = ("common_voice_zh/dev", "dspspeech20/dev")
TEST = ("common_voice_zh/test", "aishell1_two_speakers/test_other_speaker", "dspspeech20/test")


def main() -> None:
    """Recognise all recordings once, choose the thresholds and print the table."""
    options = _parser().parse_args()
    acoustic, converter = load_acoustic_logits(options.run), load_converter(PRETRAINED)
    joint = load_joint_search_for(options.run, converter)
    recognizer = Recognizer(acoustic, converter, joint=joint, calibration=load_calibration(options.run))
    dev = _scores(recognizer, _speech(DEV), "dev speakers")
    speech = _scores(recognizer, _speech(TEST), "test speakers")
    sounds = list(_sounds())
    other = _scores(recognizer, sounds, "sounds")
    kinds = np.array([name.rpartition("_")[0] for name, _ in sounds])
    highest = float(np.quantile(dev, EMPTY, method="lower"))
    rows = [_row(threshold, speech, other, kinds) for threshold in (0.0, highest)]
    title = f"{len(speech)} recordings of test speakers, {len(sounds)} sounds of {SECONDS:g} s"
    print_table(title, ("threshold", "speech without text", "sounds without text", "worst kind"), rows)


def _row(threshold: float, speech: np.ndarray, other: np.ndarray, kinds: np.ndarray) -> tuple[str, ...]:
    """A row of the table; scores of 0 are those of recordings without a syllable."""
    empty, silent = (speech < threshold) | (speech == 0), (other < threshold) | (other == 0)
    by_kind = {kind: float(silent[kinds == kind].mean()) for kind in dict.fromkeys(kinds.tolist())}
    worst = min(by_kind, key=lambda kind: by_kind[kind])
    silence = f"{silent.mean():.1%}"
    return f"{threshold:.4f}", f"{empty.mean():.1%}", silence, f"{worst} {by_kind[worst]:.0%}"


def _scores(recognizer: Recognizer, sources: Sequence[Source], name: str) -> np.ndarray:
    """The highest mean confidence of the segments of each recording, 0 without syllables: (N,)."""
    highest = []
    for _, events in tqdm(recognizer.segments(sources), name, len(sources), disable=None):
        spoken = [event for event in events if isinstance(event, Recognition) and event.times]
        highest.append(max((float(np.mean(segment.confidence)) for segment in spoken), default=0.0))
    return np.array(highest)


def _speech(lists: Iterable[str]) -> list[Source]:
    return [(u.id, u.audio) for name in lists for u in read_manifest(prepared_list(name))]


def _sounds() -> Iterator[tuple[str, np.ndarray]]:
    """Generated sounds of each kind, and pieces of the held-out recordings."""
    recordings = {path.stem: path for path in find_recordings(SHARED / "audio" / "noise")}
    kinds = [(name, sound, SOUNDS_OF_A_KIND) for name, sound in SOUNDS.items()]
    kinds += [
        (name, pieces_of(read_audio(recordings[name])), PIECES_OF_A_RECORDING) for name in HELD_OUT_NOISE
    ]
    for kind, (name, sound, count) in enumerate(kinds):
        for number in range(count):
            rng = np.random.default_rng([SEED, kind, number])
            yield f"{name}_{number}", make_sound(sound, rng, (SECONDS, SECONDS))


def _parser() -> CommandParser:
    parser = CommandParser(description=__doc__)
    parser.add_argument("--run", type=Path, default=PRETRAINED_SPEECH, help="default: the model that ships")
    return parser


if __name__ == "__main__":
    run_command(main)
