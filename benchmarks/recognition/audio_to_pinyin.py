"""Trains the acoustic models that ship on the shared recordings, packs them, and tests them.

    python -m benchmarks.recognition.audio_to_pinyin             # both models, also: make acoustic
    python -m benchmarks.recognition.audio_to_pinyin --precision mixed_bfloat16  # on AVX512_BF16 or AMX
    python -m benchmarks.recognition.audio_to_pinyin --whole --only test
    python -m benchmarks.recognition.audio_to_pinyin --streaming # the streaming model, after the model above

Six collections of real recordings, 7 h of synthetic speech of open-domain text and non-speech sounds
are prepared below ``datasets/audio_to_pinyin``. The model of whole utterances is trained in twelve cycles
below ``runs``, by recipes of ``configs/speech``; each begins with the weights of the one before, the sixth
and the seventh with a deeper convolutional front end, the last five with a shorter hop of the features. From
the third one on there is spliced speech, which the model of the cycle before has cut from the recordings. The
tenth cycle begins with the mean of the three before it and has more isolated words. The eleventh begins with
the mean of this mean and of the tenth, and has more blocks. The twelfth begins with the mean of the initial
weights of the eleventh and of the eleventh, and has pieces of recordings, more words and shorter pauses. The
shipped model is the mean of the initial weights of the twelfth and of the twelfth.

The streaming model begins with the initial weights of the eleventh cycle. The model of whole utterances is
its teacher. It is trained without the recordings of ``dspspeech20``, whose words are the test of typed wake
words (but its teacher has learned from them). It has three cycles, the last of which begins with the mean of
the first two. The shipped streaming model is the mean of this mean and of the third, and is also exported.

Both are packed into ``pretrained``.

Each step is skipped if its result is there, and an interrupted one is resumed. The epoch is chosen on the
dev speakers of Common Voice; the test speakers are in no training set. Some speakers of Lingua Libre
are left out, for tests of phrases. Needs the project's shared recordings beside the checkout.
"""

from utils.command.entry import run_command

import argparse
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.support.commands import run
from benchmarks.support.open_text import SHARED, speak_open_domain
from benchmarks.support.training_step import PRECISIONS
from data.manifest import read_manifest, write_manifest
from utils.files import write_json
from utils.text_table import print_table

WORK, RUN = Path("datasets/audio_to_pinyin"), Path("runs/audio_to_pinyin")
DEV, TEST = (WORK / "common_voice_zh" / f"{split}.tsv" for split in ("dev", "test"))
PACKED = Path("pretrained/audio_to_pinyin")
STREAMING = "audio_to_pinyin_streaming"
CONVERTER = Path("pretrained/pinyin_to_hanzi")
SEED = 16
SYNTHETIC = {"train": 9_800, "dev": 100, "test": 100}
VOICES, GENERATED_VOICES = 86, 600
HOP_MS = "8.5"
"""Time between feature frames: fewer errors on dev speakers than with that of the training."""
SEARCH_WEIGHTS = {
    RUN.name: {"language-weight": "0.6", "joint-bonus": "4", "rescoring-weight": "0.2"},
    STREAMING: {"language-weight": "0.7", "joint-bonus": "4", "rescoring-weight": "0.2"},
}
"""Of the joint search, chosen on the dev speakers by :mod:`benchmarks.recognition.joint_weights`."""
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
SPLICED_FROM = ("common_voice_zh", "aishell1_two_speakers", "aishell3_ssb0139")
SPLICED = {
    "spliced": (24, 7000),
    "spliced_again": (25, 7000),
    "spliced_third": (26, 7000),
    "spliced_fourth": (27, 7000),
    "spliced_fifth": (28, 7000),
    "spliced_sixth": (29, 9000),
    "spliced_seventh": (30, 9000),
    "spliced_eighth": (31, 9000),
    "spliced_ninth": (32, 9000),
    "spliced_tenth": (33, 9000),
    "spliced_eleventh": (34, 9000),
    "spliced_twelfth": (35, 7000),
    "pieces_twelfth": (36, 7000),
}
"""Seed and number of utterances of each folder."""
PIECES = ("pieces_twelfth",)
"""Folders of pieces of recordings; in the others, two to four pieces are joined."""


