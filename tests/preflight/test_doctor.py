"""Tests of doctor.py: each injected fault gives its finding and no other; clean data gives none."""

import csv
import json
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
import soundfile

import doctor
from data.manifest import COLUMNS
from model_language.ngram.syllables import SyllableNgram, SyllableNgramConfig
from preflight.checks import splits
from preflight.listings import read_listing
from tests.support.damage import damage_file
from tests.support.tiny_corpus import SYLLABLES
from utils.audio.samples import write_wav
from utils.config import to_plain
from utils.errors import ConfigError, CorpusError, VocabularyError
from utils.files import write_text
from utils.run_folder import checksums
from utils.run_folder.run import PRETRAINED, PRETRAINED_SPEECH, start_run
from utils.vocabulary import acoustic_vocabulary

RATE, SECONDS = 16_000, 2.0
ERROR, WARNING = "error", "warning"
SIZES = {"train": 12, "dev": 4, "test": 4}


@dataclass
class Corpus:
    """A corpus whose lines and files a test may spoil before it is written."""

    folder: Path
    lists: dict[str, list[dict[str, str]]] = field(default_factory=dict)

    def row(self, split: str, number: int = 1) -> dict[str, str]:
        return self.lists[split][number]

    def audio(self, split: str, number: int = 1) -> Path:
        return self.folder / self.row(split, number)["audio"]

    def write(self) -> None:
        for split, rows in self.lists.items():
            lines = ["\t".join(COLUMNS), *("\t".join(row.values()) for row in rows)]
            write_text(self.folder / f"{split}.tsv", "\n".join(lines) + "\n")


def voice(seed: int, seconds: float = SECONDS) -> np.ndarray:
    """Low-pitched noise in five bursts, at the level of read speech."""
    rng = np.random.default_rng(seed)
    time = np.arange(round(seconds * RATE)) / RATE
    noise = np.convolve(rng.standard_normal(len(time)), np.hanning(32) / 3, mode="same")
    return 0.05 * noise * (0.1 + np.sin(2.5 * np.pi * time) ** 2)


def text_of(syllables: str) -> str:
    return "".join(SYLLABLES[syllable] for syllable in syllables.split())


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """Three splits without a common speaker, sentence or recording."""
    corpus = Corpus(tmp_path_factory.mktemp("pristine"))
    rng, names, seen = np.random.default_rng(3), list(SYLLABLES), set()
    for split, size in SIZES.items():
        corpus.lists[split] = []
        while len(corpus.lists[split]) < size:
            syllables = " ".join(rng.choice(names, 6))
            if syllables in seen:
                continue
            seen.add(syllables)
            number = len(seen)
            row = (f"U{number:02}", f"wav/U{number:02}.wav", f"{SECONDS}", f"{split}{number % 2}", syllables)
            corpus.lists[split].append(dict(zip(COLUMNS, (*row, text_of(syllables)), strict=True)))
            write_wav(corpus.folder / row[1], voice(number))
    corpus.write()
    return corpus


@pytest.fixture(autouse=True)
def enough_speech(monkeypatch: pytest.MonkeyPatch) -> None:
    """The corpus of these tests is large enough."""
    monkeypatch.setattr(splits, "_LITTLE", 1.0)
    monkeypatch.setattr(splits, "_LITTLE_TO_ADAPT", 1.0)


@pytest.fixture
def corpus(pristine: Corpus, tmp_path: Path) -> Corpus:
    folder = shutil.copytree(pristine.folder, tmp_path / "corpus")
    return Corpus(folder, {split: [dict(row) for row in rows] for split, rows in pristine.lists.items()})


def findings(capsys, *arguments: object) -> list[dict[str, str]]:
    """The findings of the command; its exit code shows whether there are errors."""
    code = doctor.main([*map(str, arguments), "--json", "--workers", "1"])
    report = json.loads(capsys.readouterr().out)
    assert code == (1 if report["errors"] else 0)
    assert report["errors"] + report["warnings"] == len(report["findings"])
    return report["findings"]


def names(found: list[dict[str, str]]) -> list[tuple[str, str]]:
    return sorted({(finding["severity"], finding["check"]) for finding in found})


# --- manifests and splits ---------------------------------------------------------------------------------


