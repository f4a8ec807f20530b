"""Checks the utterances that a corpus's module finds, and writes manifests, rejections and a summary.

A corpus's module yields candidates (unchecked utterances). Each of them is written to a manifest or, with the
reason, to ``rejected.tsv``; ``summary.json`` has statistics. The output depends on the corpus alone:
preparing it again writes the same bytes.
"""

from __future__ import annotations

import hashlib
import re
import shlex
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from tqdm import tqdm

from data.corpora.tools.download import Archive, is_filled
from data.manifest import REJECTED, SPOKEN, Utterance, audio_path, write_manifest
from utils.audio.properties import seconds_and_rate
from utils.audio.reading import SAMPLE_RATE
from utils.errors import AudioError, CorpusError, is_utf8, printable, shorten
from utils.files import remove_leftovers, write_json, write_text
from utils.mandarin.pinyin import NAME_DOTS, is_hanzi, is_syllable, normalise_syllable
from utils.processes import collect

_LOW_RATE = "sample rate too low"
_DEV, _TEST = 0.05, 0.05  # fractions of the speakers in dev and test, for a corpus without splits
_CHUNK = 200  # utterances that a thread checks at a time
_NOT_HANZI = {
    "digits in the transcript": re.compile(r"\d"),
    "Latin letters in the transcript": re.compile("[A-Za-z]"),
}
_PUNCTUATION = str.maketrans("", "", "，。、；：？！…—·《》〈〉「」『』【】“”‘’,.;:?!()[]\"'~-" + NAME_DOTS)


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a candidate is rejected: a reason, which is counted, and the details of this case."""

    reason: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Candidate:
    """An utterance as found in a corpus, unchecked.

    Attributes:
        id: the corpus's own id.
        split: ``train``, ``dev``, ``test`` …; ``""`` if it is in none.
        audio: path of the recording, which may be missing, or its address as a path.
        speaker: the speaker's name; ``""`` if unknown.
        hanzi: the transcript without spaces and punctuation.
        pinyin: the citation reading as written in the corpus.
        spoken_pinyin: the syllables as pronounced, where the corpus has them.
        problem: what the loader found wrong.
        note: something unusual that does not make the utterance unusable; counted in the summary.
    """

    id: str
    split: str
    audio: Path
    speaker: str = ""
    hanzi: str = ""
    pinyin: tuple[str, ...] = ()
    spoken_pinyin: tuple[str, ...] = ()
    problem: Problem | None = None
    note: str = ""


@dataclass(frozen=True)
class Corpus:
    """What distinguishes one corpus from the others.

    Attributes:
        name: name of its module and of the default output folder.
        about: one or two lines for ``--help``; a title for messages comes first, then a colon.
        find: ``(root, output, workers)`` → its candidates. ``root`` is the folder given by the user;
            ``output``, the folder of the manifests, is for recordings that the loader has to write.
        splits: names of its manifests; () if they depend on the folder.
        archives: as its publisher distributes it; ``download`` and ``prepare`` take them.
        by_hand: why there is no ``download``, and what the user has to do (``{root}``: the folder).
    """

    name: str
    about: str
    find: Callable[[Path, Path, int], Iterable[Candidate]]
    splits: tuple[str, ...] = ()
    archives: tuple[Archive, ...] = ()
    by_hand: str = ""


class CheckedCandidate(NamedTuple):
    """A candidate with its `Utterance` or `Problem`, and its sample rate in Hz (0 if it was not read)."""

    candidate: Candidate
    result: Any
    sample_rate: int = 0


def prepare(
    corpus: Corpus, root: Path, output: Path, workers: int = 4, sample_rate: int = SAMPLE_RATE
) -> dict[str, Any]:
    """Check every utterance of the corpus in ``root`` and write the folder ``output``.

    Args:
        corpus: the corpus to prepare.
        root: folder of the corpus.
        output: folder of the manifests.
        workers: number of files checked at a time.
        sample_rate: Hz, of the features that will be computed. Recordings with a lower rate are rejected,
            because they lack the upper part of the frequency band.

    Returns:
        The summary, as in ``summary.json``. That file is written last: if it exists, the others are complete.

    Raises:
        CorpusError: the corpus is not in ``root``, or none of its utterances is usable.
    """
    # Absolute, so that rejected.tsv names files in the same way as the manifests.
    listed = corpus.find(root.absolute(), output.absolute(), workers)
    found = tqdm(listed, "reading", disable=None, unit=" texts")
    candidates = sorted(found, key=lambda candidate: (candidate.id, candidate.split))
    usable, rejected = check_candidates(candidates, root, workers, sample_rate)
    found_splits = {candidate.split for candidate in candidates if candidate.split}
    names = corpus.splits or sorted(found_splits, key=lambda name: (not name.startswith("train"), name))
    splits = {name: [item.result for item in usable if item.candidate.split == name] for name in names}
    summary = {
        "corpus": corpus.name,
        "splits": {name: _size(utterances) for name, utterances in splits.items()},
        "sample_rates": {
            str(rate): count for rate, count in sorted(Counter(item.sample_rate for item in usable).items())
        },
        "rejected": _counts(item.result.reason for item in rejected),
        "notes": _counts(item.candidate.note for item in usable if item.candidate.note),
    }
    _write(output, splits, rejected, summary)
    return summary


def check_candidates(
    candidates: list[Candidate], where: Path, workers: int, sample_rate: int
) -> tuple[list[CheckedCandidate], list[CheckedCandidate]]:
    """Check candidates, sorted by id and split: those that can be used, and the rejected ones.

    Args:
        candidates: the first usable one of each id is used.
        where: the folder or list that they are from.
        workers, sample_rate: as in :func:`prepare`.

    Raises:
        CorpusError: none can be used.
    """
    checked = list(_reject_duplicate_ids(_check_all(candidates, workers, sample_rate)))
    usable = [item for item in checked if isinstance(item.result, Utterance)]
    rejected = [item for item in checked if isinstance(item.result, Problem)]
    if not usable:
        hint = _why_none(rejected, sample_rate)
        raise CorpusError("no utterance of the corpus can be used", where=where, hint=hint)
    return usable, rejected


def split_of_speaker(corpus: str, speaker: str) -> str:
    """Return the split of a speaker of a corpus without official splits: 90 % train, 5 % dev, 5 % test.

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


