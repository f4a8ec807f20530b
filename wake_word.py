"""Make a small streaming model that detects a typed wake word, with a calibrated threshold.

    clips/       the word in many voices, similar words, ordinary speech, noise (negatives.tsv)
    streams/     long recordings of voices that are not in the training, with the word at known times
    run/         the run folder of train.py keyword
    export/      the bundle for listen.py
    trade_off/   misses and false alarms at each threshold, as a table and a plot
    report.md    the expected misses and false alarms; report.json: the same

Clips, training and export that are finished are not repeated, and interrupted ones continue: give the same
command again.
"""

from utils.command.entry import run_command

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from data.synthesis.wake_word_clips import SMALL, WakeWordSettings
from data.synthesis.wake_words import WakeWord, read_wake_word
from keywords.backgrounds import background_recordings
from keywords.wake_word import RECIPE, SMALL_HOURS, SMALL_STEPS, Request, make_wake_word
from utils.command.arguments import add_workers, positive, positive_number
from utils.command.parser import CommandParser
from utils.mandarin.pinyin import without_tone

EXAMPLES = """\
examples:
  python wake_word.py "你好小明" --background MY_RECORDINGS --alarms-per-hour 1
  python wake_word.py "你好小明" --output runs/wake_words/ni_hao_xiao_ming
  python wake_word.py "重庆重庆" --pinyin "chong2 qing4 chong2 qing4"
  python wake_word.py "hey siri" --pinyin "hei1 xi1 rui4"
  python wake_word.py "小明小明" --small
  python wake_word.py "你好小明" --alarms-per-hour 0.5   # the second time: only repeats the calibration

MY_RECORDINGS are hours of typical sound at the microphone (talk, television, the kitchen), without the wake
word: one half determines the threshold, false alarms are counted on the other half. Without them, synthesised
speech of other voices is used, which is less realistic.
Values of the recipe can be overridden as key=value (model.dropout=0.2).
"""

HOURS = 1.0  # of synthesised speech for the test
_STEPS_BETWEEN = 200  # training steps between two evaluations


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line, do the unfinished stages, print the expected misses and false alarms."""
    options = _parser().parse_intermixed_args(arguments)
    word = read_wake_word(options.word, options.pinyin)
    if len(word.syllables) == 1:
        text = "half of all sentences contain something similar; three or four syllables are usual"
        print(f"note: '{word.hanzi}' is one syllable: {text}", file=sys.stderr)
    lines = make_wake_word(_request(options, word))
    print(f"{word.hanzi} ({' '.join(word.syllables)})")
    print("\n".join(lines))
    return 0


def _request(options: argparse.Namespace, word: WakeWord) -> Request:
    steps = options.steps or (SMALL_STEPS if options.small else 0)
    name = "_".join(without_tone(syllable) for syllable in word.syllables)
    return Request(
        word,
        options.output or Path("runs") / "wake_words" / name,
        SMALL if options.small else WakeWordSettings(),
        options.config,
        (*_of_steps(steps), *options.overrides),
        tuple(background_recordings(options.background)),
        options.alarms_per_hour,
        options.hours or (SMALL_HOURS if options.small else HOURS),
        options.workers,
    )


def _of_steps(steps: int) -> list[str]:
    """Overrides that train for about this number of steps; none for 0, which leaves it to the recipe."""
    if not steps:
        return []
    evaluations = -(-steps // _STEPS_BETWEEN)
    return [f"training.evaluation_steps={-(-steps // evaluations)}", f"training.epochs={evaluations}"]


def _parser() -> CommandParser:
    parser = CommandParser(
        description=__doc__,
        epilog=EXAMPLES,
    )
    parser.add_argument("word", help="1 to 6 hanzi, or Latin letters; three or four syllables are usual")
    parser.add_argument("--pinyin", default="", help="its reading, if different from the dictionary's")
    parser.add_argument("--output", type=Path, help="folder (default: runs/wake_words/READING)")
    parser.add_argument(
        "--background",
        type=Path,
        action="append",
        default=[],
        metavar="PATH",
        help="a recording without the word, or a folder of such; may be repeated",
    )
    parser.add_argument(
        "--alarms-per-hour",
        type=positive_number,
        default=1.0,
        metavar="N",
        help="allowed false alarms; 0.1 is one in ten hours (default: 1)",
    )
    parser.add_argument(
        "--hours",
        type=positive_number,
        help=f"hours of synthesised speech for the test (default: {HOURS:g}, with --small {SMALL_HOURS:g})",
    )
    parser.add_argument("--config", type=Path, default=RECIPE, help="the recipe of the training")
    parser.add_argument("--steps", type=positive, help="training steps (default: those of the recipe)")
    parser.add_argument("--small", action="store_true", help="few voices and steps, for a quick trial")
    add_workers(parser)
    parser.add_argument(
        "overrides",
        nargs="*",
        default=[],
        metavar="key=value",
        help="values that replace those of the recipe",
    )
    return parser


if __name__ == "__main__":
    run_command(main)
