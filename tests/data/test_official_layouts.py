"""Tests of the public corpora from their archives to the report, on miniatures in the official layouts."""

import json
import shlex
import tarfile
from collections.abc import Callable
from itertools import product
from pathlib import Path
from types import ModuleType

import pytest

import train
from data.corpora import aidatatang, aishell1, magicdata, manifest_lists, primewords, stcmds, thchs30
from data.corpora.tools.lists import read_utterances
from data.corpora.tools.preparation import split_of_speaker
from data.manifest import SPLITS, read_manifest
from tests.support.archives import tar_bytes
from tests.support.corpus_files import rejected, wav, write
from tests.support.scripts import load_script
from utils.errors import ConfigError, CorpusError

# Hanzi → the citation reading and THCHS-30's phones.
TEXTS = {
    "你好": ("ni3 hao3", "n i3 h ao3"),
    "妈妈": ("ma1 ma1", "m a1 m a1"),
    "再见": ("zai4 jian4", "z ai4 j ian4"),
    "我们": ("wo3 men5", "uu uo3 m en5"),
}
SAID = list(product(SPLITS, enumerate(TEXTS)))  # a speaker for each split: split, (number, text)
TINY = (
    *("model.width=8", "model.blocks=1", "features.bins=16", "augment.copies=0", "data.batch_utterances=4"),
    *("training.epochs=1", "data.workers=1"),
)


def sound(split: str, number: int) -> bytes:
    return wav(0.5, seed=10 * SPLITS.index(split) + number)


def speaker_of(corpus: str, split: str, form: str) -> str:
    """A speaker of a corpus without splits whom our rule puts into this split."""
    return next(form.format(n) for n in range(1, 999) if split_of_speaker(corpus, form.format(n)) == split)


def write_thchs30(folder: Path) -> None:
    """Links to the recordings in the split folders, and files with the path of the transcript."""
    for split, (number, text) in SAID:
        name = f"A{SPLITS.index(split)}_{number}.wav"
        write(folder / "data_thchs30" / "data" / name, sound(split, number))
        write(folder / "data_thchs30" / "data" / f"{name}.trn", "\n".join([" ".join(text), *TEXTS[text], ""]))
        write(folder / "data_thchs30" / split / f"{name}.trn", f"../data/{name}.trn\n")
        (folder / "data_thchs30" / split / name).symlink_to(Path("..", "data", name))


def write_aishell1(folder: Path) -> None:
    """An archive for each speaker inside the archive."""
    lines = ""
    for split, speaker in zip(SPLITS, ("S0002", "S0724", "S0764"), strict=True):
        names = {f"BAC009{speaker}W0{number}": text for number, text in enumerate(TEXTS)}
        members = {f"{split}/{speaker}/{name}.wav": sound(split, number) for number, name in enumerate(names)}
        write(folder / "data_aishell" / "wav" / f"{speaker}.tar.gz", tar_bytes(members))
        lines += "".join(f"{name} {text} \n" for name, text in names.items())
    write(folder / "data_aishell" / "transcript" / "aishell_transcript_v0.8.txt", lines)


def write_stcmds(folder: Path) -> None:
    """All files in one folder."""
    for split, (number, text) in SAID:
        name = f"20170001{speaker_of('stcmds', split, 'P{:05}')}A000{number}"
        for ending, content in (("wav", sound(split, number)), ("txt", text), ("metadata", "")):
            write(folder / "ST-CMDS-20170001_1-OS" / f"{name}.{ending}", content)


def write_primewords(folder: Path) -> None:
    """Recordings in folders named after their first characters, and one JSON list."""
    records = []
    for split, (number, text) in SAID:
        file = f"{SPLITS.index(split)}{number}0017e3-c450-4ec6-ae77-d1e8a6a57897.wav"
        speaker = speaker_of("primewords", split, "{}")
        records.append({"file": file, "user_id": speaker, "length": "0.5", "text": text})
        corpus = folder / "primewords_md_2018_set1"
        write(corpus / "audio_files" / file[0] / file[:2] / file, sound(split, number))
    write(corpus / "set1_transcript.json", json.dumps(records, ensure_ascii=False))


