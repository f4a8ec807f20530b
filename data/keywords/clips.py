"""Selects and labels the clips of a keyword model for train, dev and test, from word folders or manifests.

Words other than the keywords become ``_unknown_``. Clips of ``_silence_`` are cut from recordings of noise,
or generated. The result depends on the recordings and the settings only, not on the order of files on a disk.
"""

import difflib
import hashlib
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

import numpy as np

from data.keywords.folders import (
    DEV_LIST,
    NOISE_FOLDER,
    KeywordClip,
    read_recordings,
)
from data.manifest import SPLITS, read_manifest
from utils.audio.folders import find_recordings
from utils.audio.properties import seconds_and_rate
from utils.errors import CorpusError, require
from utils.limits import Count, Limited, NotNegative, Size

SILENCE, UNKNOWN = "_silence_", "_unknown_"
DEV_HINT = f"set data.dev=[MANIFEST]; of a folder: some names in {DEV_LIST}, or a folder dev beside train"
"""What to do if there are no clips of the split ``dev``."""

_GENERATED_EVERY = 8  # every eighth clip of silence is generated, as of a muted microphone, even with noise
# The part of a recording of noise that each split uses, as fractions of its length; they don't overlap.
NOISE_PARTS = {"train": (0.0, 0.8), "dev": (0.8, 0.9), "test": (0.9, 1.0)}
_NAMES_SHOWN = 5


@dataclass(frozen=True)
class KeywordDataConfig(Limited, section="data"):
    """The recordings, and how clips are made of them.

    Attributes:
        folder: a folder with a subfolder for each word, which also defines the splits (see
            ``data/keywords/folders.py``). Instead of it:
        train: manifests, whose hanzi are the labels (no hanzi: ``_silence_``).
        dev, test: manifests of the other splits.
        words: the keywords, in the order of the model's outputs; empty: all words. Others are ``_unknown_``.
        silence_share: clips of silence per clip of a keyword, in each split; 0 for none. Not used if there
            are recordings labelled ``_silence_``.
        unknown_share: largest number of clips of other words per clip of a keyword, in each split; 0: none.
        noise_folder: recordings without words; by default ``_background_noise_`` in ``folder``, if it exists.
        clip_ms: length of a clip.
        context_ms: sound before the clip that the model gets too, as a causal model does in a stream: in
            evaluation silence, in training mostly the end of another clip.
        seed: seed of the choice of unknown words and of segments of noise.
        cache: folder of the samples; may be shared by all corpora, settings and runs.
        workers: processes that read recordings.
    """

    folder: str = ""
    train: tuple[str, ...] = ()
    dev: tuple[str, ...] = ()
    test: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    silence_share: NotNegative = 0.1
    unknown_share: NotNegative = 0.1
    noise_folder: str = ""
    clip_ms: Count = 1000
    context_ms: Size = 0
    seed: Size = 0
    cache: str = "datasets/clips"
    workers: Count = 2

    def __post_init__(self):
        super().__post_init__()
        for word, count in Counter(self.words).items():
            require(count == 1, f"data.words holds '{word}' {count} times", hint="each word once")
            require(
                word not in (SILENCE, UNKNOWN),
                f"data.words holds '{word}'",
                hint="it is added automatically: see data.silence_share and data.unknown_share",
            )


