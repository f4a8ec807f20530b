"""Generates the training clips of a wake word: the word, similar phrases, ordinary speech, and noise.

The layout is that of every folder of keywords: ``WORD/``, ``_unknown_/`` and ``_background_noise_/``, with
the lists of dev and test, whose voices are not in train. ``negatives.tsv`` lists, for each number in
``_unknown_/VOICE_nohash_NUMBER``, the text and its distance from the word. The same settings give the same
bytes; an interrupted run continues.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

from data.keywords.clips import UNKNOWN, KeywordClip
from data.manifest import SPLITS
from data.synthesis.clips import SpokenClip, make_splits, write_background_noise
from data.synthesis.corpus_card import CorpusCard
from data.synthesis.reading import spoken_input
from data.synthesis.sentences import draw_sentences
from data.synthesis.voices import Voice, assign_all_voices
from data.synthesis.wake_words import (
    NEAR_KINDS,
    WORD,
    Negative,
    WakeWord,
    make_negative,
    near_phrases,
    near_words,
    parts_of,
    sounds_like,
)
from utils.audio.properties import audio_seconds
from utils.files import write_text
from utils.text_table import tsv_table

RECIPE = 2  # raise it when the sound of a corpus with the same settings changes
SENTENCE, NEAR, PARTS = "sentence", "near", "parts"
# Phrases nearer to the word than this (another tone, a classic confusion) are in the test alone, which counts
# how often they wake the model: trained as negatives, such phrases cost half of the detections.
_MIN_TRAINING_DISTANCE = 40
_SENTENCES = 900  # divided among the splits: no sentence is in two
_SENTENCE_RANGES = {"train": (0.0, 0.6), "dev": (0.6, 0.75), "test": (0.75, 1.0)}
_HELD_OUT_FACTOR = 2  # times as many sentences per voice in dev and test, where false alarms are counted
_PAUSED_SYLLABLES = 4  # words of so many syllables are also spoken with a pause in the middle: 你好，小明
_PICK_KEY, _STREAM_KEY = 13, 14  # purposes of random generators
# Percentages in a long recording: mostly ordinary speech, sometimes something similar to the word.
_STREAM_PERCENTAGES = {SENTENCE: 60, WORD: 10, PARTS: 10, NEAR: 5}
_STREAM_WORD_PERCENTAGE = 15
_SECONDS_PER_CLIP = 4.0  # with the pause after it


@dataclass(frozen=True)
class WakeWordSettings:
    """Everything that determines the bytes of the clips, beside the word and this code.

    Attributes:
        voices: number of voices of train, dev and test together.
        takes: number of clips of the word in each voice.
        near: number of phrases with one other initial, final or tone that each voice speaks.
        parts: number of parts of the word, repeated or in another order, that each voice speaks.
        words: number of words of the dictionary that each voice speaks.
        sentences: number of sentences that each training voice speaks; dev and test voices speak twice that.
        seed: seed of voices, choice, prosody and acoustics.
    """

    voices: int = 120
    takes: int = 8
    near: int = 10
    parts: int = 6
    words: int = 4
    sentences: int = 20
    seed: int = 0


SMALL = WakeWordSettings(voices=24, takes=4, near=8, parts=4, words=2, sentences=6)


def group_of(kind: str) -> str:
    """Return the group of a negative's kind: ``near``, ``parts``, ``word`` or ``sentence``."""
    return NEAR if kind in NEAR_KINDS else kind if kind in (WORD, SENTENCE) else PARTS


@cache
def find_negatives(word: WakeWord, seed: int) -> tuple[Negative, ...]:
    """Find phrases that are not the word; a negative's index is the number of its clips."""
    found: dict[tuple[str, ...], Negative] = {}
    for negative in (*parts_of(word), *near_phrases(word), *near_words(word)):
        found.setdefault(negative.syllables, negative)
    sentences = (
        make_negative(s.pinyin, SENTENCE, word, s.hanzi, spoken_input(s), s.pauses)
        for s in draw_sentences(_SENTENCES, seed)
        if not sounds_like(s.pinyin, word)
    )
    return (*found.values(), *sentences)


def plan_clips(word: WakeWord, settings: WakeWordSettings) -> dict[str, list[SpokenClip]]:
    """Plan the clips of each split: the word in every voice, and some of the negatives."""
    plan: dict[str, list[SpokenClip]] = {}
    negatives = find_negatives(word, settings.seed)
    for split, voices in assign_all_voices(settings.voices, settings.seed).items():
        sentences = settings.sentences * (1 if split == "train" else _HELD_OUT_FACTOR)
        counts = {NEAR: settings.near, PARTS: settings.parts, WORD: settings.words, SENTENCE: sentences}
        numbers = _numbers_by_group(negatives, split)
        plan[split] = [
            clip
            for voice in voices
            for clip in (
                *_plan_positives(word, voice, settings.takes),
                *_plan_negatives(negatives, voice, settings.seed, numbers, counts),
            )
        ]
    return plan


def corpus_card(root: Path, word: WakeWord, settings: WakeWordSettings) -> CorpusCard:
    """The card of the clips in ``root``; its hash changes with all that determines their bytes."""
    identity = {
        "corpus": "wake word",
        "word": word.hanzi,
        "pinyin": " ".join(word.syllables),
        "settings": asdict(settings),
    }
    phrases = [negative.syllables for negative in find_negatives(word, settings.seed)]
    return CorpusCard(root, identity, [RECIPE, asdict(word), asdict(settings), phrases])


