"""Plans spliced utterances: runs of successive syllables of a speaker's recordings, in new combinations."""

from collections.abc import Mapping, Sequence

import numpy as np

from recognition.splicing.snippets import Snippet, successive_runs

Spliced = tuple[Snippet, ...]
"""The snippets of a spliced utterance, all of one speaker."""

RUN_SYLLABLES = (2, 6)  # range of the length of a run; within it the sound is as it was recorded
RUNS = (2, 4)
"""Range of the number of runs in an utterance."""
FEWEST_RUNS = 8
"""Of a speaker: with fewer, there are few combinations."""


def find_runs(snippets: Sequence[Snippet]) -> list[Spliced]:
    """Successive usable syllables of one recording, as long as possible."""
    return [run for run in successive_runs(snippets) if len(run) >= RUN_SYLLABLES[0]]


def plan_utterances(
    snippets: Mapping[str, Sequence[Snippet]], count: int, seed: int, runs: tuple[int, int] = RUNS
) -> list[Spliced]:
    """Plan spliced utterances; a speaker with four times as many runs gets twice as many utterances.

    Args:
        snippets: the snippets of each speaker, recording by recording.
        count: number of utterances.
        seed: seed of all random choices.
        runs: range of the number of runs in an utterance; with (1, 1) they are pieces of recordings.

    Returns:
        In the order of the speakers; empty if no speaker has enough runs.
    """
    by_speaker = {speaker: find_runs(own) for speaker, own in sorted(snippets.items())}
    by_speaker = {speaker: own for speaker, own in by_speaker.items() if len(own) >= FEWEST_RUNS}
    if not by_speaker:
        return []
    rng = np.random.default_rng(seed)
    share = np.sqrt([len(own) for own in by_speaker.values()])
    shares = rng.multinomial(count, share / share.sum())
    speakers = np.repeat(np.array(list(by_speaker)), shares)
    return [_combine(by_speaker[speaker], rng, runs) for speaker in speakers]


def _combine(own: Sequence[Spliced], rng: np.random.Generator, runs: tuple[int, int]) -> Spliced:
    """Parts of some of a speaker's runs, in a random order; of as many as the range ``runs`` allows."""
    chosen = rng.choice(len(own), rng.integers(runs[0], runs[1] + 1), replace=False)
    return tuple(snippet for number in chosen for snippet in _part(own[number], rng))


def _part(run: Spliced, rng: np.random.Generator) -> Spliced:
    size = min(len(run), int(rng.integers(RUN_SYLLABLES[0], RUN_SYLLABLES[1] + 1)))
    start = int(rng.integers(len(run) - size + 1))
    return run[start : start + size]