def read_keyword_clips(config: KeywordDataConfig) -> dict[str, list[KeywordClip]]:
    """The clips of ``train``, ``dev`` and ``test``: words and unknown words, sorted by id, then silence.

    Speakers that occur in two splits of manifests or lists are reported on the standard error.

    Raises:
        CorpusError: there are no recordings; a word has none (the nearest names are suggested) or too few
            to be split; a recording is in two splits; two recordings have the same id.
        ConfigError: neither a folder nor manifests are given, or both (of any split).
        AudioError: a recording of noise can't be read.
    """
    require(
        bool(config.folder) != bool(config.train),
        "data.folder and data.train are both given" if config.folder else "no recordings are given",
        hint="set data.folder=FOLDER, or data.train, data.dev and data.test=[MANIFEST]",
    )
    for split in ("dev", "test"):
        require(
            not (config.folder and getattr(config, split)),
            f"data.folder and data.{split} are both given",
            hint=f"data.{split}=[], because the folder defines the splits; or give manifests only, with "
            "data.train instead of data.folder",
        )
    found = _from_folder(config) if config.folder else _from_manifests(config)
    _check_words(config, found)
    _report_speakers_in_two_splits(found)
    words = set(config.words) or {c.label for c in found["train"]} - {SILENCE, UNKNOWN}
    noises = [(path, seconds_and_rate(path)[0]) for path in noise_recordings(config)]
    return {split: _with_unknown_and_silence(config, split, found[split], words, noises) for split in SPLITS}


def read_listed_clips(manifests: Sequence[str | Path]) -> list[KeywordClip]:
    """All recordings of manifests as clips, without unknown words or silence being added.

    The label of a clip is its hanzi; a row without hanzi is ``_silence_``.

    Raises:
        CorpusError: a manifest can't be read, or two recordings have the same id.
    """
    clips = [
        KeywordClip(row.id, row.audio, row.hanzi or SILENCE, row.speaker)
        for path in manifests
        for row in read_manifest(path)
    ]
    _check_ids(clips, manifests)
    return clips


def labels_of(config: KeywordDataConfig, clips: Mapping[str, Sequence[KeywordClip]]) -> tuple[str, ...]:
    """Labels in the order of a model's outputs: silence and unknown if used, then the keywords.

    The keywords are in the order of ``config.words``, or sorted by code point if that is empty.

    Raises:
        CorpusError: silence or unknown words are in dev or test only: the model can't learn them.
    """
    used = {split: {clip.label for clip in own} for split, own in clips.items()}
    trained = used["train"]
    for label, share in ((SILENCE, "silence_share"), (UNKNOWN, "unknown_share")):
        untrained = [split for split in ("dev", "test") if label in used[split] - trained]
        if untrained:
            raise CorpusError(
                f"clips of {label} are in {' and '.join(untrained)}, but not in train",
                where=config.folder or ", ".join(config.train),
                hint=f"add such recordings to train, or set data.{share}=0 to do without this label",
            )
    specials = tuple(label for label in (SILENCE, UNKNOWN) if label in trained)
    return specials + (config.words or tuple(sorted(trained - {SILENCE, UNKNOWN})))


def noise_recordings(config: KeywordDataConfig) -> list[Path]:
    """Recordings without words, sorted; may be empty.

    Raises:
        AudioError: ``config.noise_folder`` holds none.
    """
    if config.noise_folder:
        return find_recordings(config.noise_folder)
    default = Path(config.folder, NOISE_FOLDER)
    return find_recordings(default) if config.folder and default.is_dir() else []


def _from_folder(config: KeywordDataConfig) -> dict[str, list[KeywordClip]]:
    clips = read_recordings(config.folder)
    return {split: [clip for clip in clips if clip.split == split] for split in SPLITS}


def _from_manifests(config: KeywordDataConfig) -> dict[str, list[KeywordClip]]:
    found = {split: read_listed_clips(getattr(config, split)) for split in SPLITS}
    if not found["train"]:
        raise CorpusError("no recordings in these manifests", where=", ".join(config.train))
    for split, other in combinations(SPLITS, 2):
        shared = sorted({str(c.audio) for c in found[split]} & {str(c.audio) for c in found[other]})
        if shared:
            raise CorpusError(
                f"{len(shared)} recordings are in both {split} and {other}",
                where=shared[0],
                hint="remove them from one of the manifests",
            )
    return found


