"""Recognises the channels of recordings separately: a call with a speaker on each side."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from heapq import merge
from itertools import islice
from pathlib import Path

from recognition.options import SEPARATE
from recognition.pieces import Channel, Source
from recognition.recognizer import Recognizer
from utils.audio.properties import channel_count
from utils.errors import AudioError, ConfigError
from utils.hypotheses.recognition import Ending, Recognition

_TWO = ("left", "right")
Events = Iterator[Recognition | Ending]


def recognise_channels(
    recognizer: Recognizer, files: Iterable[tuple[str, Path]], channels: str, names: Sequence[str] = ()
) -> Iterator[tuple[str, Events]]:
    """Recognise files; with ``separate``, the segments of all channels in the order of their starts.

    Args:
        recognizer: the models.
        files: (name, audio file) of each recording.
        channels: ``first`` or ``separate``, see :data:`recognition.options.CHANNELS`.
        names: of the channels; () : left and right, or numbers from 1.

    Yields:
        the name of each recording and its events, as :meth:`recognition.recognizer.Recognizer.segments`; a
        segment of one of several channels has its name in ``channel``. A recording with not as many channels
        as names has an error only.
    """
    counts: deque[int] = deque()  # channels of the files that are read ahead

    def sources() -> Iterator[Source]:
        for name, path in files:
            counts.append(channel_count(path) if channels == SEPARATE else 1)
            yield from ((name, Channel(path, number)) for number in range(counts[-1]))

    recognised = recognizer.segments(sources())
    for name, events in recognised:
        count = counts.popleft()
        if count == 1 and not names:
            yield name, events
            continue
        every = [list(events), *(list(each) for _, each in islice(recognised, count - 1))]
        try:
            yield name, interleaved(every, channel_names(count, names))
        except ConfigError as error:  # the next file may have as many
            unequal = Ending(0.0, AudioError(error.message, where=name, hint=error.hint))
            yield name, iter([*_failed(every), unequal][:1])


def channel_names(count: int, names: Sequence[str]) -> Sequence[str]:
    """Names of the channels: those given; else left and right, numbers from 1, or none for the only channel.

    Raises:
        ConfigError: there are not as many ``names`` as channels.
    """
    if count == 1 and not names:
        return [""]
    if not names:
        return _TWO if count == len(_TWO) else [str(number) for number in range(1, count + 1)]
    if len(names) != count:
        raise ConfigError(
            f"channels: {count}, names for them: {len(names)}",
            hint="a name for each channel, or none",
        )
    return names


def interleaved(channels: Sequence[list[Recognition | Ending]], names: Sequence[str]) -> Events:
    """The segments of all channels in the order of their first syllables, then one ending."""
    segments = (
        [replace(event, channel=name) for event in events if isinstance(event, Recognition)]
        for events, name in zip(channels, names, strict=True)
    )
    yield from merge(*segments, key=lambda segment: segment.times[0][0] if segment.times else segment.start)
    endings = [event for events in channels for event in events if isinstance(event, Ending)]
    yield (_failed(channels) or endings)[0]


def _failed(channels: Sequence[list[Recognition | Ending]]) -> list[Ending]:
    """The endings of channels that could not be read."""
    return [event for events in channels for event in events if isinstance(event, Ending) and event.error]
