"""Tests of corpus preparation on miniature corpora in the layout of the originals, also damaged ones."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from data.corpora import aishell1, manifest_lists, thchs30
from data.corpora.thchs30 import syllables_of_phones
from data.corpora.tools.preparation import clean_text
from data.manifest import read_manifest
from preflight.listings import find_manifests, read_listing
from tests.support.archives import tar_bytes
from tests.support.corpus_files import rejected, wav, write
from utils.errors import CorpusError
from utils.run_folder.temporary import temporary_path

# The first utterance of the original, all three lines.
WORDS = "绿 是 阳春 烟 景 大块 文章 的 底色 四月 的 林 峦 更是 绿 得 鲜活 秀媚 诗意 盎然"
PINYIN = (
    "lv4 shi4 yang2 chun1 yan1 jing3 da4 kuai4 wen2 zhang1 de5 di3 se4 si4 yue4 de5 lin2 luan2 geng4 "
    "shi4 lv4 de5 xian1 huo2 xiu4 mei4 shi1 yi4 ang4 ran2"
)
PHONES = (
    "l v4 sh ix4 ii iang2 ch un1 ii ian1 j ing3 d a4 k uai4 uu un2 zh ang1 d e5 d i3 s e4 s iy4 vv ve4 d e5 "
    "l in2 l uan2 g eng4 sh ix4 l v4 d e5 x ian1 h uo2 x iu4 m ei4 sh ix1 ii i4 aa ang4 r an2"
)
# A second utterance, in which the phones are the spoken pinyin: 不 bu2, 一 yi2.
WORDS_B, PINYIN_B, PHONES_B = (
    "他 不 是 一个 人",
    "ta1 bu4 shi4 yi1 ge4 ren2",
    "t a1 b u2 sh ix4 ii i2 g e4 r en2",
)


def add_thchs30(
    root: Path, split: str, name: str, transcript: bytes | str | None, audio: bytes | None = None
) -> None:
    """One utterance in the layout of the original: the recording twice, the split's .trn is a pointer."""
    corpus = root / "data_thchs30"
    if audio != b"":
        write(corpus / "data" / f"{name}.wav", audio or wav())
        write(corpus / split / f"{name}.wav", audio or wav())
    if transcript is not None:
        write(corpus / "data" / f"{name}.wav.trn", transcript)
    write(corpus / split / f"{name}.wav.trn", f"../data/{name}.wav.trn\n")


TEXT = f"{WORDS}\n{PINYIN}\n{PHONES}\n"
TEXT_B = f"{WORDS_B}\n{PINYIN_B}\n{PHONES_B}\n"


@pytest.fixture
def small_thchs30(tmp_path) -> Path:
    root = tmp_path / "corpora"
    add_thchs30(root, "train", "A11_0", TEXT)
    add_thchs30(root, "train", "A11_1", TEXT_B)
    add_thchs30(root, "train", "A12_0", TEXT)
    add_thchs30(root, "dev", "A11_2", TEXT)
    add_thchs30(root, "test", "D4_750", TEXT_B)
    return root


@pytest.mark.parametrize(
    ("phones", "syllables"),
    [
        (PHONES, PINYIN),
        (PHONES_B, "ta1 bu2 shi4 yi2 ge4 ren2"),
        ("ee er4 oo ou3 ee en1 aa ai4", "er4 ou3 en1 ai4"),
        ("ii iu3 ii iong4 uu ui3 uu uei3 uu ueng1 uu u5", "you3 yong4 wei3 wei3 weng1 wu5"),
        (
            "vv v3 vv van2 vv vn4 q v1 x van1 x vn2 j ve2 l ve4 n v3",
            "yu3 yuan2 yun4 qu1 xuan1 xun2 jue2 lve4 nv3",
        ),
        ("s iy4 r ix4 z iy5 c iz4 d ui4 l iu2 ch un1", "si4 ri4 zi5 ci4 dui4 liu2 chun1"),
        ("sil h ao3 sil er2 #", "hao3 er2"),
        ("d e", "de5"),
        ("h uar1", "huar1"),
        ("", ""),
    ],
)
def test_thchs30_phones(phones, syllables):
    assert syllables_of_phones(phones) == tuple(syllables.split())