def find_corpus_folder(root: Path, corpus: Corpus, contents: Sequence[str]) -> Path:
    """Return the folder of a corpus with one archive: ``root`` itself, or the archive's folder in it.

    Args:
        root: the folder given by the user.
        corpus: the corpus.
        contents: patterns of files and folders, all of which must match something in the corpus's folder.

    Raises:
        CorpusError: neither folder holds the corpus.
    """
    folder = corpus.archives[0].folder
    for candidate in (root, root / folder):
        if all(any(candidate.glob(pattern)) for pattern in contents):
            return candidate
    raise missing_corpus(corpus, root, " and ".join(f"{folder}/{pattern}" for pattern in contents))


def missing_corpus(corpus: Corpus, root: Path, expected: str) -> CorpusError:
    """The error if a corpus is not in ``root``; its hint is the command that brings it there."""
    title = corpus.about.partition(":")[0]
    return CorpusError(f"no {title} here: {expected} expected", where=root, hint=how_to_get(corpus, root))


def how_to_get(corpus: Corpus, root: Path) -> str:
    """The command that brings a corpus to ``root``: of the archive, if it is there or is ``root`` itself."""
    files, command = [root], f"python -m data.corpora.{corpus.name}"
    if root.is_file():
        root = root.parent
    else:
        files = [folder / each.file for each in corpus.archives for folder in (root, root.parent)]
    if corpus.archives and (found := [shlex.quote(str(file)) for file in files if file.is_file()]):
        again = f"{command} prepare --archive {' '.join(found)} --unpack-to {shlex.quote(str(root))}"
        # Archives whose folder has files are not unpacked again.
        filled = [str(folder) for each in corpus.archives if is_filled(folder := root / each.folder)]
        return f"move {' '.join(map(shlex.quote, filled))} away, then: {again}" if filled else again
    if corpus.by_hand:
        return corpus.by_hand.format(root=shlex.quote(str(root)))
    return f"{command} download {shlex.quote(str(root))}"


def clean_text(text: str) -> str:
    """Normalise a transcript: full-width forms to ASCII; no spaces, punctuation or dots in names.

    Invisible format characters, such as a byte-order mark within a file, are removed too. Letters, digits and
    signs such as % remain, so that the check rejects the transcript.
    """
    visible = "".join(unicodedata.normalize("NFKC", text).translate(_PUNCTUATION).split())
    return "".join(character for character in visible if unicodedata.category(character) != "Cf")


def _why_none(rejected: Sequence[CheckedCandidate], sample_rate: int) -> str:
    """What to do if every candidate was rejected: the first reason, or the option that low rates need."""
    if not rejected:
        return "nothing was found"
    if all(item.result.reason == _LOW_RATE for item in rejected):
        rate = min(item.sample_rate for item in rejected)
        return (
            f"all recordings have less than {sample_rate} Hz: prepare them with --sample-rate {rate} "
            f"and train with features.sample_rate={rate}"
        )
    return f"{rejected[0].candidate.id}: {rejected[0].result.reason}"


def _check_all(candidates: list[Candidate], workers: int, sample_rate: int) -> list[CheckedCandidate]:
    """Check candidates in threads: reading file headers waits for the disk more than for Python."""
    # In chunks: 140,000 futures would take more memory than the utterances.
    starts = range(0, len(candidates), _CHUNK)
    checked = collect(
        partial(_check_chunk, sample_rate),
        [(start, candidates[start : start + _CHUNK]) for start in starts],
        workers,
        items=len(candidates),
        title="checking",
        died=CorpusError("a process that checks recordings died", hint="run the same command again"),
        unit=" files",
        threads=True,
    )
    return [item for _, chunk in sorted(checked, key=itemgetter(0)) for item in chunk]


