"""Tests of model_speech/vocabulary_transfer.py: the weights of a token move with it to another vocabulary."""

import random
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest

from model_speech.acoustic_model import build_acoustic_model, load_acoustic_model
from model_speech.vocabulary_transfer import transfer_run
from recognition.recognizer import Recognizer
from tests.support.scripts import load_script
from utils.errors import RunError, VocabularyError
from utils.mandarin.output_units import PARTS
from utils.run_folder.run import RunFolder
from utils.vocabulary import BLANK, SPACE, Vocabulary, acoustic_vocabulary, language_vocabulary

FULL = acoustic_vocabulary()
FEATURES = [np.random.default_rng(0).normal(size=(40, 16)).astype(np.float32)]


def write_run(folder: Path, vocabulary: Vocabulary, template: Path) -> Path:
    """A run with the template's config and these classes; all weights random, with others in `last`."""
    run, rng = RunFolder(folder), np.random.default_rng(2)
    vocabulary.save(run.vocabulary("acoustic.txt"))
    shutil.copy(RunFolder(template).config_file, run.config_file)
    model = build_acoustic_model(run, vocabulary).model
    for path in (run.best_weights, run.last_weights):
        model.set_weights([rng.uniform(0.5, 1.5, weight.shape) for weight in model.get_weights()])
        model.save_weights(path)
    return folder


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory, speech_run: Path) -> Path:
    """The classic trial: the 230 classes of the first utterances, in the order of their occurrence."""
    tokens = random.Random(1).sample(FULL.tokens[:-2], 228)
    # A space in the name: the printed command must survive it.
    folder = tmp_path_factory.mktemp("my runs") / "small"
    return write_run(folder, Vocabulary((*tokens, SPACE, BLANK)), speech_run)


@pytest.fixture(scope="module")
def moved(small: Path, speech_run: Path) -> Path:
    """The trial's weights in the full vocabulary."""
    new_run = small.with_name("moved")
    match = transfer_run(small, new_run, RunFolder(speech_run).vocabulary("acoustic.txt"))
    assert (len(match.kept), len(match.dropped), len(match.new)) == (230, 0, len(FULL) - 230)
    return new_run


def logits_by_token(run: Path, weights: str = "best") -> dict[str, np.ndarray]:
    acoustic = load_acoustic_model(run, weights)
    logits, _ = acoustic.logits(FEATURES)
    return dict(zip(acoustic.vocabulary.tokens, logits[0].T, strict=True))  # token → (T',)


@pytest.mark.parametrize("weights", ["best", "last"])
def test_kept_tokens_give_the_same_logits(small, moved, weights):
    before, after = logits_by_token(small, weights), logits_by_token(moved, weights)
    assert len(before) == 230 and tuple(after) == FULL.tokens
    for token, expected in before.items():
        np.testing.assert_allclose(after[token], expected, rtol=1e-5)


def test_new_tokens_start_as_the_model_makes_them(small, moved):
    known = Vocabulary.load(RunFolder(small).vocabulary("acoustic.txt"))
    acoustic = load_acoustic_model(moved)
    kernel, bias = acoustic.model.get_layer("logits").get_weights()  # (width, classes), (classes,)
    new = [number for number, token in enumerate(FULL.tokens) if token not in known]
    assert not bias[new].any()
    assert kernel[:, new].all()  # not zero, because equal weights would learn the same
    assert abs(kernel[:, new]).max() <= (6 / (kernel.shape[0] + len(FULL))) ** 0.5  # Glorot's uniform


def test_the_new_run_recognises_and_names_its_source(small, moved, tiny_manifest):
    audio = sorted(tiny_manifest.parent.rglob("*.wav"))[0]
    (result,) = Recognizer(load_acoustic_model(moved)).recognise([("one", audio)])
    assert result.seconds > 0
    config, source = RunFolder(moved).config(), RunFolder(small).config()
    assert config.pop("transfer")["source_run"] == str(small)
    assert config == source
    assert not list(moved.parent.glob(".*"))  # no temporary files are left


