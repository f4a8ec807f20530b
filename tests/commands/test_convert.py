"""Tests of convert.py: any input lines give output lines; long sentences are converted in windows."""

import json
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest

import convert
from model_language.batching import LONGEST_WINDOW
from model_language.converters.neural import NeuralConverter
from model_language.pinyin_to_hanzi import PinyinToHanzi
from model_language.search.user_words import parse_user_words
from model_language.vocabulary.symbols import build_symbols
from tests.support.tiny_runs import write_language_run
from utils.errors import CorpusError, RunError
from utils.run_folder.run import PRETRAINED

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    return write_language_run(tmp_path_factory.mktemp("language"), Path("none.tsv"))


@pytest.fixture(scope="module")
def to_hanzi(run) -> PinyinToHanzi:
    return PinyinToHanzi(run)


def lines_of(capsys, *arguments: object) -> list[str]:
    convert.main([str(argument) for argument in arguments])
    return capsys.readouterr().out.splitlines()


def test_a_pipe_in_another_process_starts_without_a_framework(run):
    command = [sys.executable, "-X", "importtime", str(ROOT / "convert.py"), "--model", str(run)]
    done = subprocess.run(
        command, input=b"ni3 hao3\n\nwo3hao3, OK!\n", capture_output=True, timeout=600, check=True
    )
    assert done.stdout.decode() == "你好\n\n我好， OK!\n"
    loaded = {line.rpartition(b"|")[2].strip().decode() for line in done.stderr.splitlines()}
    assert "numpy" in loaded
    assert not {name for name in loaded if name.partition(".")[0] in ("keras", "tensorflow", "jax", "torch")}
    note = b"note: 1 word is not pinyin and is unchanged, e.g. standard input, line 3, column 10: 'OK'"
    assert note in done.stderr


def test_all_spellings_give_the_same_hanzi(to_hanzi):
    written = ["ni3 hao3", "nǐ hǎo", "NI3HAO3", "nihao", "ni hao", "ni3'hao3", "nǐhǎo"]
    assert to_hanzi.convert(written) == ["你好"] * len(written)


def test_other_text_stays(to_hanzi):
    lines = ["", "   ", "wo3 hao3! ZXQ 3.5 你 😀 ni3 hao3。", "123", "\t", "ni3 hao3 \u2028 wo3 hao3"]
    assert to_hanzi.convert(lines) == ["", "   ", "我好！ ZXQ 3.5 你 😀你好。", "123", "\t", "你好我好"]


def test_strict_names_the_position(run, tmp_path):
    path = tmp_path / "lines.txt"
    path.write_text("ni3 hao3!\nni3 zhogn1\n", encoding="utf-8")
    with pytest.raises(CorpusError, match="'zhogn1' is not pinyin") as caught:
        convert.main(["--model", str(run), "--strict", str(path)])
    assert caught.value.where == f"{path}, line 2, column 5"


def test_json_has_scores_reasons_and_words(run, tmp_path, capsys):
    path, words = tmp_path / "lines.txt", tmp_path / "words.txt"
    path.write_text("ni3 hao3, wo3!\n\n", encoding="utf-8")
    words.write_text("妮好 ni3hao3 50\n", encoding="utf-8")
    first, empty = map(json.loads, lines_of(capsys, "--model", run, "--json", "--n-best", 3, path))
    assert first["text"] == "你好，我！"
    assert first["n_best"][0]["text"] == first["text"]
    assert len(first["n_best"]) == 3
    assert first["n_best"][0]["score"] >= first["n_best"][1]["score"]
    assert [sentence["pinyin"] for sentence in first["sentences"]] == [["ni3", "hao3"], ["wo3"]]
    character = first["sentences"][0]["characters"][0]
    assert 0 < character["confidence"] <= 1
    assert set(character["lead"]) == {"readings", "n-gram", "user words"}
    assert (empty["text"], empty["sentences"]) == ("", [])

    (worded, _) = map(json.loads, lines_of(capsys, "--model", run, "--json", "--words", words, path))
    assert worded["text"] == "妮好，我！"
    assert worded["sentences"][0]["user_words"] == [{"word": "妮好", "start": 0}]
    assert lines_of(capsys, "--model", run, "--words", words, path)[0] == "妮好，我！"
    assert lines_of(capsys, "--model", run, "--n-best", 2, path)[0].count("\t") == 1


def test_tabs_separate_the_alternatives_only(run, tmp_path, capsys):
    path = tmp_path / "lines.txt"
    path.write_text("ni3 hao3,\t1\t2\n", encoding="utf-8")
    (line,) = lines_of(capsys, "--model", run, "--n-best", 2, path)
    assert line.count("\t") == 1
    assert all(text.endswith("，\t1\t2".replace("\t", " ")) for text in line.split("\t"))
    assert lines_of(capsys, "--model", run, path) == ["你好，\t1\t2"]


def test_lines_come_in_any_blocks(run, tmp_path, capsys, monkeypatch):
    """Blocks may end within a line or a character, or contain many lines: the output is the same."""
    path = tmp_path / "lines.txt"
    path.write_bytes("\ufeffnǐ hǎo\r\n\nwǒ hǎo\nmā".encode())
    expected = ["你好", "", "我好", "妈"]
    for size in (1, 3, 7, 1 << 16):
        monkeypatch.setattr(convert, "READ_BYTES", size)
        assert lines_of(capsys, "--model", run, path) == expected


