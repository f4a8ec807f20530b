"""Live audio of a command: standard input or the microphone, until it ends or a signal stops it."""

import sys
from collections.abc import Iterator

import numpy as np

from utils.audio.microphone import microphone_blocks
from utils.audio.piped import open_pipe
from utils.stop_signals import Stopped, until_stopped


def live_audio(
    microphone: bool, rate: int | None, sample_rate: int, seconds: float, stopped: list[Stopped]
) -> Iterator[Iterator[np.ndarray]]:
    """Open the microphone or standard input, as the only source of the returned iterator.

    Args:
        microphone: whether to open the default microphone.
        rate: of raw samples in standard input, see :func:`utils.audio.piped.open_pipe`.
        sample_rate: Hz, of the blocks.
        seconds: length of a block.
        stopped: gets the signal that has ended the blocks. It is not raised, because a recogniser asks for
            its next source before it has processed the last one: what was read would be lost.

    Yields:
        Blocks of (samples,) float32 in [-1, 1].
    """
    try:
        if microphone:
            with until_stopped(microphone_blocks(sample_rate, seconds)) as blocks:
                yield blocks
        else:
            with open_pipe(sys.stdin.buffer, rate, sample_rate, seconds) as blocks:
                yield blocks
    except Stopped as error:
        stopped.append(error)
