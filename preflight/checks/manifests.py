"""Checks of the lines of a manifest, without reading recordings.

Thresholds lie well outside the range of 869 AISHELL, 2,448 dspspeech20, 1,600 HSK-word and 15,000 synthetic
utterances: 0.49 to 6.84 syllables per second, 0.5 to 9.1 seconds; never within 2.5 s of
``_PAUSE + _SLOWEST * syllables`` seconds.
"""

import os
from collections import Counter, defaultdict
from collections.abc import Iterator

from preflight.findings import ERROR, WARNING, Finding, line_finding
from preflight.listings import Line, Listing, canonical
from utils.mandarin.pinyin import full_inventory, is_hanzi
from utils.vocabulary import Vocabulary

_FASTEST = 10.0  # syllables a second; hurried Mandarin reaches 8
_PAUSE, _SLOWEST = 3.0, 1.5  # seconds of silence around a text, and seconds for each of its syllables
_SHORTEST, _LONGEST = 0.2, 40.0  # seconds


def misshapen_line(listing: Listing) -> Iterator[Finding]:
    """Lines with too few or too many fields."""
    for number, fields in listing.misshapen:
        yield Finding(
            ERROR,
            listing.path,
            f"line {number}",
            "the number of fields differs from the header",
            "separate the fields by single tabs",
            f"{fields} instead of {listing.columns}",
        )


def impossible_seconds(listing: Listing) -> Iterator[Finding]:
    """Lengths that are not a number, negative or infinite."""
    for line in listing.lines:
        if not 0 <= line.seconds < float("inf"):
            yield line_finding(ERROR, listing, line, "not a valid length", "prepare the corpus again")


def unknown_syllable(listing: Listing) -> Iterator[Finding]:
    """Syllables that are not Mandarin."""
    unknown = {syllable for syllable in _counts(listing) if canonical(syllable) is None}
    for line in listing.lines if unknown else ():
        own = [syllable for syllable in (*line.pinyin, *line.spoken) if syllable in unknown]
        if own:
            advice = "write syllables like zhong1 lv4 de5, or remove the line"
            shown = " ".join(map(repr, own[:3]))
            yield line_finding(ERROR, listing, line, "not a Mandarin syllable", advice, shown)


def rare_syllable(listing: Listing) -> Iterator[Finding]:
    """Syllables outside the inventory (erhua …): each adds a class to the model."""
    inventory = set(full_inventory())
    for syllable, count in sorted(_counts(listing).items()):
        if syllable not in inventory and canonical(syllable):
            yield Finding(
                WARNING,
                listing.path,
                syllable,
                "a syllable outside the inventory, which adds a class to the model",
                "check the transcript; write erhua as two syllables if few utterances have it",
                f"{count:,} time{'s' * (count > 1)}",
            )


def unequal_length(listing: Listing) -> Iterator[Finding]:
    """Texts with different numbers of syllables and hanzi."""
    for line in listing.lines:
        for kind, syllables in (("pinyin", line.pinyin), ("spoken_pinyin", line.spoken)):
            if len(syllables) != len(line.hanzi) and (syllables or kind == "pinyin"):
                detail = f"{len(syllables)} syllables in {kind}, {len(line.hanzi)} hanzi"
                advice = "write one syllable for each hanzi, or remove the line"
                yield line_finding(
                    ERROR, listing, line, "syllables and hanzi differ in number", advice, detail
                )


def not_hanzi(listing: Listing) -> Iterator[Finding]:
    """Letters, digits or punctuation in the hanzi."""
    for line in listing.lines:
        if line.hanzi and not is_hanzi(line.hanzi):
            others = "".join(character for character in line.hanzi if not is_hanzi(character))
            advice = "write the spoken words in hanzi, or remove the line"
            yield line_finding(
                WARNING, listing, line, "a text with characters that are not hanzi", advice, repr(others)
            )


