"""Measures punctuation on held-out text: F1 of each mark, and the speed on one core.

    OMP_NUM_THREADS=1 python -m benchmarks.model_language.punctuation held_out.txt

The text has a passage a line. Its pauses are drawn (:mod:`data.text.punctuated`). The table has the network
with these pauses, the network with the text alone, and a baseline that knows the pauses only: 。 where a
segment ends and ， at a pause of 0.4 s or more between two syllables.
"""

from utils.command.entry import run_command

import time
from pathlib import Path

import numpy as np

from data.text.punctuated import Passages, draw_pauses, encode_passages, read_passages
from model_language.punctuation import Punctuation, load_punctuation
from utils.command.parser import CommandParser
from utils.mandarin.punctuation import MARKS, SEGMENT_END, UNKNOWN_PAUSE, f1_scores, pauses_between
from utils.run_folder.run import PRETRAINED_PUNCTUATION
from utils.text_table import print_table

SEED = 1
COMMA_SECONDS = 0.4


def main() -> None:
    """Print the table."""
    options = _parser().parse_args()
    network = load_punctuation(options.run)
    passages = encode_passages(read_passages([str(options.text)]), network.vocabulary)
    drawn = draw_pauses(passages.marks, np.random.default_rng(SEED))
    unknown = np.full_like(drawn, UNKNOWN_PAUSE)
    begun = time.perf_counter()
    found = {
        "hanzi and pauses": _marks(network, passages, drawn),
        "hanzi": _marks(network, passages, unknown),
    }
    speed = 2 * len(drawn) / (time.perf_counter() - begun)
    comma = pauses_between(np.array([0.0, COMMA_SECONDS, 0.0]))[0]
    by_pause = np.where(drawn == SEGMENT_END, MARKS.index("。"), (drawn >= comma) * MARKS.index("，"))
    scores = {
        name: f1_scores(passages.marks, marks) for name, marks in (*found.items(), ("pauses", by_pause))
    }
    columns = next(iter(scores.values()))
    rows = [(name, *(f"{score[mark]:.3f}" for mark in columns)) for name, score in scores.items()]
    print_table(f"F1 in {len(passages)} passages, {len(drawn)} hanzi", ("known", *columns), rows)
    print(f"{speed:,.0f} hanzi a second, a passage at a time")


def _marks(network: Punctuation, passages: Passages, pauses: np.ndarray) -> np.ndarray:
    found = np.zeros(len(pauses), np.int32)
    for number in range(len(passages)):
        places = passages.places(number)
        hanzi = "".join(network.vocabulary.decode(passages.hanzi[places]))
        found[places] = [MARKS.index(mark) for mark in network.marks(hanzi, pauses[places])]
    return found


def _parser() -> CommandParser:
    parser = CommandParser(description=__doc__)
    parser.add_argument("text", type=Path, help="held-out passages with punctuation, one a line")
    parser.add_argument("--run", type=Path, default=PRETRAINED_PUNCTUATION, help="a packed network")
    return parser


if __name__ == "__main__":
    run_command(main)
