"""A task of the comparison: its inputs, our function for it, and the peers with theirs.

The modules of the tasks are also imported by peers' environments, which have NumPy and the peer, but nothing
of this project: their imports at the top are NumPy and the standard library.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

Arrays = Mapping[str, np.ndarray]
"""Inputs or results by name."""
Work = Callable[[], Arrays]
"""One run of a task on its inputs; what it returns is compared."""


@dataclass(frozen=True)
class Peer:
    """Another library with a function for the same task.

    Attributes:
        name: its name in the table.
        function: ``function(inputs)`` in the module of the task: the :data:`Work`.
        requirements: pinned packages of its environment, the peer's first; none: it runs in ours.
    """

    name: str
    function: str
    requirements: tuple[str, ...] = ()


@dataclass(frozen=True)
class Task:
    """A task of the comparison.

    Attributes:
        name: its name in the table.
        module: the module with the functions of both sides.
        inputs: makes the inputs, the same at each call.
        ours: our function, as :attr:`Peer.function`.
        peers: the others.
        agreement: inputs, our result and that of a peer → how well they agree, in a few words.
    """

    name: str
    module: str
    inputs: Callable[[], Arrays]
    ours: str
    peers: tuple[Peer, ...]
    agreement: Callable[[Arrays, Arrays, Arrays], str]