def test_a_language_model_rates_the_best_conversions_again(tmp_path, capsys):
    path = tmp_path / "lines.txt"
    path.write_text("mai3 le5 ba1 shi4 piao4\n", encoding="utf-8")
    assert lines_of(capsys, path) == ["买了八是票"]
    assert lines_of(capsys, "--rescoring-weight", 0.2, path) == ["买了巴士票"]
    (found,) = map(json.loads, lines_of(capsys, "--rescoring-weight", 0.2, "--json", path))
    assert found["text"] == "买了巴士票"
    assert "language model" in found["sentences"][0]["characters"][2]["lead"]
    with pytest.raises(RunError, match="not a language model of hanzi"):
        convert.main(["--rescoring-weight", "0.2", "--language-model", str(PRETRAINED), str(path)])


def test_a_language_model_without_a_weight_is_refused(run, capsys):
    with pytest.raises(SystemExit):
        convert.main(["--model", str(run), "--language-model", "runs/mine"])
    assert "--language-model is used with --rescoring-weight" in capsys.readouterr().err


@pytest.mark.parametrize("form", [(), ("--n-best", 2)])
def test_several_processes_write_the_same(form, run, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(convert, "READ_BYTES", 200)  # many blocks
    path, words = tmp_path / "lines.txt", tmp_path / "words.txt"
    path.write_text("".join(f"ni3 hao3 {n} wo3 hao3 ZX\n" for n in range(60)), encoding="utf-8")
    words.write_text("妮好 ni3hao3 50\n", encoding="utf-8")
    arguments = ["--model", str(run), "--words", str(words), *map(str, form), str(path), str(path)]
    results = []
    for workers in ("1", "2"):
        convert.main([*arguments, "--workers", workers])
        results.append(capsys.readouterr())
    assert results[0].out == results[1].out and results[0].out.count("妮好") >= 120
    for result in results:
        example = f"e.g. {path}, line 1, column 21: 'ZX'"
        assert f"note: 120 words are not pinyin and are unchanged, {example}" in result.err


def test_several_processes_report_errors_as_one_does(run, tmp_path, capsys):
    path = tmp_path / "lines.txt"
    path.write_text("ni3 hao3\nni3 zhogn1\n", encoding="utf-8")
    with pytest.raises(CorpusError, match="'zhogn1' is not pinyin") as caught:
        convert.main(["--model", str(run), "--strict", "--workers", "2", str(path)])
    assert caught.value.where == f"{path}, line 2, column 5"
    with pytest.raises(RunError, match="not a run folder"):
        convert.main(["--model", str(tmp_path / "none"), "--workers", "2", str(path)])
    with pytest.raises(SystemExit):
        convert.main(["--model", str(run), "--workers", "2"])
    assert "--workers is for files" in capsys.readouterr().err


def test_bad_input_is_named_in_the_message(run, tmp_path, monkeypatch):
    path = tmp_path / "lines.txt"
    path.write_bytes(b"ni3 hao3\n\xff\xfe\n")
    with pytest.raises(CorpusError, match="not UTF-8") as caught:
        convert.main(["--model", str(run), str(path)])
    assert caught.value.where == f"{path}, line 2"
    with pytest.raises(CorpusError, match="no such file") as caught:
        convert.main(["--model", str(run), "ni3 hao3"])
    assert 'echo "ni3 hao3" | python convert.py' in caught.value.hint
    with pytest.raises(CorpusError, match="this is a folder") as caught:
        convert.main(["--model", str(run), str(tmp_path)])
    assert caught.value.where == tmp_path
    monkeypatch.setattr("model_language.registry.PRETRAINED", tmp_path / "none")
    with pytest.raises(RunError, match="--model RUN"):
        PinyinToHanzi(tmp_path / "none")
    assert PRETRAINED.name == "pinyin_to_hanzi"


def test_a_user_word_is_written_for_a_syllable_that_no_known_hanzi_has(run):
    assert PinyinToHanzi(run)("ni3 fiao4") == "你fiao4"
    assert PinyinToHanzi(run, words=parse_user_words("覅 fiao4"))("ni3 fiao4, ni fiao") == "你覅，你覅"


def test_windows_with_enough_context_give_the_conversion_of_the_whole(monkeypatch):
    """The network depends on 7 syllables to each side, so windows with more context change nothing."""
    symbols = build_symbols()
    keras.utils.set_random_seed(1)
    inputs = keras.Input((None,), dtype="int32", name="syllables")
    x = keras.layers.Embedding(len(symbols.pinyin), 8)(inputs)
    x = keras.layers.Conv1D(8, 15, padding="same", activation="tanh")(x)
    model = keras.Model({"syllables": inputs}, keras.layers.Dense(len(symbols.hanzi))(x))
    converter = NeuralConverter(model, symbols)
    rng = np.random.default_rng(1)
    sentences = [list(rng.choice(symbols.pinyin.tokens[2:], size)) for size in (LONGEST_WINDOW + 200, 30)]
    cut = converter.grid(sentences)
    monkeypatch.setattr("model_language.converters.neural.LONGEST_WINDOW", 10_000)
    whole = converter.grid(sentences)
    np.testing.assert_array_equal(cut.candidates[0], whole.candidates[0])
    np.testing.assert_allclose(cut.scores[0], whole.scores[0], atol=1e-4)
    np.testing.assert_allclose(cut.scores[1, :30], whole.scores[1, :30], atol=1e-4)
