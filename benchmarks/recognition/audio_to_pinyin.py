"""Trains the acoustic model that ships from the shared recordings, packs it, and scores it on test speakers.

    python -m benchmarks.recognition.audio_to_pinyin      # also: make acoustic
    python -m benchmarks.recognition.audio_to_pinyin --only test
    python -m benchmarks.recognition.audio_to_pinyin --streaming          # its streaming twin, after it

Six collections of real recordings, 7 h of synthetic speech of open-domain text and sounds without speech
are prepared below ``datasets/audio_to_pinyin``. Four cycles, each of which begins with the weights of the one
before, are trained below ``runs`` by recipes of ``configs/speech``: ``audio_to_pinyin`` (into
``audio_to_pinyin_first``), ``audio_to_pinyin_refine`` (``audio_to_pinyin_second``) and twice
``audio_to_pinyin_spliced`` (``audio_to_pinyin_third`` and ``audio_to_pinyin``), each time with new speech
that the model of the cycle before has spliced from the recordings. The last one is packed into
``pretrained/audio_to_pinyin``.

The streaming twin begins with its weights and has two cycles of its own, without the recordings of
``dspspeech20``, whose words are the test of typed wake words (the weights that it begins with have learned
from them). It is also exported, for devices.

Each step is skipped if its result is there, and an interrupted one is resumed. The best epoch is chosen on
the dev speakers of Common Voice; the test speakers are in no training list. Some speakers of Lingua Libre
are left out, for tests of phrases. Needs the project's shared recordings beside the checkout.
"""

import argparse
import json
from dataclasses import dataclass
from pathlib import Path

from benchmarks.support.commands import run
from benchmarks.support.open_text import SHARED, easily_spoken, open_domain_lines
from benchmarks.support.tables import print_table
from data.manifest import read_manifest, write_manifest
from utils.errors import run_command
from utils.files import write_json, write_text

WORK, RUN = Path("datasets/audio_to_pinyin"), Path("runs/audio_to_pinyin")
PACKED = Path("pretrained/audio_to_pinyin")
STREAMING = "audio_to_pinyin_streaming"
CONVERTER = Path("pretrained/pinyin_to_hanzi")
SEED = 16
SYNTHETIC = {"train": 9_800, "dev": 100, "test": 100}
VOICES, GENERATED_VOICES = 86, 600
SEARCH_WEIGHTS = {"--language-weight": 0.6, "--joint-bonus": 4.0}
"""Chosen on the dev speakers: ``python -m benchmarks.recognition.joint_weights``."""
HELD_OUT = "Jouketou"  # speaker of Lingua Libre


@dataclass(frozen=True)
class Corpus:
    """A training manifest and how often an epoch of the first and of the later cycles reads it."""

    folder: str
    manifest: str
    first: float
    later: float


CORPORA = (
    Corpus("common_voice_zh", "train", 1.0, 1.0),
    Corpus("synthetic", "train", 0.4, 0.2),
    Corpus("aishell1_two_speakers", "train", 2.0, 2.0),
    Corpus("aishell3_ssb0139", "train", 1.5, 1.5),
    Corpus("lingua_libre_words", "train_kept", 1.0, 0.7),
    Corpus("dspspeech20", "train", 0.6, 0.6),
    Corpus("words_one_speaker_mp3", "manifest", 0.6, 0.4),
    Corpus("nonspeech", "train", 0.0, 0.3),
)
SPLICED, SPLICED_AGAIN = (Corpus(folder, "train", 0.0, 0.4) for folder in ("spliced", "spliced_again"))
"""The first in the third cycle, beside the others as in the second; both in the fourth."""
SPLICED_FROM = ("common_voice_zh", "aishell1_two_speakers", "aishell3_ssb0139")
SPLICED_UTTERANCES = 7000
SPLICING_SEEDS = {SPLICED: 24, SPLICED_AGAIN: 25}
BOTH_SPLICED = 0.3  # how often an epoch of the fourth cycle reads each of them
CYCLES = ("first", "second", "third")  # ends of the names of the runs before the last
FOURTH = ("seed=18", "training.epochs=8")
"""What differs from the recipe in the fourth cycle: another seed alters the recordings in other ways."""
NONSPEECH = 900
HELD_OUT_NOISE = ("pink_noise", "exercise_bike")
"""Recordings of noise for tests (:mod:`benchmarks.recognition.no_speech`)."""
TESTS = {
    "Common Voice, 60 speakers": ("common_voice_zh", "test"),
    "AISHELL-1, other speaker": ("aishell1_two_speakers", "test_other_speaker"),
    "AISHELL-1, same speaker": ("aishell1_two_speakers", "test_same_speaker"),
    "dspspeech20, 8 speakers": ("dspspeech20", "test"),
}
DEVELOPMENT = {"Common Voice, 20 dev speakers": ("common_voice_zh", "dev")}
SEARCHES = {"greedy": (), "joint": ("--joint",)}


