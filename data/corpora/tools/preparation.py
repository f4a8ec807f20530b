"""Utterances as a corpus's loader finds them → checked manifests, ``rejected.tsv``, ``summary.json``.

Every candidate ends in a manifest or, with the reason, in ``rejected.tsv``; none is dropped in silence. The
files depend on the corpus alone: preparing again gives the same bytes.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tqdm import tqdm

from data.corpora.tools.summary import summarise
from data.manifest import REJECTED, Utterance, write_manifest
from utils.audio.reading import SAMPLE_RATE, seconds_and_rate
from utils.errors import AudioError, CorpusError, shorten
from utils.files import remove_left_over, write_json, write_text
from utils.mandarin.pinyin import NAME_DOTS, is_hanzi, is_syllable, normalise_syllable
from utils.processes import thread_pool

_LOW_RATE = "sample rate too low"
_CHUNK = 200  # utterances that a thread checks at a time
_PUNCTUATION = str.maketrans("", "", "，。、；：？！…—·《》〈〉「」『』【】“”‘’,.;:?!()[]\"'~-" + NAME_DOTS)


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a candidate can't be used: a reason that is counted, and what it is in this case."""

    reason: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Candidate:
    """An utterance as found, unchecked.

    Attributes:
        id: the corpus's own.
        split: ``train``, ``dev``, ``test`` …; ``""`` if it is in none.
        audio: its recording, which may be missing.
        pinyin: citation reading as written.
        spoken: what was said, as written, where the corpus has it.
        problem: what the loader found wrong already.
        note: something odd that doesn't make it unusable; counted in the summary.
    """

    id: str
    split: str
    audio: Path
    speaker: str = ""
    hanzi: str = ""
    pinyin: tuple[str, ...] = ()
    spoken: tuple[str, ...] = ()
    problem: Problem | None = None
    note: str = ""


@dataclass(frozen=True)
class Corpus:
    """What distinguishes one corpus from the others in its preparation.

    Attributes:
        name: of the module and of the default output folder.
        splits: names of its manifests; () if they depend on the folder.
        find: ``(root, workers)`` → its candidates.
    """

    name: str
    splits: tuple[str, ...]
    find: Callable[[Path, int], Iterable[Candidate]]


def prepare(
    corpus: Corpus, root: Path, output: Path, workers: int = 4, sample_rate: int = SAMPLE_RATE
) -> dict[str, Any]:
    """Check every utterance of the corpus below ``root`` and write the folder ``output``.

    Args:
        corpus: which one.
        root: its folder.
        output: of the manifests.
        workers: files checked at a time.
        sample_rate: Hz, of the features that will be computed. Recordings of a lower rate are rejected: the
            upper part of the band that the features look at is missing in them.

    Returns:
        The summary, as in ``summary.json`` (which is written last: where it is, the others are whole).

    Raises:
        CorpusError: the corpus is not there, or none of its utterances can be used.
    """
    reading = tqdm(corpus.find(root, workers), "reading", disable=None, unit=" texts")
    candidates = sorted(reading, key=lambda candidate: (candidate.id, candidate.split))
    results = _check_all(candidates, workers, sample_rate)
    checked = _refuse_twice([result for result, _ in results])
    found = {candidate.split for candidate in candidates if candidate.split}
    # What models train on comes first: the summary holds the others against it.
    names = corpus.splits or sorted(found, key=lambda name: (not name.startswith("train"), name))
    usable = [
        (c, result) for c, result in zip(candidates, checked, strict=True) if isinstance(result, Utterance)
    ]
    splits = {name: [utterance for c, utterance in usable if c.split == name] for name in names}
    rejected = [(c, r) for c, r in zip(candidates, checked, strict=True) if isinstance(r, Problem)]
    if not usable:
        raise CorpusError(
            "no utterance of the corpus can be used", where=root, hint=_why_none(rejected, sample_rate)
        )
    rates = Counter(
        rate for one, (_, rate) in zip(checked, results, strict=True) if isinstance(one, Utterance)
    )
    reasons = Counter(problem.reason for _, problem in rejected)
    notes = Counter(candidate.note for candidate, _ in usable if candidate.note)
    summary = summarise(corpus.name, splits, rates, reasons, notes)
    _write(output, splits, rejected, summary)
    return summary


def clean_text(text: str) -> str:
    """Bring a transcript to plain characters: full-width forms to ASCII, no spaces, punctuation, name dots.

    What is spoken but is not hanzi (letters, digits, %) stays, and makes the check refuse the line.
    """
    return "".join(unicodedata.normalize("NFKC", text).translate(_PUNCTUATION).split())


