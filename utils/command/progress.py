"""A progress bar for loops that are usually short, but take long with a large corpus or a slow disk."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

from tqdm import tqdm

_HIDDEN_SECONDS = 2.0

Item = TypeVar("Item")


def bar_if_long(items: Sequence[Item], title: str, unit: str) -> Iterable[Item]:
    """The items, behind a progress bar on a terminal if they take longer than 2 s; it disappears at the end.

    Args:
        items: what the loop goes through.
        title: what the loop does.
        unit: name of several items, with a space in front: ``" lines"``.
    """
    return tqdm(items, title, unit=unit, disable=None, delay=_HIDDEN_SECONDS, leave=False)
