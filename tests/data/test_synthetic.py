"""Tests of the synthesiser in its child process, and of its corpus, read by the THCHS-30 loader."""

import importlib.util
import json
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from data.corpora import synthetic
from data.corpora.thchs30 import syllables_of_phones
from data.manifest import SPLITS, read_manifest
from data.synthesis import corpus as synthetic_corpus
from data.synthesis import synthesiser
from data.synthesis.corpus import (
    CorpusSettings,
    assign_to_splits,
    generate,
    plan_corpus,
    syllable_phones,
)
from data.synthesis.reading import spoken_reading, word_reading
from data.synthesis.sentences import read_grammar
from data.synthesis.synthesiser import (
    Speech,
    Synthesiser,
    SynthesiserError,
    check_installed,
    to_text,
)
from utils.errors import CorpusError

if importlib.util.find_spec("espeakng_loader") is None:
    pytest.skip("no synthesiser: pip install -r requirements/demo.txt", allow_module_level=True)

# A stand-in for the synthesiser: it hums for a time proportional to the text and fails at marked syllables.
FAKE = """
import json, os, signal, sys, time
from data.synthesis import espeak

espeak.FORK_SECONDS = 1

def reply(request):
    text = request["text"]
    if "si3" in text:
        os.kill(os.getpid(), signal.SIGSEGV)
    if "deng3" in text:
        time.sleep(60)
    samples = b"" if "kong1" in text else bytes([0, 16, 0, 240]) * (800 * len(text))
    return json.dumps({"samples": len(samples) // 2}).encode() + b"\\n" + samples

if "whole" in sys.argv:
    for line in sys.stdin:
        if "si3" in line:
            os.abort()
        os.write(1, reply(json.loads(line)))
espeak.serve(reply, 1)
"""
SMALL = CorpusSettings(train=8, dev=2, test=4, voices=9)


@pytest.fixture(scope="module")
def child():
    with Synthesiser() as started:
        yield started


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("synthetic") / "corpus"
    assert generate(root, SMALL, workers=2) == []
    return root


@pytest.fixture
def fake(tmp_path, monkeypatch) -> tuple[str, ...]:
    """The command of the stand-in, which is used in place of the synthesiser."""
    (tmp_path / "fake.py").write_text(FAKE)
    code = f"import runpy; runpy.run_path({str(tmp_path / 'fake.py')!r})"
    command = (sys.executable, "-c", code)
    monkeypatch.setattr(synthesiser, "COMMAND", command)
    return command


def recordings(root: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((root / "data").iterdir())}


def grammar_syllables() -> list[str]:
    items = {i for rule in read_grammar().rules.values() for words in rule for i in words if i[0] != "<"}
    return sorted({syllable for item in items if item != "，" for syllable in word_reading(item)})


# ------------------------------------------------------------------ speech of the synthesiser


def test_speech_depends_on_the_request_alone(child):
    speech = Speech("croak", to_text(("ni3", "hao3")), 160, 40, 90)
    first = child.synthesise(speech)
    child.synthesise(Speech("f4", to_text(("zai4", "jian4"))))
    np.testing.assert_array_equal(child.synthesise(speech), first)
    with Synthesiser() as other:
        np.testing.assert_array_equal(other.synthesise(speech), first)
    assert len(child.synthesise(Speech("croak", speech.text, 250, 40, 90))) < len(first)


# ------------------------------------------------------------------ a child that dies


@pytest.mark.parametrize("whole", [False, True], ids=["a fork dies", "the child dies"])
def test_child_that_dies_is_replaced(fake, whole, monkeypatch):
    monkeypatch.setattr(synthesiser, "COMMAND", (*fake, *(["whole"] if whole else [])))
    with Synthesiser() as child:
        assert len(child.synthesise(Speech("f1", "ni3"))) == 4800
        with pytest.raises(SynthesiserError, match=r"the synthesiser died|died of SIGSEGV"):
            child.synthesise(Speech("f1", "si3"))
        assert len(child.synthesise(Speech("f1", "ni3 hao3"))) == 12800
        if not whole:
            with pytest.raises(SynthesiserError, match="died of SIGALRM"):
                child.synthesise(Speech("f1", "deng3"))
        with pytest.raises(SynthesiserError, match="the synthesiser was silent"):
            child.synthesise(Speech("f1", "kong1"))
        assert len(child.synthesise(Speech("f1", "ni3"))) == 4800


