"""Task of the comparison: log-probabilities of sentences by a trigram model, ours and KenLM's."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.peers.entry import Arrays, Peer, Task, Work

WORDS, SENTENCES, LENGTH, ORDER = 3000, 20_000, 20, 3
ASKED = 2000  # number of scored sentences
PARTS = ("keys", "log_probs", "backoffs")  # n-grams in the table of each order


def sentences_and_table() -> Arrays:
    """Sentences of a random language with frequent and rare words, and a trigram model of them as ARPA."""
    from model_language.ngram.kneser_ney import bits_needed, estimate

    rng = np.random.default_rng(0)
    followers = 1 + rng.zipf(1.3, (WORDS, 40)) % (WORDS - 1)  # probability of each word; 0 is the boundary
    words = np.empty((SENTENCES, LENGTH), np.int64)
    words[:, 0] = 1 + rng.zipf(1.3, SENTENCES) % (WORDS - 1)
    for position in range(1, LENGTH):
        choice = rng.geometric(0.15, SENTENCES).clip(max=40) - 1
        words[:, position] = followers[words[:, position - 1], choice]
    ids = np.append(0, np.pad(words, ((0, 0), (0, 1))).ravel())
    tables = estimate(ids, ORDER, WORDS)
    arrays: dict[str, Any] = {
        f"{part}_{n}": getattr(table, part)
        for n, table in enumerate(tables, start=1)
        for part in ("keys", "log_probs", "backoffs")
    }
    lines = _arpa(
        [(arrays[f"keys_{n}"], arrays[f"log_probs_{n}"], arrays[f"backoffs_{n}"]) for n in (1, 2, 3)],
        bits_needed(WORDS),
    )
    arpa = np.frombuffer("\n".join(lines).encode(), np.uint8)
    return {"sentences": words[:ASKED], "arpa": arpa, "bits": np.array(bits_needed(WORDS)), **arrays}


def _arpa(tables: Sequence[Sequence[np.ndarray]], bits: int) -> Iterator[str]:
    """The tables in the ARPA format, with logarithms to base 10; ids have ``bits``."""
    log10 = 1 / np.log(10)
    yield "\\data\\"
    yield from (f"ngram {n}={len(table[0]) + 2 * (n == 1)}" for n, table in enumerate(tables, start=1))
    for n, (keys, log_probs, backoffs) in enumerate(tables, start=1):
        yield f"\n\\{n}-grams:"
        if n == 1:
            yield f"-99\t<s>\t{backoffs[0] * log10:.6f}"
            yield "-99\t<unk>\t0"
        for key, log_prob, backoff in zip(keys.tolist(), log_probs * log10, backoffs * log10, strict=True):
            ids = [(key >> bits * position) & ((1 << bits) - 1) for position in reversed(range(n))]
            names = [f"w{number}" for number in ids]
            names[0] = "<s>" if not ids[0] else names[0]
            names[-1] = "</s>" if not ids[-1] else names[-1]
            weight = "" if n == len(tables) or not ids[-1] else f"\t{backoff:.6f}"
            yield f"{log_prob:.6f}\t{' '.join(names)}{weight}"
    yield "\n\\end\\\n"


def our_scores(inputs: Arrays) -> Work:
    """The packed model that converters use; its probabilities are rounded."""
    from model_language.ngram.kneser_ney import NgramTable
    from model_language.ngram.packed import PackedNgrams, pack

    tables = [NgramTable(*(inputs[f"{part}_{n}"] for part in PARTS)) for n in range(1, ORDER + 1)]
    model = PackedNgrams(pack(tables))
    ended = np.pad(inputs["sentences"], ((0, 0), (ORDER - 1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(ended, ORDER, axis=1).reshape(-1, ORDER)
    histories, words = np.ascontiguousarray(windows[:, :-1]), np.ascontiguousarray(windows[:, -1])
    rows = np.arange(len(words))
    return lambda: {"scores": model.score(histories, rows, words).reshape(ASKED, -1).sum(axis=1)}


def scores_kenlm(inputs: Arrays) -> Work:
    """KenLM in C++, with one call for each sentence."""
    import kenlm

    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.arpa"
        path.write_bytes(inputs["arpa"].tobytes())
        model = kenlm.Model(str(path))
    sentences = [" ".join(f"w{number}" for number in row) for row in inputs["sentences"]]
    return lambda: {"scores": np.array([model.score(sentence) for sentence in sentences]) * np.log(10)}


def _same_scores(_: Arrays, ours: Arrays, theirs: Arrays) -> str:
    apart = np.abs(ours["scores"] / theirs["scores"] - 1)
    return f"log P of sentences {100 * apart.mean():.2f} % apart on average (ours are rounded)"


TASKS = (
    Task(
        "n-gram look-up",
        __name__,
        sentences_and_table,
        "our_scores",
        (Peer("kenlm", "scores_kenlm", ("kenlm==0.3.0", "numpy==2.4.6")),),
        _same_scores,
    ),
)
