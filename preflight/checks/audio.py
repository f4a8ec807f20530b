"""Facts on recordings, with the manifest lines that name them → audio faults.

Thresholds lie outside of what 869 AISHELL, 2,448 dspspeech20 and 1,600 HSK-word recordings show: loud
frames at -38.6 dB or above, an offset of at most 0.0053 (1.5 % of the root mean square; up to 26 % in
synthetic voices under brown noise), at most half of it zeros (gated microphones), lengths within 0.5 ms of
the manifest's. What they do find there is so: in dspspeech20 40 recordings are clipped, all of one speaker,
and 36 of another one come twice.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

from preflight.checks.audio_measurements import AudioFacts
from preflight.findings import ERROR, WARNING, Finding, line_finding
from preflight.listings import Line, Listing

_CLIPPED = 0.01  # share of the samples
_SILENT = -60.0  # dB; read speech is 25 dB louder
_OFFSET, _RELATIVE_OFFSET = 0.01, 0.5
_ZEROS = 0.6
_DEAD_CHANNEL = 40.0  # dB below the other
_SECONDS_OFF, _SECONDS_OFF_SHARE = 0.1, 0.02  # decoders of MP3 differ by up to 0.05 s

Facts = Mapping[str, AudioFacts]


def unreadable_recording(listing: Listing, facts: Facts) -> Iterator[Finding]:
    """Files that are empty, cut off, no audio, or hold NaN."""
    for line, found in _found(listing, facts, readable=False):
        advice = "copy, download or convert it again, or take it out"
        yield line_finding(ERROR, listing, line, "not usable as audio", advice, found.fault)


def wrong_seconds(listing: Listing, facts: Facts) -> Iterator[Finding]:
    """Lengths in the manifest that are not the recording's."""
    for line, found in _found(listing, facts):
        off = abs(line.seconds - found.seconds) if line.seconds >= 0 else 0.0
        if off > _SECONDS_OFF and off > _SECONDS_OFF_SHARE * found.seconds:
            detail = f"{line.seconds:.2f} s in the list, {found.seconds:.2f} s in the file"
            advice = "the file has changed, or is another one: prepare the corpus again"
            yield line_finding(ERROR, listing, line, "not the length of the recording", advice, detail)


def low_rate(listing: Listing, facts: Facts, sample_rate: int) -> Iterator[Finding]:
    """Sample rates below the features' (16 kHz without a recipe): their upper bands would be empty."""
    found_lines = list(_found(listing, facts))
    rates = Counter(found.rate for _, found in found_lines)
    for line, found in found_lines:
        if found.rate < sample_rate:
            what, advice = _low_rate_texts(rates, sample_rate)
            yield line_finding(WARNING, listing, line, what, advice, f"{found.rate} Hz")


def low_rate_of_some(listing: Listing, rates: Counter[int], sample_rate: int) -> Iterator[Finding]:
    """As low-rate, from the headers of some recordings: the quick look that train.py takes."""
    low = sum(count for rate, count in rates.items() if rate < sample_rate)
    if low:
        what, advice = _low_rate_texts(rates, sample_rate)
        detail = f"{low} of {rates.total()} recordings looked at, from {min(rates)} Hz"
        yield Finding(WARNING, listing.path, "", what, advice, detail)


def _low_rate_texts(rates: Counter[int], sample_rate: int) -> tuple[str, str]:
    """What is wrong with recordings below the features' rate, and what to do: by how many they are."""
    what = f"a sample rate below the features' {sample_rate} Hz: the upper bands are empty"
    lowest, low = min(rates), sum(count for rate, count in rates.items() if rate < sample_rate)
    if 2 * low > rates.total():
        return what, f"telephone speech: train with features.sample_rate={lowest}"
    return what, f"find the originals, leave them out, or train all with features.sample_rate={lowest}"


def unlike_rate(listing: Listing, facts: Facts, sample_rate: int) -> Iterator[Finding]:
    """Sample rates that differ from the rest of the list's."""
    rates = Counter(found.rate for _, found in _found(listing, facts))
    usual = rates.most_common(1)[0][0] if rates else 0
    for line, found in _found(listing, facts):
        if found.rate != usual and found.rate >= sample_rate:  # low_rate speaks of the others
            detail = f"{found.rate} Hz, most have {usual}"
            advice = "harmless if the recording is right: is it from elsewhere?"
            yield line_finding(WARNING, listing, line, "another sample rate than the rest", advice, detail)


def clipping(listing: Listing, facts: Facts) -> Iterator[Finding]:
    """Recordings whose tops are cut off."""
    for line, found in _found(listing, facts):
        if found.clipped > _CLIPPED:
            detail = f"{found.clipped:.1%} of the samples"
            advice = "record it again at a lower level; a few of them do no harm"
            yield line_finding(WARNING, listing, line, "clipped", advice, detail)