def test_thchs30_prepared(small_thchs30, tmp_path, capsys):
    output = tmp_path / "datasets" / "thchs30"
    assert thchs30.main(["prepare", str(small_thchs30), "--output", str(output)]) == 0
    first, second, _ = train = read_manifest(output / "train.tsv")
    assert [u.id for u in train] == ["A11_0", "A11_1", "A12_0"]
    assert first.hanzi == WORDS.replace(" ", "") and " ".join(first.pinyin) == PINYIN
    assert first.speaker == "A11" and first.seconds == pytest.approx(0.1)
    assert first.spoken_pinyin == ()  # the same as the citation
    assert second.pinyin[1] == "bu4" and second.spoken_pinyin[1] == "bu2"
    for utterance in train:
        assert utterance.audio.is_file()
    assert len(read_manifest(output / "dev.tsv")) == len(read_manifest(output / "test.tsv")) == 1
    assert rejected(output) == {}
    printed = capsys.readouterr().out
    assert "sample rates: 16,000 Hz" in printed and "rejected (see rejected.tsv): none" in printed
    summary = json.loads((output / "summary.json").read_text(encoding="utf-8"))
    size = summary["splits"]["train"]
    assert (size["utterances"], size["speakers"], size["distinct_sentences"]) == (3, 2, 2)
    assert size["syllables"] == 30 + 6 + 30 and size["spoken_readings"] == 1
    assert size["hours"] == pytest.approx(0.3 / 3600, abs=1e-4)
    assert summary["rejected"] == {}


def test_preparing_again_gives_the_same_bytes(small_thchs30, tmp_path):
    output = tmp_path / "out"
    contents = []
    for workers in ("1", "3"):
        thchs30.main(
            ["prepare", str(small_thchs30 / "data_thchs30"), "--output", str(output), "--workers", workers]
        )
        contents.append({path.name: path.read_bytes() for path in output.iterdir()})
    assert contents[0] == contents[1]
    assert set(contents[0]) == {"train.tsv", "dev.tsv", "test.tsv", "rejected.tsv", "summary.json"}


def test_thchs30_links_and_recordings_only_in_data(tmp_path):
    add_thchs30(tmp_path, "train", "A1_0", TEXT)
    corpus = tmp_path / "data_thchs30"
    (corpus / "train" / "A1_0.wav.trn").unlink()
    (corpus / "train" / "A1_0.wav.trn").symlink_to(Path("..", "data", "A1_0.wav.trn"))
    write(corpus / "dev" / "A1_1.wav", "../data/A1_1.wav")
    write(corpus / "data" / "A1_1.wav", wav())
    write(corpus / "data" / "A1_1.wav.trn", TEXT)
    write(corpus / "test" / "A1_2.wav.trn", "../data/A1_2.wav.trn")
    write(corpus / "data" / "A1_2.wav", wav())
    write(corpus / "data" / "A1_2.wav.trn", TEXT)
    assert thchs30.main(["prepare", str(tmp_path), "--output", str(tmp_path / "out")]) == 0
    recordings = [
        read_manifest(tmp_path / "out" / f"{split}.tsv")[0].audio for split in ("train", "dev", "test")
    ]
    assert [path.parent.name for path in recordings] == ["train", "data", "data"]


