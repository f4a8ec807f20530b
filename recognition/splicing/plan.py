"""Plans spliced utterances: runs of successive syllables of a speaker's recordings, in new combinations."""

from collections.abc import Mapping, Sequence

import numpy as np

from recognition.splicing.snippets import Snippet, successive_runs

Spliced = tuple[Snippet, ...]
"""The snippets of a spliced utterance, all of one speaker."""

RUN_SYLLABLES = (2, 6)  # range of the length of a run; within it the sound is as it was recorded
_RUNS = (2, 4)  # range of the number of runs in an utterance
_FEWEST_RUNS = 8  # of a speaker: with fewer, there are few combinations


def find_runs(snippets: Sequence[Snippet]) -> list[Spliced]:
    """Successive usable syllables of one recording, as long as possible."""
    return [run for run in successive_runs(snippets) if len(run) >= RUN_SYLLABLES[0]]


def plan_utterances(snippets: Mapping[str, Sequence[Snippet]], count: int, seed: int) -> list[Spliced]:
    """Plan spliced utterances; a speaker with four times as many runs gets twice as many utterances.

    Args:
        snippets: the snippets of each speaker, recording by recording.
        count: number of utterances.
        seed: seed of all random choices.

    Returns:
        In the order of the speakers; empty if no speaker has enough runs.
    """
    runs = {speaker: find_runs(own) for speaker, own in sorted(snippets.items())}
    runs = {speaker: own for speaker, own in runs.items() if len(own) >= _FEWEST_RUNS}
    if not runs:
        return []
    rng = np.random.default_rng(seed)
    share = np.sqrt([len(own) for own in runs.values()])
    shares = rng.multinomial(count, share / share.sum())
    speakers = np.repeat(np.array(list(runs)), shares)
    return [_combine(runs[speaker], rng) for speaker in speakers]


def _combine(runs: Sequence[Spliced], rng: np.random.Generator) -> Spliced:
    """Parts of some runs, in a random order."""
    chosen = rng.choice(len(runs), rng.integers(_RUNS[0], _RUNS[1] + 1), replace=False)
    return tuple(snippet for number in chosen for snippet in _part(runs[number], rng))


def _part(run: Spliced, rng: np.random.Generator) -> Spliced:
    size = min(len(run), int(rng.integers(RUN_SYLLABLES[0], RUN_SYLLABLES[1] + 1)))
    start = int(rng.integers(len(run) - size + 1))
    return run[start : start + size]
