"""Reads news, questions and dialogues of the shared texts as lines of hanzi, for synthesis or training."""

import lzma
import random
from pathlib import Path

from utils.errors import CorpusError

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
_SOURCES = ("kdconv", "crosswoz", "cctv_xwlb", "trending_in_one", "zhihu_trending", "flaging_feed")
_SPOKEN_HANZI = range(4, 15)


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