DAMAGE = {
    "B1_1": ((TEXT, wav()[:1000]), "the audio file is cut off"),
    "B1_2": ((TEXT, b"not a recording but text"), "this is text, not audio"),
    "B1_3": ((TEXT, b""), "no such audio file"),
    "B1_4": ((None,), "transcript missing"),
    "B1_5": ((f"{WORDS}\n{PINYIN}\n",), "transcript does not have 3 lines"),
    "B1_6": ((f"{WORDS}\n{PINYIN} a5\n{PHONES}\n",), "syllables and hanzi differ in number"),
    "B1_7": ((TEXT.replace("yang2", "yamg2", 1),), "unknown syllable"),
    "B1_8": ((TEXT, wav(rate=8000)), "sample rate too low"),
    "B1_9": ((TEXT.encode("gb18030"),), "transcript is not UTF-8"),
    "B1_10": ((TEXT.replace("阳春", "Ｙ春", 1),), "Latin letters in the transcript"),
    "B1_14": ((TEXT.replace("阳春", "３春", 1),), "digits in the transcript"),
    "B1_15": ((TEXT.replace("阳春", "%春", 1),), "characters that are not hanzi"),
    "B1_11": ((TEXT, wav(seconds=0)), "the audio file holds no samples"),
    "B1_12": ((f" \n{PINYIN}\n{PHONES}\n",), "transcript does not have 3 lines"),
    "B1_13": ((f"，\n{PINYIN}\n{PHONES}\n",), "empty transcript"),
}


def test_thchs30_damage_is_reported_and_counted(small_thchs30, tmp_path, capsys):
    for name, (content, _) in DAMAGE.items():
        add_thchs30(small_thchs30, "train", name, *content)
    add_thchs30(small_thchs30, "train", "C1_1", TEXT, wav(rate=48000, channels=2))
    add_thchs30(small_thchs30, "train", "C1_2", f"{WORDS}\n{PINYIN}\n{PHONES} q\n")
    add_thchs30(small_thchs30, "train", "C1_3", f"{WORDS}\n{PINYIN}\nsh ix4\n")
    add_thchs30(small_thchs30, "dev", "A11_0", TEXT)  # is also in train
    write(small_thchs30 / "data_thchs30" / "data" / "E1_1.wav", wav())
    output = tmp_path / "out"
    assert thchs30.main(["prepare", str(small_thchs30), "--output", str(output)]) == 0
    reasons = rejected(output)
    expected = {name: ("train", reason) for name, (_, reason) in DAMAGE.items()}
    expected |= {"A11_0": ("train", "duplicate id"), "E1_1": ("", "in no split")}
    assert {name: row[:2] for name, row in reasons.items()} == expected
    assert reasons["B1_7"][2] == "yamg2" and reasons["B1_15"][2] == "%"
    assert reasons["B1_10"][2] == clean_text(WORDS).replace("阳春", "Y春", 1)
    assert reasons["B1_6"][2] == "syllables: 31, hanzi: 30"
    assert [u.id for u in read_manifest(output / "train.tsv")] == ["A11_1", "A12_0", "C1_1", "C1_2", "C1_3"]
    assert read_manifest(output / "train.tsv")[2].seconds == pytest.approx(0.1)
    summary = json.loads((output / "summary.json").read_text(encoding="utf-8"))
    assert sum(summary["rejected"].values()) == len(DAMAGE) + 2
    assert summary["rejected"]["transcript does not have 3 lines"] == 2
    assert sum(summary["notes"].values()) == 2 and len(summary["notes"]) == 2
    assert "syllables and hanzi differ in number" in capsys.readouterr().out


def test_no_usable_utterance_or_no_corpus_is_an_error(tmp_path):
    with pytest.raises(CorpusError, match=r"no THCHS-30 here.*thchs30 download"):
        thchs30.main(["prepare", str(tmp_path)])
    add_thchs30(tmp_path, "train", "A1_0", None)
    with pytest.raises(CorpusError, match=r"no utterance .* A1_0: transcript missing"):
        thchs30.main(["prepare", str(tmp_path), "--output", str(tmp_path / "out")])
    assert not (tmp_path / "out").exists()