@pytest.mark.usefixtures("fake")
def test_pairs_that_crash_the_synthesiser_are_left_out_and_reported(tmp_path):
    text = ["wo3 si3\t我死", *(f"ni3 {a} {b}\t你{x}{y}" for a, x in DIGITS for b, y in DIGITS)]
    (tmp_path / "text.tsv").write_text("\n".join(text), encoding="utf-8")
    settings = CorpusSettings(train=60, dev=2, test=2, voices=4, text=str(tmp_path / "text.tsv"))
    failures = generate(tmp_path / "corpus", settings, 2)
    assert failures and {f.item.sentence.hanzi for f in failures} == {"我死"}
    assert {f.reason for f in failures} == {"died of SIGSEGV"}
    names = {path.stem for path in (tmp_path / "corpus" / "data").glob("*.wav")}
    assert len(names) == 64 - len(failures) and names.isdisjoint(f.item.id for f in failures)
    assert generate(tmp_path / "corpus", settings, 2) == []


DIGITS = (("yi1", "一"), ("er4", "二"), ("san1", "三"), ("si4", "四"), ("wu3", "五"))


def test_synthesiser_that_never_works_ends_the_run(tmp_path, monkeypatch):
    monkeypatch.setattr(synthesiser, "COMMAND", (sys.executable, "-c", ""))
    with pytest.raises(CorpusError, match="the synthesiser fails: the synthesiser died"):
        generate(tmp_path / "corpus", CorpusSettings(100, 10, 10), 2)