@dataclass(frozen=True)
class Cycle:
    """A part of the training.

    Attributes:
        name: end of the name of its run.
        recipe: end of the name of its recipe in ``configs/speech``.
        spliced: how often an epoch reads each folder of spliced speech.
        folders: the folders; for those that are missing, the model of the cycle before cuts the recordings,
            for the streaming model its teacher.
        changes: settings that differ from the recipe. Another seed alters the recordings in other ways.
        mean_of: it begins with the mean of these cycles; none: with the cycle before.
        weights: how often an epoch reads the training manifests of these folders, where not as
            :data:`CORPORA` and ``spliced`` say.
    """

    name: str
    recipe: str
    spliced: float = 0.0
    folders: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
    mean_of: tuple[str, ...] = ()
    weights: Mapping[str, float] = field(default_factory=dict)


MORE_WORDS = {
    "common_voice_zh": 0.7,
    "synthetic": 0.1,
    "lingua_libre_words": 1.5,
    "dspspeech20": 3.0,
    "words_one_speaker_mp3": 0.6,
    "nonspeech": 0.2,
}
"""Of the tenth cycle: how often an epoch reads each folder."""
SOME_MORE_WORDS = {"synthetic": 0.1, "lingua_libre_words": 1.0, "dspspeech20": 1.5, "nonspeech": 0.2}
"""Of the eleventh cycle, likewise."""
WORDS_AND_PIECES = {
    "synthetic": 0.0,
    "lingua_libre_words": 2.0,
    "dspspeech20": 1.5,
    "words_one_speaker_mp3": 1.0,
    "nonspeech": 0.2,
    "pieces_twelfth": 0.8,
}
"""Of the twelfth cycle, likewise."""
FLAT_START = "features.normalise=running"
"""The first cycles of the streaming model begin with a flat spectrum, the last with average speech."""
STREAMING_AGAIN = ("initialise_except=[]", "optimiser.learning_rate=0.003", "optimiser.average=0.998")
"""Settings of the later cycles of the streaming model, which begin with all weights of earlier ones."""
FIRST_SPLICED = ("spliced", "spliced_again", "spliced_third")
CYCLES = {
    RUN.name: (
        Cycle("_first", ""),
        Cycle("_second", "_refine"),
        Cycle("_third", "_spliced", 0.4, FIRST_SPLICED[:1]),
        Cycle("_fourth", "_spliced", 0.3, FIRST_SPLICED[:2], ("seed=18", "training.epochs=8")),
        Cycle("_fifth", "_spliced", 0.25, FIRST_SPLICED, ("seed=19", "training.epochs=6")),
        Cycle("_sixth", "_deep_front", 0.4, ("spliced_fourth", "spliced_fifth")),
        Cycle("_seventh", "_stacked_front", 0.4, ("spliced_sixth", "spliced_seventh")),
        Cycle("_eighth", "_short_hop", 0.8, ("spliced_eighth",)),
        Cycle("_ninth", "_short_hop", 0.8, ("spliced_ninth",), ("seed=23", "training.epochs=7")),
        Cycle(
            "_tenth",
            "_short_hop",
            0.4,
            ("spliced_eleventh",),
            ("seed=25", "training.epochs=3"),
            mean_of=("_seventh", "_eighth", "_ninth"),
            weights=MORE_WORDS,
        ),
        Cycle(
            "_eleventh",
            "_more_blocks",
            0.7,
            ("spliced_eleventh",),
            mean_of=("_before_tenth", "_tenth"),
            weights=SOME_MORE_WORDS,
        ),
        Cycle(
            "_twelfth",
            "_short_pieces",
            0.5,
            ("spliced_twelfth", "pieces_twelfth"),
            mean_of=("_before_eleventh", "_eleventh"),
            weights=WORDS_AND_PIECES,
        ),
    ),
    STREAMING: (
        Cycle("_first", "", 0.8, ("spliced_ninth",), (FLAT_START,)),
        Cycle("_second", "", 0.8, ("spliced_ninth",), (FLAT_START, *STREAMING_AGAIN, "training.epochs=7")),
        Cycle(
            "_third",
            "",
            0.8,
            ("spliced_tenth",),
            ("seed=24", *STREAMING_AGAIN, "training.epochs=8"),
            mean_of=("_first", "_second"),
        ),
    ),
}
AVERAGED = {RUN.name: ("_before_twelfth", "_twelfth"), STREAMING: ("_before_third", "_third")}
"""Cycles whose mean is the model; ``_before_…`` is the mean that a cycle begins with."""
STREAMING_BEGINS_WITH = RUN.with_name(f"{RUN.name}_before_eleventh")
"""Has as many blocks as the streaming model, whose teacher is :data:`RUN`."""
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
STEPS = ("prepare", "train", "pack", "test")


