"""A seed in, a synthetic speech corpus in THCHS-30's own layout out; then that corpus → manifests.

``generate`` lets the voices of a synthesiser say the sentences of a grammar (``synthetic_text.py``), or of a
text of yours, and records them with noise and rooms. Voices and sentences of train, dev and test are
disjoint. The same settings give the same bytes, whatever the number of workers; an interrupted run goes on
where it was.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
from tqdm import tqdm

from data.corpora.command import corpus_command
from data.corpora.preparation import Corpus
from data.corpora.synthesiser import (
    COMMAND,
    Speech,
    Synthesiser,
    SynthesiserError,
    check_installed,
    in_parallel,
    to_text,
)
from data.corpora.synthesiser import SAMPLE_RATE as VOICE_RATE
from data.corpora.synthetic_acoustics import record
from data.corpora.synthetic_text import (
    GRAMMAR_PATH,
    Sentence,
    draw_sentences,
    read_sentences,
    spoken_input,
    spoken_reading,
)
from data.corpora.thchs30 import SPLITS, find_utterances
from utils.audio import INT16_SCALE, SAMPLE_RATE, audio_seconds, resample, write_wav
from utils.errors import CorpusError, run_command
from utils.files import write_json, write_text
from utils.pinyin import split_syllable

# Variants of espeak-ng's Mandarin voice, in a fixed order: the place in it is the speaker's number (_ for a
# blank). Of the 104 in espeak-ng 1.52 these are left out, after measuring 46 syllables of each:
# - no voiced sound, so no tones: whisper, whisperf, caleb;
# - a pitch that hardly moves, or moves the wrong way: Alex, AnxiousAndy, aunty, robosoft6, robosoft8;
# - more than a quarter of the syllables sound more like another syllable of the mean voice than like
#   themselves: Alicia, Annie, Demonic, Lee, ian, kaukovalta, norbert, shelby, zac;
# - dies now and then: rob (and Demonic);
# - nearly the same as another one, so that one voice would stand on both sides of a split: Henrique, Hugo,
#   michel, miguel (as Diogo), Gene2, klatt2, klatt5, klatt6 (as adam), edward2 (as benjamin), iven3,
#   robosoft3, robosoft5, steph2, steph3.
_VARIANTS = """
    Andrea Andy Denis Diogo Gene Jacky Marco Mario Michael Mike Mr_serious Nguyen Reed RicishayMax
    RicishayMax2 RicishayMax3 Storm Tweaky UniRobot adam anika anikaRobot announcer antonio belinda
    benjamin boris croak david ed edward f1 f2 f3 f4 f5 fast grandma grandpa gustave iven iven2
    iven4 john klatt klatt3 klatt4 linda m1 m2 m3 m4 m5 m6 m7 m8 marcelo max mike2 pablo paul pedro
    quincy robert robosoft robosoft2 robosoft4 robosoft7 sandro steph travis victor
"""
VOICES = tuple(name.replace("_", " ") for name in _VARIANTS.split())

RECIPE = 1  # raise it when the sound of a corpus with the same settings changes
_DEV_SHARE, _TEST_SHARE = 1 / 12, 1 / 6  # of the voices

_SPEED = (150, 210)  # words a minute, about 3.2 to 4.6 syllables a second
_PITCH = (30, 70)
_RANGE = (65, 100)  # espeak's usual 50 moves the pitch by two semitones, less than any speaker of Mandarin
_SPEECH_RMS = 0.1  # before the recording; voices differ much in loudness
_BABBLE_VOICES = 3

# THCHS-30's phones: a dummy initial for each zero initial, a final for each i of zhi and of zi.
_DUMMY_INITIALS = {"a": "aa", "o": "oo", "e": "ee", "i": "ii", "u": "uu", "v": "vv"}
_PHONE_FINALS = {"iou": "iu", "uei": "ui", "uen": "un"}


@dataclass(frozen=True)
class CorpusSettings:
    """All that the bytes of a corpus depend on, beside the grammar and this code.

    Attributes:
        train: utterances of the split; ``dev`` and ``test`` likewise.
        seed: of sentences, voices, prosody and acoustics.
        voices: how many of ``VOICES`` to use, at least 3.
        text: a file of sentences instead of the grammar.
    """

    train: int = 4000
    dev: int = 300
    test: int = 600
    seed: int = 0
    voices: int = len(VOICES)
    text: str | None = None


@dataclass(frozen=True)
class Planned:
    """An utterance to be made; ``rng_key`` starts its own stream of chance."""

    id: str
    split: str
    sentence: Sentence
    voice: str
    rng_key: tuple[int, ...]


@dataclass(frozen=True)
class Cast:
    """Who speaks and what is said in one split; also the pool that its babble is made of."""

    voices: tuple[str, ...]
    sentences: tuple[Sentence, ...]


@dataclass(frozen=True)
class Failure:
    """A pair of voice and sentence that the synthesiser couldn't say."""

    id: str
    voice: str
    hanzi: str
    reason: str


