"""Detects typed phrases in a stream of audio with an acoustic model for all speech; nothing is trained."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from keywords.listening import BLOCK_SECONDS
from model_speech.acoustic_logits import load_acoustic_logits
from recognition.confidence import load_calibration
from recognition.live.loading import load_logit_stream
from recognition.live.windowed_logits import WindowedLogits
from recognition.phrases.phrase_list import Phrase
from recognition.phrases.spotter import PhraseSpotter
from recognition.phrases.thresholds import load_phrase_thresholds
from streaming.chunks import cut_blocks
from streaming.keyword import Detection
from streaming.speech.stream import LogitStream
from utils.run_folder.run import PRETRAINED_SPEECH


@dataclass(frozen=True)
class PhraseListener:
    """An acoustic model and the phrases that it listens for.

    Attributes:
        stream: samples → rows of logits.
        spotter: rows of logits → phrases.
        sample_rate: of the model, in Hz.
    """

    stream: LogitStream | WindowedLogits
    spotter: PhraseSpotter
    sample_rate: int


def open_phrase_listener(
    phrases: Sequence[Phrase],
    run: Path = PRETRAINED_SPEECH,
    alarms_per_hour: float = 1.0,
    source: str = "phrases",
) -> PhraseListener:
    """Load a speech run, by default the shipped one.

    Args:
        phrases: what to listen for.
        run: the speech run.
        alarms_per_hour: see :class:`PhraseSpotter`.
        source: name of the phrase file, for messages.

    Raises:
        RunError: the run is damaged or of another kind.
        PhraseError, ConfigError: see :class:`PhraseSpotter`.
    """
    acoustic = load_acoustic_logits(run)
    thresholds = load_phrase_thresholds(run)
    spotter = PhraseSpotter(
        phrases,
        acoustic.vocabulary,
        acoustic.frame_seconds,
        alarms_per_hour,
        thresholds,
        source,
        load_calibration(run).lead_seconds,
    )
    return PhraseListener(load_logit_stream(run, acoustic), spotter, acoustic.features.sample_rate)


def detect_phrases(listener: PhraseListener, blocks: Iterable[np.ndarray]) -> Iterator[Detection]:
    """Yield the phrases in a new stream as they are detected.

    Args:
        listener: the model and the phrases.
        blocks: samples in [-1, 1], (samples,) each, at the listener's sample rate.
    """
    listener.stream.reset()
    listener.spotter.reset()
    for piece in cut_blocks(blocks, max(1, round(BLOCK_SECONDS * listener.sample_rate))):
        yield from listener.spotter.feed(listener.stream.feed(piece))
    yield from listener.spotter.feed(listener.stream.flush())
    yield from listener.spotter.flush()