def test_empty_split_is_exit_code_1(tmp_path, capsys):
    add_thchs30(tmp_path, "train", "A1_0", TEXT)
    assert thchs30.main(["prepare", str(tmp_path), "--output", str(tmp_path / "out")]) == 1
    printed = capsys.readouterr()
    assert "no usable utterance in: dev, test" in printed.err
    assert read_manifest(tmp_path / "out" / "dev.tsv") == []


# AISHELL-1

AISHELL_TEXTS = {
    "BAC009S0002W0122": "而 对 楼市 成交 抑制 作用 最 大 的 限 购",
    "BAC009S0002W0123": "也 成为 地方 政府 的 眼中 钉",
    "BAC009S0002W0124": "三 Ｄ 打印",
    "BAC009S0002W0126": "馀 震",
    "BAC009S0724W0121": "广州市 房地产 中介 协会 分析",
    "BAC009S0764W0121": "甚至 出现 交易 几乎 停滞 的 情况",
}


def add_speaker(corpus: Path, split: str, speaker: str, names: list[str]) -> Path:
    members = {f"{split}/{speaker}/{name}.wav": wav() for name in names}
    return write(corpus / "wav" / f"{speaker}.tar.gz", tar_bytes(members))


@pytest.fixture
def small_aishell(tmp_path) -> Path:
    root = tmp_path / "corpora"
    corpus = root / "data_aishell"
    for split, speaker in (("train", "S0002"), ("dev", "S0724"), ("test", "S0764")):
        add_speaker(corpus, split, speaker, [name for name in AISHELL_TEXTS if speaker in name])
    lines = "".join(f"{name} {text} \n" for name, text in AISHELL_TEXTS.items())
    write(corpus / "transcript" / "aishell_transcript_v0.8.txt", lines)
    return root


def test_aishell_unpacked_and_prepared(small_aishell, tmp_path):
    output = tmp_path / "out"
    corpus = small_aishell / "data_aishell"
    add_speaker(corpus, "train", "S0005", [f"BAC009S0005W000{number}" for number in range(4)])
    with (corpus / "transcript" / "aishell_transcript_v0.8.txt").open("ab") as file:
        file.write("BAC009S0005W0000 你好\n".encode("gb18030"))
        file.write("BAC009S0005W0001 你好\nBAC009S0005W0001 再见\n\n".encode())
        file.write("BAC009S0005W0002\nBAC009S0005W0009 你好\n".encode())
    assert aishell1.main(["prepare", str(small_aishell), "--output", str(output)]) == 0
    assert (corpus / "wav" / "dev" / "S0724" / "BAC009S0724W0121.wav").is_file()
    assert not list((corpus / "wav").glob(".*"))
    train = read_manifest(output / "train.tsv")
    assert [u.id[-4:] for u in train] == ["0122", "0123", "0126"]
    assert train[0].speaker == "S0002" and train[0].hanzi == "而对楼市成交抑制作用最大的限购"
    assert " ".join(train[1].pinyin) == "ye3 cheng2 wei2 di4 fang1 zheng4 fu3 de5 yan3 zhong1 ding1"
    assert train[2].hanzi == "余震"  # written 馀 in the original
    assert {name[6:]: (reason, detail) for name, (_, reason, detail) in rejected(output).items()} == {
        "S0002W0124": ("Latin letters in the transcript", "三D打印"),
        "S0005W0000": ("transcript is not UTF-8", "line 7"),
        "S0005W0001": ("duplicate transcript", "line 9"),
        "S0005W0002": ("empty transcript", ""),
        "S0005W0003": ("transcript missing", ""),
        "S0005W0009": ("no such audio file", ""),
    }


