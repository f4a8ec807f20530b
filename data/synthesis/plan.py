"""Plans the utterances of a synthetic corpus: speaker, sentence and split of each.

No voice and no sentence is in two of train, dev and test; similar voices of the synthesiser are in one split.
"""

import sys
from collections import Counter
from dataclasses import dataclass

import numpy as np

from data.manifest import SPLITS
from data.synthesis.reading import Sentence
from data.synthesis.sentences import draw_sentences, read_sentences
from data.synthesis.voices import DISTINCT_VOICES, VOICES, Voice, assign_voices, generate_voices
from utils.audio.reading import SAMPLE_RATE
from utils.errors import CorpusError, require


@dataclass(frozen=True)
class CorpusSettings:
    """Everything that determines the bytes of a corpus, besides the grammar and this code.

    Attributes:
        train: number of utterances of the split; ``dev`` and ``test`` likewise.
        seed: seed of sentences, voices, prosody and acoustics.
        voices: largest number of ``VOICES`` to use, at least 3; near-duplicates come last.
        text: a file of sentences instead of the grammar.
        made: number of generated voices, which speak every third utterance of the train split.
        sample_rate: sample rate of the recordings, in Hz.
    """

    train: int = 4000
    dev: int = 300
    test: int = 600
    seed: int = 0
    voices: int = len(DISTINCT_VOICES)
    text: str | None = None
    made: int = 0
    sample_rate: int = SAMPLE_RATE


@dataclass(frozen=True)
class PlannedUtterance:
    """An utterance to be spoken; ``rng_key`` seeds its own random generator."""

    id: str
    split: str
    sentence: Sentence
    voice: Voice
    rng_key: tuple[int, ...]


@dataclass(frozen=True)
class SplitPool:
    """The voices and the sentences of one split; its background babble is made from them too."""

    voices: tuple[Voice, ...]
    sentences: tuple[Sentence, ...]


def assign_to_splits(settings: CorpusSettings) -> dict[str, SplitPool]:
    """Assign voices and sentences to the splits: no sentence is in two; similar voices are in one split.

    Raises:
        CorpusError: too few voices or sentences.
    """
    require(
        settings.made >= 0, f"{settings.made} generated voices", hint="0 (none) or more", error=CorpusError
    )
    if not 3 <= settings.voices <= len(VOICES):
        raise CorpusError(f"{settings.voices} voices", hint=f"3 (one for each split) to {len(VOICES)}")
    rng = np.random.default_rng([settings.seed, 1])
    voices = assign_voices(settings.voices, rng)
    sentences = _read_or_draw_sentences(settings)
    sentences = [sentences[i] for i in rng.permutation(len(sentences))]
    held_out = settings.dev + settings.test
    parts = {
        "dev": sentences[: settings.dev],
        "test": sentences[settings.dev : held_out],
        "train": sentences[held_out : held_out + settings.train],
    }
    if not parts["train"]:
        raise CorpusError(
            f"{len(sentences)} sentences are not enough for {held_out} of dev and test, and a train split",
            where=settings.text,
            hint="give more text, or ask for fewer",
        )
    return {split: SplitPool(tuple(voices[split]), tuple(parts[split])) for split in SPLITS}


def _read_or_draw_sentences(settings: CorpusSettings) -> list[Sentence]:
    if settings.text is None:
        return draw_sentences(settings.train + settings.dev + settings.test, settings.seed)
    sentences, rejected = read_sentences(settings.text)
    if rejected:
        number, reason = rejected[0]
        message = f"{len(rejected)} lines left out, the first: line {number}, {reason}"
        print(f"{settings.text}: {message}", file=sys.stderr)
    return sentences


def plan_corpus(settings: CorpusSettings, pools: dict[str, SplitPool]) -> list[PlannedUtterance]:
    """Plan every utterance of the corpus; too few sentences are repeated by other voices."""
    planned = []
    generated = generate_voices(settings.made, settings.seed)
    for number, split in enumerate(SPLITS):
        pool = pools[split]
        utterances_of: Counter[str] = Counter()
        for i in range(getattr(settings, split)):
            # In each pass through the sentences the voices move by one, so that no pair is repeated.
            round_number, k = divmod(i, len(pool.sentences))
            if split == "train" and generated and i % 3 == 0:
                voice = generated[i // 3 % len(generated)]
            else:
                voice = pool.voices[(k + round_number) % len(pool.voices)]
            name = f"{voice.name}_{utterances_of[voice.name]:04d}"
            utterances_of[voice.name] += 1
            rng_key = (settings.seed, 2 + number, i)
            planned.append(PlannedUtterance(name, split, pool.sentences[k], voice, rng_key))
    return planned
