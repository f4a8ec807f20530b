"""Runs the checks that need no model on manifests and recordings, and collects their findings.

Checks that need a model are in ``preflight/recipes.py``.
"""

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from preflight.checks.audio import ACROSS, AUDIO, RATES, measure_recordings
from preflight.checks.manifests import CHEAP, hanzi_reading, not_in_vocabulary
from preflight.checks.splits import SPLITS, little_speech, unheard_syllable
from preflight.findings import Finding, apply
from preflight.listings import Line, Listing, lines_of
from utils.audio.reading import SAMPLE_RATE
from utils.files import is_file
from utils.mandarin.output_units import TONAL
from utils.vocabulary import Vocabulary


def examine_texts(
    listings: Sequence[Listing], readings: bool = True, initial: Collection[str] = (), units: str = TONAL
) -> list[Finding]:
    """Check manifests without their recordings; half a second for 10,000 lines.

    Args:
        listings: manifests with their roles.
        readings: whether to check hanzi against their syllables.
        initial: tokens that the model knows before the training.
        units: output units of the model.
    """
    checks = (*CHEAP, hanzi_reading) if readings else CHEAP
    findings = [finding for listing in listings for finding in apply(checks, listing)]
    findings += apply(SPLITS, listings) + apply((unheard_syllable,), listings, initial, units)
    return findings + apply((little_speech,), listings, initial)


def examine_audio(listings: Sequence[Listing], workers: int, sample_rate: int = SAMPLE_RATE) -> list[Finding]:
    """Check recordings; each is decoded once.

    Args:
        listings: manifests of the recordings.
        workers: number of processes that decode.
        sample_rate: sample rate of the features, in Hz.
    """
    paths = dict.fromkeys(line.audio for line in lines_of(listings))
    existing = [path for path in paths if is_file(path)]  # missing_recording reports the others
    measurements = measure_recordings(existing, workers)
    findings = [finding for listing in listings for finding in apply(AUDIO, listing, measurements)]
    findings += [
        finding for listing in listings for finding in apply(RATES, listing, measurements, sample_rate)
    ]
    return findings + apply(ACROSS, listings, measurements)


def examine_vocabulary(listings: Iterable[Listing], vocabulary: Vocabulary) -> list[Finding]:
    """Check manifests against the vocabulary of a run or recipe."""
    return [found for listing in listings for found in apply((not_in_vocabulary,), listing, vocabulary)]


def recordings_as_listing(where: str, paths: Sequence[Path]) -> Listing:
    """A listing of recordings without a manifest, for the audio checks."""
    lines = [Line(0, str(path), str(path.absolute()), float("nan"), "", (), "") for path in paths]
    return Listing(where, "", tuple(lines))


WITHOUT_MODEL = (
    *CHEAP,
    hanzi_reading,
    *SPLITS,
    unheard_syllable,
    little_speech,
    not_in_vocabulary,
    *AUDIO,
    *RATES,
    *ACROSS,
)
"""All checks of this module."""
