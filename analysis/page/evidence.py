"""What a page can show of a single recording: its sound, and what the acoustic model heard when.

Made by ``analysis.page.collect_evidence``; that takes matplotlib and Pillow, which a page doesn't need.
"""

from __future__ import annotations

from dataclasses import dataclass

WORST_SHOWN = 40  # utterances, if no number is given: some 4 MB of a page


@dataclass(frozen=True)
class Evidence:
    """What a person needs to look at an utterance and to listen to it, ready to stand in a page.

    Attributes:
        id: of the utterance.
        sound: data address (``audio/mpeg``); ``""`` where the recording is gone, or long.
        picture: data address (``image/webp``): spectrogram above, CTC posteriors below. Its width is exactly
            the utterance's time axis, without margins; ``""`` of a recording that is recognised in pieces.
        seconds: that width.
        tracks: (label, alternative text) of the parts of the picture from top to bottom; and of what is
            missing, why.
    """

    id: str
    sound: str
    picture: str
    seconds: float
    tracks: tuple[tuple[str, str], ...]