def _check_ids(clips: Sequence[KeywordClip], manifests: Sequence[str | Path]) -> None:
    name, count = (Counter(clip.id for clip in clips).most_common(1) or [("", 0)])[0]
    if count > 1:
        raise CorpusError(
            f"{count} recordings have the id '{name}'",
            where=", ".join(map(str, manifests)),
            hint="ids must be unique over all manifests of a split",
        )


def _check_words(config: KeywordDataConfig, found: Mapping[str, Sequence[KeywordClip]]) -> None:
    trained = {clip.label for clip in found["train"]} - {SILENCE, UNKNOWN}
    where = config.folder or ", ".join(config.train)
    for word in config.words:
        if word not in trained:
            nearest = difflib.get_close_matches(word, sorted(trained), n=3, cutoff=0.5)
            known = f"there are: {_list_names(sorted(trained))}"
            raise CorpusError(
                f"no recordings of the word '{word}' to train on",
                where=where,
                hint=f"did you mean {' or '.join(nearest)}?" if nearest else known,
            )
    if not trained:
        raise CorpusError("there are no words to train on, only noise", where=where, hint="add recordings")
    untrained = {c.label for s in ("dev", "test") for c in found[s]} - trained - {SILENCE, UNKNOWN}
    if untrained and not config.words:
        raise CorpusError(
            f"dev or test contain words that train does not: {_list_names(sorted(untrained))}",
            where=where,
            hint="add recordings of them to train, or choose data.words",
        )


def _report_speakers_in_two_splits(found: Mapping[str, Sequence[KeywordClip]]) -> None:
    speakers = {split: {clip.speaker for clip in clips if clip.speaker} for split, clips in found.items()}
    for split, other in combinations(SPLITS, 2):
        shared = sorted(speakers[split] & speakers[other])
        if shared:
            message = f"{len(shared)} speakers are in both {split} and {other}: {_list_names(shared)}"
            hint = f"accuracy on {other} says little about unknown speakers"
            print(f"note: {message}; {hint}", file=sys.stderr)


def _with_unknown_and_silence(
    config: KeywordDataConfig,
    split: str,
    clips: Sequence[KeywordClip],
    words: set[str],
    noises: Sequence[tuple[Path, float]],
) -> list[KeywordClip]:
    """The clips of ``words``, some of the others as ``_unknown_``, and silence."""
    known = [clip for clip in clips if clip.label in words]
    others = [clip for clip in clips if clip.label not in words and clip.label != SILENCE]
    unknown = [
        replace(clip, label=UNKNOWN)
        for clip in _select(others, round(config.unknown_share * len(known)), config.seed)
    ]
    silence = [clip for clip in clips if clip.label == SILENCE] if config.silence_share else []
    if not silence:
        silence = _silence(config, split, round(config.silence_share * len(known)), noises)
    return [*sorted([*known, *unknown], key=lambda clip: clip.id), *silence]


def _select(clips: Sequence[KeywordClip], count: int, seed: int) -> Sequence[KeywordClip]:
    """At most ``count`` clips, by a hash of their ids: if clips are added or removed, few others change."""
    if len(clips) <= count:
        return clips

    def rank(clip: KeywordClip) -> bytes:
        return hashlib.blake2b(f"{seed} {clip.id}".encode(), digest_size=8).digest()

    return sorted(clips, key=rank)[:count]


def _silence(
    config: KeywordDataConfig, split: str, count: int, noises: Sequence[tuple[Path, float]]
) -> list[KeywordClip]:
    """Random segments of noise, from the part of each recording that is for this split; some generated."""
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
        low, high = (fraction * length for fraction in NOISE_PARTS[split])
        # A part that is shorter than a clip is padded: the splits share no sound.
        start = rng.uniform(low, max(low, high - seconds))
        cut = round(min(seconds, high - start), 4)
        clips.append(KeywordClip(name, audio, SILENCE, "", round(start, 4), cut))
    return clips


def _list_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
    return ", ".join(names[:_NAMES_SHOWN]) + more
