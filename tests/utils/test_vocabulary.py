"""Tests of vocabularies: order, special tokens, files, mismatches, the command that writes them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data import vocabularies
from data.manifest import read_transcripts
from utils.errors import VocabularyError
from utils.mandarin.pinyin import full_inventory
from utils.vocabulary import (
    BLANK,
    PAD,
    SPACE,
    UNKNOWN,
    Vocabulary,
    acoustic_vocabulary,
    explain_mismatch,
    language_vocabulary,
)

SYLLABLES = st.lists(st.sampled_from([*full_inventory(), "miaor2", "hengr1"]), max_size=30)


def test_space_and_blank_are_there_by_construction_and_blank_is_last():
    vocabulary = acoustic_vocabulary()
    assert vocabulary.tokens[-2:] == (SPACE, BLANK)
    assert vocabulary.blank_index == len(vocabulary) - 1 == len(full_inventory()) + 1
    assert acoustic_vocabulary([SPACE, BLANK, "a1"]) == vocabulary
    assert language_vocabulary(["好", "你", PAD, "好"]).tokens == (PAD, UNKNOWN, "你", "好")


@given(SYLLABLES)
@settings(max_examples=40)
def test_encode_decode_round_trip(syllables):
    vocabulary = acoustic_vocabulary(["miaor2", "hengr1"])
    ids = vocabulary.encode(syllables)
    assert ids.dtype == np.int32 and ids.shape == (len(syllables),)
    assert vocabulary.decode(ids) == syllables


def test_save_and_load_keep_the_space_token(tmp_path):
    vocabulary = acoustic_vocabulary()
    vocabulary.save(tmp_path / "acoustic.txt")
    assert Vocabulary.load(tmp_path / "acoustic.txt") == vocabulary
    assert (tmp_path / "acoustic.txt").read_bytes().endswith(b"\n \n_\n")
    windows = (tmp_path / "acoustic.txt").read_bytes().replace(b"\n", b"\r\n")
    (tmp_path / "windows.txt").write_bytes(windows)
    assert Vocabulary.load(tmp_path / "windows.txt").hash == vocabulary.hash


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a1\n\nb1\n", "line 2"),
        (b"a1\nb1\na1\n", "'a1' occurs twice"),
        (b"", "line 1"),
        (b"\xc4\xe3\n", "UTF-8"),
    ],
)
def test_damaged_files_are_refused(tmp_path, content, message):
    path = tmp_path / "acoustic.txt"
    path.write_bytes(content)
    with pytest.raises(VocabularyError, match=message) as error:
        Vocabulary.load(path)
    assert str(path) in str(error.value)


def test_unknown_token_names_token_utterance_and_file():
    with pytest.raises(VocabularyError) as error:
        acoustic_vocabulary().encode(["ni3", "zong6"], utterance="A11_0", source="train.tsv")
    assert all(part in str(error.value) for part in ("'zong6'", "A11_0", "train.tsv", "zong4"))


def test_blank_can_not_be_a_label():
    with pytest.raises(VocabularyError, match="can't be a label, utterance A11_0"):
        acoustic_vocabulary().encode([BLANK], utterance="A11_0")


def test_unknown_hanzi_become_unk():
    vocabulary = language_vocabulary("你好")
    assert vocabulary.encode_or_unknown("你们好").tolist() == [2, 1, 3]
    with pytest.raises(VocabularyError, match="no token is similar"):
        vocabulary.index("们")
    with pytest.raises(VocabularyError, match="there is no token 4"):
        vocabulary.decode([4])
    assert "你" in vocabulary and "们" not in vocabulary


def test_a_mismatch_is_named_in_both_directions():
    message = explain_mismatch(Vocabulary(("a1", "b1", SPACE)), Vocabulary(("a1", "c1")))
    assert "only in the model (2): ' ', b1" in message
    assert "only in the weights (1): c1" in message
    assert explain_mismatch(Vocabulary(("a1",)), Vocabulary(("a1",))) == "the vocabularies are the same"
    swapped = explain_mismatch(Vocabulary(("a1", "b1")), Vocabulary(("a1", "b1", "c1")))
    assert "class 2: '(none)' in the model, 'c1' in the weights" in swapped


def test_classic_failure_2_space_in_a_transcript(tmp_path):
    """``ValueError: ' ' is not in list``: extra spaces vanish on reading, a space token has a class."""
    path = tmp_path / "list.tsv"
    path.write_text("A1\t lv4  shi4 \t绿是\n", encoding="utf-8")
    (text,) = read_transcripts(path)
    assert acoustic_vocabulary().encode(text.pinyin).shape == (2,)
    assert acoustic_vocabulary().encode(["lv4", " ", "shi4"])[1] == acoustic_vocabulary().index(SPACE)
    with pytest.raises(VocabularyError) as error:
        language_vocabulary(["lv4"]).encode(["lv4", " "], utterance="A1", source=path)
    assert all(part in str(error.value) for part in ("' '", "utterance A1", str(path), "single spaces"))


def test_command_writes_the_vocabulary_of_some_lists(tmp_path, capsys):
    (tmp_path / "train.tsv").write_text("A1\tlv4 shi4\t绿是\n", encoding="utf-8")
    (tmp_path / "test.tsv").write_text("B1\tlv4 miaor2\t绿苗\n", encoding="utf-8")
    output = tmp_path / "acoustic.txt"
    lists = [str(tmp_path / "train.tsv"), str(tmp_path / "test.tsv")]
    assert vocabularies.main([*lists, "--output", str(output)]) == 0
    printed = capsys.readouterr().out
    assert "3 seen" in printed and "outside the inventory: miaor2" in printed
    assert Vocabulary.load(output) == acoustic_vocabulary(["miaor2"])
    for options, tokens in (
        (["--only-seen"], ("lv4", "miaor2", "shi4")),
        (["--units", "hanzi"], ("是", "绿", "苗")),
        (["--units", "initials_finals", "--only-seen"], ("i4", "iaor2", "l", "m", "sh", "v4")),
    ):
        assert vocabularies.main([*lists, *options, "--output", str(output)]) == 0
        assert Vocabulary.load(output).tokens == (*tokens, SPACE, BLANK)


def test_command_writes_the_vocabulary_of_the_original_project(tmp_path, capsys):
    lines = ["x/A1.wav\tlv4 shi4\t绿是\n", "x/A2.wav\tshi4 ni3\t是你\n", "x/A3.wav\thao3\t好\n"]
    (tmp_path / "train.txt").write_text("".join(lines), encoding="utf-8")
    output = tmp_path / "tokens.txt"

    def written(*options: str) -> tuple[str, ...]:
        assert vocabularies.main([str(tmp_path / "train.txt"), *options, "--output", str(output)]) == 0
        return Vocabulary.load(output).tokens

    assert written("--as-seen", "acoustic", "--first", "2") == ("lv4", "shi4", "ni3", BLANK, SPACE)
    assert written("--as-seen", "pinyin") == ("<PAD>", "lv4", "shi4", "ni3", "hao3")
    assert written("--as-seen", "hanzi", "--first", "1") == ("<PAD>", "绿", "是")
    assert "3 tokens" in capsys.readouterr().out
