"""Tests of data/corpora/record.py: sentences that cover all sounds, checked recordings, resumed sessions."""

from pathlib import Path

import numpy as np
import pytest

from data.corpora.record import _matched, main
from data.corpora.tools.reading_aloud import choose_sentences, find_problem, parts_of
from data.manifest import Transcript, read_manifest, read_transcripts
from data.synthesis.reading import make_sentence
from data.synthesis.sentences import draw_sentences
from utils.audio.reading import read_audio
from utils.audio.samples import write_wav
from utils.errors import CorpusError
from utils.mandarin.pinyin import full_inventory

RATE = 16_000
NEEDED = ("initial", "final")
# Syllables of interjections and rare words, which the grammar does not have.
RARE_FINALS = {"final io", "final ueng", "final m", "final n", "final ng"}


def speech(syllables: int, rate: float = 4.0, level: float = 0.1) -> np.ndarray:
    """Bursts of noise, one a syllable, with half a second of near silence around them."""
    rng = np.random.default_rng(syllables)
    voiced = rng.standard_normal(round(syllables / rate * RATE))
    voiced *= np.abs(np.sin(np.arange(len(voiced)) / RATE * np.pi * rate))
    quiet = 0.001 * rng.standard_normal(RATE // 2)
    return np.concatenate([quiet, level * voiced, quiet]).astype("float32").clip(-1, 1)


@pytest.mark.parametrize(
    ("samples", "problem"),
    [
        (speech(8), None),
        (speech(1), None),
        (np.zeros(0, "float32"), "nothing"),
        (np.zeros(RATE, "float32"), "silence"),
        (speech(8, level=0.004), "too quiet"),
        (speech(8, level=3.0), "clipped"),
        (0.1 * np.random.default_rng(0).standard_normal(2 * RATE).astype("float32"), "background"),
        (speech(2), "too short"),
        (speech(60), "too long"),
    ],
)
def test_an_unusable_recording_is_refused_with_the_reason(samples: np.ndarray, problem: str | None):
    found = find_problem(samples, RATE, 1 if problem is None and len(samples) < 2 * RATE else 12)
    assert found is None if problem is None else problem in found


def test_the_first_minute_has_all_initials_finals_and_tone_pairs():
    candidates = draw_sentences(1000, seed=16)
    chosen = choose_sentences(candidates, [], seconds=60)
    parts = set().union(*(parts_of(sentence.pinyin) for sentence in chosen))
    plain = [s for s in full_inventory() if not s[:-1].endswith("r") or s[:-1] == "er"]  # without erhua
    needed = {part for syllable in plain for part in parts_of([syllable]) if part.startswith(NEEDED)}
    needed |= {f"tone pair {left} {right}" for left in range(1, 6) for right in range(1, 6)}
    assert needed - parts == RARE_FINALS
    longer = choose_sentences(candidates, chosen, seconds=120)
    assert longer[: len(chosen)] == chosen and len({sentence.hanzi for sentence in longer}) == len(longer)


def test_a_choice_takes_missing_sounds_and_ends_with_the_candidates():
    candidates = [make_sentence([word]) for word in ("妈妈", "爸爸", "马骂", "妈")]
    assert [s.hanzi for s in choose_sentences(candidates, candidates[:1], 0, count=2)] == ["妈妈", "马骂"]
    assert len(choose_sentences(candidates, [], 1e9)) == 4


class Speaker:
    """Types the given keys, and reads each recorded sentence as ``takes`` prescribes."""

    def __init__(self, keys: list[str], takes: list[np.ndarray]):
        self.keys, self.takes = iter(keys), iter(takes)

    def ask(self, prompt: str) -> str:
        if (key := next(self.keys, None)) is None:
            raise EOFError
        return key

    def take(self) -> np.ndarray:
        return next(self.takes)


def record(folder: Path, keys: list[str], takes: list[np.ndarray], *options: str) -> None:
    speaker = Speaker(keys, takes)
    assert (
        main([str(folder), "--sentences", str(folder / "own.txt"), *options], speaker.take, speaker.ask) == 0
    )
    assert next(speaker.takes, None) is None, "not all recordings were made"


SENTENCES = [
    "今天天气很好",
    "请打开客厅的电灯",
    "我想喝一杯茶",
    "明天几点开会",
    "他们去哪里了",
    "外面下雨了",
    "谢谢你",
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "own.txt").write_text("\n".join(SENTENCES), encoding="utf-8")
    return tmp_path


def test_a_session_asks_again_resumes_and_holds_out_every_sixth(folder: Path, capsys):
    good = [speech(len(sentence)) for sentence in SENTENCES]
    silence = np.zeros(RATE, "float32")
    record(folder, ["", "", "s", "", "q"], [silence, good[0], good[2]])
    assert "not kept: silence" in capsys.readouterr().out
    assert [u.hanzi for u in read_manifest(folder / "train.tsv")] == [SENTENCES[0], SENTENCES[2]]

    louder = [1.5 * samples for samples in good]
    record(folder, ["", "r", "", "", "", ""], [good[1], louder[1], good[3], good[4], good[5]])
    train, dev = read_manifest(folder / "train.tsv"), read_manifest(folder / "dev.tsv")
    assert [u.hanzi for u in train] == SENTENCES[:5] and [u.hanzi for u in dev] == SENTENCES[5:6]
    assert dev[0].pinyin == ("wai4", "mian4", "xia4", "yu3", "le5")
    np.testing.assert_allclose(read_audio(train[1].audio), louder[1], atol=1e-4)
    assert train[1].seconds == pytest.approx(len(louder[1]) / RATE, abs=1e-3)
    assert "1 sentences without a recording" in capsys.readouterr().out


def test_more_sentences_are_added_to_those_of_an_earlier_call(folder: Path):
    speaker = Speaker([], [])
    main([str(folder), "--count", "3"], speaker.take, speaker.ask)
    before = read_transcripts(folder / "sentences.tsv")
    main([str(folder), "--count", "5"], speaker.take, speaker.ask)
    after = read_transcripts(folder / "sentences.tsv")
    assert (
        len(before) == 3 and after[:3] == before and [t.id for t in after] == [f"{n:03}" for n in range(1, 6)]
    )


def test_recordings_made_elsewhere_are_matched_and_checked(folder: Path, capsys):
    files = folder / "phone"
    for number in (1, 3, 7):
        write_wav(files / f"take_{number:02}.wav", speech(len(SENTENCES[number - 1])))
    write_wav(files / "take_02.wav", np.zeros(RATE, "float32"))
    options = ["--sentences", str(folder / "own.txt"), "--from", str(files)]
    assert main([str(folder / "mine"), *options, "--speaker", "me"]) == 1
    assert "take_02.wav: not taken for 002 请打开客厅的电灯: silence" in capsys.readouterr().out
    train = read_manifest(folder / "mine/train.tsv")
    assert [(u.id, u.speaker) for u in train] == [("me_001", "me"), ("me_003", "me"), ("me_007", "me")]


@pytest.mark.parametrize(
    "names",
    [
        [str(number) for number in range(12)],
        [str(number) for number in range(1, 13)],
        list("abcdefghijkl"),
    ],
)
def test_recordings_are_matched_in_the_order_of_their_numbers(tmp_path: Path, names: list[str]):
    sentences = [Transcript(f"{number:03}", ("yi1",), "一") for number in range(1, 13)]
    paths = sorted(tmp_path / f"{name}.wav" for name in names)
    matched = _matched(paths, sentences, tmp_path)
    assert sorted((sentence.id, path.stem) for path, sentence in matched) == [
        (sentence.id, name) for sentence, name in zip(sentences, names, strict=True)
    ]


@pytest.mark.parametrize(
    "names", [["take", "take 1", "take 2"], ["a 7", "b 7", "c 8"], ["a", "b"], ["0", "1", "2", "3"]]
)
def test_recordings_whose_sentence_is_not_certain_are_refused(tmp_path: Path, names: list[str]):
    sentences = [Transcript(f"{number:03}", ("yi1",), "一") for number in range(1, 4)]
    with pytest.raises(CorpusError, match=f"the names of {len(names)} recordings are not the numbers"):
        _matched([tmp_path / f"{name}.wav" for name in names], sentences, tmp_path)


def test_recordings_are_replaced_only_on_request(folder: Path):
    options = [str(folder / "mine"), "--sentences", str(folder / "own.txt"), "--from", str(folder / "phone")]
    write_wav(folder / "phone/1.wav", speech(len(SENTENCES[0])))
    assert main(options) == 0
    good = (folder / "mine/wav/001.wav").read_bytes()
    write_wav(folder / "phone/1.wav", 1.2 * speech(len(SENTENCES[0])))
    with pytest.raises(CorpusError, match=r"1 of the files would replace other recordings, 1\.wav first"):
        main(options)
    assert (folder / "mine/wav/001.wav").read_bytes() == good
    assert main([*options, "--replace"]) == 0
    assert (folder / "mine/wav/001.wav").read_bytes() != good
