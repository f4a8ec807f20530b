"""Reads news, questions and dialogues of the shared texts as lines of hanzi, and has some of them spoken."""

import lzma
import random
from collections.abc import Mapping
from pathlib import Path

from benchmarks.support.commands import run
from utils.errors import CorpusError
from utils.files import write_text

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
_SOURCES = ("kdconv", "crosswoz", "cctv_xwlb", "trending_in_one", "zhihu_trending", "flaging_feed")
_SPOKEN_HANZI = range(4, 15)
_SPARE = 100  # more lines than utterances: some lines can't be read aloud, or come twice


def open_domain_lines(seed: int) -> list[str]:
    """Every distinct line of the sources, in an order drawn from ``seed``.

    Raises:
        CorpusError: the collection is not beside the checkout.
    """
    if not SHARED.is_dir():
        raise CorpusError(
            "this benchmark's texts and recordings are missing",
            where="../shared/data",
            hint="docs/real_speech.md describes them and how to use your own",
        )
    lines: dict[str, None] = {}
    for source in _SOURCES:
        with lzma.open(SHARED / "text" / f"{source}.txt.xz", "rt", encoding="utf-8") as file:
            lines.update(dict.fromkeys(line.strip() for line in file))
    chosen = list(lines)
    random.Random(seed).shuffle(chosen)
    return chosen


def easily_spoken(lines: list[str], count: int) -> list[str]:
    """The first ``count`` lines that are short enough for one breath."""
    return [line for line in lines if len(line) in _SPOKEN_HANZI][:count]


def speak_open_domain(
    corpus: Path, text: Path, utterances: Mapping[str, int], voices: int, made: int, seed: int
) -> None:
    """Let the synthesiser speak open-domain lines.

    Args:
        corpus: folder of the corpus, as ``data.corpora.synthetic prepare`` reads it.
        text: file for the lines.
        utterances: split → number of utterances.
        voices: number of the synthesiser's voices.
        made: number of generated voices, besides these.
        seed: determines lines, voices and splits.

    Raises:
        CorpusError: the collection is not beside the checkout.
    """
    lines = easily_spoken(open_domain_lines(seed), sum(utterances.values()) + _SPARE)
    write_text(text, "".join(f"{line}\n" for line in lines))
    sizes = [value for split, count in utterances.items() for value in (f"--{split}", str(count))]
    chance = ["--voices", str(voices), "--made", str(made), "--seed", str(seed), "--text", str(text)]
    run("-m", "data.corpora.synthetic", "generate", str(corpus), *sizes, *chance)
