"""The audio and the picture of a single utterance, as a page shows them: :class:`Evidence`.

Made by ``analysis.page.collect_evidence``, which needs matplotlib and Pillow; a page does not.
"""

from dataclasses import dataclass

WORST_SHOWN = 40  # utterances, by default: about 4 MB of a page


@dataclass(frozen=True)
class Evidence:
    """Sound and picture of an utterance, ready to be embedded in a page.

    Attributes:
        id: id of the utterance.
        sound: data URL (``audio/mpeg``); ``""`` if the recording does not exist any more or is too long.
        picture: data URL (``image/webp``) with the spectrogram above the CTC posteriors. Its width is exactly
            the time axis of the utterance, without margins. ``""`` for a recording recognised in pieces.
        seconds: duration, the width of the picture.
        tracks: (label, alternative text) of the parts of the picture from top to bottom; also the reasons why
            something is missing.
    """

    id: str
    sound: str
    picture: str
    seconds: float
    tracks: tuple[tuple[str, str], ...]
