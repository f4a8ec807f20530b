"""Generates a text of ids with a random grammar, from which n-gram models of every order can learn."""

import numpy as np


def made_up_text(tokens: int, size: int, seed: int) -> np.ndarray:
    """Sentences of ids 2 … size - 1 with one 0 before, between and after them, (about tokens,) int32.

    The next id depends on the three before it with probability 0.9; otherwise it is drawn by Zipf's law.
    """
    rng = np.random.default_rng(seed)
    rank = 1 / np.arange(1, size - 1)
    drawn = rng.choice(np.arange(2, size), tokens, p=rank / rank.sum())
    by_rule, ends = rng.random(tokens) < 0.9, rng.random(tokens) < 0.1
    text = [0]
    for token, ruled, end in zip(drawn.tolist(), by_rule.tolist(), ends.tolist(), strict=True):
        a, b, c = [0, 0, *text[-3:]][-3:]
        text.append(2 + (11 * (a % 2) + 7 * (b % 4) + c + token % 2) % (size - 2) if ruled else token)
        if end:
            text.append(0)
    return np.array(text if text[-1] == 0 else [*text, 0], np.int32)
