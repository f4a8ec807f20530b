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
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
from tqdm import tqdm

from data.corpora.thchs30 import SPLITS, find_utterances
from data.corpora.tools.command import add_prepare, corpus_command
from data.corpora.tools.preparation import Corpus
from data.synthesis.acoustics import record
from data.synthesis.card import read_card
from data.synthesis.plan import VOICES, Cast, CorpusSettings, Planned, cast_splits, plan_corpus
from data.synthesis.reading import Sentence, spoken_input, spoken_reading
from data.synthesis.sentences import GRAMMAR_PATH
from data.synthesis.speech import speak_text
from data.synthesis.synthesiser import (
    COMMAND,
    Synthesiser,
    SynthesiserError,
    check_installed,
    in_parallel,
    to_text,
)
from utils.audio.reading import SAMPLE_RATE, audio_seconds, resample, write_wav
from utils.cli import not_negative, positive
from utils.errors import CorpusError, run_command
from utils.files import write_json, write_text
from utils.mandarin.pinyin import split_syllable

RECIPE = 2  # raise it when the sound of a corpus with the same settings changes

_BABBLE_VOICES = 3

# THCHS-30's phones: a dummy initial for each zero initial, a final for each i of zhi and of zi.
_DUMMY_INITIALS = {"a": "aa", "o": "oo", "e": "ee", "i": "ii", "u": "uu", "v": "vv"}
_PHONE_FINALS = {"iou": "iu", "uei": "ui", "uen": "un"}


@dataclass(frozen=True)
class Failure:
    """A pair of voice and sentence that the synthesiser couldn't say."""

    id: str
    voice: str
    hanzi: str
    reason: str


def speak(
    sentence: Sentence, voice: str, rng: np.random.Generator, synthesiser: Synthesiser, definition: str = ""
) -> np.ndarray:
    """A sentence in a voice; speed, pitch and head by chance: (samples,) float32 at 16 kHz, RMS 0.1.

    Raises:
        SynthesiserError: this voice can't say it.
    """
    return speak_text(to_text(spoken_input(sentence), sentence.pauses), voice, rng, synthesiser, definition)


