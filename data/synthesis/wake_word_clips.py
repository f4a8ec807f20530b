"""A wake word in; a folder of it, of what sounds nearly like it, of ordinary speech and of noise, out.

As every folder of keywords: ``WORD/``, ``_unknown_/`` and ``_background_noise_/``, with the lists of dev and
test, whose voices train nothing. ``negatives.tsv`` says what each number in ``_unknown_/VOICE_nohash_NUMBER``
says and how far it is from the word. The same settings give the same bytes; a killed run goes on.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

from data.keywords.clips import UNKNOWN, KeywordClip
from data.keywords.folders import DEV_LIST, NOISE_FOLDER, SPLITS, TEST_LIST
from data.synthesis.card import read_card
from data.synthesis.clips import SpokenClip, Voice, make_clips, voices_of_splits
from data.synthesis.reading import Sentence, spoken_input
from data.synthesis.sentences import draw_sentences
from data.synthesis.spoken_commands import write_noises
from data.synthesis.synthesiser import COMMAND, Synthesiser, check_installed
from data.synthesis.wake_words import (
    NEAR_KINDS,
    WORD,
    Negative,
    WakeWord,
    near_phrases,
    near_words,
    parts_of,
    sounds_like,
)
from utils.audio.reading import audio_seconds
from utils.config import at_least
from utils.files import write_json, write_text
from utils.mandarin.syllable_distance import phrase_distance

RECIPE = 2  # raise it when the sound of a corpus with the same settings changes
SENTENCE, NEAR, PARTS = "sentence", "near", "parts"
# What is nearer to the word than this (another tone, a classic confusion) is said in the test alone, which
# tells how often it wakes: taught as something else, such phrases cost half of the calls.
_TAUGHT_DISTANCE = 40
_SENTENCES = 900  # of which a split has its share: no sentence is in two
_SENTENCE_SHARES = {"train": (0.0, 0.6), "dev": (0.6, 0.75), "test": (0.75, 1.0)}
_MEASURED = 2  # times as many sentences a voice where alarms are counted as where it trains
_PAUSED_SYLLABLES = 4  # words so long are also said with a pause in the middle: 你好，小明
_PICK_KEY, _STREAM_KEY = 13, 14  # purposes of random generators
# Of a hundred things said in a long recording: mostly ordinary speech, now and then something near the word.
_HEARD = {SENTENCE: 60, WORD: 10, PARTS: 10, NEAR: 5}
_HEARD_WORD = 15
_SECONDS_A_PIECE = 4.0  # with the pause after it


@dataclass(frozen=True)
class WakeWordSettings:
    """All that the bytes of the clips depend on, beside the word and this code.

    Attributes:
        voices: of train, dev and test together.
        takes: clips of the word in each voice.
        near: phrases with one other initial, final or tone that each voice says.
        parts: parts of the word, repeated or in another order, that each voice says.
        words: words of the dictionary that each voice says.
        sentences: that each training voice says; those of dev and test say twice as many.
        seed: of voices, choice, prosody and acoustics.
    """

    voices: int = 120
    takes: int = 8
    near: int = 10
    parts: int = 6
    words: int = 4
    sentences: int = 20
    seed: int = 0

    def __post_init__(self):
        at_least(self, "settings", voices=6, takes=1, near=0, parts=0, words=0, sentences=1, seed=0)


SMALL = WakeWordSettings(voices=24, takes=4, near=8, parts=4, words=2, sentences=6)


def group_of(kind: str) -> str:
    """``near``, ``parts``, ``word`` or ``sentence``: what a voice says so many of."""
    return NEAR if kind in NEAR_KINDS else kind if kind in (WORD, SENTENCE) else PARTS


@cache
def negatives_of(word: WakeWord, seed: int) -> tuple[Negative, ...]:
    """All that isn't the word: near phrases, parts, words, sentences. A place is a clip's number."""
    found: dict[tuple[str, ...], Negative] = {}
    for negative in (*parts_of(word), *near_phrases(word), *near_words(word)):
        found.setdefault(negative.syllables, negative)
    sentences = [one for one in draw_sentences(_SENTENCES, seed) if not sounds_like(one.pinyin, word)]
    return (*found.values(), *(_as_negative(one, word) for one in sentences))


def plan_clips(word: WakeWord, settings: WakeWordSettings) -> dict[str, list[SpokenClip]]:
    """The clips of each split: the word in every voice, and some of all that isn't it."""
    plan = {}
    for split, voices in voices_of_splits(settings.voices, settings.seed).items():
        wanted = {NEAR: settings.near, PARTS: settings.parts, WORD: settings.words}
        wanted[SENTENCE] = settings.sentences * (1 if split == "train" else _MEASURED)
        numbers = _numbers_by_group(negatives_of(word, settings.seed), split)
        plan[split] = [
            clip
            for voice in voices
            for clip in (*_positives(word, voice, settings), *_others(word, voice, settings, numbers, wanted))
        ]
    return plan