def _set(split: str, **values: str) -> Callable[[Corpus], None]:
    return lambda corpus: corpus.row(split).update(values)


def _copy(source: str, target: str, *columns: str) -> Callable[[Corpus], None]:
    """The values of one line of ``source`` in the same line of ``target``."""

    def plant(corpus: Corpus) -> None:
        first = corpus.row(source, 0) if source == target else corpus.row(source)
        corpus.row(target).update({column: first[column] for column in columns})

    return plant


def _no_lines(corpus: Corpus) -> None:
    corpus.lists["dev"].clear()


def _length(seconds: float, syllables: int) -> Callable[[Corpus], None]:
    def plant(corpus: Corpus) -> None:
        pinyin = " ".join((list(SYLLABLES) * 20)[:syllables])
        corpus.row("train").update(seconds=f"{seconds}", pinyin=pinyin, hanzi=text_of(pinyin))
        write_wav(corpus.audio("train"), voice(99, seconds))

    return plant


def _dev_of_train_sentences(corpus: Corpus) -> None:
    for row, learnt in zip(corpus.lists["dev"], corpus.lists["train"], strict=False):
        row.update(pinyin=learnt["pinyin"], hanzi=learnt["hanzi"])


def _test_of_train(corpus: Corpus) -> None:
    for row, learnt in zip(corpus.lists["test"], corpus.lists["train"], strict=False):
        row.update(pinyin=learnt["pinyin"], hanzi=learnt["hanzi"], speaker=learnt["speaker"])


def _without_tones(corpus: Corpus) -> None:
    for rows in corpus.lists.values():
        for row in rows:
            row.update(pinyin=re.sub(r"\d", "", row["pinyin"]))


TEXT_FAULTS = {
    "one field too many": (_set("train", hanzi="妈\t妈"), [(ERROR, "misshapen-line")]),
    "no number of seconds": (_set("train", seconds="two"), [(ERROR, "impossible-seconds")]),
    "negative seconds": (_set("dev", seconds="-2"), [(ERROR, "impossible-seconds")]),
    "no syllable": (_set("train", pinyin="zhong9 ma1", hanzi="中妈"), [(ERROR, "unknown-syllable")]),
    "pinyin without tones": (_without_tones, [(WARNING, "toneless-pinyin")]),
    "a rare syllable": (_set("train", pinyin="mar1 ma1", hanzi="妈妈"), [(WARNING, "rare-syllable")]),
    "a hanzi too many": (_set("train", pinyin="ma1 ma1", hanzi="妈妈妈"), [(ERROR, "unequal-length")]),
    "pinyin still to be filled": (_set("train", pinyin=""), [(ERROR, "no-pinyin")]),
    "a letter": (_set("train", pinyin="ma1 ei1", hanzi="妈A"), [(WARNING, "not-hanzi")]),
    "no utterance": (_no_lines, [(ERROR, "no-lines")]),
    "no text": (_set("train", pinyin="", hanzi=""), [(WARNING, "empty-text")]),
    "an id twice": (_copy("train", "train", "id"), [(ERROR, "repeated-id")]),
    "a recording twice": (
        _copy("train", "train", "audio", "pinyin", "hanzi"),
        [(WARNING, "repeated-recording")],
    ),
    "a recording with two texts": (_copy("train", "train", "audio"), [(ERROR, "repeated-recording")]),
    "a missing recording": (lambda c: c.audio("train").unlink(), [(ERROR, "missing-recording")]),
    "a text of twice the length": (_length(2.0, 25), [(WARNING, "speech-rate")]),
    "a text of a third of the length": (_length(12.0, 4), [(WARNING, "speech-rate")]),
    "a snippet": (_length(0.15, 1), [(WARNING, "unusual-length")]),
    "a whole talk": (_length(41.0, 30), [(WARNING, "unusual-length")]),
    "another syllable's hanzi": (
        _set("train", pinyin="ma1 shi4", hanzi="妈好"),
        [(WARNING, "hanzi-reading")],
    ),
    "another tone": (_set("train", pinyin="ma1 wo1", hanzi="妈我"), [(WARNING, "hanzi-reading")]),
    "a test recording in train": (_copy("train", "test", "audio"), [(ERROR, "shared-recording")]),
    "a dev recording in train": (_copy("train", "dev", "audio"), [(WARNING, "shared-recording")]),
    "all dev sentences in train": (_dev_of_train_sentences, [(WARNING, "shared-sentence")]),
    "a test speaker in train": (_copy("train", "test", "speaker"), [(WARNING, "shared-speaker")]),
    "test sentences by the same speakers in train": (
        _test_of_train,
        [(WARNING, "shared-sentence"), (WARNING, "shared-speaker")],
    ),
    "test syllables that train lacks": (
        _set("test", pinyin="zhong1 guo2", hanzi="中国"),
        [(WARNING, "unheard-syllable")],
    ),
}