def write_aidatatang(folder: Path) -> None:
    """An archive for each speaker, in the folders of the splits."""
    lines, corpus = "", folder / "aidatatang_200zh"
    for split, speaker in zip(SPLITS, ("G0013", "G0014", "G0015"), strict=True):
        names = {f"T0055{speaker}S000{number}": text for number, text in enumerate(TEXTS)}
        members = {f"./{speaker}/{name}.wav": sound(split, number) for number, name in enumerate(names)}
        write(corpus / "corpus" / split / f"{speaker}.tar.gz", tar_bytes(members))
        lines += "".join(f"{name} {text}\n" for name, text in names.items())
    write(corpus / "transcript" / "aidatatang_200_zh_transcript.txt", lines)


def write_magicdata(folder: Path) -> None:
    """A folder for each split, each in an archive of its own."""
    for split in SPLITS:
        lines = "UtteranceID\tSpeakerID\tTranscription\n"
        for number, text in enumerate(TEXTS):
            name = f"5_{split}_2017091420220{number}.wav"
            write(folder / split / f"5_{split}" / name, sound(split, number))
            lines += f"{name}\t5_{split}\t{text}\n"
        write(folder / split / "TRANS.txt", lines)


LAYOUTS: dict[ModuleType, tuple[Callable[[Path], None], tuple[str, ...]]] = {
    thchs30: (write_thchs30, ("data_thchs30.tgz",)),
    aishell1: (write_aishell1, ("data_aishell.tgz",)),
    stcmds: (write_stcmds, ("ST-CMDS-20170001_1-OS.tar.gz",)),
    primewords: (write_primewords, ("primewords_md_2018_set1.tar.gz",)),
    aidatatang: (write_aidatatang, ("aidatatang_200zh.tgz",)),
    magicdata: (write_magicdata, tuple(f"{split}_set.tar.gz" for split in SPLITS)),
}


def pack(corpus: ModuleType, folder: Path) -> list[str]:
    """Write the official archives of a miniature in ``folder``."""
    write_layout, names = LAYOUTS[corpus]
    write_layout(folder / "content")
    folders = sorted((folder / "content").iterdir(), key=lambda path: (*SPLITS, path.name).index(path.name))
    for name, inside in zip(names, folders, strict=True):
        with tarfile.open(folder / name, "w:gz") as tar:
            tar.add(inside, inside.name)
    return [str(folder / name) for name in names]


@pytest.mark.parametrize("corpus", LAYOUTS, ids=lambda corpus: corpus.CORPUS.name)
def test_from_the_archive_to_the_report(corpus, tmp_path, capsys):
    archives = pack(corpus, tmp_path / "downloads")
    unpacked, lists, run = tmp_path / "unpacked", tmp_path / "lists", tmp_path / "run"
    arguments = ["prepare", "--archive", *archives, "--unpack-to", str(unpacked), "--output", str(lists)]
    assert corpus.main(arguments) == 0
    assert rejected(lists) == {}
    for split in SPLITS:
        assert {utterance.hanzi for utterance in read_manifest(lists / f"{split}.tsv")} == set(TEXTS)

    config = write(tmp_path / "tiny.yaml", "model: {name: compact}\n")
    data = [f"data.{split}=[{lists / split}.tsv]" for split in SPLITS] + [f"data.cache={tmp_path / 'cache'}"]
    assert train.main(["speech", "--config", str(config), "--run", str(run), *TINY, *data]) == 0
    report = tmp_path / "report"
    assert load_script("test.py").main(["speech", str(run), "--report", str(report)]) == 0
    assert "zai4 jian4" in (report / "report.html").read_text(encoding="utf-8")
    assert "syllable error" in capsys.readouterr().out


