"""Tests that mutated recordings, lists, corpora, configs and runs give values or user errors, nothing else.

No other exception, no warning of NumPy, no hang, no memory without bounds. Each case has a generator of its
own, [size of the target, case], so one that fails can be repeated alone. Every second mutation of a file hits
its header. 170 times as many cases with ``--nightly``. The content of a case that fails is kept in
``kept_inputs/TARGET/``, to be committed with the remedy: what is there is tried each time.
"""

import io
import json
import resource
import signal
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

import numpy as np
import psutil
import pytest
import soundfile
import yaml

from data.corpora import kaldi, manifest_lists, primewords
from data.corpora.tools.preparation import prepare
from data.features.augment import AugmentConfig
from data.features.cache import feature_keys
from data.manifest import read_manifest, read_transcripts
from model_language.ngram.syllables import load_syllable_ngram
from model_language.registry import load_converter
from model_language.vocabulary.lexicon import Lexicon
from preflight.checks.audio import measure
from preflight.examine import examine_texts
from preflight.findings import format_findings
from preflight.listings import read_listing
from preflight.recipes import examine_run, recipe_of_run
from tests.support.corpus_files import wav, write
from tests.support.mutations import mutate_bytes, mutate_text
from training.run import RECIPES
from utils.audio.reading import read_audio, seconds_and_rate
from utils.config import load_config, to_plain
from utils.errors import UserError
from utils.features.settings import FeatureConfig
from utils.features.speech import extract_features
from utils.run_folder.run import RunFolder, start_run
from utils.vocabulary import Vocabulary

ROOT = Path(__file__).parents[2]
TIMES_NIGHTLY = 170
KEPT = Path(__file__).with_name("kept_inputs")
CPU_SECONDS = 10  # for one case; the usual is some ms
MORE_MEMORY = 1 << 30  # bytes
SMALL, NO_COPIES = FeatureConfig(bins=16), AugmentConfig(copies=0)


@dataclass(frozen=True)
class Target:
    """A kind of file that is mutated, and the function that reads it.

    Attributes:
        cases: by default.
        name: name of the mutated file, in a folder of this target.
        read: reads the file; its result as text shows how many cases differ.
        seeds: sound contents.
        mutate: (content, generator) → mutated content.
        around: other files of the folder, which are not mutated.
    """

    cases: int
    name: str
    read: Callable[[Path], object]
    seeds: Sequence[bytes]
    mutate: Callable[[bytes, np.random.Generator], bytes] = mutate_text
    around: Mapping[str, bytes] = field(default_factory=dict)


@contextmanager
def bounds() -> Iterator[None]:
    """Turn warnings, and too much CPU time or memory for a case, into errors."""

    def too_long(number: int, frame: object) -> None:
        raise AssertionError(f"more than {CPU_SECONDS} s")

    before = resource.getrlimit(resource.RLIMIT_AS)
    most = psutil.Process().memory_info().vms + MORE_MEMORY
    handler = signal.signal(signal.SIGPROF, too_long)
    resource.setrlimit(resource.RLIMIT_AS, (most, before[1]))
    try:
        with (
            warnings.catch_warnings(action="error"),
            np.errstate(divide="raise", over="raise", invalid="raise"),
        ):
            yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        resource.setrlimit(resource.RLIMIT_AS, before)
        signal.signal(signal.SIGPROF, handler)


def prepared_folder(target: Target, folder: Path) -> Path:
    """Write the target's files and return the path of the mutated one."""
    for name, content in {**target.around, target.name: target.seeds[0]}.items():
        write(folder / name, content)
    return folder / target.name


def outcome(target: Target, path: Path, content: bytes) -> str:
    """The result of the target for a content: a value or a user error, as text."""
    path.write_bytes(content)
    signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
    try:
        return str(target.read(path))
    except UserError as error:
        return f"{error.message} {error.hint}"


def check_mutations(name: str, target: Target, folder: Path, times: int) -> None:
    """Run the target on all its mutated files; keep one that fails."""
    path = prepared_folder(target, folder)
    outcomes = {str(target.read(path))}
    with bounds():
        for case in range(target.cases * times):
            rng = np.random.default_rng([target.cases, case])
            content = target.mutate(target.seeds[rng.integers(len(target.seeds))], rng)
            try:
                outcomes.add(outcome(target, path, content))
            except BaseException as error:
                kept = write(KEPT / name / f"case_{case}", content)
                error.add_note(f"case {case} of {name}, {kept}")
                raise
    assert len(outcomes) > 1, "all results equal that of the sound file: the mutations have no effect"