@pytest.mark.parametrize(("plant", "expected"), TEXT_FAULTS.values(), ids=TEXT_FAULTS)
def test_a_fault_of_the_texts_is_found_and_nothing_else(corpus, capsys, plant, expected):
    plant(corpus)
    corpus.write()
    assert names(findings(capsys, corpus.folder)) == expected


@pytest.mark.parametrize(
    ("initial", "least", "found"), [((), 600, True), ((), 20, False), (("ma1",), 60, True)]
)
def test_a_training_set_of_seconds_is_named(pristine, monkeypatch, initial, least, found):
    monkeypatch.setattr(splits, "_LITTLE_TO_ADAPT" if initial else "_LITTLE", least)
    listings = [read_listing(path) for path in sorted(pristine.folder.glob("*.tsv"))]
    details = [finding.detail for finding in splits.little_speech(listings, initial)]
    assert details == ([f"{SIZES['train'] * SECONDS / 60:.1f} minutes in all"] if found else [])


# --- recordings -------------------------------------------------------------------------------------------


def _sound(samples: np.ndarray, rate: int = RATE, **format: str) -> Callable[[Corpus], None]:
    return lambda corpus: soundfile.write(corpus.audio("train"), samples, rate, **format)


def _bytes(change: Callable[[bytes], bytes]) -> Callable[[Corpus], None]:
    return lambda corpus: corpus.audio("train").write_bytes(change(corpus.audio("train").read_bytes()))


def _same_sound(split: str, *columns: str) -> Callable[[Corpus], None]:
    """The sound of the first training recording under another name, with these columns of its row."""

    def plant(corpus: Corpus) -> None:
        shutil.copy(corpus.audio("train", 0), corpus.audio(split))
        corpus.row(split).update({column: corpus.row("train", 0)[column] for column in columns})

    return plant


