"""The worst utterances of a test and what a model heard in them in; sound and picture for a page out."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Evidence:
    """What a person needs to look at an utterance and to listen to it, ready to stand in a page.

    Attributes:
        id: of the utterance.
        sound: data address (``audio/mpeg``); ``""`` where the recording is gone.
        picture: data address (``image/png``): spectrogram above, CTC posteriors below. Its width is exactly
            the utterance's time axis, without margins; ``""`` without a model.
        seconds: that width.
        tracks: (label, alternative text) of the parts of the picture from top to bottom; without a picture,
            why there is none.
    """

    id: str
    sound: str
    picture: str
    seconds: float
    tracks: tuple[tuple[str, str], ...]