def test_a_transfer_and_its_inverse_restore_the_weights(small, moved, tmp_path):
    match = transfer_run(moved, tmp_path / "back", RunFolder(small).vocabulary("acoustic.txt"))
    assert (len(match.kept), len(match.dropped), match.new) == (230, len(FULL) - 230, ())
    before, after = (load_acoustic_model(run).model.get_weights() for run in (small, tmp_path / "back"))
    for expected, weight in zip(before, after, strict=True):
        np.testing.assert_array_equal(weight, expected)


def test_a_run_without_last_weights_uses_the_best_twice(speech_run, tmp_path):
    assert not RunFolder(speech_run).last_weights.exists()
    transfer_run(speech_run, tmp_path / "new", RunFolder(speech_run).vocabulary("acoustic.txt"))
    best, last = (
        load_acoustic_model(tmp_path / "new", name).model.get_weights() for name in ("best", "last")
    )
    assert all(map(np.array_equal, best, last))


def test_weights_with_the_same_tokens_in_another_order_are_refused(small, tmp_path):
    """They fit the model, but each class would have the name of another token."""
    tokens = Vocabulary.load(RunFolder(small).vocabulary("acoustic.txt")).tokens
    swapped = Vocabulary((tokens[1], tokens[0], *tokens[2:]))
    other = write_run(tmp_path / "swapped", swapped, small)
    with pytest.raises(
        RunError, match=f"first difference is class 0: '{tokens[1]}' in the model, '{tokens[0]}'"
    ):
        load_acoustic_model(other, weights=str(RunFolder(small).best_weights))


def test_the_printed_command_works_unchanged(small, speech_run, capsys):
    stray = RunFolder(small).best_weights
    with pytest.raises(RunError, match="only in the model") as caught:
        load_acoustic_model(speech_run, weights=str(stray))
    command = str(caught.value).splitlines()[-1]
    python, script, *arguments = shlex.split(command)
    assert (python, script) == ("python", "inspect_model.py")
    load_script(script).main(arguments)
    printed = capsys.readouterr().out
    new_run = small.with_name("small_transferred")
    assert f"classes: 230 in the source run, {len(FULL)} in the new run" in printed
    assert "kept:    230\n" in printed and "dropped: 0 (none)" in printed
    assert f"new:     {len(FULL) - 230} (" in printed and f"written: {new_run}" in printed
    load_acoustic_model(speech_run, weights=str(RunFolder(new_run).best_weights))


def test_weights_without_their_run_get_a_command_with_a_placeholder(small, speech_run, tmp_path):
    stray = tmp_path / "stray.weights.h5"
    shutil.copy(RunFolder(small).best_weights, stray)
    with pytest.raises(RunError, match="weights have 230 classes") as caught:
        load_acoustic_model(speech_run, weights=str(stray))
    words = shlex.split(str(caught.value).splitlines()[-1])
    vocabulary = RunFolder(speech_run).vocabulary("acoustic.txt").as_posix()
    assert words[2:] == ["transfer", "WEIGHTS_RUN", "WEIGHTS_RUN_transferred", "--vocabulary", vocabulary]


def test_an_existing_folder_is_refused(small, tmp_path):
    with pytest.raises(RunError, match="already exists"):
        transfer_run(small, tmp_path, RunFolder(small).vocabulary("acoustic.txt"))
    (tmp_path / "file").touch()
    with pytest.raises(RunError, match="not a folder for runs"):
        transfer_run(small, tmp_path / "file" / "new", RunFolder(small).vocabulary("acoustic.txt"))


@pytest.mark.parametrize(
    ("vocabulary", "message"),
    [
        (language_vocabulary(FULL.tokens[:5]), "has no blank"),
        (Vocabulary(("a0", "b0", BLANK)), "shares no token"),
        (
            acoustic_vocabulary(units=PARTS),
            "a vocabulary of initials_finals, and the source run has tonal_syll",
        ),
    ],
)
def test_an_invalid_vocabulary_is_refused(small, tmp_path, vocabulary, message):
    vocabulary.save(tmp_path / "other.txt")
    with pytest.raises(VocabularyError, match=f"{message}.*other.txt"):
        transfer_run(small, tmp_path / "new", tmp_path / "other.txt")
    assert not (tmp_path / "new").exists()