def generate(
    root: str | Path,
    word: WakeWord,
    settings: WakeWordSettings,
    workers: int = 2,
    command: Sequence[str] = COMMAND,
) -> dict[str, list[SpokenClip]]:
    """Make the clips below ``root``, or what is missing of them; complete ones are left as they are.

    Returns:
        The clips of each split; without what couldn't be said (``unspoken.tsv``).

    Raises:
        CorpusError: ``root`` holds something else, or the synthesiser fails.
    """
    root, plan = Path(root), plan_clips(word, settings)
    identity = _identity(word, settings)
    card = root / "corpus.json"
    if read_card(card, identity)["complete"]:
        return {
            split: [_measured(root, one) for one in plan[split] if _is_there(root, one)] for split in SPLITS
        }
    if tuple(command) == COMMAND:
        check_installed()
    write_json(card, identity | {"complete": False})
    made: dict[str, list[SpokenClip]] = {}
    reasons = ["clip\treason\n"]
    for split in SPLITS:
        made[split] = []
        # Apart: the voices behind a clip say others of the same call, and behind a sentence nobody wakes it.
        for label in (word.hanzi, UNKNOWN):
            part = [clip for clip in plan[split] if clip.label == label]
            spoken, unspoken = make_clips(part, root, settings.seed, workers, command)
            made[split] += spoken
            reasons += [f"{failure.clip.path}\t{failure.reason}\n" for failure in unspoken]
    negatives = negatives_of(word, settings.seed)
    sentences = [c for c in made["train"] if c.label == UNKNOWN and negatives[c.number].kind == SENTENCE]
    with Synthesiser(command) as synthesiser:
        write_noises(root / NOISE_FOLDER, sentences, settings.seed, synthesiser)
    for split, name in (("dev", DEV_LIST), ("test", TEST_LIST)):
        write_text(root / name, "".join(f"{clip.path}\n" for clip in made[split]))
    write_text(root / "unspoken.tsv", "".join(reasons))
    write_text(root / "negatives.tsv", _negatives_tsv(negatives))
    write_json(card, identity | {"complete": True, "clips": {split: len(made[split]) for split in SPLITS}})
    return made


def hour_of_speech(
    root: Path, word: WakeWord, settings: WakeWordSettings, clips: Sequence[SpokenClip], seconds: int
) -> list[KeywordClip]:
    """What may be said in a long recording: the word, and other things whose label is their kind.

    Args:
        root: folder of the clips.
        word: the wake word.
        settings: of the clips.
        clips: of one split.
        seconds: length of the recording; clips come again where there are fewer than it takes.
    """
    negatives = negatives_of(word, settings.seed)
    groups: dict[str, list[KeywordClip]] = {}
    for clip in clips:
        label = word.hanzi if clip.label == word.hanzi else negatives[clip.number].kind
        group = label if clip.label == word.hanzi else group_of(label)
        groups.setdefault(group, []).append(KeywordClip(clip.path, root / clip.path, label, clip.voice.name))
    rng = np.random.default_rng([settings.seed, _STREAM_KEY])
    said = []
    for group, share in {word.hanzi: _HEARD_WORD, **_HEARD}.items():
        if found := groups.get(group):
            count = max(1, round(share / 100 * seconds / _SECONDS_A_PIECE))
            order = np.resize(rng.permutation(len(found)), count)
            said += [found[int(place)] for place in order]
    return said


