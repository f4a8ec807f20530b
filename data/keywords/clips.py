"""A folder for each word, or manifests → clips with labels, for training, dev and test of keyword spotting.

Words that aren't asked for become ``_unknown_``; ``_silence_`` is cut from recordings of noise, or made.
What comes out depends on the recordings and the settings alone, not on the order of files on a disk.
"""

from __future__ import annotations

import difflib
import hashlib
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np

from data.keywords.folders import DEV_LIST, NOISE_FOLDER, SPLITS, TEST_LIST, is_split_by_name, read_recordings
from data.manifest import read_manifest
from utils.audio.reading import recordings_in, seconds_and_rate
from utils.config import at_least
from utils.errors import ConfigError, CorpusError

SILENCE, UNKNOWN = "_silence_", "_unknown_"

_GENERATED_EVERY = 8  # of the clips of silence, as a muted microphone gives them, even where noise is there
# What each split gets of a recording of noise, as shares of its length: no stretch is in two.
NOISE_PARTS = {"train": (0.0, 0.8), "dev": (0.8, 0.9), "test": (0.9, 1.0)}
_NAMES_SHOWN = 5


@dataclass(frozen=True, slots=True)
class KeywordClip:
    """One example: a recording, or a stretch of one, and its label.

    Attributes:
        id: unique among the clips that are read together.
        audio: the recording; None for silence that is generated.
        label: a word, ``_silence_`` or ``_unknown_``.
        speaker: ``""`` if not known.
        start_seconds: where in the recording it begins.
        seconds: how much of the recording counts; 0 for all that follows.
    """

    id: str
    audio: Path | None
    label: str
    speaker: str = ""
    start_seconds: float = 0.0
    seconds: float = 0.0


@dataclass(frozen=True)
class KeywordDataConfig:
    """Where the recordings are, and what becomes of them.

    Attributes:
        folder: a folder for each word (see ``data/keywords/folders.py``); or else
        train: manifests, whose hanzi are the labels (none: ``_silence_``); ``dev`` and ``test`` likewise.
        words: to tell apart, in this order; empty for all that are there. The others become ``_unknown_``.
        silence_share: clips of silence for each clip of a word, in each split; 0 for none. Not made where
            the recordings have the label ``_silence_`` themselves.
        unknown_share: most clips of other words for each clip of a word, in each split; 0 for none.
        noise_folder: recordings without words; by default ``_background_noise_`` in ``folder``, if there.
        clip_ms: length of a clip.
        context_ms: sound before the clip that the model hears too: in a stream a causal model always heard
            something. A clip alone has silence there; in training it has the end of another clip, mostly.
        dev_percentage: of the speakers, where the names of the files decide; ``test_percentage`` likewise.
        seed: picks the unknown words and the stretches of noise.
        cache: folder of the clips as they were read; may be shared by all corpora, settings and runs.
        workers: processes that read.
    """

    folder: str = ""
    train: tuple[str, ...] = ()
    dev: tuple[str, ...] = ()
    test: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    silence_share: float = 0.1
    unknown_share: float = 0.1
    noise_folder: str = ""
    clip_ms: int = 1000
    context_ms: int = 0
    dev_percentage: float = 10.0
    test_percentage: float = 10.0
    seed: int = 0
    cache: str = "datasets/clips"
    workers: int = 2

    def __post_init__(self):
        at_least(self, "data", silence_share=0, unknown_share=0, clip_ms=1, context_ms=0, seed=0, workers=1)
        at_least(self, "data", dev_percentage=0, test_percentage=0)
        if self.dev_percentage + self.test_percentage >= 100:
            what = (
                f"data.dev_percentage + data.test_percentage is {self.dev_percentage + self.test_percentage}"
            )
            raise ConfigError(what, hint="below 100: something has to train")
        for word, count in Counter(self.words).items():
            if count > 1:
                raise ConfigError(f"data.words holds '{word}' {count} times", hint="each word once")
            if word in (SILENCE, UNKNOWN):
                hint = "it comes by itself: see data.silence_share and data.unknown_share"
                raise ConfigError(f"data.words holds '{word}'", hint=hint)


