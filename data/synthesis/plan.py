"""Settings of a synthetic corpus in, the list of its utterances out: who says what, in which split.

Voices and sentences of train, dev and test are disjoint, and so are voices that are alike.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass

import numpy as np

from data.corpora.thchs30 import SPLITS
from data.synthesis.reading import Sentence
from data.synthesis.sentences import draw_sentences, read_sentences
from data.synthesis.voices import made_voice
from utils.audio.reading import SAMPLE_RATE
from utils.errors import CorpusError

# Variants of espeak-ng's Mandarin voice (_ for a blank) by pitch; those joined by + are alike and stay on one
# side of a split. The place of a voice in the list is the speaker's number. Of the 104 variants in espeak-ng
# 1.52 these are left out, after measuring 46 syllables of each:
# - no voiced sound, so no tones: whisper, whisperf, caleb;
# - a pitch that hardly moves, or moves the wrong way: Alex, AnxiousAndy, aunty, robosoft6, robosoft8;
# - more than a quarter of the syllables sound more like another syllable of the mean voice than like
#   themselves: Alicia, Annie, Demonic, Lee, ian, kaukovalta, norbert, shelby, zac;
# - dies now and then: rob (and Demonic);
# Those of _ALIKE are nearly the same as the voice they are named beside, and add little: they come in only
# where more voices are asked for than there are others, and only into the train split.
_LOW = """
    Andy Denis Diogo Gene Jacky Marco Mario Michael Mike Mr_serious Nguyen
    Reed+adam+benjamin+edward+klatt+klatt3+klatt4 RicishayMax+RicishayMax2+RicishayMax3 Storm Tweaky
    UniRobot announcer antonio boris croak david ed fast+john+m6 grandpa gustave iven+iven2+iven4 m1
    m2 m3 m4 m5 m7 m8 marcelo max mike2 pablo paul pedro quincy robert
    robosoft+robosoft2+robosoft4+robosoft7 sandro travis victor
"""
_HIGH = """
    Andrea anika+anikaRobot belinda f1 f2+f5 f3 f4 grandma linda steph