def _why_none(rejected: Sequence[tuple[Candidate, Problem]], sample_rate: int) -> str:
    """What to do when every candidate is rejected: the first reason, or the option that low rates need."""
    if not rejected:
        return "nothing was found"
    if all(problem.reason == _LOW_RATE for _, problem in rejected):
        rate = min(int(problem.detail.split()[0]) for _, problem in rejected)
        return (
            f"all recordings have less than {sample_rate} Hz: prepare them with --sample-rate {rate} "
            f"and train with features.sample_rate={rate}"
        )
    return f"{rejected[0][0].id}: {rejected[0][1].reason}"


def _check_all(
    candidates: list[Candidate], workers: int, sample_rate: int
) -> list[tuple[Utterance | Problem, int]]:
    """Check candidates in threads: file headers are read, so they wait for the disk more than for Python.

    Returns:
        For each candidate its utterance or its problem, and the recording's sample rate (0: not read).
    """
    checked: list[tuple[Utterance | Problem, int]] = []
    # In chunks: 140,000 futures would take more memory than the utterances.
    chunks = [candidates[start : start + _CHUNK] for start in range(0, len(candidates), _CHUNK)]
    progress = tqdm(total=len(candidates), desc="checking", disable=None, unit=" files")
    with progress, thread_pool(workers) as pool:
        for results in pool.map(lambda chunk: [_check(one, sample_rate) for one in chunk], chunks):
            checked += results
            progress.update(len(results))
    return checked


def _check(candidate: Candidate, sample_rate: int) -> tuple[Utterance | Problem, int]:
    problem = candidate.problem or _text_problem(candidate)
    if problem:
        return problem, 0
    try:
        seconds, rate = seconds_and_rate(candidate.audio)
    except AudioError as error:
        reason, _, detail = re.sub(r"[:(]", "\n", error.what, count=1).partition("\n")
        return Problem(reason.strip(), f"{detail.strip(' )')} {candidate.audio}".strip()), 0
    if rate < sample_rate:
        return Problem(_LOW_RATE, f"{rate} Hz {candidate.audio}"), rate
    pinyin = tuple(map(normalise_syllable, candidate.pinyin))
    spoken = tuple(map(normalise_syllable, candidate.spoken))
    audio = candidate.audio.absolute()
    text = candidate.hanzi
    spoken = () if spoken == pinyin else spoken
    return Utterance(candidate.id, audio, seconds, candidate.speaker, pinyin, text, spoken), rate


def _text_problem(candidate: Candidate) -> Problem | None:
    if not candidate.split:
        return Problem("in no split", str(candidate.audio))
    if not candidate.hanzi:
        return Problem("empty transcript")
    if not is_hanzi(candidate.hanzi):
        strange = "".join(character if not is_hanzi(character) else " " for character in candidate.hanzi)
        return Problem("characters that are not hanzi", strange)
    for syllable in (*candidate.pinyin, *candidate.spoken):
        if not is_syllable(syllable):
            return Problem("unknown syllable", syllable)
    if len(candidate.pinyin) != len(candidate.hanzi):
        counts = f"{len(candidate.pinyin)} syllables, {len(candidate.hanzi)} hanzi"
        return Problem("syllables and hanzi differ in number", counts)
    return None


def _refuse_twice(checked: list[Utterance | Problem]) -> list[Utterance | Problem]:
    seen: set[str] = set()
    results: list[Utterance | Problem] = []
    for result in checked:
        if isinstance(result, Utterance):
            twice = result.id in seen
            seen.add(result.id)
            results.append(Problem("id comes twice", str(result.audio)) if twice else result)
        else:
            results.append(result)
    return results


def _write(
    output: Path,
    splits: dict[str, list[Utterance]],
    rejected: Sequence[tuple[Candidate, Problem]],
    summary: dict[str, Any],
) -> None:
    remove_left_over(output)
    (output / "summary.json").unlink(missing_ok=True)
    for name, utterances in splits.items():
        write_manifest(output / f"{name}.tsv", utterances)
    lines = ["split\tid\treason\tdetail"]
    for candidate, problem in rejected:
        fields = (candidate.split, candidate.id, problem.reason, shorten(problem.detail))
        lines.append("\t".join(" ".join(field.split()) for field in fields))
    write_text(output / REJECTED, "\n".join(lines) + "\n")
    write_json(output / "summary.json", summary)
