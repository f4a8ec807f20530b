"""Checks of recordings: measurements and the manifest lines that name them in; audio faults out.

Thresholds lie outside the range of 869 AISHELL, 2,448 dspspeech20 and 1,600 HSK-word recordings: loud frames
at -38.6 dB or above, an offset of at most 0.0053 (1.5 % of the root mean square; up to 26 % in synthetic
voices with brown noise), at most half of the samples zero (gated microphones), lengths within 0.5 ms of the
manifest's. The findings in these corpora are true: in dspspeech20 40 recordings of one speaker are clipped,
and 36 of another speaker are duplicates.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

from preflight.checks.audio_measurements import AudioMeasurements
from preflight.findings import ERROR, WARNING, Finding, line_finding
from preflight.listings import Line, Listing, of_role

_CLIPPED = 0.01  # fraction of the samples
_SILENT = -60.0  # dB; read speech is 25 dB louder
_OFFSET, _RELATIVE_OFFSET = 0.01, 0.5
_ZEROS = 0.6
_DEAD_CHANNEL = 40.0  # dB below the other
_SECONDS_OFF, _SECONDS_OFF_FRACTION = 0.1, 0.02  # decoders of MP3 differ by up to 0.05 s

Measurements = Mapping[str, AudioMeasurements]


def unreadable_recording(listing: Listing, measurements: Measurements) -> Iterator[Finding]:
    """Files that are empty, truncated, not audio, or contain NaN."""
    for line, found in _found(listing, measurements, readable=False):
        advice = "copy, download or convert it again, or remove the line"
        yield line_finding(ERROR, listing, line, "not usable as audio", advice, found.fault)


def wrong_seconds(listing: Listing, measurements: Measurements) -> Iterator[Finding]:
    """Lengths in the manifest that differ from the recording."""
    for line, found in _found(listing, measurements):
        off = abs(line.seconds - found.seconds) if line.seconds >= 0 else 0.0
        if off > _SECONDS_OFF and off > _SECONDS_OFF_FRACTION * found.seconds:
            detail = f"{line.seconds:.2f} s in the list, {found.seconds:.2f} s in the file"
            advice = "the file has changed or is the wrong one: prepare the corpus again"
            yield line_finding(ERROR, listing, line, "not the length of the recording", advice, detail)


def low_rate(listing: Listing, measurements: Measurements, sample_rate: int) -> Iterator[Finding]:
    """Sample rates below the features' (16 kHz without a recipe): their upper bands would be empty."""
    found_lines = list(_found(listing, measurements))
    rates = Counter(found.rate for _, found in found_lines)
    for line, found in found_lines:
        if found.rate < sample_rate:
            what, advice = _low_rate_texts(rates, sample_rate)
            yield line_finding(WARNING, listing, line, what, advice, f"{found.rate} Hz")


def low_rate_of_some(listing: Listing, rates: Counter[int], sample_rate: int) -> Iterator[Finding]:
    """The same from the headers of some recordings: the quick check of train.py."""
    low = sum(count for rate, count in rates.items() if rate < sample_rate)
    if low:
        what, advice = _low_rate_texts(rates, sample_rate)
        detail = f"{low} of {rates.total()} checked recordings, from {min(rates)} Hz"
        yield Finding(WARNING, listing.path, "", what, advice, detail)


def _low_rate_texts(rates: Counter[int], sample_rate: int) -> tuple[str, str]:
    """Description and advice for recordings below the features' rate, depending on their number."""
    what = f"a sample rate below the features' {sample_rate} Hz: the upper bands are empty"
    lowest, low = min(rates), sum(count for rate, count in rates.items() if rate < sample_rate)
    if 2 * low > rates.total():
        return what, f"telephone speech: train with features.sample_rate={lowest}"
    return what, f"find the originals, remove them, or train all with features.sample_rate={lowest}"


def unlike_rate(listing: Listing, measurements: Measurements, sample_rate: int) -> Iterator[Finding]:
    """Sample rates that differ from most of the list."""
    rates = Counter(found.rate for _, found in _found(listing, measurements))
    usual = rates.most_common(1)[0][0] if rates else 0
    for line, found in _found(listing, measurements):
        if found.rate != usual and found.rate >= sample_rate:  # low_rate reports the others
            detail = f"{found.rate} Hz, most have {usual}"
            advice = "check its origin; harmless if it is the right recording"
            yield line_finding(WARNING, listing, line, "another sample rate than the rest", advice, detail)