def _positives(word: WakeWord, voice: Voice, settings: WakeWordSettings) -> list[SpokenClip]:
    """The word's forms in turn; longer words also with a pause in the middle."""
    ways: list[tuple[tuple[str, ...], tuple[int, ...]]] = [(form, ()) for form in word.forms]
    if len(word.syllables) >= _PAUSED_SYLLABLES:
        ways.insert(1, (word.syllables, (len(word.syllables) // 2,)))
    chosen = (ways[take % len(ways)] for take in range(settings.takes))
    return [
        SpokenClip(word.hanzi, syllables, voice, take, pauses=pauses)
        for take, (syllables, pauses) in enumerate(chosen)
    ]


def _others(
    word: WakeWord,
    voice: Voice,
    settings: WakeWordSettings,
    numbers: Mapping[str, Sequence[int]],
    wanted: Mapping[str, int],
) -> list[SpokenClip]:
    """What this voice says beside the word: so many of each group, by chance."""
    negatives = negatives_of(word, settings.seed)
    rng = np.random.default_rng([settings.seed, _PICK_KEY, *voice.name.encode()])
    picked = [
        number for group in wanted for number in rng.permutation(numbers.get(group, ()))[: wanted[group]]
    ]
    return [
        SpokenClip(UNKNOWN, negatives[n].said, voice, int(n), pauses=negatives[n].pauses)
        for n in sorted(map(int, picked))
    ]


def _is_there(root: Path, clip: SpokenClip) -> bool:
    return (root / clip.path).is_file()


def _measured(root: Path, clip: SpokenClip) -> SpokenClip:
    """A clip that was made before, with its length."""
    return replace(clip, seconds=audio_seconds(root / clip.path))


def _numbers_by_group(negatives: Sequence[Negative], split: str) -> dict[str, list[int]]:
    """Numbers of a split's negatives: its share of the sentences; the nearest phrases in the test alone."""
    numbers: dict[str, list[int]] = {}
    for number, negative in enumerate(negatives):
        if split != "test" and negative.kind in NEAR_KINDS and negative.distance < _TAUGHT_DISTANCE:
            continue
        numbers.setdefault(group_of(negative.kind), []).append(number)
    sentences = numbers[SENTENCE]
    low, high = (round(share * len(sentences)) for share in _SENTENCE_SHARES[split])
    return numbers | {SENTENCE: sentences[low:high]}


def _as_negative(sentence: Sentence, word: WakeWord) -> Negative:
    distance = min(phrase_distance(sentence.pinyin, form) for form in word.forms)
    said = spoken_input(sentence)
    return Negative(sentence.pinyin, SENTENCE, distance, sentence.hanzi, said, sentence.pauses)


def _negatives_tsv(negatives: Sequence[Negative]) -> str:
    lines = ["number\tpinyin\thanzi\tkind\tdistance"]
    for number, one in enumerate(negatives):
        lines.append(f"{number}\t{' '.join(one.syllables)}\t{one.hanzi}\t{one.kind}\t{one.distance}")
    return "\n".join(lines) + "\n"


def _identity(word: WakeWord, settings: WakeWordSettings) -> dict:
    """The word, the settings, and a hash of them and of all that is said."""
    said = [one.syllables for one in negatives_of(word, settings.seed)]
    parts = json.dumps([RECIPE, asdict(word), asdict(settings), said], sort_keys=True, ensure_ascii=False)
    digest = hashlib.sha256(parts.encode()).hexdigest()[:16]
    return {
        "corpus": "wake word",
        "word": word.hanzi,
        "pinyin": " ".join(word.syllables),
        "settings": asdict(settings),
        "hash": digest,
    }