def empty_text(listing: Listing) -> Iterator[Finding]:
    """Lines without a text among lines with a text."""
    empty = [line for line in listing.lines if not line.pinyin and not line.hanzi]
    if len(empty) < len(listing.lines):  # a list of noises has no texts
        for line in empty:
            yield line_finding(WARNING, listing, line, "no text", "add the text, or remove the line")


def repeated_id(listing: Listing) -> Iterator[Finding]:
    """Ids that occur more than once."""
    seen: dict[str, int] = {}
    for line in listing.lines:
        first = seen.setdefault(line.id, line.number)
        if first != line.number:
            advice = "give each line a unique id"
            yield line_finding(ERROR, listing, line, "a repeated id", advice, f"also in line {first}")


def repeated_recording(listing: Listing) -> Iterator[Finding]:
    """Recordings with several ids."""
    by_audio: dict[str, list[Line]] = defaultdict(list)
    for line in listing.lines:
        by_audio[line.audio].append(line)
    for lines in by_audio.values():
        first = lines[0]
        for line in lines[1:]:
            if line.id == first.id:  # reported by repeated_id
                continue
            detail = f"also in line {first.number} ({first.id})"
            if line.pinyin == first.pinyin:
                advice = "remove one of them; data.weights repeats whole lists"
                yield line_finding(WARNING, listing, line, "a repeated recording", advice, detail)
            else:
                advice = "listen to it, and keep the right line"
                yield line_finding(ERROR, listing, line, "a recording with two texts", advice, detail)


def missing_recording(listing: Listing) -> Iterator[Finding]:
    """Recordings that do not exist."""
    for line in listing.lines:
        if not os.path.isfile(line.audio):  # noqa: PTH113, a hundred thousand times
            advice = "mount or unpack the corpus, or prepare it again"
            yield line_finding(ERROR, listing, line, "no such recording", advice, line.audio)


def speech_rate(listing: Listing) -> Iterator[Finding]:
    """Too many or too few syllables for the length: probably the text of another recording."""
    advice = "listen to it: probably the text of another recording"
    for line in listing.lines:
        count = len(line.pinyin)
        if not count or not line.has_length:
            continue
        detail = f"{count} syllables in {line.seconds:.2f} s"
        if count > _FASTEST * line.seconds:
            yield line_finding(WARNING, listing, line, "faster than anyone can speak", advice, detail)
        elif line.seconds > _PAUSE + _SLOWEST * count:
            yield line_finding(WARNING, listing, line, "a text too short for the recording", advice, detail)


def unusual_length(listing: Listing) -> Iterator[Finding]:
    """Very short and very long recordings."""
    for line in listing.lines:
        if not line.pinyin:
            continue
        detail = f"{line.seconds:.2f} s"
        if 0 <= line.seconds < _SHORTEST:
            yield line_finding(WARNING, listing, line, "too short for a syllable", "remove the line", detail)
        elif _LONGEST < line.seconds < float("inf"):
            advice = "cut it at pauses: the longest recording determines the memory of a batch"
            yield line_finding(WARNING, listing, line, "a very long recording", advice, detail)


def not_in_vocabulary(listing: Listing, vocabulary: Vocabulary) -> Iterator[Finding]:
    """Syllables that are not in the vocabulary of a run."""
    for line in listing.lines:
        missing = [s for s in line.pinyin if canonical(s) and s not in vocabulary]
        if missing:
            advice = "the run can't output them: remove the lines, or use inspect_model.py transfer"
            shown = " ".join(missing[:3])
            yield line_finding(
                ERROR, listing, line, "a syllable that is not in the run's vocabulary", advice, shown
            )


def _counts(listing: Listing) -> Counter[str]:
    """The number of occurrences of each syllable."""
    counts: Counter[str] = Counter()
    for line in listing.lines:
        counts.update(line.pinyin)
        counts.update(line.spoken)
    return counts


CHEAP = (
    misshapen_line,
    impossible_seconds,
    unknown_syllable,
    rare_syllable,
    unequal_length,
    not_hanzi,
    empty_text,
    repeated_id,
    repeated_recording,
    missing_recording,
    speech_rate,
    unusual_length,
)
"""Checks of one manifest."""