def main() -> int:
    """Prepare, train, pack and test."""
    options = _parser().parse_args()
    name = STREAMING if options.streaming else RUN.name
    options.run = options.run or RUN.with_name(name)
    options.model = options.model or PACKED.with_name(name)
    steps = {"prepare": _prepare, "train": _train, "pack": _pack, "test": _test}
    for name, step in steps.items():
        if options.only in (None, name):
            step(options)
    return 0


def _prepare(options: argparse.Namespace) -> None:
    nonspeech = WORK / "nonspeech"
    if not (nonspeech / "train.tsv").is_file():
        noise = ("--noise", str(SHARED / "audio" / "noise"), "--without", *HELD_OUT_NOISE)
        run("-m", "data.corpora.nonspeech", str(nonspeech), "--count", str(NONSPEECH), *noise)
    for corpus in CORPORA:
        folder = WORK / corpus.folder
        if folder != nonspeech and not (folder / "summary.json").is_file():
            source = ("synthetic", _synthetic()) if corpus.folder == "synthetic" else _recorded(corpus.folder)
            run("-m", f"data.corpora.{source[0]}", "prepare", str(source[1]), "--output", str(folder))
    words = WORK / "lingua_libre_words"
    utterances = read_manifest(words / "train.tsv")
    write_manifest(words / "train_kept.tsv", [u for u in utterances if u.speaker != HELD_OUT])
    write_manifest(words / "held_out.tsv", [u for u in utterances if u.speaker == HELD_OUT])


def _recorded(folder: str) -> tuple[str, Path]:
    return "manifest_lists", SHARED / "audio" / folder


def _synthetic() -> Path:
    """Let the synthesiser speak open-domain text; returns the folder."""
    text, folder = WORK / "spoken.txt", WORK / "synthetic" / "original"
    lines = easily_spoken(open_domain_lines(SEED), sum(SYNTHETIC.values()) + 100)
    write_text(text, "".join(f"{line}\n" for line in lines))
    sizes = [value for split, count in SYNTHETIC.items() for value in (f"--{split}", str(count))]
    voices = ["--voices", str(VOICES), "--made", str(GENERATED_VOICES), "--seed", str(SEED)]
    run("-m", "data.corpora.synthetic", "generate", str(folder), *sizes, *voices, "--text", str(text))
    return folder


def _train(options: argparse.Namespace) -> None:
    """All cycles; a finished one is not repeated."""
    name = options.run.name
    first, second, third = (options.run.with_name(f"{name}_{cycle}") for cycle in CYCLES)
    changes = [f"training.epochs={options.epochs}"] if options.epochs else []
    weights = {corpus: corpus.later for corpus in CORPORA}
    if options.streaming:
        weights = {c: weight for c, weight in weights.items() if c.folder != "dspspeech20"}
        _train_cycle(name, first, weights, [*changes, f"initialise_from={RUN}"])
        _train_cycle(f"{name}_refine", options.run, weights, [*changes, f"initialise_from={first}"])
        return
    _train_cycle(name, first, {c: c.first for c in CORPORA if c.first}, changes)
    _train_cycle(f"{name}_refine", second, weights, [*changes, f"initialise_from={first}"])
    _splice(second, SPLICED)
    spliced = weights | {SPLICED: SPLICED.later}
    _train_cycle(f"{name}_spliced", third, spliced, [*changes, f"initialise_from={second}"])
    _splice(third, SPLICED_AGAIN)
    spliced = weights | {SPLICED: BOTH_SPLICED, SPLICED_AGAIN: BOTH_SPLICED}
    changes = [*FOURTH, *changes, f"initialise_from={third}"]
    _train_cycle(f"{name}_spliced", options.run, spliced, changes)


