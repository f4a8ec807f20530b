"""Generates a synthetic speech corpus in the layout of THCHS-30.

Voices of a synthesiser speak the sentences of a grammar (``grammar.txt``) or of the user's text; noise and
room acoustics are added. No voice and no sentence is in two of train, dev and test; similar voices are in one
split. The same settings give the same bytes, whatever the number of workers; an interrupted run continues.
"""

import hashlib
import sys
from collections import Counter
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np

from data.manifest import SPLITS
from data.synthesis.acoustics import record
from data.synthesis.corpus_card import CorpusCard
from data.synthesis.reading import Sentence, spoken_input, spoken_reading
from data.synthesis.sentences import GRAMMAR_PATH, draw_sentences, read_sentences
from data.synthesis.speech import Words, make_babble, speak
from data.synthesis.synthesiser import Synthesiser, Unspoken, speak_all
from data.synthesis.voices import DISTINCT_VOICES, VOICES, Voice, assign_voices, generate_voices
from utils.audio.reading import SAMPLE_RATE, resample
from utils.audio.samples import write_wav
from utils.errors import CorpusError
from utils.files import write_text
from utils.mandarin.pinyin import split_syllable

RECIPE = 2  # raise it when the sound of a corpus with the same settings changes

# THCHS-30's phones: a dummy initial for each zero initial, other finals for the i of zhi and of zi.
_DUMMY_INITIALS = {"a": "aa", "o": "oo", "e": "ee", "i": "ii", "u": "uu", "v": "vv"}
_PHONE_FINALS = {"iou": "iu", "uei": "ui", "uen": "un"}


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


def generate(
    root: str | Path, settings: CorpusSettings, workers: int = 2
) -> list[Unspoken[PlannedUtterance]]:
    """Generate the corpus in ``root``, or what is missing of it; a complete one is left unchanged.

    Returns:
        The sentences that could not be spoken; [] for a corpus that was complete.

    Raises:
        CorpusError: ``root`` holds something else, the settings can't be met, or the synthesiser fails.
    """
    root = Path(root)
    pools = assign_to_splits(settings)
    card = corpus_card(root, settings)
    if card.is_complete():
        return []
    card.start()
    for split in SPLITS:
        (root / split).mkdir(parents=True, exist_ok=True)
    make = partial(make_utterance, root=root, pools=pools, sample_rate=settings.sample_rate)
    made, unspoken = speak_all(make, plan_corpus(settings, pools), workers, root)
    card.finish(utterances=len(made))
    return sorted(unspoken, key=lambda failure: failure.item.id)


def make_utterance(
    planned: PlannedUtterance,
    synthesiser: Synthesiser,
    root: Path,
    pools: dict[str, SplitPool],
    sample_rate: int = SAMPLE_RATE,
) -> None:
    """Write one utterance's recording and transcript, unless they exist.

    Raises:
        SynthesiserError: this voice can't speak the sentence.
    """
    audio = root / "data" / f"{planned.id}.wav"
    if audio.exists():
        return
    rng = np.random.default_rng(planned.rng_key)
    pool = pools[planned.split]

    def draw(rng: np.random.Generator) -> Words:
        voice = pool.voices[rng.integers(len(pool.voices))]
        sentence = pool.sentences[rng.integers(len(pool.sentences))]
        return spoken_input(sentence), sentence.pauses, voice

    sentence = planned.sentence
    speech = speak(spoken_input(sentence), sentence.pauses, planned.voice, rng, synthesiser)
    samples = record(speech, rng, make_babble(draw, synthesiser), SAMPLE_RATE)
    write_text(audio.with_name(f"{audio.name}.trn"), transcript(sentence))
    write_text(root / planned.split / f"{audio.name}.trn", f"../data/{audio.name}.trn\n")
    link = root / planned.split / audio.name
    link.unlink(missing_ok=True)
    link.symlink_to(Path("..", "data", audio.name))
    # Last: if the recording exists, the utterance is complete.
    write_wav(audio, resample(samples, SAMPLE_RATE, sample_rate), sample_rate)


def transcript(sentence: Sentence) -> str:
    """THCHS-30's three lines: words, citation pinyin, and phones, which give the spoken pinyin."""
    phones = " ".join(syllable_phones(syllable) for syllable in spoken_reading(sentence))
    return f"{' '.join(sentence.words)}\n{' '.join(sentence.pinyin)}\n{phones}\n"


def syllable_phones(syllable: str) -> str:
    """The phones of a syllable in the notation of THCHS-30: ``shi4`` → ``sh ix4``."""
    parts = split_syllable(syllable)
    final = _PHONE_FINALS.get(parts.final, parts.final)
    if final == "i" and parts.initial in ("zh", "ch", "sh", "r"):
        final = "ix"
    elif final == "i" and parts.initial in ("z", "c", "s"):
        final = "iy"
    return f"{parts.initial or _DUMMY_INITIALS[final[0]]} {final}{parts.tone}"


def corpus_card(root: Path, settings: CorpusSettings) -> CorpusCard:
    """The card of the corpus, with a hash of everything that determines its bytes."""
    text = Path(settings.text or GRAMMAR_PATH).read_bytes()
    values = asdict(settings) | {"text": None}
    # Settings that older corpora do not have are left out where they change nothing, so that those are known.
    for name in ("made", "sample_rate"):
        if values[name] == getattr(CorpusSettings(), name):
            del values[name]
    parts = [RECIPE, values, VOICES, hashlib.sha256(text).hexdigest()]
    return CorpusCard(root, {"corpus": "synthetic", "settings": asdict(settings)}, parts)