def make_utterance(
    planned: Planned,
    synthesiser: Synthesiser,
    root: Path,
    casts: dict[str, Cast],
    sample_rate: int = SAMPLE_RATE,
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
        speech = speak(planned.sentence, planned.voice, rng, synthesiser, planned.definition)
        samples = record(speech, rng, babble, SAMPLE_RATE)
    except SynthesiserError as error:
        return Failure(planned.id, planned.voice, planned.sentence.hanzi, error.what)
    write_text(audio.with_name(f"{audio.name}.trn"), transcript(planned.sentence))
    write_text(root / planned.split / f"{audio.name}.trn", f"../data/{audio.name}.trn\n")
    link = root / planned.split / audio.name
    link.unlink(missing_ok=True)
    link.symlink_to(Path("..", "data", audio.name))
    # Last: where it is, the utterance is whole.
    write_wav(audio, resample(samples, SAMPLE_RATE, sample_rate), sample_rate)
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
    if read_card(card, identity)["complete"]:
        return _read_failures(root)
    if tuple(command) == COMMAND:
        check_installed()
    write_json(card, identity | {"complete": False})
    for split in SPLITS:
        (root / split).mkdir(parents=True, exist_ok=True)
    planned = plan_corpus(settings, casts)
    make = partial(make_utterance, root=root, casts=casts, sample_rate=settings.sample_rate)
    failures: list[Failure] = []
    results = in_parallel(make, planned, workers, command)
    for done, failure in enumerate(
        tqdm(results, "speaking", len(planned), disable=None, unit=" utterances"), 1
    ):
        failures += [failure] if failure else []
        if len(failures) > max(20, done // 4):
            raise CorpusError(
                f"the synthesiser fails: {failures[-1].reason}", where=root, hint="see requirements/demo.txt"
            )
    failures.sort(key=lambda failure: failure.id)
    rows = ["\t".join(asdict(failure).values()) for failure in failures]
    write_text(root / "failures.tsv", "\n".join(["id\tvoice\thanzi\treason", *rows]) + "\n")
    write_json(card, identity | {"complete": True, "utterances": len(planned) - len(failures)})
    return failures


def _identity(settings: CorpusSettings) -> dict:
    """The settings and a hash over everything that the bytes of the corpus depend on."""
    text = Path(settings.text or GRAMMAR_PATH).read_bytes()
    fixed = asdict(settings) | {"text": None}
    # Settings that older corpora don't have are left out where they change nothing, so that these are known.
    for name in ("made", "sample_rate"):
        if fixed[name] == getattr(CorpusSettings(), name):
            del fixed[name]
    parts = [RECIPE, fixed, VOICES, hashlib.sha256(text).hexdigest()]
    digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]
    return {"corpus": "synthetic", "settings": asdict(settings), "hash": digest}


def _read_failures(root: Path) -> list[Failure]:
    rows = (root / "failures.tsv").read_text(encoding="utf-8").splitlines()[1:]
    return [Failure(*row.split("\t")) for row in rows]


CORPUS = Corpus("synthetic", SPLITS, find_utterances)

_ABOUT = "Mandarin speech from a synthesiser, of a grammar's sentences or a text's, laid out as THCHS-30"
_EXAMPLES = """examples:
  python -m data.corpora.synthetic generate datasets/demo_corpus
  python -m data.corpora.synthetic generate /tmp/small --train 200 --dev 20 --test 20 --voices 12
  python -m data.corpora.synthetic generate datasets/news --text sentences.txt --train 8000 --seed 1
  python -m data.corpora.synthetic generate /tmp/telephone --sample-rate 8000
  python -m data.corpora.synthetic prepare datasets/demo_corpus --output datasets/synthetic
"""


def main(argv: list[str] | None = None) -> int:
    """The command ``python -m data.corpora.synthetic``."""
    options = _parser().parse_args(argv)
    if options.action == "prepare":
        return corpus_command(CORPUS, None, options)
    names = CorpusSettings.__dataclass_fields__
    settings = CorpusSettings(**{name: getattr(options, name) for name in names})
    start = time.monotonic()
    failures = generate(options.root, settings, options.workers)
    _report(Path(options.root), failures, time.monotonic() - start)
    return 0


def _report(root: Path, failures: Sequence[Failure], seconds: float) -> None:
    audio = sorted((root / "data").glob("*.wav"))
    hours = sum(audio_seconds(path) for path in audio) / 3600
    voices = len({path.name.split("_")[0] for path in audio})
    print(f"{root}: {len(audio)} utterances, {hours:.2f} hours, {voices} voices; {seconds:.0f} s of work")
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
            f"--{split}", type=positive, default=usual_size, help="utterances (default: %(default)s)"
        )
    making.add_argument("--seed", type=int, default=usual.seed, help="default: %(default)s")
    making.add_argument("--voices", type=positive, default=usual.voices, help="default: all %(default)s")
    making.add_argument(
        "--made", type=not_negative, default=usual.made, help="made-up voices in train (default: %(default)s)"
    )
    making.add_argument(
        "--text", help="sentences instead of the grammar's: lines of hanzi, or pinyin<TAB>hanzi"
    )
    making.add_argument(
        "--sample-rate",
        type=positive,
        default=usual.sample_rate,
        metavar="HZ",
        help="of the recordings; 8000 for telephone speech (default: %(default)s)",
    )
    workers = os.cpu_count() or 1
    making.add_argument(
        "--workers", type=positive, default=workers, help="default: %(default)s, the CPU's cores"
    )
    add_prepare(actions, CORPUS.name, style)
    return parser


if __name__ == "__main__":
    run_command(main)