def _check_chunk(
    sample_rate: int, job: tuple[int, list[Candidate]]
) -> tuple[int, list[tuple[int, list[CheckedCandidate]]]]:
    """Number of candidates, and their results with the index of the first one."""
    start, candidates = job
    return len(candidates), [(start, [_check(item, sample_rate) for item in candidates])]


def _check(candidate: Candidate, sample_rate: int) -> CheckedCandidate:
    problem = candidate.problem or _name_problem(candidate.audio) or _text_problem(candidate)
    if problem:
        return CheckedCandidate(candidate, problem)
    try:
        seconds, rate = seconds_and_rate(candidate.audio)
    except AudioError as error:
        reason, _, detail = re.sub(r"[:(]", "\n", error.message, count=1).partition("\n")
        problem = Problem(reason.strip(), f"{detail.strip(' )')} {candidate.audio}".strip())
        return CheckedCandidate(candidate, problem)
    if rate < sample_rate:
        return CheckedCandidate(candidate, Problem(_LOW_RATE, f"{rate} Hz {candidate.audio}"), rate)
    pinyin = tuple(map(normalise_syllable, candidate.pinyin))
    spoken_pinyin = tuple(map(normalise_syllable, candidate.spoken_pinyin))
    utterance = Utterance(
        candidate.id,
        Path(audio_path(str(Path.cwd()), str(candidate.audio))),
        seconds,
        candidate.speaker,
        pinyin,
        candidate.hanzi,
        () if spoken_pinyin == pinyin else spoken_pinyin,
    )
    return CheckedCandidate(candidate, utterance, rate)


def _name_problem(audio: Path) -> Problem | None:
    """The problem of a file name that a manifest, a UTF-8 file of tab-separated values, can't hold."""
    name = str(audio)
    if not is_utf8(name):
        return Problem(
            "file name is not UTF-8", f"{printable(name)}: rename it, e.g. with convmv -f gbk -t utf8"
        )
    if set(name) & set("\t\n\r"):
        return Problem("file name with a tab or a line break", name)
    return None


def _text_problem(candidate: Candidate) -> Problem | None:
    if not candidate.split:
        return Problem("in no split", str(candidate.audio))
    if not candidate.hanzi:
        return Problem("empty transcript")
    for reason, pattern in _NOT_HANZI.items():
        if pattern.search(candidate.hanzi):
            return Problem(reason, candidate.hanzi)
    if not is_hanzi(candidate.hanzi):
        others = candidate.hanzi.strip("".join(filter(is_hanzi, candidate.hanzi)))  # [笑声] as a whole
        return Problem("characters that are not hanzi", others)
    for syllable in (*candidate.pinyin, *candidate.spoken_pinyin):
        if not is_syllable(syllable):
            return Problem("unknown syllable", syllable)
    for syllables, column in ((candidate.pinyin, ""), (candidate.spoken_pinyin, f" in {SPOKEN}")):
        if len(syllables) != len(candidate.hanzi) and (syllables or not column):
            counts = f"syllables{column}: {len(syllables)}, hanzi: {len(candidate.hanzi)}"
            return Problem("syllables and hanzi differ in number", counts)
    return None


def _reject_duplicate_ids(checked: Iterable[CheckedCandidate]) -> Iterator[CheckedCandidate]:
    """Keep the first usable utterance of each id; the candidates are sorted by id and split."""
    seen: set[str] = set()
    for item in checked:
        if isinstance(item.result, Utterance):
            if item.result.id in seen:
                item = item._replace(result=Problem("duplicate id", str(item.result.audio)))
            seen.add(item.candidate.id)
        yield item


def _size(utterances: Sequence[Utterance]) -> dict[str, Any]:
    """The size of a split, for the summary."""
    syllables = Counter(syllable for utterance in utterances for syllable in utterance.pinyin)
    return {
        "utterances": len(utterances),
        "hours": round(sum(utterance.seconds for utterance in utterances) / 3600, 4),
        "speakers": len({utterance.speaker for utterance in utterances} - {""}),
        "distinct_sentences": len({utterance.hanzi for utterance in utterances}),
        "syllables": syllables.total(),
        "distinct_syllables": len(syllables),
        "spoken_readings": sum(bool(utterance.spoken_pinyin) for utterance in utterances),
    }


def _counts(values: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(values).items()))


def _write(
    output: Path,
    splits: dict[str, list[Utterance]],
    rejected: Sequence[CheckedCandidate],
    summary: dict[str, Any],
) -> None:
    remove_leftovers(output)
    (output / "summary.json").unlink(missing_ok=True)
    for name, utterances in splits.items():
        write_manifest(output / f"{name}.tsv", utterances)
    rows = [(item.split, item.id, problem.reason, shorten(problem.detail)) for item, problem, _ in rejected]
    lines = ("\t".join(" ".join(printable(field).split()) for field in row) for row in rows)
    write_text(output / REJECTED, "\n".join(["split\tid\treason\tdetail", *lines]) + "\n")
    write_json(output / "summary.json", summary)