def cast_splits(settings: CorpusSettings) -> dict[str, Cast]:
    """Deal out voices and sentences to the splits; no voice and no sentence is in two.

    Raises:
        CorpusError: too few voices or sentences.
    """
    if not 3 <= settings.voices <= len(VOICES):
        raise CorpusError(f"{settings.voices} voices", hint=f"3 (one a split) to {len(VOICES)}")
    rng = np.random.default_rng([settings.seed, 1])
    voices = [VOICES[i] for i in rng.permutation(len(VOICES))[: settings.voices]]
    dev = max(1, round(settings.voices * _DEV_SHARE))
    test = max(1, round(settings.voices * _TEST_SHARE))
    own_voices = {"dev": voices[:dev], "test": voices[dev : dev + test], "train": voices[dev + test :]}
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
    for number, split in enumerate(SPLITS):
        cast = casts[split]
        said: Counter[str] = Counter()
        for i in range(getattr(settings, split)):
            # In each round of the sentences the voices move on by one, so that no pair comes twice.
            turn, k = divmod(i, len(cast.sentences))
            voice = cast.voices[(k + turn) % len(cast.voices)]
            name = f"S{VOICES.index(voice) + 1:03d}_{said[voice]:04d}"
            said[voice] += 1
            planned.append(Planned(name, split, cast.sentences[k], voice, (settings.seed, 2 + number, i)))
    return planned


def speak(sentence: Sentence, voice: str, rng: np.random.Generator, synthesiser: Synthesiser) -> np.ndarray:
    """A sentence in a voice, with speed and pitch by chance: (samples,) float32 at 16 kHz, RMS 0.1.

    Raises:
        SynthesiserError: this voice can't say it.
    """
    prosody = [int(rng.integers(low, high + 1)) for low, high in (_SPEED, _PITCH, _RANGE)]
    said = synthesiser.say(Speech(voice, to_text(spoken_input(sentence), sentence.pauses), *prosody))
    samples = resample(said.astype(np.float32) / INT16_SCALE, VOICE_RATE, SAMPLE_RATE)
    return samples * np.float32(_SPEECH_RMS / np.sqrt(np.mean(np.square(samples))))