def _splice(speech: Path, corpus: Corpus) -> None:
    """Cut the recordings by a trained model and join their syllables to new utterances."""
    if (WORK / corpus.folder / "train.tsv").is_file():
        return
    manifests = [str(WORK / folder / "train.tsv") for folder in SPLICED_FROM]
    sizes = ("--count", str(SPLICED_UTTERANCES), "--seed", str(SPLICING_SEEDS[corpus]))
    output = ("--output", str(WORK / corpus.folder))
    run("-m", "recognition.splicing.splice", str(speech), "--manifest", *manifests, *output, *sizes)


def _train_cycle(recipe: str, folder: Path, weights: dict[Corpus, float], changes: list[str]) -> None:
    manifests = ",".join(str(WORK / corpus.folder / f"{corpus.manifest}.tsv") for corpus in weights)
    run(
        "train.py", "speech", "--config", f"configs/speech/{recipe}.yaml", "--run", str(folder),
        f"data.train=[{manifests}]",
        f"data.weights={list(weights.values())}",
        f"data.dev=[{WORK / 'common_voice_zh' / 'dev.tsv'}]",
        f"data.test=[{WORK / 'common_voice_zh' / 'test.tsv'}]",
        *changes,
    )  # fmt: skip


def _pack(options: argparse.Namespace) -> None:
    weights = [str(part) for pair in SEARCH_WEIGHTS.items() for part in pair]
    print(run("-m", "model_speech.pack", str(options.run), str(options.model), *weights), end="")
    dev = str(WORK / "common_voice_zh" / "dev.tsv")
    print(run("-m", "recognition.calibrate", str(options.model), "--manifest", dev), end="")
    words = str(SHARED / "words" / "wikipedia_titles.txt.xz")
    fit = ("-m", "recognition.phrases.fit_thresholds", str(options.model), "--manifest", dev)
    print(run(*fit, "--words", words), end="")
    if options.streaming:
        export = ("export.py", str(options.run), "--output", str(options.model / "export"), "--force")
        print(run(*export, "--mode", "stream_external", "--precision", "dynamic"), end="")


def _test(options: argparse.Namespace) -> None:
    """Tonal syllable error and hanzi CER of each list and search; also in ``figures.json`` of the run."""
    lists = DEVELOPMENT if options.dev else {**DEVELOPMENT, **TESTS}
    rows, figures = [], {}
    for title, (folder, split) in lists.items():
        cells = []
        for name, search in SEARCHES.items():
            manifest = ("--manifest", str(WORK / folder / f"{split}.tsv"))
            output = ("--output", str(options.run / "test" / f"{folder}_{split}_{name}"))
            command = ("test.py", "pipeline", str(options.model), str(CONVERTER), "--json")
            results = json.loads(run(*command, *manifest, *output, *search))
            figures[f"{title}, {name}"] = {key: results[key] for key in ("syllable_error_rate", "cer")}
            cells.append(f"{100 * results['syllable_error_rate']:.1f} / {100 * results['cer']:.1f}")
        rows.append((title, *cells))
    write_json(options.run / "figures.json", figures)
    print_table("tonal syllable error / hanzi CER in %", ("list", *SEARCHES), rows)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--epochs", type=int, help="epochs of each cycle, instead of the recipes'")
    parser.add_argument("--only", choices=("prepare", "train", "pack", "test"), help="one step")
    parser.add_argument("--streaming", action="store_true", help="the streaming twin")
    parser.add_argument("--model", type=Path, metavar="FOLDER", help=f"packed model (default: {PACKED})")
    parser.add_argument("--run", type=Path, metavar="FOLDER", help=f"its speech run (default: {RUN})")
    parser.add_argument("--dev", action="store_true", help="test on dev speakers only")
    return parser


if __name__ == "__main__":
    run_command(main)