def test_missing_wheel(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(CorpusError, match=r"not installed, pip install -r requirements/demo\.txt"):
        check_installed()


# ------------------------------------------------------------------ the corpus


def test_the_same_bytes_again_with_another_number_of_workers(corpus, tmp_path):
    generate(tmp_path / "again", SMALL, workers=1)
    assert recordings(tmp_path / "again") == recordings(corpus)
    other = replace(SMALL, seed=1)
    assert plan_corpus(other, assign_to_splits(other)) != plan_corpus(SMALL, assign_to_splits(SMALL))


def test_corpus_is_prepared_without_rejects(corpus, tmp_path, capsys):
    assert synthetic.main(["prepare", str(corpus), "--output", str(tmp_path)]) == 0
    planned = {p.id: p for p in plan_corpus(SMALL, assign_to_splits(SMALL))}
    for split in SPLITS:
        for utterance in read_manifest(tmp_path / f"{split}.tsv"):
            sentence = planned.pop(utterance.id).sentence
            assert (utterance.pinyin, utterance.hanzi) == (sentence.pinyin, sentence.hanzi)
            assert (utterance.spoken_pinyin or utterance.pinyin) == spoken_reading(sentence)
    assert not planned
    assert json.loads((tmp_path / "summary.json").read_text(encoding="utf-8"))["rejected"] == {}


def test_voices_and_sentences_of_the_splits_are_disjoint():
    pools = assign_to_splits(CorpusSettings())
    voices = [voice for pool in pools.values() for voice in pool.voices]
    sentences = [sentence.hanzi for pool in pools.values() for sentence in pool.sentences]
    assert len(voices) == len(set(voices)) == 71
    assert len(sentences) == len(set(sentences)) == 4900
    assert {split: len(pool.voices) for split, pool in pools.items()} == {"train": 53, "dev": 6, "test": 12}
    assert {split: len(pool.sentences) for split, pool in pools.items()} == {
        "train": 4000,
        "dev": 300,
        "test": 600,
    }
    assert all(
        {voice.variant for voice in pool.voices} & {"Andrea", "anika", "f1", "f2", "grandma"}
        for pool in pools.values()
    )
    planned = plan_corpus(CorpusSettings(), pools)
    assert len({p.id for p in planned}) == len(planned) == 4900
    assert len({p.id[:4] for p in planned}) == 71


def test_an_interrupted_run_continues_and_a_complete_corpus_is_unchanged(corpus, tmp_path, monkeypatch):
    root = tmp_path / "corpus"
    made: list[str] = []
    make = synthetic_corpus.make_utterance

    def break_off(planned, *arguments, **settings):
        if len(made) == 6:
            raise KeyboardInterrupt
        made.append(planned.id)
        return make(planned, *arguments, **settings)

    monkeypatch.setattr(synthetic_corpus, "make_utterance", break_off)
    with pytest.raises(KeyboardInterrupt):
        generate(root, SMALL, workers=1)
    monkeypatch.undo()
    times = {path: path.stat().st_mtime_ns for path in (root / "data").glob("*.wav")}
    assert len(times) == 6
    generate(root, SMALL, workers=2)
    assert recordings(root) == recordings(corpus)
    assert times == {path: path.stat().st_mtime_ns for path in times}
    assert generate(root, SMALL) == []


def test_other_settings_or_other_files_in_the_folder(corpus, tmp_path):
    with pytest.raises(CorpusError, match="other settings"):
        generate(corpus, replace(SMALL, train=9))
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(CorpusError, match="not empty"):
        generate(tmp_path, SMALL)
    (tmp_path / "corpus.json").write_text("{")
    with pytest.raises(CorpusError, match="not readable"):
        generate(tmp_path, SMALL)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (CorpusSettings(voices=2), "2 voices"),
        (CorpusSettings(voices=87), "87 voices"),
        (CorpusSettings(dev=1, test=2, text="text"), "3 sentences are not enough for 3 of dev and test"),
    ],
)
def test_settings_that_cannot_be_met(tmp_path, monkeypatch, settings, message):
    monkeypatch.chdir(tmp_path)
    Path("text").write_text("你好\n再见\n谢谢\n", encoding="utf-8")
    with pytest.raises(CorpusError, match=message):
        generate(tmp_path / "corpus", settings)


def test_few_sentences_of_the_user_are_spoken_by_several_voices(tmp_path, capsys):
    (tmp_path / "text").write_text("你好\n再见\n谢谢\n不客气\nabc\n", encoding="utf-8")
    planned = plan_corpus(
        s := CorpusSettings(9, 1, 1, voices=6, text=str(tmp_path / "text")), assign_to_splits(s)
    )
    assert "1 lines left out, the first: line 5" in capsys.readouterr().err
    by_split = {split: {p.sentence.hanzi for p in planned if p.split == split} for split in SPLITS}
    assert {split: len(texts) for split, texts in by_split.items()} == {"train": 2, "dev": 1, "test": 1}
    # Two sentences in four voices are eight pairs: the ninth utterance is the first repeated pair.
    assert len({(p.voice, p.sentence) for p in planned if p.split == "train"}) == 8


def test_phones_of_every_syllable_are_read_back():
    for syllable in grammar_syllables():
        assert syllables_of_phones(syllable_phones(syllable)) == (syllable,)


def run(argv: Sequence[str]) -> int:
    return synthetic.main(list(argv))


def test_command(tmp_path, capsys):
    sizes = ["--train", "3", "--dev", "1", "--test", "1", "--voices", "3", "--workers", "1"]
    assert run(["generate", str(tmp_path / "corpus"), *sizes]) == 0
    assert re.search(r"5 utterances, 0\.00 hours, 3 voices; \d+ s", capsys.readouterr().out)
    for wrong in (["generate"], ["generate", "x", "--train", "0"], ["nothing"]):
        with pytest.raises(SystemExit, match="2"):
            run(wrong)