def clipping(listing: Listing, measurements: Measurements) -> Iterator[Finding]:
    """Recordings that are clipped."""
    for line, found in _found(listing, measurements):
        if found.clipped > _CLIPPED:
            detail = f"{found.clipped:.1%} of the samples"
            advice = "record it again at a lower level; a few clipped recordings are harmless"
            yield line_finding(WARNING, listing, line, "clipped", advice, detail)


def silence(listing: Listing, measurements: Measurements) -> Iterator[Finding]:
    """Recordings of speech that are nearly silent."""
    for line, found in _spoken(listing, measurements):
        if found.level < _SILENT and found.zeros <= _ZEROS:
            detail = f"loud frames at {found.level:.0f} dB"
            yield line_finding(
                WARNING, listing, line, "nearly silent", "listen to it, or remove the line", detail
            )


def digital_zero(listing: Listing, measurements: Measurements) -> Iterator[Finding]:
    """Recordings that are mostly exact zeros: transmission gaps or padding."""
    for line, found in _spoken(listing, measurements):
        if found.zeros > _ZEROS:
            detail = f"{found.zeros:.0%} of the samples"
            advice = "remove the zeros, or copy the file again"
            yield line_finding(WARNING, listing, line, "mostly digital zeros", advice, detail)


def dc_offset(listing: Listing, measurements: Measurements) -> Iterator[Finding]:
    """Recordings with a constant offset."""
    for line, found in _found(listing, measurements):
        if abs(found.offset) > _OFFSET and found.relative_offset > _RELATIVE_OFFSET:
            detail = f"{found.offset:+.3f}, {found.relative_offset:.0%} of the level"
            advice = "subtract the mean, e.g. sox IN OUT highpass 20"
            yield line_finding(WARNING, listing, line, "a constant offset", advice, detail)


def dead_channel(listing: Listing, measurements: Measurements) -> Iterator[Finding]:
    """Recordings with a silent channel among several."""
    for line, found in _found(listing, measurements):
        loudest, softest = max(found.channel_levels), min(found.channel_levels)
        if loudest > _SILENT and softest < loudest - _DEAD_CHANNEL:
            detail = f"channel {found.channel_levels.index(softest) + 1} of {len(found.channel_levels)}"
            advice = "keep only the other channel: the mean of both is half as loud"
            yield line_finding(WARNING, listing, line, "a channel is silent", advice, detail)


def same_sound(listing: Listing, measurements: Measurements) -> Iterator[Finding]:
    """Files with different names and identical samples."""
    same: dict[bytes, list[Line]] = defaultdict(list)
    for line, found in _found(listing, measurements):
        same[found.digest].append(line)
    for lines in same.values():
        first = lines[0]
        for line in lines[1:]:
            if line.audio == first.audio:  # reported by repeated_recording
                continue
            detail = f"same as line {first.number} ({first.id})"
            if line.pinyin == first.pinyin:
                advice = "remove one of them"
                yield line_finding(WARNING, listing, line, "a copy of another recording", advice, detail)
            else:
                what = "a copy of another recording with another text"
                advice = "listen to it: at most one of the texts is right"
                yield line_finding(ERROR, listing, line, what, advice, detail)


def same_sound_in_splits(listings: list[Listing], measurements: Measurements) -> Iterator[Finding]:
    """Test or dev recordings that are in the training set under another file name."""
    train = [pair for listing in of_role(listings, "train") for pair in _found(listing, measurements)]
    known = {found.digest: line for line, found in train}
    names = {line.audio for line, _ in train}
    for listing in listings:
        if listing.role not in ("dev", "test"):
            continue
        for line, found in _found(listing, measurements):
            if found.digest in known and line.audio not in names:
                yield line_finding(
                    ERROR if listing.role == "test" else WARNING,
                    listing,
                    line,
                    "a copy of a recording in the training set",
                    f"remove one of them: the {listing.role} figures are too good",
                    f"{known[found.digest].id}",
                )


def _found(
    listing: Listing, measurements: Measurements, readable: bool = True
) -> Iterator[tuple[Line, AudioMeasurements]]:
    """Lines with the measurements of their readable (or unreadable) recordings."""
    for line in listing.lines:
        found = measurements.get(line.audio)
        if found and bool(found.fault) != readable:
            yield line, found


def _spoken(listing: Listing, measurements: Measurements) -> Iterator[tuple[Line, AudioMeasurements]]:
    """The readable ones with speech: lines with a text, and recordings without a manifest."""
    return ((line, found) for line, found in _found(listing, measurements) if line.pinyin or not line.number)


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
"""Checks of the recordings of one list."""
RATES = (low_rate, unlike_rate)
"""Checks of sample rates against that of the features."""
ACROSS = (same_sound_in_splits,)
"""Checks across several lists."""