def test_aishell_continues_after_an_interruption(small_aishell, tmp_path):
    corpus = small_aishell / "data_aishell"
    arguments = ["prepare", str(corpus), "--output", str(tmp_path / "out")]
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    name = temporary_path(Path("S0002.unpacking")).name.replace(str(os.getpid()), str(dead.pid))
    write(corpus / "wav" / name / "train" / "S0002" / "half.wav", b"")  # from a killed run
    aishell1.main(arguments)
    first = (tmp_path / "out" / "train.tsv").read_bytes()
    for archive in (corpus / "wav").glob("*.tar.gz"):
        write(archive, b"not looked at any more")
    aishell1.main(arguments)
    assert (tmp_path / "out" / "train.tsv").read_bytes() == first
    assert not (corpus / "wav" / name).exists()


def test_aishell_damaged_archive_of_a_speaker_is_replaced_as_the_hint_says(small_aishell, tmp_path):
    archive, output = small_aishell / "data_aishell" / "wav" / "S0724.tar.gz", tmp_path / "out"
    whole = archive.read_bytes()
    archive.write_bytes(whole[:-50])
    with pytest.raises(CorpusError, match=r"S0724\.tar\.gz, extract this file again from the archive of the"):
        aishell1.main(["prepare", str(small_aishell), "--output", str(output)])
    archive.write_bytes(whole)
    assert aishell1.main(["prepare", str(small_aishell), "--output", str(output)]) == 0
    assert [each.speaker for each in read_manifest(output / "dev.tsv")] == ["S0724"]


def test_aishell_archive_of_another_speaker(small_aishell, tmp_path):
    corpus = small_aishell / "data_aishell"
    write(corpus / "wav" / "S0003.tar.gz", tar_bytes({"train/S0099/x.wav": b""}))
    with pytest.raises(CorpusError, match=r"no folder S0003 or .*S0003\.tar\.gz"):
        aishell1.main(["prepare", str(small_aishell), "--output", str(tmp_path / "out")])
    assert not (corpus / "wav" / "train" / "S0099").exists()


# Lists in the form of manifests