# Recordings


def recordings() -> list[bytes]:
    """A short sound in usual formats: variants of WAV, FLAC, OGG, MP3, AIFF and others."""
    rng, contents = np.random.default_rng(0), []
    for form, subtype, rate, channels in (
        *(("WAV", kind, 16_000, 1) for kind in ("PCM_16", "PCM_24", "FLOAT", "DOUBLE", "ULAW", "MS_ADPCM")),
        *(("WAV", "PCM_U8", 8_000, 2), ("WAVEX", "PCM_16", 44_100, 2), ("RF64", "PCM_16", 16_000, 1)),
        *(("FLAC", "PCM_16", 16_000, 1), ("FLAC", "PCM_24", 48_000, 2), ("AIFF", "PCM_16", 16_000, 1)),
        *(("OGG", "VORBIS", 16_000, 1), ("OGG", "OPUS", 48_000, 2), ("MP3", "MPEG_LAYER_III", 22_050, 1)),
        *(("AU", "PCM_16", 16_000, 1), ("CAF", "PCM_16", 16_000, 1), ("W64", "PCM_16", 16_000, 1)),
    ):
        samples = 0.3 * np.sin(np.arange(rate // 10)[:, None] * 0.2) + 0.01 * rng.normal(
            size=(rate // 10, channels)
        )
        file = io.BytesIO()
        soundfile.write(file, samples, rate, format=form, subtype=subtype)
        contents.append(file.getvalue())
    return contents


RECORDINGS = recordings()


def read_recording(path: Path) -> None:
    seconds, _ = seconds_and_rate(path)
    assert 0 < seconds < 1e9
    assert measure(str(path)).seconds >= 0
    samples = read_audio(path)
    assert samples.ndim == 1 and np.isfinite(samples).all() and np.abs(samples).max() <= 1.0
    assert np.isfinite(extract_features(samples[:160_000], SMALL)).all()


# Lists

MANIFEST = (
    "id\taudio\tseconds\tspeaker\tpinyin\thanzi\tspoken_pinyin\n"
    "a1\twav/a1.wav\t1.250\tS1\tni3 hao3\t你好\tni2 hao3\n"
    "a2\twav/a2.wav\t0.500\tS1\tma1\t妈\t\n"
    "b1\t../b/b1.wav\t12\tS2\tlü4 se4 huar1\t绿色花\t\n"
).encode()
TRANSCRIPTS = "a1\tni3 hao3\t你好\nb2\tlv4 se4\t绿色\nc3\tzhong1 guo2 ren2\t中国人\n".encode()


def read_list(path: Path) -> None:
    with suppress(UserError):
        examine_texts([read_listing(path)])
    utterances = read_manifest(path)
    keys, _ = feature_keys(utterances, SMALL, NO_COPIES, seed=0)
    assert len(keys) == len(utterances)
    for utterance in utterances:
        with suppress(UserError):
            read_audio(utterance.audio)


# Corpora: one file is mutated, the others are sound

WAV = wav()
SET1 = [{"id": f"{n}", "file": f"{n:08x}-c450.wav", "user_id": f"{n}", "text": "你 好"} for n in range(3)]
SCP, TEXT = b"a wav/a.wav\nb wav/b.wav\nc wav/a.wav\n", "a 他 跑 得 很快\nb 我 去 银 行\nc 再见\n".encode()
SEGMENTS = b"a-1 a 0.00 0.04\na-2 a 0.05 -1\nb-1 b 0.01 0.09\n"
KALDI = {"data/wav/a.wav": WAV, "data/wav/b.wav": WAV, "data/wav.scp": SCP, "data/text": TEXT}


def prepared(module: ModuleType) -> Callable[[Path], object]:
    """A function that prepares the corpus of the given file; its folder is ``root`` among the parents."""

    def read(path: Path) -> object:
        root = next(parent for parent in path.parents if parent.name == "root")
        output = root.with_name("output")
        summary = prepare(module.CORPUS, root, output, workers=1)
        speakers = {u.speaker for split in summary["splits"] for u in read_manifest(output / f"{split}.tsv")}
        return summary["rejected"], summary["notes"], sorted(speakers)

    return read


def corpus(module: ModuleType, name: str, content: bytes, around: Mapping[str, bytes]) -> Target:
    sound = {f"root/{other}": data for other, data in around.items()}
    return Target(12, f"root/{name}", prepared(module), [content], around=sound)


CORPORA = {
    "primewords": corpus(
        primewords,
        "set1_transcript.json",
        json.dumps(SET1, ensure_ascii=False).encode(),
        {f"audio_files/0/{entry['file']}": WAV for entry in SET1},
    ),
    "kaldi wav.scp": corpus(kaldi, "data/wav.scp", SCP, KALDI),
    "kaldi text": corpus(kaldi, "data/text", TEXT, KALDI),
    "kaldi segments": corpus(
        kaldi, "data/segments", SEGMENTS, {**KALDI, "data/text": "a-1 你好\na-2 再见\nb-1 你好\n".encode()}
    ),
    "listed": corpus(manifest_lists, "train.tsv", MANIFEST, {"wav/a1.wav": WAV}),
}

LISTS = {
    "manifest": Target(80, "train.tsv", read_list, [MANIFEST], around={"wav/a1.wav": WAV}),
    "transcripts": Target(30, "list.tsv", read_transcripts, [TRANSCRIPTS]),
}


# Settings and runs


def recipes(task: str) -> list[bytes]:
    return [path.read_bytes() for path in sorted((ROOT / "configs" / task).glob("*.yaml"))]


def read_recipe(path: Path) -> None:
    task = path.parent.name
    schema, variants, _ = RECIPES[task]
    to_plain(load_config(schema, path, [f"task={task}"], variants))
    read_overrides(path.read_text(encoding="utf-8", errors="surrogateescape"), schema, variants)


def read_overrides(text: str, schema: type, variants: object) -> None:
    """Lines of the recipe as overrides of train.py."""
    for line in text.splitlines()[:5]:
        with suppress(UserError):
            load_config(schema, None, [line.replace(": ", "=", 1)], variants)


def read_run(path: Path) -> None:
    run = RunFolder(path.parent)
    for use in (
        lambda: start_run(run.path, {"task": "speech"}),
        lambda: run.manifests("train"),
        lambda: load_converter(run.path),
        lambda: load_syllable_ngram(run.path),
    ):
        with suppress(UserError):
            use()
    format_findings(examine_run(run))
    recipe_of_run(run)


RUN_CONFIG = yaml.safe_dump(
    {
        "task": "speech",
        "seed": 1,
        "features": {"kind": "filter_bank", "bins": 16, "hop_ms": 10.0},
        "data": {"train": ["a.tsv"], "weights": [0.5], "dev": ["b.tsv"], "batch_frames": 12000},
        "model": {"name": "compact", "width": 8, "front_filters": [16, 32]},
        "optimiser": {"learning_rate": 1.0e-3},
        "training": {"epochs": 2, "precision": "float32", "profile": "10-20"},
        "environment": {"python": "3.11.7", "packages": {"keras": "3.15.0"}},
    }
).encode()

SETTINGS = {
    "speech recipe": Target(30, "speech/recipe.yaml", read_recipe, recipes("speech")),
    "language recipe": Target(30, "language/recipe.yaml", read_recipe, recipes("language")),
    "config of a run": Target(40, "config.yaml", read_run, [RUN_CONFIG]),
    "vocabulary": Target(20, "acoustic.txt", Vocabulary.load, [b"a1\na2\nzhong1\n \n_\n"]),
    "lexicon": Target(10, "lexicon.tsv", Lexicon.load, ["ni3\t你拟\nhao3\t好\n".encode()]),
}

TARGETS = {
    "recordings": Target(200, "sound", read_recording, RECORDINGS, mutate_bytes),
    **LISTS,
    **CORPORA,
    **SETTINGS,
}


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", TARGETS)
def test_mutations_give_values_or_user_errors(name, tmp_path, nightly):
    check_mutations(name, TARGETS[name], tmp_path / "files", TIMES_NIGHTLY if nightly else 1)


@pytest.mark.parametrize(
    "kept", sorted(KEPT.glob("*/*")), ids=lambda path: f"{path.parent.name}: {path.name}"
)
def test_kept_inputs_give_values_or_user_errors(kept, tmp_path):
    target = TARGETS[kept.parent.name]
    path = prepared_folder(target, tmp_path / "files")
    target.read(path)  # what it imports does not count
    with bounds():
        outcome(target, path, kept.read_bytes())