def main() -> int:
    """Prepare, train, pack and test."""
    options = _parser().parse_args()
    names = [options.model] if options.model else list(CYCLES)
    steps = [step for step in STEPS if options.only in (None, step)]
    if "prepare" in steps:
        _prepare()
    if "train" in steps:
        for name in names:
            _train(name, options.epochs, options.precision)
    if "pack" in steps:
        for name in names:
            _pack(name)
    if "test" in steps:
        for name in names:
            _test(name, DEVELOPMENT if options.dev else {**DEVELOPMENT, **TESTS})
    return 0


def _prepare() -> None:
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
    folder = WORK / "synthetic" / "original"
    speak_open_domain(folder, WORK / "spoken.txt", SYNTHETIC, VOICES, GENERATED_VOICES, SEED)
    return folder


def _train(name: str, epochs: int | None, precision: str) -> None:
    """All cycles of a model; a finished one is not repeated."""
    before = STREAMING_BEGINS_WITH if name == STREAMING else None
    for cycle in CYCLES[name]:
        weights = {(corpus.folder, corpus.manifest): corpus.later for corpus in CORPORA}
        if before is None:
            weights = {(corpus.folder, corpus.manifest): corpus.first for corpus in CORPORA}
        weights |= {key: cycle.weights[key[0]] for key in weights if key[0] in cycle.weights}
        if name == STREAMING:
            del weights["dspspeech20", "train"]
        if cycle.mean_of:
            before = _mean(name, cycle.mean_of, RUN.with_name(f"{name}_before{cycle.name}"))
        for folder in cycle.folders:
            if not (WORK / folder / "train.tsv").is_file():
                _splice(RUN if name == STREAMING else before, folder)
        weights |= {(folder, "train"): cycle.weights.get(folder, cycle.spliced) for folder in cycle.folders}
        weights = {key: weight for key, weight in weights.items() if weight}
        changes = [*cycle.changes, f"training.precision={precision}"]
        if epochs:
            changes.append(f"training.epochs={epochs}")
        if before:
            changes.append(f"initialise_from={before}")
        before = RUN.with_name(name + cycle.name)
        _train_cycle(f"{name}{cycle.recipe}", before, weights, changes)
    _mean(name, AVERAGED[name], RUN.with_name(name))


def _mean(name: str, cycles: tuple[str, ...], model: Path) -> Path:
    """Average the weights after these cycles of a model; returns the run, as which they are saved."""
    if not model.is_dir():
        runs = [str(RUN.with_name(f"{name}{cycle}")) for cycle in cycles]
        run("-m", "model_speech.average_weights", *runs, "--output", str(model))
    return model


