"""A manifest's lines → what is wrong with them, without a look into the recordings.

Thresholds lie well outside what was measured on 869 AISHELL, 2,448 dspspeech20, 1,600 HSK-word and 15,000
synthetic utterances: 0.49 to 6.84 syllables a second, 0.5 to 9.1 seconds; never more than 2.5 s below
``_PAUSE + _SLOWEST * syllables`` seconds.
"""

from __future__ import annotations

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
            "not the header's number of fields",
            "separate the fields by single tabs",
            f"{fields} instead of {listing.columns}",
        )


def impossible_seconds(listing: Listing) -> Iterator[Finding]:
    """Lengths that are no number, negative or infinite."""
    for line in listing.lines:
        if not 0 <= line.seconds < float("inf"):
            yield line_finding(ERROR, listing, line, "no possible length", "prepare the corpus again")


def unknown_syllable(listing: Listing) -> Iterator[Finding]:
    """Syllables that are not Mandarin."""
    unknown = {syllable for syllable in _counts(listing) if canonical(syllable) is None}
    for line in listing.lines if unknown else ():
        its_own = [syllable for syllable in (*line.pinyin, *line.spoken) if syllable in unknown]
        if its_own:
            advice = "write syllables like zhong1 lv4 de5, or take the line out"
            shown = " ".join(map(repr, its_own[:3]))
            yield line_finding(ERROR, listing, line, "no Mandarin syllable", advice, shown)


def rare_syllable(listing: Listing) -> Iterator[Finding]:
    """Syllables beyond the inventory (erhua …): each adds a class to the model."""
    inventory = set(full_inventory())
    for syllable, count in sorted(_counts(listing).items()):
        if syllable not in inventory and canonical(syllable):
            yield Finding(
                WARNING,
                listing.path,
                syllable,
                "a syllable beyond the inventory, one more class of the model",
                "check the transcript; write erhua as two syllables if few utterances hold it",
                f"in {count:,} place{'s' * (count > 1)}",
            )


def unequal_length(listing: Listing) -> Iterator[Finding]:
    """Texts with more syllables than hanzi, or fewer."""
    for line in listing.lines:
        for kind, syllables in (("pinyin", line.pinyin), ("spoken_pinyin", line.spoken)):
            if len(syllables) != len(line.hanzi) and (syllables or kind == "pinyin"):
                detail = f"{len(syllables)} syllables in {kind}, {len(line.hanzi)} hanzi"
                advice = "write one syllable a hanzi, or take the line out"
                yield line_finding(
                    ERROR, listing, line, "syllables and hanzi differ in number", advice, detail
                )


def not_hanzi(listing: Listing) -> Iterator[Finding]:
    """Letters, digits or punctuation in the hanzi."""
    for line in listing.lines:
        if line.hanzi and not is_hanzi(line.hanzi):
            strange = "".join(character for character in line.hanzi if not is_hanzi(character))
            advice = "write out what is said in hanzi, or take the line out"
            yield line_finding(WARNING, listing, line, "a text with more than hanzi", advice, repr(strange))


def empty_text(listing: Listing) -> Iterator[Finding]:
    """Lines without a text among lines with one."""
    empty = [line for line in listing.lines if not line.pinyin and not line.hanzi]
    if len(empty) < len(listing.lines):  # a list of noises has no texts at all
        for line in empty:
            yield line_finding(WARNING, listing, line, "no text", "write what is said, or take the line out")


def repeated_id(listing: Listing) -> Iterator[Finding]:
    """Ids that come more than once."""
    seen: dict[str, int] = {}
    for line in listing.lines:
        first = seen.setdefault(line.id, line.number)
        if first != line.number:
            advice = "give each line an id of its own"
            yield line_finding(
                ERROR, listing, line, "an id for the second time", advice, f"also in line {first}"
            )


def repeated_recording(listing: Listing) -> Iterator[Finding]:
    """Recordings that come under several ids."""
    by_audio: dict[str, list[Line]] = defaultdict(list)
    for line in listing.lines:
        by_audio[line.audio].append(line)
    for lines in by_audio.values():
        first = lines[0]
        for line in lines[1:]:
            if line.id == first.id:  # said by repeated_id
                continue
            detail = f"also in line {first.number} ({first.id})"
            if line.pinyin == first.pinyin:
                advice = "take one of them out, or weigh whole lists with data.weights"
                yield line_finding(WARNING, listing, line, "a recording for the second time", advice, detail)
            else:
                advice = "listen to it, and keep the line that is right"
                yield line_finding(ERROR, listing, line, "a recording with two texts", advice, detail)


def missing_recording(listing: Listing) -> Iterator[Finding]:
    """Recordings that are not there."""
    for line in listing.lines:
        if not os.path.isfile(line.audio):  # noqa: PTH113, a hundred thousand times
            advice = "mount or unpack the corpus, or prepare it again"
            yield line_finding(ERROR, listing, line, "no such recording", advice, line.audio)


def speech_rate(listing: Listing) -> Iterator[Finding]:
    """Too many or too few syllables for the length: probably another recording's text."""
    advice = "listen to it: probably another recording's text"
    for line in listing.lines:
        count = len(line.pinyin)
        if not count or not 0 < line.seconds < float("inf"):
            continue
        detail = f"{count} syllables in {line.seconds:.2f} s"
        if count > _FASTEST * line.seconds:
            yield line_finding(WARNING, listing, line, "spoken faster than anybody can", advice, detail)
        elif line.seconds > _PAUSE + _SLOWEST * count:
            yield line_finding(WARNING, listing, line, "a short text for so long a recording", advice, detail)


def unusual_length(listing: Listing) -> Iterator[Finding]:
    """Very short recordings, and very long ones."""
    for line in listing.lines:
        if not line.pinyin:
            continue
        detail = f"{line.seconds:.2f} s"
        if 0 <= line.seconds < _SHORTEST:
            yield line_finding(
                WARNING, listing, line, "too short for a syllable", "take the line out", detail
            )
        elif _LONGEST < line.seconds < float("inf"):
            advice = "cut it at pauses: it decides how much memory a batch takes"
            yield line_finding(WARNING, listing, line, "a very long recording", advice, detail)


def not_in_vocabulary(listing: Listing, vocabulary: Vocabulary) -> Iterator[Finding]:
    """Syllables that a run's vocabulary lacks."""
    for line in listing.lines:
        lacking = [s for s in line.pinyin if canonical(s) and s not in vocabulary]
        if lacking:
            advice = "the run can't output them: take the lines out, or inspect_model.py transfer"
            shown = " ".join(lacking[:3])
            yield line_finding(
                ERROR, listing, line, "a syllable that the run's vocabulary lacks", advice, shown
            )


def _counts(listing: Listing) -> Counter[str]:
    """How often each syllable is written."""
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
"""What looks at one manifest alone."""
