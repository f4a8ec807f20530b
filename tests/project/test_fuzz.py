"""Tests that damaged recordings, lists, configs and runs give values or user errors, nothing else.

No other exception, no warning of NumPy, no hang, no memory without bounds. Recordings are mutated at random,
170 times as many with ``--nightly``; every second mutation hits the header. ``kept_inputs/TARGET/`` holds
inputs that once gave something else.
"""

import io
import resource
import signal
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import psutil
import pytest
import soundfile

from data.corpora import kaldi
from data.corpora.tools.preparation import prepare
from data.features.augment import AugmentConfig
from data.features.cache import feature_keys
from data.manifest import read_manifest
from model_language.ngram.syllables import load_syllable_ngram
from model_language.registry import load_converter
from model_language.vocabulary.lexicon import Lexicon
from preflight.checks.audio import measure
from preflight.examine import examine_texts
from preflight.findings import format_findings
from preflight.listings import read_listing
from preflight.recipes import examine_run, recipe_of_run
from tests.support.corpus_files import wav, write
from training.run import RECIPES
from utils.audio.properties import seconds_and_rate
from utils.audio.reading import read_audio
from utils.config import load_config, to_plain
from utils.errors import UserError
from utils.features.settings import FeatureConfig
from utils.features.speech import extract_features
from utils.run_folder.run import RunFolder, start_run

KEPT = Path(__file__).with_name("kept_inputs")
CASES, TIMES_NIGHTLY = 200, 170
CPU_SECONDS = 10  # for one input; the usual is some ms
MORE_MEMORY = 1 << 30  # bytes
HEADER_BYTES = 100
SMALL = FeatureConfig(bins=16)


@contextmanager
def bounds() -> Iterator[None]:
    """Turn warnings, and too much CPU time or memory for an input, into errors."""

    def too_long(number: int, frame: object) -> None:
        raise AssertionError(f"more than {CPU_SECONDS} s")

    before = resource.getrlimit(resource.RLIMIT_AS)
    most = psutil.Process().memory_info().vms + MORE_MEMORY
    handler = signal.signal(signal.SIGPROF, too_long)
    resource.setrlimit(resource.RLIMIT_AS, (most, before[1]))
    signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
    try:
        with (
            warnings.catch_warnings(action="error"),
            np.errstate(divide="raise", over="raise", invalid="raise"),
            suppress(UserError),
        ):
            yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        resource.setrlimit(resource.RLIMIT_AS, before)
        signal.signal(signal.SIGPROF, handler)


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


def mutated(content: bytes, rng: np.random.Generator) -> bytes:
    """One to three faults: flipped bits, impossible numbers, lost or repeated parts, an early end."""
    data = bytearray(content)
    for _ in range(rng.integers(1, 4)):
        size = max(1, len(data))
        start = int(rng.integers(min(size, HEADER_BYTES) if rng.random() < 0.5 else size))
        part = slice(start, start + int(rng.integers(1, 64)))
        match rng.integers(4):
            case 0:
                data[part] = bytes(byte ^ int(rng.integers(256)) for byte in data[part])
            case 1:
                data[start : start + 4] = rng.choice([b"\0\0\0\0", b"\xff\xff\xff\xff", b"\xff\xff\xff\x7f"])
            case 2:
                data[part] = data[part] * int(rng.integers(5))
            case _:
                del data[start:]
    return bytes(data)


def read_recording(path: Path) -> None:
    seconds, _ = seconds_and_rate(path)
    assert 0 < seconds < 1e9
    assert measure(str(path)).seconds >= 0
    samples = read_audio(path)
    assert samples.ndim == 1 and np.isfinite(samples).all() and np.abs(samples).max() <= 1.0
    assert np.isfinite(extract_features(samples[:160_000], SMALL)).all()


@pytest.mark.timeout(3600)
def test_mutated_recordings_give_samples_or_user_errors(tmp_path, nightly):
    sound, path = recordings(), tmp_path / "sound"
    for case in range(CASES * (TIMES_NIGHTLY if nightly else 1)):
        rng = np.random.default_rng([CASES, case])
        path.write_bytes(mutated(sound[rng.integers(len(sound))], rng))
        try:
            with bounds():
                read_recording(path)
        except BaseException as error:
            error.add_note(f"case {case}")
            raise


# Inputs that once gave something else


def read_list(path: Path) -> None:
    with suppress(UserError):
        examine_texts([read_listing(path)])
    utterances = read_manifest(path)
    feature_keys(utterances, SMALL, AugmentConfig(copies=0), seed=0)
    for utterance in utterances:
        with suppress(UserError):
            read_audio(utterance.audio)


def prepare_kaldi(path: Path) -> None:
    root = path.parents[1]
    prepare(kaldi.CORPUS, root, root.with_name("output"), workers=1)


def read_recipe(path: Path) -> None:
    schema, variants, _ = RECIPES[path.parent.name]
    to_plain(load_config(schema, path, [f"task={path.parent.name}"], variants))
    for line in path.read_text(encoding="utf-8", errors="surrogateescape").splitlines()[:5]:
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


@dataclass(frozen=True)
class Target:
    """A kind of file, the function that reads it, and the other files of its folder."""

    name: str
    read: Callable[[Path], object]
    around: Mapping[str, bytes] = field(default_factory=dict)


SCP, TEXT = b"a wav/a.wav\nb wav/b.wav\nc wav/a.wav\n", "a 他 跑 得 很快\nb 我 去 银 行\nc 再见\n".encode()
KALDI = {"data/wav/a.wav": wav(), "data/wav/b.wav": wav(), "data/wav.scp": SCP, "data/text": TEXT}
TARGETS = {
    "recordings": Target("sound", read_recording),
    "manifest": Target("train.tsv", read_list, {"wav/a1.wav": wav()}),
    "kaldi wav.scp": Target("data/wav.scp", prepare_kaldi, KALDI),
    "kaldi segments": Target(
        "data/segments", prepare_kaldi, {**KALDI, "data/text": "a-1 你好\na-2 再见\nb-1 你好\n".encode()}
    ),
    "speech recipe": Target("speech/recipe.yaml", read_recipe),
    "language recipe": Target("language/recipe.yaml", read_recipe),
    "config of a run": Target("config.yaml", read_run),
    "lexicon": Target("lexicon.tsv", Lexicon.load),
}


@pytest.mark.parametrize(
    "kept", sorted(KEPT.glob("*/*")), ids=lambda path: f"{path.parent.name}: {path.name}"
)
def test_kept_inputs_give_values_or_user_errors(kept, tmp_path):
    target = TARGETS[kept.parent.name]
    for name, content in {**target.around, target.name: kept.read_bytes()}.items():
        path = write(tmp_path / "root" / name, content)
    with suppress(UserError):
        target.read(path)  # what it imports does not count
    with bounds():
        target.read(path)