def read_keyword_clips(config: KeywordDataConfig) -> dict[str, list[KeywordClip]]:
    """The clips of ``train``, ``dev`` and ``test``: words, unknown words, silence, each sorted by id.

    A speaker or a file that is in two splits of manifests or lists is told on the standard error.

    Raises:
        CorpusError: no recordings, a word without recordings (the nearest names are suggested), a word with
            too few to be split, two recordings of one id.
        ConfigError: neither a folder nor manifests are given, or both.
        AudioError: a recording of noise can't be read.
    """
    if bool(config.folder) == bool(config.train):
        what = "data.folder and data.train are both given" if config.folder else "no recordings are given"
        raise ConfigError(
            what, hint="set data.folder=FOLDER, or data.train, data.dev and data.test=[MANIFEST]"
        )
    found = _from_folder(config) if config.folder else _from_manifests(config)
    _check_words(config, found)
    _tell_speakers_in_two_splits(found)
    words = set(config.words) or {c.label for c in found["train"]} - {SILENCE, UNKNOWN}
    noises = _noise_lengths(config)
    return {split: _with_specials(config, split, found[split], words, noises) for split in SPLITS}


def read_listed_clips(manifests: Sequence[str | Path]) -> list[KeywordClip]:
    """The recordings of manifests as they are listed: none left out, none added.

    The label is the hanzi; a row without hanzi is ``_silence_``.

    Raises:
        CorpusError: a manifest can't be read, or two recordings have the same id.
    """
    clips = [
        KeywordClip(one.id, one.audio, one.hanzi or SILENCE, one.speaker)
        for path in manifests
        for one in read_manifest(path)
    ]
    _check_ids(clips, manifests)
    return clips


def labels_of(config: KeywordDataConfig, clips: Mapping[str, Sequence[KeywordClip]]) -> tuple[str, ...]:
    """Labels in the order of a model's outputs: silence and unknown if in use, then the words.

    The words are in the order of ``config.words``, or sorted by code point if that is empty.
    """
    used = {clip.label for split in clips.values() for clip in split}
    specials = tuple(label for label in (SILENCE, UNKNOWN) if label in used)
    return specials + (config.words or tuple(sorted(used - {SILENCE, UNKNOWN})))


def noise_recordings(config: KeywordDataConfig) -> list[Path]:
    """Recordings without words, sorted; [] if there are none and none are asked for.

    Raises:
        AudioError: the folder that was asked for holds none.
    """
    if config.noise_folder:
        return recordings_in(config.noise_folder)
    beside = Path(config.folder, NOISE_FOLDER) if config.folder else None
    return recordings_in(beside) if beside and beside.is_dir() else []


def _from_folder(config: KeywordDataConfig) -> dict[str, list[KeywordClip]]:
    found: dict[str, list[KeywordClip]] = {split: [] for split in SPLITS}
    for recording in read_recordings(config.folder, config.dev_percentage, config.test_percentage):
        clip = KeywordClip(recording.id, recording.audio, recording.word, recording.speaker)
        found[recording.split].append(clip)
    if is_split_by_name(config.folder):
        _check_split_by_name(config, found)
    return found


def _check_split_by_name(config: KeywordDataConfig, found: Mapping[str, Sequence[KeywordClip]]) -> None:
    """See that the names' hashes left each word something to train on, and something to measure with."""
    counts = {split: Counter(clip.label for clip in clips) for split, clips in found.items()}
    wanted = set(config.words or {word for each in counts.values() for word in each}) - {SILENCE, UNKNOWN}
    percentages = {"dev": config.dev_percentage, "test": config.test_percentage}
    asked = ["train", *(split for split, percentage in percentages.items() if percentage)]
    for word in sorted(wanted):
        have = [counts[split][word] for split in asked]
        if 0 < sum(have) < len(asked) or (sum(have) and not have[0]):
            what = f"{sum(have)} recordings of '{word}' can't be split in {', '.join(asked)}"
            hint = f"record more, or say what trains: {DEV_LIST} and {TEST_LIST}, or manifests"
            raise CorpusError(what, where=Path(config.folder, word), hint=hint)
    for split in asked:
        missing = sorted(word for word in wanted if not counts[split][word])
        if missing:
            _note(
                f"no recordings of {_some(missing)} in {split} of {config.folder}: few names, split by hash"
            )
    if not any(clip.speaker for clips in found.values() for clip in clips):
        _note(f"{config.folder}: the names tell no speakers, so the same voice may be in train, dev and test")


def _from_manifests(config: KeywordDataConfig) -> dict[str, list[KeywordClip]]:
    found = {}
    for split in SPLITS:
        found[split] = read_listed_clips(getattr(config, split))
    if not found["train"]:
        raise CorpusError("no recordings in these manifests", where=", ".join(config.train))
    for one, other in combinations(SPLITS, 2):
        twice = sorted({str(c.audio) for c in found[one]} & {str(c.audio) for c in found[other]})
        if twice:
            what = f"{len(twice)} recordings are in both {one} and {other}"
            raise CorpusError(what, where=twice[0], hint="take them out of one of the manifests")
    return found