def test_an_unpacked_archive_is_not_unpacked_again_and_one_in_the_folder_is_found(tmp_path):
    (archive,) = pack(stcmds, tmp_path / "downloads")
    folder, output = tmp_path / "downloads", str(tmp_path / "lists")
    archive = Path(archive).rename(folder / "renamed.tgz")
    assert stcmds.main(["prepare", "--archive", str(archive), "--output", output]) == 0  # beside the archive
    archive.write_bytes(b"not looked at any more")
    assert stcmds.main(["prepare", "--archive", str(archive), "--output", output]) == 0
    assert stcmds.main(["prepare", str(folder), "--output", output]) == 0

    pack(thchs30, tmp_path / "mine")
    with pytest.raises(CorpusError) as error:
        thchs30.main(["prepare", str(tmp_path / "mine")])
    command = shlex.split(error.value.hint)
    assert command[:3] == ["python", "-m", "data.corpora.thchs30"]
    assert thchs30.main([*command[3:], "--output", output]) == 0
    with pytest.raises(CorpusError, match=f"prepare --archive {archive} --unpack-to {folder}"):
        thchs30.main(["prepare", str(archive)])

    (tmp_path / "mine" / "data_thchs30" / "data").rename(tmp_path / "elsewhere")
    with pytest.raises(CorpusError) as error:  # the archive would not be unpacked over what is left
        thchs30.main(["prepare", str(tmp_path / "mine")])
    assert error.value.hint.startswith(f"move {tmp_path}/mine/data_thchs30 away, then: python -m ")


def test_archives_that_cannot_be_unpacked(tmp_path):
    archives = pack(thchs30, tmp_path / "downloads")
    for corpus, files, message in (
        (aishell1, archives, "no folder data_aishell inside"),
        (aishell1, [str(tmp_path / "none.tgz")], "no such archive"),
        (magicdata, archives, "its name is train_set.tar.gz or dev_set.tar.gz or"),
    ):
        with pytest.raises(CorpusError, match=message):
            corpus.main(["prepare", "--archive", *files, "--unpack-to", str(tmp_path / "unpacked")])
    assert not any((tmp_path / "unpacked").iterdir())
    with pytest.raises(SystemExit):
        thchs30.main(["prepare", str(tmp_path), "--archive", *archives])
    with pytest.raises(ConfigError, match="--unpack-to without --archive"):
        thchs30.main(["prepare", str(tmp_path), "--unpack-to", str(tmp_path / "unpacked")])


def test_lists_of_the_original_project_are_read_as_manifests(tmp_path, capsys):
    """Trained, checked and tested directly; the same utterances as after a preparation."""
    write_thchs30(tmp_path / "data")
    for split, texts in (("train", TEXTS), ("test", list(TEXTS)[:2])):
        lines = [f"data_thchs30/{split}/A{SPLITS.index(split)}_{n}.wav" for n, _ in enumerate(texts)]
        rows = [f"{line}\t{TEXTS[text][0]}\t{text}\n" for line, text in zip(lines, texts, strict=True)]
        write(tmp_path / "data" / f"thchs_{split}.txt", "".join(rows))
    lists = [tmp_path / "data" / f"thchs_{split}.txt" for split in ("train", "test")]
    with lists[0].open("a", encoding="utf-8") as file:
        file.write("data_thchs30/train/gone.wav\tni3 hao3\t你好\ndata_thchs30/train/A0_3.wav\tni3 hao3\n")
    config = write(tmp_path / "tiny.yaml", "model: {name: compact}\n")
    data = [f"data.train=[{lists[0]}]", f"data.dev=[{lists[1]}]", f"data.test=[{lists[1]}]"]
    arguments = ["speech", "--config", str(config), "--run", str(tmp_path / "run"), *TINY, *data]
    assert train.main([*arguments, f"data.cache={tmp_path / 'cache'}"]) == 0
    log = (tmp_path / "run" / "train.log").read_text(encoding="utf-8")
    assert "2 of 6 lines are left out (1 wrong number of fields, 1 no such audio file)" in log
    assert load_script("test.py").main(["speech", str(tmp_path / "run")]) == 0
    assert "syllable error" in capsys.readouterr().out
    assert load_script("doctor.py").main([*map(str, lists), "--no-audio"]) == 0
    assert manifest_lists.main(["prepare", str(tmp_path / "data"), "--output", str(tmp_path / "out")]) == 0
    assert read_utterances(lists[0]) == read_manifest(tmp_path / "out" / "thchs_train.tsv")

    lists[0].write_text("gone.wav\tni3 hao3\t你好\n", encoding="utf-8")
    with pytest.raises(CorpusError, match=r"no utterance .*thchs_train\.txt, gone: no such audio file"):
        read_utterances(lists[0])