"""
_REGISTERS = tuple(
    tuple(tuple(name.replace("_", " ") for name in family.split("+")) for family in names.split())
    for names in (_LOW, _HIGH)
)
_ALIKE = {
    "Diogo": ("Henrique", "Hugo", "michel", "miguel"),
    "adam": ("Gene2", "klatt2", "klatt5", "klatt6"),
    "benjamin": ("edward2",),
    "iven": ("iven3",),
    "robosoft": ("robosoft3", "robosoft5"),
    "steph": ("steph2", "steph3"),
}
_DISTINCT = tuple(voice for families in _REGISTERS for family in families for voice in family)
VOICES = _DISTINCT + tuple(voice for voices in _ALIKE.values() for voice in voices)

_DEV_SHARE, _TEST_SHARE = 1 / 12, 1 / 6  # of the voices
_MADE_KEY = 5  # purpose of a random generator, beside those of the utterances


@dataclass(frozen=True)
class CorpusSettings:
    """All that the bytes of a corpus depend on, beside the grammar and this code.

    Attributes:
        train: utterances of the split; ``dev`` and ``test`` likewise.
        seed: of sentences, voices, prosody and acoustics.
        voices: how many of ``VOICES`` to use at most, at least 3; near-duplicates come last.
        text: a file of sentences instead of the grammar.
        made: made-up voices that say every third sentence of the train split, and none of the others.
        sample_rate: of the recordings, in Hz.
    """

    train: int = 4000
    dev: int = 300
    test: int = 600
    seed: int = 0
    voices: int = len(_DISTINCT)
    text: str | None = None
    made: int = 0
    sample_rate: int = SAMPLE_RATE


@dataclass(frozen=True)
class Planned:
    """An utterance to be made; ``rng_key`` starts its own stream of chance.

    ``voice`` is the name of a variant; with a ``definition`` it is a made-up one.
    """

    id: str
    split: str
    sentence: Sentence
    voice: str
    rng_key: tuple[int, ...]
    definition: str = ""


@dataclass(frozen=True)
class Cast:
    """Who speaks and what is said in one split; also the pool that its babble is made of."""

    voices: tuple[str, ...]
    sentences: tuple[Sentence, ...]


def cast_splits(settings: CorpusSettings) -> dict[str, Cast]:
    """Deal out voices and sentences to the splits: no sentence is in two, and no voice nor one like it.

    Raises:
        CorpusError: too few voices or sentences.
    """
    if settings.made < 0:
        raise CorpusError(f"{settings.made} made voices", hint="0 (none) or more")
    if not 3 <= settings.voices <= len(VOICES):
        raise CorpusError(f"{settings.voices} voices", hint=f"3 (one a split) to {len(VOICES)}")
    rng = np.random.default_rng([settings.seed, 1])
    own_voices = cast_voices(settings.voices, rng)
    sentences = _sentences(settings)
    sentences = [sentences[i] for i in rng.permutation(len(sentences))]
    held_out = settings.dev + settings.test
    own_sentences = {
        "dev": sentences[: settings.dev],
        "test": sentences[settings.dev : held_out],
        "train": sentences[held_out : held_out + settings.train],
    }
    if not own_sentences["train"]:
        raise CorpusError(
            f"{len(sentences)} sentences are not enough for {held_out} of dev and test, and a train split",
            where=settings.text,
            hint="give more text, or ask for fewer",
        )
    return {split: Cast(tuple(own_voices[split]), tuple(own_sentences[split])) for split in SPLITS}


def cast_voices(voices: int, rng: np.random.Generator) -> dict[str, list[str]]:
    """Deal out so many of ``VOICES`` to train, dev and test; voices that are alike go to one split.

    Args:
        voices: 3 (one a split) to all; near-duplicates come in last, and only into train.
        rng: where all chance comes from.
    """
    families = _shuffled_families(rng)
    dev = max(1, round(voices * _DEV_SHARE))
    test = max(1, round(voices * _TEST_SHARE))
    own_voices: dict[str, list[str]] = {"dev": [], "test": [], "train": []}
    for split, count in (("dev", dev), ("test", test), ("train", voices - dev - test)):
        while families and len(own_voices[split]) < count:
            family = families.pop()
            if split == "train" and voices > len(_DISTINCT):
                family += tuple(voice for name in family for voice in _ALIKE.get(name, ()))
            # What is left over of a family is not used at all.
            own_voices[split] += family[: count - len(own_voices[split])]
    return own_voices


def _shuffled_families(rng: np.random.Generator) -> list[tuple[str, ...]]:
    """Families by chance, but the high voices evenly among the low ones: each split has its share."""
    places: list[tuple[float, tuple[str, ...]]] = []
    for families in _REGISTERS:
        order = rng.permutation(len(families))
        places += [((place + 0.5) / len(order), families[i]) for place, i in enumerate(order)]
    return [family for _, family in sorted(places)]


def _sentences(settings: CorpusSettings) -> list[Sentence]:
    if settings.text is None:
        return draw_sentences(settings.train + settings.dev + settings.test, settings.seed)
    sentences, rejected = read_sentences(settings.text)
    if rejected:
        number, reason = rejected[0]
        print(
            f"{settings.text}: {len(rejected)} lines left out, the first: line {number}, {reason}",
            file=sys.stderr,
        )
    return sentences


def plan_corpus(settings: CorpusSettings, casts: dict[str, Cast]) -> list[Planned]:
    """Every utterance of the corpus; sentences are said again, by other voices, where they are too few."""
    planned = []
    definitions = [
        made_voice(np.random.default_rng([settings.seed, _MADE_KEY, number]))
        for number in range(settings.made)
    ]
    for number, split in enumerate(SPLITS):
        cast = casts[split]
        said: Counter[str] = Counter()
        for i in range(getattr(settings, split)):
            # In each round of the sentences the voices move on by one, so that no pair comes twice.
            turn, k = divmod(i, len(cast.sentences))
            key = (settings.seed, 2 + number, i)
            if split == "train" and settings.made and i % 3 == 0:
                made = i // 3 % settings.made
                voice, speaker, definition = f"made {made + 1}", f"M{made + 1:03d}", definitions[made]
            else:
                voice, definition = cast.voices[(k + turn) % len(cast.voices)], ""
                speaker = f"S{VOICES.index(voice) + 1:03d}"
            name = f"{speaker}_{said[voice]:04d}"
            said[voice] += 1
            planned.append(Planned(name, split, cast.sentences[k], voice, key, definition))
    return planned