def generate(
    root: str | Path,
    word: WakeWord,
    settings: WakeWordSettings,
    workers: int = 2,
) -> dict[str, list[SpokenClip]]:
    """Generate the clips in ``root``, or what is missing of them; complete ones are left unchanged.

    Returns:
        The clips of each split, without those that could not be spoken (``unspoken.tsv``).

    Raises:
        CorpusError: ``root`` holds something else, or the synthesiser fails.
    """
    root, plan = Path(root), plan_clips(word, settings)
    negatives, card = find_negatives(word, settings.seed), corpus_card(root, word, settings)
    if card.is_complete():
        return {split: _find_spoken(root, clips) for split, clips in plan.items()}
    card.start()
    # Word and negatives apart: background voices speak words of the same group, and those behind a sentence
    # must not speak the wake word.
    groups = {
        split: [[clip for clip in clips if clip.label == label] for label in (word.hanzi, UNKNOWN)]
        for split, clips in plan.items()
    }
    made, _ = make_splits(groups, root, settings.seed, workers)
    sentences = [c for c in made["train"] if c.label == UNKNOWN and negatives[c.number].kind == SENTENCE]
    write_background_noise(root, sentences, settings.seed)
    write_text(root / "negatives.tsv", _negatives_tsv(negatives))
    card.finish(clips={split: len(made[split]) for split in SPLITS})
    return made


def choose_stream_clips(
    root: Path, word: WakeWord, settings: WakeWordSettings, clips: Sequence[SpokenClip], seconds: int
) -> list[KeywordClip]:
    """Choose the clips of a long recording: the word, and negatives, whose label is their kind.

    Args:
        root: folder of the clips.
        word: the wake word.
        settings: settings of the clips.
        clips: the clips of one split.
        seconds: length of the recording; clips are repeated if there are too few.
    """
    negatives = find_negatives(word, settings.seed)
    groups: dict[str, list[KeywordClip]] = {}
    for clip in clips:
        is_word = clip.label == word.hanzi
        label = word.hanzi if is_word else negatives[clip.number].kind
        group = groups.setdefault(label if is_word else group_of(label), [])
        group.append(KeywordClip(clip.path, root / clip.path, label, clip.voice.name))
    rng = np.random.default_rng([settings.seed, _STREAM_KEY])
    chosen = []
    for group, percentage in {word.hanzi: _STREAM_WORD_PERCENTAGE, **_STREAM_PERCENTAGES}.items():
        if found := groups.get(group):
            count = max(1, round(percentage / 100 * seconds / _SECONDS_PER_CLIP))
            order = np.resize(rng.permutation(len(found)), count)
            chosen += [found[int(index)] for index in order]
    return chosen


def _plan_positives(word: WakeWord, voice: Voice, takes: int) -> list[SpokenClip]:
    """Plan clips of the word's forms in turn; longer words also with a pause in the middle."""
    forms: list[tuple[tuple[str, ...], tuple[int, ...]]] = [(form, ()) for form in word.forms]
    if len(word.syllables) >= _PAUSED_SYLLABLES:
        forms.insert(1, (word.syllables, (len(word.syllables) // 2,)))
    chosen = (forms[take % len(forms)] for take in range(takes))
    return [
        SpokenClip(word.hanzi, syllables, voice, take, pauses=pauses)
        for take, (syllables, pauses) in enumerate(chosen)
    ]


def _plan_negatives(
    negatives: Sequence[Negative],
    voice: Voice,
    seed: int,
    numbers: Mapping[str, Sequence[int]],
    counts: Mapping[str, int],
) -> list[SpokenClip]:
    """Plan the negatives that a voice speaks: ``counts[group]`` of each group, at random."""
    rng = np.random.default_rng([seed, _PICK_KEY, *voice.name.encode()])
    picked = [
        int(number)
        for group, count in counts.items()
        for number in rng.permutation(numbers.get(group, ()))[:count]
    ]
    return [
        SpokenClip(UNKNOWN, negatives[number].spoken, voice, number, pauses=negatives[number].pauses)
        for number in sorted(picked)
    ]


def _find_spoken(root: Path, clips: Sequence[SpokenClip]) -> list[SpokenClip]:
    """Return the clips that exist, with their lengths."""
    existing = [clip for clip in clips if (root / clip.path).is_file()]
    return [replace(clip, seconds=audio_seconds(root / clip.path)) for clip in existing]


def _numbers_by_group(negatives: Sequence[Negative], split: str) -> dict[str, list[int]]:
    """Numbers of a split's negatives: its range of the sentences; the nearest phrases in the test alone."""
    numbers: dict[str, list[int]] = {}
    for number, negative in enumerate(negatives):
        too_near = negative.kind in NEAR_KINDS and negative.distance < _MIN_TRAINING_DISTANCE
        if split == "test" or not too_near:
            numbers.setdefault(group_of(negative.kind), []).append(number)
    sentences = numbers[SENTENCE]
    first, last = (round(fraction * len(sentences)) for fraction in _SENTENCE_RANGES[split])
    return numbers | {SENTENCE: sentences[first:last]}


def _negatives_tsv(negatives: Sequence[Negative]) -> str:
    rows = [
        (number, " ".join(negative.syllables), negative.hanzi, negative.kind, negative.distance)
        for number, negative in enumerate(negatives)
    ]
    return tsv_table(("number", "pinyin", "hanzi", "kind", "distance"), rows)
