"""What the user names → all findings on it: which checks look at what, in which order.

Needs no model; ``preflight/recipes.py`` has what does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from preflight.checks.audio import ACROSS, AUDIO, RATES
from preflight.checks.audio_measurements import measure_recordings
from preflight.checks.manifests import CHEAP, not_in_vocabulary
from preflight.checks.readings import hanzi_reading
from preflight.checks.splits import SPLITS
from preflight.findings import Finding, apply
from preflight.listings import Line, Listing, lines_of
from utils.audio.reading import SAMPLE_RATE
from utils.files import is_file
from utils.vocabulary import Vocabulary


def examine_texts(listings: Sequence[Listing], readings: bool = True) -> list[Finding]:
    """What the manifests alone tell, of 10,000 lines in half a second.

    Args:
        listings: each with its role.
        readings: whether hanzi are held against their syllables.
    """
    checks = (*CHEAP, hanzi_reading) if readings else CHEAP
    findings = [finding for listing in listings for finding in apply(checks, listing)]
    return findings + apply(SPLITS, listings)


def examine_audio(listings: Sequence[Listing], workers: int, sample_rate: int = SAMPLE_RATE) -> list[Finding]:
    """What is wrong with the recordings; each is decoded once, however many lists name it.

    Args:
        listings: that name them.
        workers: processes that decode.
        sample_rate: Hz, of the features that are to be made of them.
    """
    paths = dict.fromkeys(line.audio for line in lines_of(listings))
    there = [path for path in paths if is_file(path)]  # missing_recording speaks of the others
    facts = measure_recordings(there, workers)
    findings = [finding for listing in listings for finding in apply(AUDIO, listing, facts)]
    findings += [finding for listing in listings for finding in apply(RATES, listing, facts, sample_rate)]
    return findings + apply(ACROSS, listings, facts)


def examine_vocabulary(listings: Iterable[Listing], vocabulary: Vocabulary) -> list[Finding]:
    """What a run's vocabulary lacks."""
    return [found for listing in listings for found in apply((not_in_vocabulary,), listing, vocabulary)]


def recordings_as_listing(where: str, paths: Sequence[Path]) -> Listing:
    """Recordings without a manifest, so that the audio checks can look at them."""
    lines = [Line(0, str(path), str(path.absolute()), float("nan"), "", (), "") for path in paths]
    return Listing(where, "", tuple(lines))


WITHOUT_MODEL = (*CHEAP, hanzi_reading, *SPLITS, not_in_vocabulary, *AUDIO, *RATES, *ACROSS)
"""All checks of this module."""
