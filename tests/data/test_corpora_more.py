"""Tests of miniature ST-CMDS, Primewords, MAGICDATA and Common Voice, also damaged ones."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import soundfile

from data.corpora import aidatatang, common_voice, kaldi, magicdata, primewords, stcmds
from data.corpora.tools.preparation import split_of_speaker
from data.corpora.tools.transcripts import make_candidate
from data.manifest import read_manifest
from tests.support.corpus_files import rejected, wav, write
from utils.errors import CorpusError

GB = "你好".encode("gb18030")


def prepare(corpus, root: Path, expected_exit: int = 0) -> Path:
    """Prepare a corpus and return the output folder."""
    output = root / "out"
    assert corpus.main(["prepare", str(root), "--output", str(output)]) == expected_exit
    return output


def texts(output: Path, split: str) -> dict[str, str]:
    return {u.id: f"{u.hanzi} {' '.join(u.pinyin)}" for u in read_manifest(output / f"{split}.tsv")}


def reasons(output: Path) -> dict[str, str]:
    return {name: reason for name, (_, reason, _) in rejected(output).items()}


def speaker_of_split(corpus: str, split: str, form: str = "P{:05}") -> str:
    return next(form.format(n) for n in range(1, 999) if split_of_speaker(corpus, form.format(n)) == split)


# The split by speaker


GOLDEN_SPLITS = "nnvnnnnnnnnnnntnnnnnnntnnnnnnnvvnnnnnnvn"  # of P00001 to P00040: trai(n), de(v), tes(t)


def test_split_by_speaker_is_fixed_and_about_90_5_5():
    speakers = [f"P{number:05}" for number in range(1, 4001)]
    splits = [split_of_speaker("stcmds", speaker) for speaker in speakers]
    for split, fraction in (("train", 0.9), ("dev", 0.05), ("test", 0.05)):
        # Five standard deviations of a binomial count.
        assert abs(splits.count(split) - 4000 * fraction) < 5 * (4000 * fraction * (1 - fraction)) ** 0.5
    assert splits != [split_of_speaker("primewords", speaker) for speaker in speakers]
    # Golden: another rule would move speakers from test to train between two versions.
    assert "".join(split[-1] for split in splits[:40]) == GOLDEN_SPLITS


# Transcripts


@pytest.mark.parametrize(
    ("text", "hanzi", "pinyin"),
    [
        (
            "我 去 银 行",
            "我去银行",
            "wo3 qu4 yin2 hang2",
        ),  # spaces between characters: phrases are read across them
        (
            "他 跑 得 很快",
            "他跑得很快",
            "ta1 pao3 de5 hen3 kuai4",
        ),  # spaces between words: a particle alone is neutral
        ("存银，行不行？", "存银行不行", "cun2 yin2 xing2 bu4 xing2"),  # no phrase across a comma
        ("我 存银， 行！", "我存银行", "wo3 cun2 yin2 xing2"),  # and no rule
        ("《你好》　·再见", "你好再见", "ni3 hao3 zai4 jian4"),
    ],
)
def test_transcript_read_aloud(text, hanzi, pinyin):
    candidate = make_candidate("a", "train", Path("a.wav"), "s", text)
    assert (candidate.hanzi, " ".join(candidate.pinyin), candidate.problem) == (hanzi, pinyin, None)


# ST-CMDS


def add_stcmds(root: Path, name: str, text: str | bytes | None, audio: bytes | None = None) -> None:
    folder = root / "ST-CMDS-20170001_1-OS"
    if audio != b"":
        write(folder / f"{name}.wav", audio or wav())
    write(folder / f"{name}.metadata", "")
    if text is not None:
        write(folder / f"{name}.txt", text)


def test_stcmds(tmp_path):
    root = tmp_path / "corpora"
    names = {split: speaker_of_split("stcmds", split) for split in ("train", "dev", "test")}
    for split, number in names.items():
        add_stcmds(root, f"20170001{number}A0001", "刚才电脑卡着了")
        add_stcmds(root, f"20170001{number}I0120", f"再见，{'二' if split == 'dev' else ''}")
    train = names["train"]
    add_stcmds(root, f"20170001{train}A0002", None)
    add_stcmds(root, f"20170001{train}A0003", "有声音吗", audio=b"")
    add_stcmds(root, f"20170001{train}A0004", GB)
    add_stcmds(root, "readme", "about")
    output = prepare(stcmds, root)
    first, second = read_manifest(output / "train.tsv")
    assert (first.speaker, second.speaker) == (f"{train}A", f"{train}I")
    assert texts(output, "dev")[f"20170001{names['dev']}I0120"] == "再见二 zai4 jian4 er4"
    assert len(read_manifest(output / "test.tsv")) == 2
    assert {name[-4:]: reason for name, reason in reasons(output).items()} == {
        "0002": "transcript missing",
        "0003": "no such audio file",
        "0004": "transcript is not UTF-8",
        "adme": "not a file name of this corpus",
    }
    assert reasons(prepare(stcmds, root / "ST-CMDS-20170001_1-OS")) == reasons(output)


# Primewords


def add_primewords(root: Path, records: list | bytes, recordings: list[str]) -> Path:
    corpus = root / "primewords_md_2018_set1"
    content = records if isinstance(records, bytes) else json.dumps(records, ensure_ascii=False).encode()
    write(corpus / "set1_transcript.json", content)
    for name in recordings:
        write(corpus / "audio_files" / name[0] / name[:2] / name, wav())
    (corpus / "audio_files").mkdir(exist_ok=True)
    return corpus


def record(number: int, speaker: str, text: str) -> dict[str, str]:
    file = f"{number:08x}-c450-4ec6-ae77-d1e8a6a57897.wav"
    return {"id": f"{number}", "file": file, "user_id": speaker, "length": "0.1", "text": text}


def test_primewords(tmp_path):
    speakers = {split: speaker_of_split("primewords", split, "{}") for split in ("train", "dev", "test")}
    train = speakers["train"]
    records = [record(n, speaker, "今天 天气 不错") for n, speaker in enumerate(speakers.values())]
    records += [
        record(3, train, "听着 呢"),
        record(3, train, "听着 呢"),  # as some 500 records of the original
        record(4, train, "听着 呢"),
        record(4, train, "看着 呢"),
        record(5, train, "没有 录音"),
        {"file": "x.wav", "text": "谁 说 的"},
        "no record",
        record(6, train, "现在 8 点"),
        {**record(7, train, "外面"), "file": "../../../outside.wav"},
    ]
    files = [records[n]["file"] for n in (0, 1, 2, 3, 5, 10)] + ["ffffffff-orphan.wav"]
    write(tmp_path / "outside.wav", wav())
    corpus = add_primewords(tmp_path / "corpora", records, files)
    output = prepare(primewords, tmp_path / "corpora")
    train_texts = texts(output, "train")
    assert list(train_texts.values()) == [
        "今天天气不错 jin1 tian1 tian1 qi4 bu4 cuo4",
        "听着呢 ting1 zhe5 ne5",
    ]
    for split, speaker in speakers.items():
        assert {utterance.speaker for utterance in read_manifest(output / f"{split}.tsv")} == {speaker}
    lines = (output / "rejected.tsv").read_text(encoding="utf-8").splitlines()[1:]
    assert sorted(line.split("\t")[2] for line in lines) == sorted(
        [
            "duplicate record",
            "records of one recording differ",
            "records of one recording differ",
            "no such audio file",
            "record is not complete",
            "record is not complete",
            "digits in the transcript",
            "transcript missing",
            "no such audio file",  # the path that leads outside
        ]
    )
    assert texts(prepare(primewords, corpus), "train") == train_texts


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'[{"file": "a.wav", "text": "\xe4\xbd', r"not UTF-8, .*set1_transcript\.json"),
        (b'[{"file": "a.wav", "te', r"cut off \(Unterminated string.*set1_transcript\.json"),
        (b'{"file": "a.wav"}', "not a list"),
    ],
)
def test_primewords_broken_json(tmp_path, content, message):
    add_primewords(tmp_path, content, [])
    with pytest.raises(CorpusError, match=message):
        primewords.main(["prepare", str(tmp_path)])


# MAGICDATA

HEADER = "UtteranceID\tSpeakerID\tTranscription\n"


def test_magicdata(tmp_path):
    root = tmp_path / "corpora"
    name = "38_5716_2017091420{:04}"
    rows = {
        1: "天气寒冷，记得添衣保暖哦！",
        2: "[FIL]好SPK的",
        3: "放一首 DJ 版",
        4: "没有录音",
        5: "说了两次",
        7: "FILM",
    }
    lines = "".join(f"{name.format(n)}.wav\t38_5716\t{text}\r\n" for n, text in rows.items())
    lines += f"{name.format(5)}.wav\t38_5716\t说了三次\n{name.format(6)}.wav\t38_5716\n"
    lines += "16_4013_20170819121429.wav\t16_4013\t坏的\n"
    last = f"{name.format(8)}.wav\t38_5716\t".encode() + GB + b"\n"
    write(root / "train" / "TRANS.txt", HEADER.encode() + lines.encode() + last)
    for number in (1, 2, 3, 5, 6, 7, 8, 9):
        write(root / "train" / "38_5716" / f"{name.format(number)}.wav", wav())
    write(root / "train" / "16_4013" / "16_4013_20170819121429.wav", wav())
    for split in ("dev", "test"):
        write(root / split / "TRANS.txt", f"{HEADER}5_{split}_1.wav\t5_{split}\t你好\n")
        write(root / split / f"5_{split}" / f"5_{split}_1.wav", wav())
    output = prepare(magicdata, root)
    assert texts(output, "train") == {
        name.format(1): "天气寒冷记得添衣保暖哦 tian1 qi4 han2 leng3 ji4 de5 tian1 yi1 bao3 nuan3 o2",
        name.format(2): "好的 hao3 de5",
    }
    assert read_manifest(output / "dev.tsv")[0].speaker == "5_dev"
    assert {key[-4:]: reason for key, reason in reasons(output).items()} == {
        "0003": "Latin letters in the transcript",
        "0004": "no such audio file",
        "0005": "duplicate transcript",
        "0006": "wrong number of fields",
        "0007": "Latin letters in the transcript",
        "0008": "transcript is not UTF-8",
        "0009": "transcript missing",
        "1429": "known to be a bad recording",
    }
    summary = json.loads((output / "summary.json").read_text(encoding="utf-8"))
    assert summary["notes"] == {"noise marks left out": 1}
    (root / "train" / "TRANS.txt").unlink()  # only dev and test were downloaded
    assert len(read_manifest(prepare(magicdata, root, expected_exit=1) / "test.tsv")) == 1


# Common Voice

OLD = ["client_id", "path", "sentence", "up_votes", "down_votes", "age", "gender", "accent"]
NEW = [
    *OLD[:2],
    "sentence_id",
    "sentence",
    "sentence_domain",
    *OLD[3:7],
    "accents",
    "variant",
    "locale",
    "segment",
]


def mp3(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(path, np.random.default_rng(0).uniform(-0.1, 0.1, 9600), 32000, format="MP3")


def add_list(corpus: Path, name: str, columns: list[str], clips: list[tuple[int, str, str]]) -> None:
    """A list of (clip, speaker, sentence), with the recordings of the clips."""
    lines = ["\t".join(columns)]
    for clip, speaker, sentence in clips:
        file = f"common_voice_zh-CN_{clip}.mp3"
        known = {"client_id": speaker * 40, "path": file, "sentence": sentence, "locale": "zh-CN"}
        lines.append("\t".join(known.get(column, "") for column in columns))
        mp3(corpus / "clips" / file)
    write(corpus / f"{name}.tsv", "\n".join(lines) + "\n")


@pytest.mark.parametrize("columns", [OLD, NEW], ids=["release 5", "release 23"])
def test_common_voice(tmp_path, columns):
    root = tmp_path / "corpora"
    corpus = root / "cv-corpus-23.0-2025-09-05" / "zh-CN"
    train = [
        (1, "anna", "“海珊”号，是一艘船。"),
        (2, "anna", "一九九八年 NBA 总冠军"),
        (3, "anna", "共有３个站"),
        (4, "anna", "這是繁體"),
        (5, "anna", "三天後"),
        (6, "anna", '他说：\\"你好\\"'),
    ]
    add_list(corpus, "train", columns, train)
    add_list(corpus, "dev", columns, [(11, "bert", "你好")])
    add_list(corpus, "test", columns, [(12, "carl", "再见。")])
    validated = [(21, "dora", "谢谢"), (22, "bert", "多谢"), (23, "dora", "再见"), (24, "dora", "二十〇")]
    add_list(corpus, "validated", columns, [*train, (11, "bert", "你好"), *validated])
    with (corpus / "train.tsv").open("ab") as file:
        row = ["x"] * len(columns)
        row[1] = "../../../evil.mp3"
        file.write("\t".join(row).encode() + b"\nbroken line\n")
        file.write("\t".join(["x", "cut_off.mp3"]).encode() + b"\n")
        row[1] = "no_clip.mp3"
        row[columns.index("sentence")] = "没有"
        file.write("\t".join(row).encode() + b"\n")
        row[1] = "gb.mp3"
        line = "\t".join(row).replace("没有", "%").encode().replace(b"%", GB)
        file.write(line + b"\n")
    output = prepare(common_voice, root)
    short = {key.removeprefix("common_voice_zh-CN_"): text for key, text in texts(output, "train").items()}
    assert short == {
        "1": "海珊号是一艘船 hai3 shan1 hao4 shi4 yi4 sou1 chuan2",
        "6": "他说你好 ta1 shuo1 ni3 hao3",
    }
    assert read_manifest(output / "train.tsv")[0].speaker == "annaannaannaanna"
    assert read_manifest(output / "train.tsv")[0].seconds == pytest.approx(0.3, abs=0.15)
    assert [u.hanzi for u in read_manifest(output / "validated.tsv")] == ["谢谢", "二十〇"]
    found = {key.removeprefix("common_voice_zh-CN_"): reason for key, reason in reasons(output).items()}
    assert found == {
        "2": "Latin letters in the transcript",
        "3": "digits in the transcript",
        "4": "traditional or rare characters",
        "5": "traditional or rare characters",
        "22": "validated, but its speaker is in dev or test",
        "23": "validated, but its sentence is in dev or test",
        "../../../evil": "not a file name",
        "train.tsv:9": "wrong number of fields",
        "cut_off": "wrong number of fields",
        "no_clip": "no such audio file",
        "gb": "transcript is not UTF-8",
    }
    summary = json.loads((output / "summary.json").read_text(encoding="utf-8"))
    assert list(summary["splits"]) == ["train", "dev", "test", "validated"]
    assert texts(prepare(common_voice, corpus), "train") == texts(output, "train")


def test_common_voice_lists_that_are_invalid(tmp_path):
    for release in ("cv-corpus-1", "cv-corpus-2"):
        for split in ("train", "dev", "test"):
            add_list(tmp_path / release / "zh-CN", split, ["path", "sentence"], [])
    with pytest.raises(CorpusError, match="several releases here: cv-corpus-1/zh-CN, cv-corpus-2/zh-CN"):
        common_voice.main(["prepare", str(tmp_path)])
    with pytest.raises(CorpusError, match=r"columns client_id, path, sentence.*train\.tsv:1"):
        common_voice.main(["prepare", str(tmp_path / "cv-corpus-1")])


# The command line

MODULES = [stcmds, primewords, aidatatang, magicdata, common_voice, kaldi]


@pytest.mark.parametrize("corpus", MODULES)
def test_help_has_examples_and_a_missing_corpus_is_named(corpus, capsys, tmp_path):
    name = corpus.CORPUS.name
    for arguments in (["--help"], ["prepare", "--help"]):
        with pytest.raises(SystemExit):
            corpus.main(arguments)
        printed = capsys.readouterr().out
        assert f"python -m data.corpora.{name} prepare" in printed
        assert (f"data.corpora.{name} download" in printed) == (corpus in (stcmds, primewords, magicdata))
    with pytest.raises(CorpusError, match=rf"expected.*{tmp_path}") as caught:
        corpus.main(["prepare", str(tmp_path)])
    if corpus in (aidatatang, common_voice):  # no program may download them
        assert re.search(rf"data\.corpora\.{name} prepare .*{tmp_path}", str(caught.value))