def make_utterance(
    planned: Planned, synthesiser: Synthesiser, root: Path, casts: dict[str, Cast]
) -> Failure | None:
    """Write one utterance's recording and transcript, unless they are there; say so if it can't be spoken."""
    audio = root / "data" / f"{planned.id}.wav"
    if audio.exists():
        return None
    rng = np.random.default_rng(planned.rng_key)
    cast = casts[planned.split]

    def babble(rng: np.random.Generator, length: int) -> np.ndarray:
        total = np.zeros(length, np.float32)
        for _ in range(_BABBLE_VOICES):
            voice = cast.voices[rng.integers(len(cast.voices))]
            sentence = cast.sentences[rng.integers(len(cast.sentences))]
            try:
                speech = speak(sentence, voice, rng, synthesiser)
            except SynthesiserError:
                continue  # one voice less in the background
            total += np.take(speech, np.arange(length) + rng.integers(len(speech)), mode="wrap")
        return total

    try:
        speech = speak(planned.sentence, planned.voice, rng, synthesiser)
        samples = record(speech, rng, babble, SAMPLE_RATE)
    except SynthesiserError as error:
        return Failure(planned.id, planned.voice, planned.sentence.hanzi, error.what)
    write_text(audio.with_name(f"{audio.name}.trn"), transcript(planned.sentence))
    write_text(root / planned.split / f"{audio.name}.trn", f"../data/{audio.name}.trn\n")
    link = root / planned.split / audio.name
    link.unlink(missing_ok=True)
    link.symlink_to(Path("..", "data", audio.name))
    write_wav(audio, samples)  # last: where it is, the utterance is whole
    return None


def transcript(sentence: Sentence) -> str:
    """THCHS-30's three lines: words, citation pinyin, phones; the phones tell what is really said."""
    phones = " ".join(_phones(syllable) for syllable in spoken_reading(sentence))
    return f"{' '.join(sentence.words)}\n{' '.join(sentence.pinyin)}\n{phones}\n"


def _phones(syllable: str) -> str:
    initial, final, tone = (part := split_syllable(syllable)).initial, part.final, part.tone
    if final == "i" and initial in ("zh", "ch", "sh", "r"):
        final = "ix"
    elif final == "i" and initial in ("z", "c", "s"):
        final = "iy"
    return f"{initial or _DUMMY_INITIALS[final[0]]} {_PHONE_FINALS.get(final, final)}{tone}"


def generate(
    root: str | Path, settings: CorpusSettings, workers: int = 2, command: Sequence[str] = COMMAND
) -> list[Failure]:
    """Make the corpus below ``root``, or what is missing of it; a complete one is left as it is.

    Returns:
        What couldn't be spoken, also written to ``failures.tsv``.

    Raises:
        CorpusError: ``root`` holds something else, the settings can't be met, or the synthesiser fails.
    """
    root = Path(root)
    casts = cast_splits(settings)
    identity = _identity(settings)
    card = root / "corpus.json"
    if _found(card, identity)["complete"]:
        return _read_failures(root)
    if tuple(command) == COMMAND:
        check_installed()
    write_json(card, identity | {"complete": False})
    for split in SPLITS:
        (root / split).mkdir(parents=True, exist_ok=True)
    planned = plan_corpus(settings, casts)
    make = partial(make_utterance, root=root, casts=casts)
    failures: list[Failure] = []
    results = in_parallel(make, planned, workers, command)
    for done, failure in enumerate(
        tqdm(results, "speaking", len(planned), disable=None, unit=" utterances"), 1
    ):
        failures += [failure] if failure else []
        if len(failures) > max(20, done // 4):
            raise CorpusError(
                f"the synthesiser fails: {failures[-1].reason}", where=root, hint="see requirements-demo.txt"
            )
    failures.sort(key=lambda failure: failure.id)
    rows = ["\t".join(asdict(failure).values()) for failure in failures]
    write_text(root / "failures.tsv", "\n".join(["id\tvoice\thanzi\treason", *rows]) + "\n")
    write_json(card, identity | {"complete": True, "utterances": len(planned) - len(failures)})
    return failures


def _identity(settings: CorpusSettings) -> dict:
    """The settings and a hash over everything that the bytes of the corpus depend on."""
    text = Path(settings.text or GRAMMAR_PATH).read_bytes()
    parts = [RECIPE, asdict(settings) | {"text": None}, VOICES, hashlib.sha256(text).hexdigest()]
    digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]
    return {"corpus": "synthetic", "settings": asdict(settings), "hash": digest}


