"""Train, dev and test listings → what one has of another that it should not have, or lacks.

Texts of fewer than five syllables are words and commands, which recur by nature; only longer ones count as
sentences. Measured: AISHELL's test speakers share 1 of 71 and 0 of 345 sentences with the one train speaker,
THCHS-30's dev list all 535 (and its test list none); syllables unheard in train are 0.5 % of THCHS-30's test,
5 % of AISHELL's where only one speaker is trained on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations

from preflight.findings import ERROR, WARNING, Finding, line_finding
from preflight.listings import Line, Listing, canonical, lines_of, of_role
from utils.vocabulary import first_few

_SENTENCE = 5  # syllables
_SENTENCES_SHARED = 0.05
_UNHEARD = 0.02


def id_of_another(listings: Sequence[Listing]) -> Iterator[Finding]:
    """One id for different recordings of two lists."""
    first_seen: dict[str, tuple[str, Line]] = {}
    for listing in listings:
        for line in listing.lines:
            place, first = first_seen.setdefault(line.id, (listing.path, line))
            if place != listing.path and first.audio != line.audio:
                yield line_finding(
                    ERROR,
                    listing,
                    line,
                    "an id that another list gives to another recording",
                    "make ids unique over all lists, e.g. with the corpus's name in front",
                    f"{place}, line {first.number}",
                )


def shared_recording(listings: Sequence[Listing]) -> Iterator[Finding]:
    """Recordings that are in two splits."""
    for mine, others in combinations(("train", "dev", "test"), 2):
        known = {line.audio for line in lines_of(of_role(listings, mine))}
        for listing in of_role(listings, others):
            for line in listing.lines:
                if line.audio in known:
                    yield line_finding(
                        ERROR if (mine, others) == ("train", "test") else WARNING,
                        listing,
                        line,
                        f"a recording that the {mine} list has too",
                        f"take it out of one of them: the {others} figures flatter",
                    )


def shared_sentence(listings: Sequence[Listing]) -> Iterator[Finding]:
    """Dev or test sentences that are trained on."""
    train = lines_of(of_role(listings, "train"))
    known, recordings = _sentences(train), {line.audio for line in train}
    for listing in (*of_role(listings, "dev"), *of_role(listings, "test")):
        own = _sentences(_others(listing, recordings))
        shared = own & known
        if known and own and len(shared) >= _SENTENCES_SHARED * len(own):
            all_of_them = "all" if shared == own else "some"
            yield Finding(
                WARNING,
                listing.path,
                "",
                f"{all_of_them} of its sentences are trained on",
                "its error is that of learnt sentences, other ones will be worse: split by sentence",
                f"{len(shared):,} of {len(own):,}, e.g. {min(shared)}",
            )


def shared_speaker(listings: Sequence[Listing]) -> Iterator[Finding]:
    """Test speakers who are trained on."""
    train = lines_of(of_role(listings, "train"))
    known, recordings = _speakers(train), {line.audio for line in train}
    for listing in of_role(listings, "test"):
        own = _speakers(_others(listing, recordings))
        if own & known:
            yield Finding(
                WARNING,
                listing.path,
                "",
                "speakers of this list are trained on",
                "its error is that of known voices, strangers' will be higher: split by speaker",
                f"{len(own & known):,} of {len(own):,}: {first_few(sorted(own & known), 5)}",
            )


def known_test(listings: Sequence[Listing]) -> Iterator[Finding]:
    """A test list of sentences and speakers that are all trained on."""
    train = lines_of(of_role(listings, "train"))
    pairs = {(line.speaker, line.hanzi) for line in train}
    recordings = {line.audio for line in train}
    for listing in of_role(listings, "test"):
        lines = [line for line in _others(listing, recordings) if len(line.pinyin) >= _SENTENCE]
        if lines and all(line.speaker and (line.speaker, line.hanzi) in pairs for line in lines):
            yield Finding(
                ERROR,
                listing.path,
                "",
                "each test sentence is trained on in the same speaker's voice",
                "its figures mean nothing: test on other speakers and sentences",
                f"{len(lines):,} recordings",
            )


def unheard_syllable(listings: Sequence[Listing]) -> Iterator[Finding]:
    """Dev or test syllables that are never trained on."""
    train = of_role(listings, "train")
    heard = {syllable for line in lines_of(train) for syllable in line.pinyin}
    for listing in (*of_role(listings, "dev"), *of_role(listings, "test")):
        counts = Counter(s for line in listing.lines for s in line.pinyin if canonical(s))
        unheard = sorted(counts.keys() - heard, key=lambda syllable: (-counts[syllable], syllable))
        places = sum(counts[syllable] for syllable in unheard)
        if heard and places > _UNHEARD * counts.total():
            yield Finding(
                WARNING,
                listing.path,
                "",
                "syllables that are never trained on: surely errors",
                "add recordings that hold them, e.g. synthetic ones",
                f"{places / counts.total():.1%} of all, {len(unheard):,} kinds: {first_few(unheard, 6)}",
            )


def _others(listing: Listing, recordings: set[str]) -> list[Line]:
    """The lines whose recording is not among ``recordings``: those are :func:`shared_recording`'s."""
    return [line for line in listing.lines if line.audio not in recordings]


def _sentences(lines: Sequence[Line]) -> set[str]:
    return {line.hanzi for line in lines if len(line.pinyin) >= _SENTENCE}


def _speakers(lines: Sequence[Line]) -> set[str]:
    return {line.speaker for line in lines} - {""}


SPLITS = (id_of_another, shared_recording, shared_sentence, shared_speaker, known_test, unheard_syllable)
"""What looks at several manifests together."""
