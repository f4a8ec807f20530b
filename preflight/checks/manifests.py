"""Checks the lines of a manifest without opening recordings: fields, texts, ids, lengths, speaking rate.

Also checked are whether each recording exists and is listed once, and the syllables against a run's
vocabulary.

Thresholds lie well outside the range of 869 AISHELL, 2,448 dspspeech20, 1,600 HSK-word and 15,000 synthetic
utterances: 0.49 to 6.84 syllables per second, 0.5 to 9.1 seconds, at least 2.5 s
below the limit for slow speech, ``_PAUSE + _SLOWEST * syllables``.
"""

from collections import Counter
from collections.abc import Iterator

from preflight.findings import ERROR, WARNING, Finding, line_check, line_finding, repeated_lines
from preflight.listings import Line, Listing, canonical
from utils.files import is_file
from utils.mandarin.pinyin import full_inventory, is_hanzi, tone_of
from utils.processes import bar_if_long
from utils.vocabulary import Vocabulary

_FASTEST = 10.0  # syllables a second; hurried Mandarin reaches 8
_PAUSE, _SLOWEST = 3.0, 1.5  # seconds of silence around a text, and seconds for each of its syllables
_MOST_NEUTRAL = 0.5  # of the syllables have the neutral tone; in running text it is a twentieth
_SHORTEST, _LONGEST = 0.2, 40.0  # seconds; other lengths are reported


def no_lines(listing: Listing) -> Iterator[Finding]:
    """Lists of a split without an utterance."""
    if listing.role and not listing.lines and not listing.misshapen:
        yield Finding(
            ERROR,
            listing.path,
            "",
            problem=f"there is no utterance for {listing.role}",
            advice="prepare the corpus again, or leave this list out",
        )


def misshapen_line(listing: Listing) -> Iterator[Finding]:
    """Lines with too few or too many fields."""
    for number, fields in listing.misshapen:
        yield Finding(
            ERROR,
            listing.path,
            f"line {number}",
            problem="the number of fields differs from the header",
            advice="separate the fields by single tabs",
            detail=f"{fields} instead of {listing.columns}",
        )


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
    inventory = set(full_inventory())
    for syllable, count in sorted(_counts(listing).items()):
        if syllable not in inventory and canonical(syllable):
            yield Finding(
                WARNING,
                listing.path,
                syllable,
                problem="a syllable outside the inventory, which adds a class to the model",
                advice="check the transcript; write erhua as two syllables if few utterances have it",
                detail=f"{count:,} time{'s' * (count > 1)}",
            )


def toneless_pinyin(listing: Listing) -> Iterator[Finding]:
    """Lists whose pinyin was written without tones, so that every syllable is read with the neutral tone."""
    counts = {syllable: count for syllable, count in _counts(listing).items() if canonical(syllable)}
    total, neutral = sum(counts.values()), sum(counts[each] for each in counts if tone_of(each) == 5)
    if neutral > _MOST_NEUTRAL * total:
        yield Finding(
            WARNING,
            listing.path,
            "",
            problem="the pinyin has no tones",
            advice="write digits (ni3 hao3), or leave the column empty and prepare the list: it is filled",
            detail=f"{neutral:,} of {total:,} syllables have the neutral tone",
        )


def unequal_length(listing: Listing) -> Iterator[Finding]:
    """Texts with different numbers of syllables and hanzi."""
    for line in listing.lines:
        for kind, syllables in (("pinyin", line.pinyin), ("spoken_pinyin", line.spoken)):
            if len(syllables) != len(line.hanzi) and (syllables or kind == "pinyin"):
                yield line_finding(
                    ERROR,
                    listing,
                    line,
                    problem="syllables and hanzi differ in number",
                    advice="write one syllable for each hanzi, or remove the line",
                    detail=f"{len(syllables)} syllables in {kind}, {len(line.hanzi)} hanzi",
                )


@line_check(
    WARNING,
    "a text with characters that are not hanzi",
    "write the spoken words in hanzi, or remove the line",
)
def not_hanzi(line: Line) -> str | None:
    """Letters, digits or punctuation in the hanzi."""
    others = "".join(character for character in line.hanzi if not is_hanzi(character))
    return repr(others) if others else None


def empty_text(listing: Listing) -> Iterator[Finding]:
    """Lines without a text among lines with a text."""
    empty = [line for line in listing.lines if not line.pinyin and not line.hanzi]
    if len(empty) < len(listing.lines):  # a list of noises has no texts
        for line in empty:
            yield line_finding(
                WARNING, listing, line, problem="no text", advice="add the text, or remove the line"
            )


def repeated_id(listing: Listing) -> Iterator[Finding]:
    """Ids that occur more than once."""
    seen: dict[str, int] = {}
    for line in listing.lines:
        first = seen.setdefault(line.id, line.number)
        if first != line.number:
            yield line_finding(
                ERROR,
                listing,
                line,
                problem="a repeated id",
                advice="give each line a unique id",
                detail=f"also in line {first}",
            )


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


def speech_rate(listing: Listing) -> Iterator[Finding]:
    """Too many or too few syllables for the length: probably the text of another recording."""
    advice = "listen to it: probably the text of another recording"
    for line in listing.lines:
        count = len(line.pinyin)
        if not count or not line.has_length:
            continue
        detail = f"{count} syllables in {line.seconds:.2f} s"
        if count > _FASTEST * line.seconds:
            yield line_finding(
                WARNING, listing, line, problem="faster than anyone can speak", advice=advice, detail=detail
            )
        elif line.seconds > _PAUSE + _SLOWEST * count:
            yield line_finding(
                WARNING,
                listing,
                line,
                problem="a text too short for the recording",
                advice=advice,
                detail=detail,
            )


def unusual_length(listing: Listing) -> Iterator[Finding]:
    """Very short and very long recordings."""
    for line in listing.lines:
        if not line.pinyin:
            continue
        detail = f"{line.seconds:.2f} s"
        if 0 <= line.seconds < _SHORTEST:
            yield line_finding(
                WARNING,
                listing,
                line,
                problem="too short for a syllable",
                advice="remove the line",
                detail=detail,
            )
        elif _LONGEST < line.seconds < float("inf"):
            yield line_finding(
                WARNING,
                listing,
                line,
                problem="a very long recording",
                advice="cut it at pauses: the longest recording determines the memory of a batch",
                detail=detail,
            )


@line_check(
    ERROR,
    "a syllable that is not in the run's vocabulary",
    "the run can't output them: remove the lines, or use inspect_model.py transfer",
)
def not_in_vocabulary(line: Line, vocabulary: Vocabulary) -> str | None:
    """Syllables that are not in the vocabulary of a run."""
    missing = [syllable for syllable in line.pinyin if canonical(syllable) and syllable not in vocabulary]
    return " ".join(missing[:3]) or None


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
