"""Command that generates a synthetic speech corpus (``generate``) and writes its manifests (``prepare``).

``data/synthesis/corpus.py`` generates the speech in the layout of THCHS-30; that corpus's module finds the
utterances.
"""

from utils.command.entry import run_command

import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from data.corpora.thchs30 import find_utterances
from data.corpora.tools.command import add_prepare, run_prepare
from data.corpora.tools.preparation import Corpus
from data.manifest import SPLITS
from data.synthesis.corpus import CorpusSettings, PlannedUtterance, generate
from data.synthesis.synthesiser import Unspoken
from utils.audio.properties import audio_seconds
from utils.command.arguments import add_workers, not_negative, positive
from utils.command.parser import CommandParser

CORPUS = Corpus(
    "synthetic",
    "Mandarin speech from a synthesiser, of a grammar's sentences or of a text, in the layout of THCHS-30",
    find_utterances,
    SPLITS,
)

_EXAMPLES = """examples:
  python -m data.corpora.synthetic generate datasets/demo_corpus
  python -m data.corpora.synthetic generate /tmp/small --train 200 --dev 20 --test 20 --voices 12
  python -m data.corpora.synthetic generate datasets/news --text sentences.txt --train 8000 --seed 1
  python -m data.corpora.synthetic generate /tmp/telephone --sample-rate 8000
  python -m data.corpora.synthetic prepare datasets/demo_corpus --output datasets/synthetic
"""


def main(argv: list[str] | None = None) -> int:
    """The command ``python -m data.corpora.synthetic``."""
    options = _parser().parse_args(argv)
    if options.action == "prepare":
        return run_prepare(CORPUS, options)
    settings = CorpusSettings(**{name: getattr(options, name) for name in asdict(CorpusSettings())})
    start = time.monotonic()
    failures = generate(options.root, settings, options.workers)
    _report(Path(options.root), failures, time.monotonic() - start)
    return 0


def _report(root: Path, failures: Sequence[Unspoken[PlannedUtterance]], seconds: float) -> None:
    audio = sorted((root / "data").glob("*.wav"))
    hours = sum(audio_seconds(path) for path in audio) / 3600
    voices = len({path.name.split("_")[0] for path in audio})
    print(f"{root}: {len(audio)} utterances, {hours:.2f} hours, {voices} voices; {seconds:.0f} s")
    for planned, reason in failures:
        message = f"{planned.id} ({planned.voice.variant}): {planned.sentence.hanzi}: {reason}"
        print(f"  not spoken: {message}", file=sys.stderr)


def _parser() -> CommandParser:
    parser = CommandParser(description=CORPUS.about, epilog=_EXAMPLES)
    actions = parser.add_subparsers(dest="action", required=True)
    generating = actions.add_parser("generate", help="generate the corpus", epilog=_EXAMPLES)
    generating.add_argument("root", help="folder of the corpus: new, unfinished or complete")
    options: dict[str, tuple[Any, str]] = {
        **dict.fromkeys(SPLITS, (positive, "utterances (default: %(default)s)")),
        "seed": (not_negative, "default: %(default)s"),
        "voices": (positive, "number of the synthesiser's voices (default: all %(default)s)"),
        "made": (not_negative, "generated voices in train (default: %(default)s)"),
        "text": (str, "sentences instead of the grammar's: lines of hanzi, or pinyin<TAB>hanzi"),
        "sample_rate": (positive, "Hz, of the recordings; 8000 for telephone speech (default: %(default)s)"),
    }
    for name, default in asdict(CorpusSettings()).items():
        kind, text = options[name]
        generating.add_argument(f"--{name.replace('_', '-')}", type=kind, default=default, help=text)
    add_workers(generating)
    add_prepare(actions, CORPUS, _EXAMPLES)
    return parser


if __name__ == "__main__":
    run_command(main)