_VOICE = voice(7)
AUDIO_FAULTS = {
    "an empty file": (_bytes(lambda _: b""), [(ERROR, "unreadable-recording")]),
    "a truncated file": (_bytes(lambda content: content[:30_000]), [(ERROR, "unreadable-recording")]),
    "a text named .wav": (_bytes(lambda _: b"not found"), [(ERROR, "unreadable-recording")]),
    "NaN samples": (
        _sound(np.where(_VOICE > 0.1, np.nan, _VOICE), subtype="FLOAT"),
        [(ERROR, "unreadable-recording")],
    ),
    "a wrong length": (_set("train", seconds="2.6"), [(ERROR, "wrong-seconds")]),
    "8 kHz": (_sound(_VOICE[: len(_VOICE) // 2], 8_000), [(WARNING, "low-rate")]),
    "clipping": (_sound(np.clip(20 * _VOICE, -1, 1)), [(WARNING, "clipping")]),
    "clipping made quieter": (_sound(np.clip(_VOICE, -0.05, 0.05)), [(WARNING, "clipping")]),
    "near silence": (_sound(_VOICE / 1000), [(WARNING, "silence")]),
    "nothing but zeros": (_sound(0 * _VOICE), [(WARNING, "silence")]),
    "a copied recording": (_same_sound("train", "pinyin", "hanzi"), [(WARNING, "same-sound")]),
    "a copy with another text": (_same_sound("train"), [(ERROR, "same-sound")]),
    "a copy in test": (_same_sound("test"), [(ERROR, "same-sound-in-splits")]),
}


@pytest.mark.parametrize(("plant", "expected"), AUDIO_FAULTS.values(), ids=AUDIO_FAULTS)
def test_a_fault_of_a_recording_is_found_and_nothing_else(corpus, capsys, plant, expected):
    plant(corpus)
    corpus.write()
    found = findings(capsys, corpus.folder)
    assert names(found) == expected
    assert [finding["item"] for finding in found] == [f"line 3 ({corpus.row(_split_of(found))['id']})"]


def _split_of(found: list[dict[str, str]]) -> str:
    return Path(found[0]["where"]).stem


# --- clean data -------------------------------------------------------------------------------------------


def test_clean_data_gives_no_finding(pristine, capsys):
    assert findings(capsys, pristine.folder) == []
    assert findings(capsys, pristine.folder / "wav") == []
    assert findings(capsys, *sorted((pristine.folder / "wav").iterdir())) == []


def test_a_list_of_all_utterances_beside_the_splits_is_no_leak(corpus, capsys):
    corpus.lists["all"] = [row for rows in corpus.lists.values() for row in rows]
    corpus.write()
    assert findings(capsys, corpus.folder) == []


# --- recipes ----------------------------------------------------------------------------------------------


@pytest.fixture
def recipe(corpus: Corpus) -> list[str]:
    """The command line that checks a recipe of the corpus."""
    path = corpus.folder / "recipe.yaml"
    lists = "".join(f"  {split}: [{corpus.folder / split}.tsv]\n" for split in SIZES)
    write_text(path, f"features: {{bins: 16}}\ndata:\n  cache: {corpus.folder / 'cache'}\n{lists}")
    return ["--config", str(path), "model.name=compact", "model.width=8", "model.blocks=1"]


def test_a_clean_recipe_gives_no_finding(recipe, capsys):
    assert findings(capsys, *recipe) == []


def test_targets_that_ctc_cannot_align_are_found(corpus, recipe, capsys):
    """16 equal syllables need 31 frames of 80 ms; 2 s have 25. One of 12 is more than may be skipped."""
    corpus.row("train").update(pinyin=" ".join(["ma1"] * 16), hanzi="妈" * 16)
    corpus.write()
    found = findings(capsys, *recipe)
    assert names(found) == [(ERROR, "target-too-long")]
    assert found[0]["detail"] == "31 output frames needed, 25 available"
    corpus.row("train").update(pinyin=" ".join(["ma1"] * 13), hanzi="妈" * 13)
    corpus.write()
    assert findings(capsys, *recipe) == []
    (found,) = findings(capsys, *recipe, "vocabulary.units=initials_finals")
    assert found["detail"] == "26 output frames needed, 25 available"


@pytest.mark.parametrize(
    ("units", "kind", "unseen"),
    [
        ("hanzi", "hanzi", "吗, 国"),
        ("tonal_syllables", "syllables", "guo2"),
        ("toneless_syllables", "toneless syllables", "guo"),
        ("initials_finals", "initials and finals", "g, uo2"),
    ],
)
def test_the_output_units_of_a_recipe_that_train_lacks_are_found(corpus, recipe, capsys, units, kind, unseen):
    _set("test", pinyin="ma1 guo2", hanzi="吗国")(corpus)
    corpus.write()
    found = findings(capsys, *recipe, f"vocabulary.units={units}", "--no-audio")
    (found,) = [each for each in found if each["check"] == "unheard-syllable"]
    assert found["problem"].startswith(f"{kind} that are not in the training set")
    assert found["detail"].endswith(f" kinds: {unseen}")


def test_the_vocabulary_file_of_a_recipe_is_checked(corpus, recipe, tmp_path, capsys):
    file = tmp_path / "vocabulary.txt"
    acoustic_vocabulary(SYLLABLES, only=True).save(file)
    recipe += [f"vocabulary.file={file}", "--no-audio"]
    assert findings(capsys, *recipe) == []
    acoustic_vocabulary(list(SYLLABLES)[1:], only=True).save(file)
    found = findings(capsys, *recipe)
    assert names(found) == [(ERROR, "not-in-vocabulary")]
    assert {Path(each["where"]).stem for each in found} == {"train", "dev"}
    file.write_text("ma1\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="has no blank"):
        findings(capsys, *recipe)
    file.unlink()
    with pytest.raises(VocabularyError, match=r"vocabulary\.txt"):
        findings(capsys, *recipe)


# --- before a training ------------------------------------------------------------------------------------


def test_train_py_checks_first_and_prints_nothing_on_clean_data(corpus, recipe, caplog):
    from preflight.recipes import check_before_training, read_recipe
    from utils.errors import TrainingError

    config = read_recipe(Path(recipe[1]), recipe[2:])
    check_before_training(config)
    assert caplog.messages == []
    _dev_of_train_sentences(corpus)
    corpus.write()
    check_before_training(config)
    (message,) = set(caplog.messages)
    assert message.startswith("warning")
    corpus.row("test")["audio"] = corpus.row("train")["audio"]
    corpus.write()
    with pytest.raises(TrainingError, match=r"1 error.* in the data would waste .*--no-checks"):
        check_before_training(config)
    assert "a recording that is also in the train list" in caplog.text


# --- runs -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sound_run(tmp_path_factory: pytest.TempPathFactory, pristine: Corpus) -> Path:
    """A finished run as a training writes it."""
    from tests.support.tiny_runs import write_speech_run
    from utils.run_folder.run import RunFolder

    run = RunFolder(write_speech_run(tmp_path_factory.mktemp("sound") / "run", pristine.folder / "train.tsv"))
    shutil.copy(run.best_weights, run.last_weights)
    run.checkpoint.parent.mkdir()
    np.savez(run.checkpoint, model_0000=np.ones(3, np.float32), state=np.asarray('{"epoch": 4}'))
    _write_history(run.path, losses=(50, 20, 10), errors=(0.9, 0.5, 0.3))
    write_text(run.metrics, "{}")
    checksums.accept(run.path)
    return run.path


def _write_history(run: Path, losses: tuple[float, ...], errors: tuple[float, ...]) -> None:
    with (run / "history.csv").open("w", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["epoch", "step", "train_loss", "dev_syllable_error_rate"])
        for epoch, (loss, error) in enumerate(zip(losses, errors, strict=True), 1):
            writer.writerow([epoch, 500 * epoch, loss, error])


def _nan_weights(run: Path) -> None:
    import h5py

    with h5py.File(run / "best.weights.h5", "r+") as file:
        arrays: list[h5py.Dataset] = []
        file.visititems(lambda _, item: arrays.append(item) if isinstance(item, h5py.Dataset) else None)
        arrays[-1][...] = np.nan


def _cut(name: str) -> Callable[[Path], None]:
    return lambda run: (run / name).write_bytes((run / name).read_bytes()[:200])


def _config(old: str, new: str) -> Callable[[Path], None]:
    def plant(run: Path) -> None:
        path = run / "config.yaml"
        text = path.read_text(encoding="utf-8")
        assert old in text
        write_text(path, text.replace(old, new))

    return plant


def _history(
    losses: tuple[float, ...], errors: tuple[float, ...] = (0.9, 0.5, 0.3)
) -> Callable[[Path], None]:
    return lambda run: _write_history(run, losses, errors)


def _first_epoch(run: Path) -> None:
    for name in ("best.weights.h5", "last.weights.h5", "history.csv", "metrics.json"):
        (run / name).unlink()


RUN_FAULTS = {
    "no weights": (lambda run: (run / "best.weights.h5").unlink(), [(ERROR, "unfit-weights")]),
    "no vocabulary": (lambda run: (run / "vocabulary/acoustic.txt").unlink(), [(ERROR, "unfit-weights")]),
    "a config that is no YAML": (_config("task:", "task: {"), [(ERROR, "unreadable-config")]),
    "a key of other code": (_config("task:", "old: 1\ntask:"), [(WARNING, "unknown-config")]),
    "cut-off weights": (_cut("best.weights.h5"), [(ERROR, "unfit-weights")]),
    "NaN weights": (_nan_weights, [(ERROR, "not-finite")]),
    "a vocabulary without its last line": (_cut("vocabulary/acoustic.txt"), [(ERROR, "unfit-weights")]),
    "another model's width": (_config("width: 8", "width: 16"), [(ERROR, "unfit-weights")]),
    "a first epoch that has not ended": (_first_epoch, [(WARNING, "unfit-weights")]),
    "nothing learnt": (_history((50, 40, 35), (1.0, 1.0, 0.995)), [(ERROR, "collapsed")]),
}


@pytest.mark.parametrize(("plant", "expected"), RUN_FAULTS.values(), ids=RUN_FAULTS)
def test_a_fault_of_a_run_is_found_and_nothing_else(sound_run, tmp_path, capsys, plant, expected):
    run = shutil.copytree(sound_run, tmp_path / "run")
    plant(run)
    checksums.accept(run)  # a fault that the training itself wrote
    assert names(findings(capsys, run)) == expected


def test_a_run_that_has_learnt_nothing_can_be_tested_on_ten_utterances(
    sound_run, tmp_path, capsys, monkeypatch
):
    from preflight import overfit

    monkeypatch.setattr(overfit, "STEPS", 1)
    run = shutil.copytree(sound_run, tmp_path / "run")
    _history((50, 40, 35), (1.0, 1.0, 0.995))(run)
    checksums.accept(run)
    found = findings(capsys, run, "--overfit")
    assert names(found) == [(ERROR, "collapsed"), (ERROR, "overfit-ten")]
    assert f"(doctor.py {run} --overfit)" in found[0]["advice"]
    assert found[1]["where"] == str(run)


def test_a_fault_that_the_training_did_not_write_is_found_first(sound_run, tmp_path, capsys):
    run = shutil.copytree(sound_run, tmp_path / "run")
    damage_file(run / "vocabulary" / "acoustic.txt", "swap", np.random.default_rng(0))
    assert (ERROR, "changed-file") in names(findings(capsys, run))


def test_an_intact_run_gives_no_finding_and_is_checked_against_manifests(sound_run, corpus, capsys):
    assert findings(capsys, sound_run, corpus.folder) == []
    corpus.row("test").update(pinyin="mar1 " * 4, hanzi="妈妈妈妈")
    corpus.write()
    found = findings(capsys, sound_run, corpus.folder / "test.tsv")
    assert names(found) == [(ERROR, "not-in-vocabulary"), (WARNING, "rare-syllable")]


def test_the_shipped_acoustic_models_have_no_errors(capsys):
    for model in (PRETRAINED_SPEECH, PRETRAINED_SPEECH.with_name("audio_to_pinyin_streaming")):
        assert [finding for finding in names(findings(capsys, model)) if finding[0] == ERROR] == []


def test_lists_are_checked_against_the_time_stride_of_each_run(
    sound_run, corpus, tmp_path, capsys, monkeypatch
):
    """16 equal syllables need 31 output frames: 2 s have 25 of `compact` and 50 of `conformer`."""
    monkeypatch.setattr("preflight.recipes.examine_run", lambda run: [])
    runs = {name: shutil.copytree(sound_run, tmp_path / name) for name in ("compact", "conformer")}
    model = "model: {name: conformer, width: 8, heads: 2, blocks: 1}"
    write_text(runs["conformer"] / "config.yaml", f"task: speech\nfeatures: {{bins: 16}}\n{model}\n")
    corpus.row("train").update(pinyin=" ".join(["ma1"] * 16), hanzi="妈" * 16)
    corpus.write()
    for order in (("compact", "conformer"), ("conformer", "compact"), ("compact", "compact")):
        found = findings(capsys, *(runs[name] for name in order), corpus.folder, "--no-audio")
        assert [finding["check"] for finding in found] == ["target-too-long"]
    assert findings(capsys, runs["conformer"], corpus.folder, "--no-audio") == []


def test_syllables_of_the_initial_run_are_not_unheard(sound_run, corpus, recipe, capsys):
    for row in corpus.lists["train"]:
        row.update(pinyin="ma1 ma1", hanzi="妈妈")
    corpus.write()
    assert (WARNING, "unheard-syllable") in names(findings(capsys, *recipe, "--no-audio"))
    adapted = [*recipe, f"initialise_from={sound_run}", "--no-audio"]
    assert (WARNING, "unheard-syllable") not in names(findings(capsys, *adapted))


def test_runs_without_a_network_give_no_finding(tmp_path, capsys):
    assert findings(capsys, PRETRAINED) == []
    config = SyllableNgramConfig(order=2)
    model = SyllableNgram.train([("ni3", "hao3"), ("wo3", "hao3")], config)
    run = start_run(tmp_path / "syllables", {"task": "language", "model": to_plain(config)})
    model.vocabulary.save(run.vocabulary("pinyin.txt"))
    model.save(run.path / "syllables.npz")
    assert findings(capsys, run.path) == []
    _cut("syllables.npz")(run.path)
    assert (ERROR, "changed-file") in names(findings(capsys, run.path))


# --- overfitting on ten utterances -------------------------------------------------------------------------


@pytest.mark.parametrize(("rate", "expected"), [("0.02", []), ("0", [(ERROR, "overfit-ten")])])
def test_the_overfit_check_distinguishes_a_recipe_that_learns_from_one_that_cannot(
    tiny_manifest, tmp_path, capsys, monkeypatch, rate, expected
):
    from preflight import overfit

    monkeypatch.setattr(overfit, "STEPS", 150 if float(rate) else 20)
    write_text(tmp_path / "recipe.yaml", f"data: {{train: [{tiny_manifest}], dev: [{tiny_manifest}]}}\n")
    small = ["model.name=compact", "model.width=24", "model.blocks=1", "features.bins=16", "--no-audio"]
    small += [f"optimiser.learning_rate={rate}", f"data.cache={tmp_path}", "--overfit"]
    found = findings(capsys, "--config", tmp_path / "recipe.yaml", *small)
    assert [
        pair for pair in names(found) if pair[1] not in ("shared-recording", "shared-speaker")
    ] == expected


# --- the report -------------------------------------------------------------------------------------------


def test_equal_findings_are_one_line_with_a_count_and_three_examples(corpus, capsys):
    for row in corpus.lists["train"][:5]:
        row["hanzi"] += "妈"
    corpus.write()
    assert doctor.main([str(corpus.folder), "--no-audio"]) == 1
    first, total = capsys.readouterr().out.splitlines()
    assert first.startswith(
        f"error    {corpus.folder / 'train.tsv'}  syllables and hanzi differ in number, 5 times"
    )
    assert first.count("; ") == 3 and first.endswith("or remove the line  [unequal-length]")
    assert total == "5 errors"


def test_each_check_is_listed_with_a_line(capsys):
    assert doctor.main(["--list"]) == 0
    lines = [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()]
    planted = [*TEXT_FAULTS.values(), *AUDIO_FAULTS.values(), *RUN_FAULTS.values()]
    listed = {name for name, _ in lines}
    assert len(listed) == len(lines)
    assert {check for _, expected in planted for _, check in expected} <= listed
    assert all(len(text) > 20 for _, text in lines)


@pytest.mark.parametrize("arguments", [["nowhere"], ["seed=3"], ["{tmp}"], ["--overfit", "{manifest}"]])
def test_a_wrong_command_line_is_reported(arguments, tmp_path, pristine):
    from utils.errors import UserError

    with pytest.raises(UserError):
        doctor.main([word.format(tmp=tmp_path, manifest=pristine.folder / "train.tsv") for word in arguments])


def test_a_list_with_spaces_for_tabs_is_no_recording(tmp_path):
    write_text(tmp_path / "train.txt", "train/A11_0.wav lv4 shi4 yang2 chun1 绿是阳春\n")
    with pytest.raises(CorpusError, match=r"not a manifest's header.*train\.txt:1.*separated by tabs"):
        doctor.main([str(tmp_path / "train.txt")])


# --- recipes of other tasks -------------------------------------------------------------------------------


def test_recipes_of_keyword_and_language_models_are_checked(corpus, tmp_path, capsys):
    write_text(tmp_path / "words.yaml", "model: {name: cnn}\n")
    write_text(tmp_path / "ngram.yaml", "model: {name: ngram, order: 2}\n")
    lists = [f"data.{split}=[{corpus.folder / split}.tsv]" for split in SIZES]
    keyword = ["--config", tmp_path / "words.yaml", lists[0], "data.words=[妈]"]
    with pytest.raises(CorpusError, match="no recordings of the word '妈'"):
        findings(capsys, *keyword)
    assert findings(capsys, *keyword[:-1]) == []
    corpus.audio("train").write_bytes(b"")
    assert names(findings(capsys, *keyword[:-1])) == [(ERROR, "unreadable-recording")]
    language = ["--config", tmp_path / "ngram.yaml", *lists]
    assert findings(capsys, *language) == []
    with pytest.raises(CorpusError, match="absent"):
        findings(capsys, *language, f"data.dev=[{tmp_path / 'absent.tsv'}]")
    with pytest.raises(ConfigError, match=r"data\.trian"):
        findings(capsys, *language, "data.trian=[]")