def _check_ids(clips: Sequence[KeywordClip], manifests: Sequence[str | Path]) -> None:
    name, count = (Counter(clip.id for clip in clips).most_common(1) or [("", 0)])[0]
    if count > 1:
        what = f"{count} recordings have the id '{name}'"
        hint = "ids must be unique over all manifests of a split"
        raise CorpusError(what, where=", ".join(map(str, manifests)), hint=hint)


def _check_words(config: KeywordDataConfig, found: Mapping[str, Sequence[KeywordClip]]) -> None:
    there = {clip.label for clip in found["train"]} - {SILENCE, UNKNOWN}
    where = config.folder or ", ".join(config.train)
    for word in config.words:
        if word in there:
            continue
        nearest = difflib.get_close_matches(word, sorted(there), n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(nearest)}?" if nearest else f"there are: {_some(sorted(there))}"
        raise CorpusError(f"no recordings of the word '{word}' to train on", where=where, hint=hint)
    if not there:
        raise CorpusError("there are no words to train on, only noise", where=where, hint="add recordings")
    strange = {c.label for s in ("dev", "test") for c in found[s]} - there - {SILENCE, UNKNOWN}
    if strange and not config.words:
        what = f"dev or test hold words that don't train: {_some(sorted(strange))}"
        raise CorpusError(what, where=where, hint="add recordings of them to train, or choose data.words")


def _tell_speakers_in_two_splits(found: Mapping[str, Sequence[KeywordClip]]) -> None:
    speakers = {split: {clip.speaker for clip in clips if clip.speaker} for split, clips in found.items()}
    for one, other in combinations(SPLITS, 2):
        both = sorted(speakers[one] & speakers[other])
        if both:
            what = f"{len(both)} speakers are in both {one} and {other}: {_some(both)}"
            _note(f"{what}; accuracy on {other} will say little about voices never heard")


def _with_specials(
    config: KeywordDataConfig,
    split: str,
    clips: Sequence[KeywordClip],
    words: set[str],
    noises: Sequence[tuple[Path, float]],
) -> list[KeywordClip]:
    """The clips of ``words``, some of the others as unknown ones, and silence."""
    known = [clip for clip in clips if clip.label in words]
    others = [clip for clip in clips if clip.label not in words and clip.label != SILENCE]
    unknown = [
        KeywordClip(clip.id, clip.audio, UNKNOWN, clip.speaker)
        for clip in _picked(others, round(config.unknown_share * len(known)), config.seed)
    ]
    silence = [clip for clip in clips if clip.label == SILENCE] if config.silence_share else []
    if not silence:
        silence = _silence(config, split, round(config.silence_share * len(known)), noises)
    return [*sorted([*known, *unknown], key=lambda clip: clip.id), *silence]


def _picked(clips: Sequence[KeywordClip], most: int, seed: int) -> Sequence[KeywordClip]:
    """At most so many, by a hash of their ids: a clip that is added or removed changes few others."""
    if len(clips) <= most:
        return clips

    def rank(clip: KeywordClip) -> bytes:
        return hashlib.blake2b(f"{seed} {clip.id}".encode(), digest_size=8).digest()

    return sorted(clips, key=rank)[:most]


def _silence(
    config: KeywordDataConfig, split: str, count: int, noises: Sequence[tuple[Path, float]]
) -> list[KeywordClip]:
    """Stretches of noise by chance, from the part of each recording that is this split's; some generated."""
    rng = np.random.default_rng([config.seed, SPLITS.index(split)])
    seconds = config.clip_ms / 1000
    lengths = np.array([length for _, length in noises])
    clips = []
    for number in range(count):
        name = f"{SILENCE}/{split}_{number:05d}"
        if not noises or number % _GENERATED_EVERY == _GENERATED_EVERY - 1:
            clips.append(KeywordClip(name, None, SILENCE, seconds=seconds))
            continue
        audio, length = noises[rng.choice(len(noises), p=lengths / lengths.sum())]
        low, high = (share * length for share in NOISE_PARTS[split])
        # A part shorter than a clip reaches into its neighbour, a recording shorter than one is padded.
        start = max(0.0, min(rng.uniform(low, max(low, high - seconds)), length - seconds))
        clips.append(KeywordClip(name, audio, SILENCE, "", round(start, 4), seconds))
    return clips


def _noise_lengths(config: KeywordDataConfig) -> list[tuple[Path, float]]:
    return [(path, seconds_and_rate(path)[0]) for path in noise_recordings(config)]


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
    return ", ".join(names[:_NAMES_SHOWN]) + more


def _note(text: str) -> None:
    print(f"note: {text}", file=sys.stderr)
