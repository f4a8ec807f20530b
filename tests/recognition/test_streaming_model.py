"""The shipped streaming model: its bundle passes, and both forms recognise the same syllables."""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bundle.check.measuring import Outcome, verify_bundle
from bundle.folder import open_bundle
from model_speech.acoustic_logits import load_acoustic_logits
from recognition.live.loading import load_logit_stream
from recognition.phrases.thresholds import load_phrase_thresholds
from tests.support.recordings import FOLDER, SYLLABLES
from tests.support.scripts import load_script
from utils.audio.reading import read_audio
from utils.errors import BundleError
from utils.features.settings import FeatureConfig, feature_bins, settings_hash
from utils.metrics import count_errors, total
from utils.run_folder.bundle_files import write_metadata
from utils.run_folder.checksums import differences
from utils.run_folder.run import PRETRAINED_SPEECH
from utils.vocabulary import SPACE

STREAMING = PRETRAINED_SPEECH.with_name("audio_to_pinyin_streaming")
ARTEFACT = "litert/stream_external_dynamic.tflite"


def test_it_is_small_undamaged_and_has_a_card():
    files = [path for path in STREAMING.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 15_500_000  # half: golden clips of the bundle
    assert (STREAMING / "export" / ARTEFACT).stat().st_size < 3_500_000
    assert differences(STREAMING) == {}
    card = (STREAMING / "README.md").read_text(encoding="utf-8")
    assert all(word in card for word in ("Common Voice", "CC BY-SA", "## Limits", "## Results"))
    texts = [path.read_text("utf-8") for path in files if path.suffix in (".yaml", ".json", ".md", ".txt")]
    assert not any(path in text for path in ("/home", "/work", ": /") for text in texts)


def test_the_bundle_passes_its_own_checks():
    results = list(verify_bundle(STREAMING / "export"))
    assert len(results) == 1 and all(result.outcome is Outcome.PASSED for result in results)


def test_the_bundle_and_the_packed_model_recognise_the_same():
    example, acoustic = load_script("examples/stream_speech.py"), load_acoustic_logits(STREAMING)
    stream, errors = load_logit_stream(STREAMING, acoustic), []
    silent = {acoustic.vocabulary.blank_index, acoustic.vocabulary.index(SPACE)}
    for name, text in SYLLABLES.items():
        samples = read_audio(FOLDER / name)
        timed = list(example.stream(samples))
        seconds, syllables = zip(*timed, strict=True)
        assert list(seconds) == sorted(seconds) and seconds[-1] <= len(samples) / 16_000
        best = np.concatenate([stream.feed(samples), stream.flush()]).argmax(axis=1)
        changes = best[np.diff(best, prepend=-1) != 0]
        packed = [acoustic.vocabulary.tokens[token] for token in changes if token not in silent]
        assert count_errors(packed, syllables).errors <= 1  # two roundings of the weights
        errors.append(count_errors(text.split(), syllables))
    assert total(errors).rate < 0.7


def test_the_example_is_a_program_of_its_own(tmp_path):
    program = Path(__file__).parents[2] / "examples" / "stream_speech.py"
    command = [sys.executable, program, FOLDER / next(iter(SYLLABLES))]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, len(done.stdout.split()) > 2) == (0, True), done.stderr


def test_the_example_reads_a_recording_at_the_sample_rate_of_the_bundle(tmp_path, capsys):
    example, copy = load_script("examples/stream_speech.py"), tmp_path / "export"
    shutil.copytree(STREAMING / "export", copy)
    facts = dict(open_bundle(copy).metadata)
    del facts["checksum"]
    bins = feature_bins(FeatureConfig(**facts["features"]))
    features = facts["features"] | {"sample_rate": 8000, "bins": bins}
    facts |= {"features": features, "features_hash": settings_hash(FeatureConfig(**features))}
    write_metadata(copy, facts)
    recording = FOLDER / next(iter(SYLLABLES))
    example.main([str(recording), str(copy)])
    expected = list(example.stream(read_audio(recording, 8000), copy))
    assert expected and capsys.readouterr().out.splitlines() == [f"{t:6.2f}  {name}" for t, name in expected]
    write_metadata(copy, facts | {"kind": "language"})
    with pytest.raises(BundleError, match="not a bundle of a speech model"):
        example.main([str(recording), str(copy)])


def test_it_has_thresholds_for_phrases_of_its_own():
    scores = load_phrase_thresholds(STREAMING).scores
    assert (STREAMING / "phrase_thresholds.json").is_file() and sorted(scores) == [1, 2, 3, 4]
