"""Checks the lines of a manifest without opening recordings: fields, texts, ids, lengths, speaking rate.

Also checked are whether each recording exists and is listed once, and the syllables against a run's
vocabulary.

Thresholds lie well outside the range of 869 AISHELL, 2,448 dspspeech20, 1,600 HSK-word and 15,000 synthetic
utterances: 0.49 to 6.84 syllables per second, 0.5 to 9.1 seconds, at least 2.5 s
below the limit for slow speech, ``_PAUSE + _SLOWEST * syllables``.
Of 641,000 pairs of a hanzi and its syllable of the THCHS-30 and AISHELL texts 0.012 % are reported, which are
true errors (谎 huang1, 捧 peng2).
"""

from collections import Counter
from collections.abc import Iterator
from functools import cache

from pypinyin.constants import PINYIN_DICT

from preflight.findings import ERROR, WARNING, Finding, line_check, line_finding, repeated_lines
from preflight.listings import Line, Listing, canonical
from utils.files import is_file
from utils.mandarin.pinyin import full_inventory, is_hanzi, tone_of, without_tone
from utils.processes import bar_if_long
from utils.vocabulary import Vocabulary

_FASTEST = 10.0  # syllables a second; hurried Mandarin reaches 8
_PAUSE, _SLOWEST = 3.0, 1.5  # seconds of silence around a text, and seconds for each of its syllables
_MOST_NEUTRAL = 0.5  # of the syllables have the neutral tone; in running text it is a twentieth
_SHORTEST, _LONGEST = 0.2, 40.0  # seconds; other lengths are reported
# Their tone depends on the next syllable (sandhi), and corpora write either tone.
_SANDHI = frozenset("一不七八")


def no_lines(listing: Listing) -> Iterator[Finding]:
    """Lists of a split without an utterance."""
    if listing.role and not listing.lines and not listing.misshapen:
        problem = f"there is no utterance for {listing.role}"
        yield Finding(ERROR, listing.path, "", problem, "prepare the corpus again, or leave this list out")


def misshapen_line(listing: Listing) -> Iterator[Finding]:
    """Lines with too few or too many fields."""
    problem, advice = "the number of fields differs from the header", "separate the fields by single tabs"
    for number, fields in listing.misshapen:
        detail = f"{fields} instead of {listing.columns}"
        yield Finding(ERROR, listing.path, f"line {number}", problem, advice, detail)


@line_check(ERROR, "not a valid length", "prepare the corpus again")
def impossible_seconds(line: Line) -> str | None:
    """Lengths that are not a number, negative or infinite."""
    return None if 0 <= line.seconds < float("inf") else ""


@line_check(ERROR, "not a Mandarin syllable", "write syllables like zhong1 lv4 de5, or remove the line")
def unknown_syllable(line: Line) -> str | None:
    """Syllables that are not Mandarin."""
    unknown = [syllable for syllable in (*line.pinyin, *line.spoken) if canonical(syllable) is None]
    return " ".join(map(repr, unknown[:3])) or None


def rare_syllable(listing: Listing) -> Iterator[Finding]:
    """Syllables outside the inventory (erhua …): each adds a class to the model."""
    problem = "a syllable outside the inventory, which adds a class to the model"
    advice = "check the transcript; write erhua as two syllables if few utterances have it"
    inventory = set(full_inventory())
    for syllable, count in sorted(_counts(listing).items()):
        if syllable not in inventory and canonical(syllable):
            detail = f"{count:,} time{'s' * (count > 1)}"
            yield Finding(WARNING, listing.path, syllable, problem, advice, detail)


def toneless_pinyin(listing: Listing) -> Iterator[Finding]:
    """Lists whose pinyin was written without tones, so that every syllable is read with the neutral tone."""
    counts = {syllable: count for syllable, count in _counts(listing).items() if canonical(syllable)}
    total, neutral = sum(counts.values()), sum(counts[each] for each in counts if tone_of(each) == 5)
    if neutral > _MOST_NEUTRAL * total:
        advice = "write digits (ni3 hao3), or leave the column empty and prepare the list: it is filled"
        detail = f"{neutral:,} of {total:,} syllables have the neutral tone"
        yield Finding(WARNING, listing.path, "", "the pinyin has no tones", advice, detail)


@line_check(
    ERROR,
    "syllables and hanzi differ in number",
    "write one syllable for each hanzi, or remove the line",
)
def unequal_length(line: Line) -> str | None:
    """Texts with different numbers of syllables and hanzi."""
    for kind, syllables in (("pinyin", line.pinyin), ("spoken_pinyin", line.spoken)):
        if syllables and len(syllables) != len(line.hanzi):
            return f"syllables in {kind}: {len(syllables)}, hanzi: {len(line.hanzi)}"
    return None


@line_check(
    ERROR,
    "hanzi without pinyin",
    "run python -m data.corpora.manifest_lists prepare on the folder of the list: it fills the column",
)
def no_pinyin(line: Line) -> str | None:
    """Texts whose pinyin is still to be filled."""
    return line.hanzi if line.hanzi and not line.pinyin else None


