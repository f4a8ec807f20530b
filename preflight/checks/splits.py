"""Checks train, dev and test against each other: shared recordings, sentences, speakers, unseen syllables.

Texts of fewer than five syllables are words and commands, which naturally recur; only longer ones count as
sentences. AISHELL's test speakers share 1 of 71 and 0 of 345 sentences with the one train speaker; THCHS-30's
dev set shares all 535 (its test set none). Syllables that are not in train are 0.5 % of THCHS-30's test
set, and 5 % of AISHELL's if the training set has only one speaker.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import combinations

from preflight.findings import ERROR, WARNING, Finding, line_finding
from preflight.listings import Line, Listing, lines_of, of_role
from utils.mandarin.output_units import HANZI, PARTS, TONAL, TONELESS
from utils.vocabulary import first_few

_SENTENCE = 5  # least number of syllables
# Fractions from which on a list is reported: of its sentences, and of its syllables.
_SENTENCES_SHARED = 0.05
_UNSEEN = 0.02
_LITTLE, _LITTLE_TO_ADAPT = 600.0, 60.0  # seconds of speech
_NAMES = {"train": "training", "dev": "dev"}
_UNITS = {TONELESS: "toneless syllables", PARTS: "initials and finals", HANZI: "hanzi"}


def shared_recording(listings: Sequence[Listing]) -> Iterator[Finding]:
    """Recordings that are in two splits."""
    for role, other in combinations(("train", "dev", "test"), 2):
        known = {line.audio for line in lines_of(of_role(listings, role))}
        for listing in of_role(listings, other):
            for line in listing.lines:
                if line.audio in known:
                    severity = ERROR if (role, other) == ("train", "test") else WARNING
                    problem = f"a recording that is also in the {role} list"
                    advice = f"remove it from one list: the {other} figures are too good"
                    yield line_finding(severity, listing, line, problem, advice)


def shared_sentence(listings: Sequence[Listing]) -> Iterator[Finding]:
    """Dev or test sentences that are in the training set."""
    train = lines_of(of_role(listings, "train"))
    known, recordings = _sentences(train), {line.audio for line in train}
    for listing in (*of_role(listings, "dev"), *of_role(listings, "test")):
        own = _sentences(_others(listing, recordings))
        shared = own & known
        if known and own and len(shared) >= _SENTENCES_SHARED * len(own):
            problem = f"{'all' if shared == own else 'some'} of its sentences are in the training set"
            advice = "its error rate is that of known sentences; others will be worse: split by sentence"
            detail = f"{len(shared):,} of {len(own):,}, e.g. {min(shared)}"
            yield Finding(WARNING, listing.path, "", problem, advice, detail)


def shared_speaker(listings: Sequence[Listing]) -> Iterator[Finding]:
    """Speakers who are in two splits, counted as by the command that prepares a corpus."""
    for role, other in combinations(("train", "dev", "test"), 2):
        known = _speakers(lines_of(of_role(listings, role)))
        for listing in of_role(listings, other):
            own = _speakers(listing.lines)
            if own & known:
                problem = f"speakers of this list are in the {_NAMES[role]} set"
                advice = "its error rate is that of known speakers; others will be worse: split by speaker"
                detail = f"{len(own & known):,} of {len(own):,}: {first_few(sorted(own & known), 5)}"
                yield Finding(WARNING, listing.path, "", problem, advice, detail)


def unheard_syllable(
    listings: Sequence[Listing], initial: Collection[str] = (), units: str = TONAL
) -> Iterator[Finding]:
    """Dev or test syllables, or other output units, that are not in the training set.

    Args:
        listings: manifests with their roles.
        initial: tokens that the model knows before the training.
        units: output units of the model.
    """
    train = of_role(listings, "train")
    trained = {*initial, *(token for line in lines_of(train) for token in line.tokens(units))}
    for listing in (*of_role(listings, "dev"), *of_role(listings, "test")):
        counts = Counter(token for line in listing.lines for token in line.tokens(units))
        unseen = sorted(counts.keys() - trained, key=lambda token: (-counts[token], token))
        occurrences = sum(counts[token] for token in unseen)
        if train and occurrences > _UNSEEN * counts.total():
            kind = _UNITS.get(units, "syllables")
            problem = f"{kind} that are not in the training set: they can't be recognised"
            advice = "add recordings with them, e.g. synthetic ones"
            share, kinds = f"{occurrences / counts.total():.1%} of all", f"{len(unseen):,} kinds"
            detail = f"{share}, {kinds}: {first_few(unseen, 6)}"
            yield Finding(WARNING, listing.path, "", problem, advice, detail)


def little_speech(listings: Sequence[Listing], initial: Collection[str] = ()) -> Iterator[Finding]:
    """A training set that is too small.

    Args:
        listings: manifests with their roles.
        initial: syllables that the model knows before the training, which then needs little speech.
    """
    train = of_role(listings, "train")
    seconds = sum(line.seconds for line in lines_of(train) if line.has_length)
    if 0 < seconds < (_LITTLE_TO_ADAPT if initial else _LITTLE):
        problem = "very little speech to train on"
        advice = "add recordings; a few minutes are enough to adapt a model (configs/speech/adapt.yaml)"
        yield Finding(WARNING, train[0].path, "", problem, advice, f"{seconds / 60:.1f} minutes in all")


def _others(listing: Listing, recordings: set[str]) -> list[Line]:
    """Lines whose recording is not among ``recordings``; :func:`shared_recording` reports the others."""
    return [line for line in listing.lines if line.audio not in recordings]


def _sentences(lines: Sequence[Line]) -> set[str]:
    return {line.hanzi for line in lines if len(line.pinyin) >= _SENTENCE}


def _speakers(lines: Sequence[Line]) -> set[str]:
    return {line.speaker for line in lines} - {""}


SPLITS = (shared_recording, shared_sentence, shared_speaker)
"""Checks across several manifests."""