def _splice(speech: Path, folder: str) -> None:
    """Cut the recordings by a trained model and join their syllables to new utterances."""
    manifests = [str(WORK / source / "train.tsv") for source in SPLICED_FROM]
    seed, count = SPLICED[folder]
    sizes = ("--count", str(count), "--seed", str(seed))
    output = ("--output", str(WORK / folder))
    runs = ("--runs", "1", "1") if folder in PIECES else ()
    run("-m", "recognition.splicing.splice", str(speech), "--manifest", *manifests, *output, *sizes, *runs)


def _train_cycle(
    recipe: str, folder: Path, weights: dict[tuple[str, str], float], changes: list[str]
) -> None:
    manifests = ",".join(str(WORK / corpus / f"{split}.tsv") for corpus, split in weights)
    run(
        "train.py", "speech", "--config", f"configs/speech/{recipe}.yaml", "--run", str(folder),
        f"data.train=[{manifests}]",
        f"data.weights={list(weights.values())}",
        f"data.dev=[{DEV}]",
        f"data.test=[{TEST}]",
        *changes,
    )  # fmt: skip


def _pack(name: str) -> None:
    trained, model = RUN.with_name(name), PACKED.with_name(name)
    search = [part for option, value in SEARCH_WEIGHTS[name].items() for part in (f"--{option}", value)]
    print(run("-m", "model_speech.pack", str(trained), str(model), *search, "--hop-ms", HOP_MS), end="")
    print(run("-m", "recognition.calibrate", str(model), "--manifest", str(DEV)), end="")
    words = str(SHARED / "words" / "wikipedia_titles.txt.xz")
    fit = ("-m", "recognition.phrases.fit_thresholds", str(model), "--manifest", str(DEV))
    print(run(*fit, "--words", words), end="")
    if name == STREAMING:
        export = (
            "export.py",
            str(model),
            f"data.test=[{TEST}]",
            "--output",
            str(model / "export"),
            "--force",
        )
        print(run(*export, "--mode", "stream_external", "--precision", "dynamic"), end="")


def _test(model: str, lists: dict[str, tuple[str, str]]) -> None:
    """Tonal syllable error and hanzi CER of each list and search; also in ``figures.json`` of the run."""
    trained, rows, figures = RUN.with_name(model), [], {}
    for title, (folder, split) in lists.items():
        cells = []
        for name, search in SEARCHES.items():
            manifest = ("--manifest", str(WORK / folder / f"{split}.tsv"))
            output = ("--output", str(trained / "test" / f"{folder}_{split}_{name}"))
            command = ("test.py", "pipeline", str(PACKED.with_name(model)), str(CONVERTER), "--json")
            results = json.loads(run(*command, *manifest, *output, *search))
            figures[f"{title}, {name}"] = {key: results[key] for key in ("syllable_error_rate", "cer")}
            cells.append(f"{100 * results['syllable_error_rate']:.1f} / {100 * results['cer']:.1f}")
        rows.append((title, *cells))
    write_json(trained / "figures.json", figures)
    print_table(f"{model}: tonal syllable error / hanzi CER in %", ("list", *SEARCHES), rows)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--epochs", type=int, help="epochs of each cycle, instead of the recipes'")
    parser.add_argument(
        "--precision",
        choices=PRECISIONS,
        default=PRECISIONS[0],
        help="mixed_bfloat16: faster on processors with AVX512_BF16 or AMX (default: %(default)s)",
    )
    parser.add_argument("--only", choices=STEPS, help="one step")
    model = parser.add_mutually_exclusive_group()
    model.add_argument(
        "--whole",
        dest="model",
        action="store_const",
        const=RUN.name,
        help="only the model of whole utterances",
    )
    model.add_argument(
        "--streaming", dest="model", action="store_const", const=STREAMING, help="only the streaming model"
    )
    parser.add_argument("--dev", action="store_true", help="test on dev speakers only")
    return parser


if __name__ == "__main__":
    run_command(main)
