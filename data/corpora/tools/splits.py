"""Assigns each speaker of a corpus without official splits to train, dev or test, by a hash of the name."""

import hashlib

_DEV, _TEST = 0.05, 0.05  # fractions of the speakers that are assigned to dev and test


def split_of_speaker(corpus: str, speaker: str) -> str:
    """Return the split of all utterances of a speaker: about 90 % of the speakers train, 5 % dev, 5 % test.

    It depends on the two names alone, not on the other speakers: a part of a corpus is split like the whole.

    Args:
        corpus: name of the corpus; the same speaker number in another corpus is another person.
        speaker: the speaker, who must not be in two splits.
    """
    digest = hashlib.sha256(f"{corpus} {speaker}".encode("utf-8", "surrogateescape")).digest()
    fraction = int.from_bytes(digest[:8], "big") / 2**64  # uniform in [0, 1)
    if fraction < _TEST:
        return "test"
    return "dev" if fraction < _TEST + _DEV else "train"