def test_listed_recordings(tmp_path, capsys):
    header = "id\taudio\tseconds\tspeaker\tpinyin\thanzi\n"
    rows = [
        "a\twav/a.wav\t9\ts1\txing1 ba1 ke4 ( hong2 qiao2 )\t星巴克(虹桥)",
        "b\twav/b.wav\t9\ts1\t\t银行",
        "c\twav/c.wav\t9\ts1\tda3 kai1 DJ ban3\t打开DJ版",
        "d\twav/d.wav\t9",
        "f\twav/b.wav\t9\ts1\tyin hang\t银行",
        "g\twav/c.wav\t9\ts1\tde\t的",
        "h\twav/c.wav\t9\ts1\tyín háng de\t银行的",
    ]
    write(tmp_path / "in" / "train.tsv", header + "\n".join(rows) + "\n")
    write(tmp_path / "in" / "a_test.tsv", header + "e\twav/a.wav\t9\ts2\tni3 hao3\t你好\n")
    write(tmp_path / "in" / "manifest.tsv", header + rows[0] + "\n")
    for name in "abc":
        write(tmp_path / "in" / "wav" / f"{name}.wav", wav())
    assert manifest_lists.main(["prepare", str(tmp_path / "in"), "--output", str(tmp_path / "out")]) == 0
    a, b, g, h = read_manifest(tmp_path / "out" / "train.tsv")
    assert rejected(tmp_path / "out")["f"][1] == "pinyin without tones"
    assert (g.pinyin, h.pinyin) == (("de5",), ("yin2", "hang2", "de5"))
    assert (a.hanzi, " ".join(a.pinyin)) == ("星巴克虹桥", "xing1 ba1 ke4 hong2 qiao2")
    assert a.seconds == pytest.approx(0.1)
    assert b.pinyin == ("yin2", "hang2")
    assert rejected(tmp_path / "out")["c"][1:] == ("Latin letters in the transcript", "打开DJ版")
    assert rejected(tmp_path / "out")["d"][1] == "wrong number of fields"
    summary = json.loads((tmp_path / "out" / "summary.json").read_text(encoding="utf-8"))
    assert list(summary["splits"]) == ["train", "a_test"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(CorpusError, match="no list"):
        manifest_lists.main(["prepare", str(tmp_path / "empty")])


def test_the_own_lists_are_not_replaced(tmp_path):
    header = "id\taudio\tseconds\tspeaker\tpinyin\thanzi\n"
    rows = "a\twav/a.wav\t9\ts1\tni3 hao3\t你好\nb\twav/b.wav\t9\ts1\t\t打开3号\n"
    own = write(tmp_path / "train.tsv", header + rows)
    write(tmp_path / "wav" / "a.wav", wav())
    with pytest.raises(CorpusError, match="replace your own"):
        manifest_lists.main(["prepare", str(tmp_path), "--output", f"{tmp_path}/wav/.."])
    assert own.read_text(encoding="utf-8") == header + rows


def test_lists_of_the_original_project_become_manifests(tmp_path, capsys):
    lines = "data_thchs30/train/A11_0.wav\tlv4 shi4 yang2 chun1\t绿是阳春\n"
    write(tmp_path / "project" / "data" / "thchs_train.txt", lines + "data_thchs30/train/A11_1.wav\tta1\n")
    write(tmp_path / "project" / "data" / "aishell_dev.txt", "data_aishell/S1/B1.wav\tni2 hao3\t你 好\n")
    write(tmp_path / "project" / "data" / "notes.txt", "data_thchs30 is from openslr.org\n")
    for name in ("data_thchs30/train/A11_0.wav", "data_thchs30/train/A11_1.wav", "data_aishell/S1/B1.wav"):
        write(tmp_path / "project" / name, wav())
    output = tmp_path / "out"
    root = str(tmp_path / "project" / "data")
    assert manifest_lists.main(["prepare", root, "--output", str(output)]) == 0
    (train,) = read_manifest(output / "thchs_train.tsv")
    (dev,) = read_manifest(output / "aishell_dev.tsv")
    assert (train.id, " ".join(train.pinyin), train.hanzi) == ("A11_0", "lv4 shi4 yang2 chun1", "绿是阳春")
    assert (dev.id, dev.hanzi, dev.audio.is_file()) == ("B1", "你好", True)
    assert rejected(output)["data_thchs30/train/A11_1.wav"][1] == "wrong number of fields"
    with pytest.raises(CorpusError, match=r"manifest_lists prepare FOLDER makes them"):
        read_manifest(tmp_path / "project" / "data" / "thchs_train.txt")


def test_other_lists_beside_the_splits_are_skipped_and_named(tmp_path, capsys):
    header = "id\taudio\tseconds\tspeaker\tpinyin\thanzi\n"
    write(tmp_path / "in" / "train.tsv", header + "a\twav/a.wav\t9\ts1\tni3 hao3\t你好\n")
    write(tmp_path / "in" / "speakers.tsv", "speaker\tsex\ns1\tfemale\n")
    write(tmp_path / "in" / "rejected.tsv", "split\tid\treason\tdetail\n")
    write(tmp_path / "in" / "wav" / "a.wav", wav())
    assert manifest_lists.main(["prepare", str(tmp_path / "in"), "--output", str(tmp_path / "out")]) == 0
    printed = capsys.readouterr().err
    assert "speakers.tsv" in printed and "rejected.tsv" not in printed
    assert [path.name for path in find_manifests(tmp_path / "in")] == ["train.tsv"]
    assert "speakers.tsv" in capsys.readouterr().err
    # A list named after a split is always read, so a wrong header is an error there.
    write(tmp_path / "in" / "test.tsv", "id\taudio\ttext\n")
    with pytest.raises(CorpusError, match=r"test\.tsv:1"):
        manifest_lists.main(["prepare", str(tmp_path / "in"), "--output", str(tmp_path / "out")])
    with pytest.raises(CorpusError, match=r"test\.tsv:1"):
        [read_listing(path) for path in find_manifests(tmp_path / "in")]