def silence(listing: Listing, facts: Facts) -> Iterator[Finding]:
    """Recordings of speech in which nothing is heard."""
    for line, found in _spoken(listing, facts):
        if found.level < _SILENT and found.zeros <= _ZEROS:
            detail = f"loud frames at {found.level:.0f} dB"
            yield line_finding(
                WARNING, listing, line, "nearly silent", "listen to it, or take it out", detail
            )


def digital_zero(listing: Listing, facts: Facts) -> Iterator[Finding]:
    """Recordings that are mostly exact zeros: gaps in the transmission, or padding."""
    for line, found in _spoken(listing, facts):
        if found.zeros > _ZEROS:
            detail = f"{found.zeros:.0%} of it"
            advice = "cut the zeros off, or copy the file again"
            yield line_finding(WARNING, listing, line, "mostly digital zeros", advice, detail)


def dc_offset(listing: Listing, facts: Facts) -> Iterator[Finding]:
    """Recordings whose samples are not centred on zero."""
    for line, found in _found(listing, facts):
        if abs(found.offset) > _OFFSET and found.relative_offset > _RELATIVE_OFFSET:
            detail = f"{found.offset:+.3f}, {found.relative_offset:.0%} of the level"
            advice = "subtract the mean, e.g. sox IN OUT highpass 20"
            yield line_finding(WARNING, listing, line, "a constant offset", advice, detail)


def dead_channel(listing: Listing, facts: Facts) -> Iterator[Finding]:
    """Recordings of several channels of which one is silent."""
    for line, found in _found(listing, facts):
        loudest, softest = max(found.channel_levels), min(found.channel_levels)
        if loudest > _SILENT and softest < loudest - _DEAD_CHANNEL:
            detail = f"channel {found.channel_levels.index(softest) + 1} of {len(found.channel_levels)}"
            advice = "keep the other channel alone: the mean of both is half as loud"
            yield line_finding(WARNING, listing, line, "a channel is silent", advice, detail)


def same_sound(listing: Listing, facts: Facts) -> Iterator[Finding]:
    """Files of other names with the very same samples."""
    same: dict[bytes, list[Line]] = defaultdict(list)
    for line, found in _found(listing, facts):
        same[found.digest].append(line)
    for lines in same.values():
        first = lines[0]
        for line in lines[1:]:
            if line.audio == first.audio:  # repeated_recording speaks of it
                continue
            detail = f"as in line {first.number} ({first.id})"
            if line.pinyin == first.pinyin:
                advice = "take one of them out"
                yield line_finding(WARNING, listing, line, "a copy of another recording", advice, detail)
            else:
                what = "a copy of another recording with another text"
                advice = "listen to it: at most one of the texts is right"
                yield line_finding(ERROR, listing, line, what, advice, detail)


def same_sound_in_splits(listings: list[Listing], facts: Facts) -> Iterator[Finding]:
    """Test or dev recordings that are trained on under another file name."""
    train = [pair for one in listings if one.role == "train" for pair in _found(one, facts)]
    known = {found.digest: line for line, found in train}
    names = {line.audio for line, _ in train}
    for listing in listings:
        if listing.role not in ("dev", "test"):
            continue
        for line, found in _found(listing, facts):
            if found.digest in known and line.audio not in names:
                yield line_finding(
                    ERROR if listing.role == "test" else WARNING,
                    listing,
                    line,
                    "a copy of a recording that is trained on",
                    f"take it out of one of them: the {listing.role} figures flatter",
                    f"{known[found.digest].id}",
                )


def _found(listing: Listing, facts: Facts, readable: bool = True) -> Iterator[tuple[Line, AudioFacts]]:
    """The lines whose recordings were measured, readable or not."""
    for line in listing.lines:
        found = facts.get(line.audio)
        if found and bool(found.fault) != readable:
            yield line, found


def _spoken(listing: Listing, facts: Facts) -> Iterator[tuple[Line, AudioFacts]]:
    """Those that should hold speech: not a manifest's noises; a recording without a manifest should."""
    return ((line, found) for line, found in _found(listing, facts) if line.pinyin or not line.number)


AUDIO = (
    unreadable_recording,
    wrong_seconds,
    clipping,
    silence,
    digital_zero,
    dc_offset,
    dead_channel,
    same_sound,
)
"""What looks at the recordings of one list."""
RATES = (low_rate, unlike_rate)
"""What holds their sample rates against that of the features."""
ACROSS = (same_sound_in_splits,)
"""What looks at those of several lists together."""