@line_check(
    WARNING,
    "a text with characters that are not hanzi",
    "write the spoken words in hanzi, or remove the line",
)
def not_hanzi(line: Line) -> str | None:
    """Letters, digits or punctuation in the hanzi."""
    others = line.hanzi.strip("".join(filter(is_hanzi, line.hanzi)))  # [笑声] as a whole
    return repr(others) if others else None


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
            advice, detail = "give each line a unique id", f"also in line {first}"
            yield line_finding(ERROR, listing, line, "a repeated id", advice, detail)


def repeated_recording(listing: Listing) -> Iterator[Finding]:
    """Recordings with several ids."""
    return repeated_lines(
        listing,
        ((line.audio, line) for line in listing.lines),
        ("a repeated recording", "remove one of them; data.weights repeats whole lists"),
        ("a recording with two texts", "listen to it, and keep the right line"),
        already_found=lambda line, first: line.id == first.id,  # by repeated_id
    )


def _with_bar(listing: Listing) -> Iterator[tuple[Line]]:
    """All lines; a network disk may need minutes for the recordings of a large corpus."""
    return ((line,) for line in bar_if_long(listing.lines, "looking for recordings", " files"))


@line_check(ERROR, "no such recording", "mount or unpack the corpus, or prepare it again", _with_bar)
def missing_recording(line: Line) -> str | None:
    """Recordings that do not exist."""
    return None if is_file(line.audio) else line.audio


@line_check(
    WARNING,
    "the text does not fit the length",
    "listen to it: probably the text of another recording",
)
def speech_rate(line: Line) -> str | None:
    """Too many or too few syllables for the length: probably the text of another recording."""
    count = len(line.pinyin)
    too_fast, too_slow = count > _FASTEST * line.seconds, line.seconds > _PAUSE + _SLOWEST * count
    is_unusual = count and line.has_length and (too_fast or too_slow)
    return f"{count} syllables in {line.seconds:.2f} s" if is_unusual else None


@line_check(
    WARNING,
    "an unusual length",
    "remove the line, or cut it at pauses: the longest recording determines the memory of a batch",
)
def unusual_length(line: Line) -> str | None:
    """Very short and very long recordings."""
    is_short, is_long = 0 <= line.seconds < _SHORTEST, _LONGEST < line.seconds < float("inf")
    return f"{line.seconds:.2f} s" if line.pinyin and (is_short or is_long) else None


@line_check(
    ERROR,
    "a syllable or hanzi that is not in the vocabulary",
    "the model can't output it: remove the lines, or take another vocabulary (inspect_model.py transfer)",
)
def not_in_vocabulary(line: Line, vocabulary: Vocabulary) -> str | None:
    """Syllables, or other output units, that are not in the vocabulary of a run or recipe."""
    return " ".join([token for token in line.tokens(vocabulary.units) if token not in vocabulary][:3]) or None


@line_check(WARNING, "a hanzi does not have the reading of its syllable", "correct the hanzi or the syllable")
def hanzi_reading(line: Line) -> str | None:
    """Hanzi without the reading of their syllable."""
    if len(line.pinyin) != len(line.hanzi):
        return None
    following = (*line.pinyin[1:], "")[: len(line.pinyin)]
    wrong = [
        f"{character} {syllable}"
        for character, syllable, after in zip(line.hanzi, line.pinyin, following, strict=True)
        if not may_be_read(character, syllable, before_third=after.endswith("3"))
    ]
    return ", ".join(wrong[:3]) or None


@cache
def may_be_read(character: str, syllable: str, before_third: bool) -> bool:
    """Whether a hanzi has a reading, also with neutral tone, erhua or tone sandhi.

    Other characters and syllables count as matching: other checks report them.

    Args:
        character: one character.
        syllable: canonical.
        before_third: whether a third tone follows, so that a third tone changes to a second tone.
    """
    readings = _readings(character)
    if not readings or canonical(syllable) is None:
        return True
    tones: dict[str, set[int]] = {without_tone(reading): set() for reading in readings}
    for reading in readings:
        tones[without_tone(reading)].add(tone_of(reading))
    base, tone = without_tone(syllable), tone_of(syllable)
    known = tones.get(base, tones.get(base.removesuffix("r")))
    if known is None:
        return False
    sandhi = character in _SANDHI or (before_third and tone == 2 and 3 in known)
    return tone == 5 or tone in known or sandhi


@cache
def _readings(character: str) -> frozenset[str]:
    readings = PINYIN_DICT.get(ord(character), "").split(",")
    return frozenset(filter(None, map(canonical, readings)))


def _counts(listing: Listing) -> Counter[str]:
    """The number of occurrences of each syllable."""
    return Counter(syllable for line in listing.lines for syllable in (*line.pinyin, *line.spoken))


CHEAP = (
    no_lines,
    misshapen_line,
    impossible_seconds,
    unknown_syllable,
    rare_syllable,
    toneless_pinyin,
    no_pinyin,
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