def _found(card: Path, identity: dict) -> dict:
    """The card of a corpus that is there already, or one that says that there is none."""
    if not card.exists():
        if card.parent.is_dir() and any(card.parent.iterdir()):
            raise CorpusError("the folder is not empty and holds no synthetic corpus", where=card.parent)
        return {"complete": False}
    try:
        found = json.loads(card.read_text(encoding="utf-8"))
        same = found["hash"] == identity["hash"]
    except (ValueError, KeyError, TypeError) as error:
        raise CorpusError(f"not readable: {error}", where=card, hint="delete the folder") from error
    if not same:
        hint = "choose another folder, or delete this one"
        raise CorpusError(
            "a corpus of other settings or of another version lies here", where=card.parent, hint=hint
        )
    return found


def _read_failures(root: Path) -> list[Failure]:
    rows = (root / "failures.tsv").read_text(encoding="utf-8").splitlines()[1:]
    return [Failure(*row.split("\t")) for row in rows]


CORPUS = Corpus("synthetic", SPLITS, find_utterances)

_ABOUT = "Mandarin speech from a synthesiser, of a grammar's sentences or a text's, laid out as THCHS-30"
_EXAMPLES = """examples:
  python -m data.corpora.synthetic generate datasets/demo_corpus
  python -m data.corpora.synthetic generate /tmp/small --train 200 --dev 20 --test 20 --voices 12
  python -m data.corpora.synthetic generate datasets/news --text sentences.txt --train 8000 --seed 1
  python -m data.corpora.synthetic prepare datasets/demo_corpus --output datasets/synthetic
"""


def main(argv: list[str] | None = None) -> int:
    """The command ``python -m data.corpora.synthetic``."""
    argv = sys.argv[1:] if argv is None else argv
    if argv[:1] == ["prepare"]:
        return corpus_command(CORPUS, None, _ABOUT, argv)
    options = _parser().parse_args(argv)
    names = CorpusSettings.__dataclass_fields__
    settings = CorpusSettings(**{name: getattr(options, name) for name in names})
    start = time.monotonic()
    failures = generate(options.root, settings, options.workers)
    _report(Path(options.root), settings, failures, time.monotonic() - start)
    return 0


def _report(root: Path, settings: CorpusSettings, failures: Sequence[Failure], seconds: float) -> None:
    audio = sorted((root / "data").glob("*.wav"))
    spoken = sum(audio_seconds(path) for path in audio)
    size = f"{len(audio)} utterances, {spoken / 3600:.2f} hours, {settings.voices} voices"
    print(f"{root}: {size}; {seconds:.0f} s of work")
    for failure in failures:
        print(
            f"  not spoken: {failure.id} ({failure.voice}): {failure.hanzi}: {failure.reason}",
            file=sys.stderr,
        )


def _parser() -> argparse.ArgumentParser:
    style = {"formatter_class": argparse.RawDescriptionHelpFormatter, "epilog": _EXAMPLES}
    parser = argparse.ArgumentParser("python -m data.corpora.synthetic", description=_ABOUT, **style)
    actions = parser.add_subparsers(dest="action", required=True)
    making = actions.add_parser("generate", help="make the corpus", **style)
    making.add_argument("root", help="folder of the corpus: new, unfinished or complete")
    usual = CorpusSettings()
    for split in SPLITS:
        usual_size = getattr(usual, split)
        making.add_argument(
            f"--{split}", type=_positive, default=usual_size, help="utterances (default: %(default)s)"
        )
    making.add_argument("--seed", type=int, default=usual.seed, help="default: %(default)s")
    making.add_argument("--voices", type=_positive, default=usual.voices, help="default: all %(default)s")
    making.add_argument(
        "--text", help="sentences instead of the grammar's: lines of hanzi, or pinyin<TAB>hanzi"
    )
    workers = os.cpu_count() or 1
    making.add_argument(
        "--workers", type=_positive, default=workers, help="default: %(default)s, the CPU's cores"
    )
    # Listed for --help; its own arguments are those of every corpus (``corpus_command``).
    actions.add_parser("prepare", help="check the corpus and write its manifests")
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return number


if __name__ == "__main__":
    run_command(main)
