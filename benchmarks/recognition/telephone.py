"""Runs the documented commands on telephone speech: connected digits, and a folder of spoken words.

    python -m benchmarks.recognition.telephone
    python -m benchmarks.recognition.telephone --trials keywords --runs runs/benchmarks/telephone

Digits: synthetic voices speak strings of three to eight digits at 8 kHz; `prepare`, `doctor`, training by
configs/demo/speech_streaming.yaml, an n-gram of digits, test, export, and the test recordings transcribed as
a stream. Keywords: the words of a folder of recordings (../shared/data/audio/dspspeech20) become 8 kHz clips
in a folder for each word; `doctor`, training by configs/keyword/spoken_words_tc_resnet.yaml, test, export;
then `listen.py` and examples/stream_keyword.py process the same recording of test words. The only options
are the paths of the data and the sample rate. Prints a line for each command with its time and its result.
"""

from utils.command.entry import run_command

import argparse
import json
import re
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from benchmarks.support.commands import ROOT, run
from data.manifest import read_manifest
from utils.audio.reading import read_audio, write_wav
from utils.command.arguments import positive
from utils.errors import CorpusError
from utils.files import write_json, write_text
from utils.metrics import count_errors, total
from utils.text_table import print_table

RATE = 8_000  # Hz
AT_RATE = f"features.sample_rate={RATE}"
DIGITS = {
    "零": "ling2",
    "一": "yi1",
    "二": "er4",
    "三": "san1",
    "四": "si4",
    "五": "wu3",
    "六": "liu4",
    "七": "qi1",
    "八": "ba1",
    "九": "jiu3",
}
WORDS = ROOT.parent / "shared" / "data" / "audio" / "dspspeech20"
SPLITS = ("train", "dev", "test")
SENTENCES = {"train": 2000, "dev": 100, "test": 200}
PAUSE_SECONDS = 1.0  # between two words of the recording for listen.py


@dataclass(frozen=True)
class Step:
    """One command of a trial with its time and its result."""

    trial: str
    command: str
    seconds: float
    result: str


class Trial:
    """Runs commands one after the other and collects their results."""

    def __init__(self, name: str):
        self.name = name
        self.steps: list[Step] = []

    def step(self, *arguments: str | Path, result: Callable[[str], str] = lambda output: "") -> str:
        """Run ``python ARGUMENTS`` and return its output; ``result`` makes a line of it."""
        words = list(map(str, arguments))
        start = time.perf_counter()
        output = run(*words)
        seconds = time.perf_counter() - start
        self.steps.append(Step(self.name, " ".join(words), seconds, result(output)))
        return output


def main() -> int:
    """Run the trials, print the table."""
    options = _parser().parse_args()
    trials = {"digits": digit_trial, "keywords": keyword_trial}
    steps = [step for name in options.trials for step in trials[name](options.runs / name, options)]
    write_json(options.runs / "telephone.json", [asdict(step) for step in steps])
    rows = [(step.trial, step.command, step.result, f"{step.seconds:.0f}") for step in steps]
    print_table("telephone speech, 8 kHz", ("trial", "command", "result", "seconds"), rows, left=3)
    return 0


def digit_trial(folder: Path, options: argparse.Namespace) -> list[Step]:
    """Connected digits: speech recognised as a whole and as a stream."""
    trial = Trial("digits")
    text, corpus, lists = folder / "digits.tsv", folder / "corpus", folder / "lists"
    write_text(text, "".join(f"{pinyin}\t{hanzi}\n" for pinyin, hanzi in digit_strings()))
    sizes = [word for split, size in SENTENCES.items() for word in (f"--{split}", str(size))]
    speaking = ("-m", "data.corpora.synthetic", "generate", corpus, "--text", text)
    trial.step(*speaking, *sizes, "--sample-rate", str(RATE), result=_first_line)
    preparing = ("-m", "data.corpora.synthetic", "prepare", corpus, "--output", lists)
    trial.step(*preparing, "--sample-rate", str(RATE), result=_matching("sample rates:"))
    recipe = ["--config", "configs/demo/speech_streaming.yaml"]
    data = [f"data.{split}=[{lists / split}.tsv]" for split in SPLITS]
    trial.step("doctor.py", *recipe, *data, result=_matching("low-rate"))
    trial.step("doctor.py", *recipe, *data, AT_RATE, result=_last_line)
    speech, language = folder / "speech", folder / "language"
    trial.step("train.py", "speech", *recipe, *data, AT_RATE, "--run", speech, result=_matching("dev"))
    training_text = folder / "training_text.txt"
    write_text(
        training_text, "".join(f"{utterance.hanzi}\n" for utterance in read_manifest(lists / "train.tsv"))
    )
    own = [f"data.train=[{training_text}]", f"data.dev=[{lists / 'dev.tsv'}]"]
    trial.step(
        "train.py", "language", "--config", "configs/language/ngram_text.yaml", *own, "--run", language
    )
    testing = ("test.py", "pipeline", speech, language, "--json")
    trial.step(*testing, result=_error_rates)
    trial.step("export.py", speech, result=_last_line)
    trial.step("doctor.py", speech, result=_last_line)
    texts, sounds = folder / "transcripts", _listed(lists / "test.tsv", folder / "test_recordings.txt")
    hearing = ["transcribe.py", "--list", sounds, "--speech", speech, "--language", language, "--stream"]
    trial.step(*hearing, "--output", texts, result=lambda _: _transcript_error(lists / "test.tsv", texts))
    return trial.steps


def digit_strings(count: int = 3000, seed: int = 0) -> list[tuple[str, str]]:
    """Distinct strings of three to eight digits: pinyin and hanzi of each."""
    rng = np.random.default_rng(seed)
    strings: dict[str, str] = {}
    while len(strings) < count:
        hanzi = "".join(rng.choice(list(DIGITS), rng.integers(3, 9)))
        strings[hanzi] = " ".join(DIGITS[digit] for digit in hanzi)
    return [(pinyin, hanzi) for hanzi, pinyin in strings.items()]


def keyword_trial(folder: Path, options: argparse.Namespace) -> list[Step]:
    """Spoken words in folders: a keyword model, its export, and the example that runs on a device."""
    trial = Trial("keywords")
    clips, model = folder / "words", folder / "model"
    write_words(options.words, clips)
    recording, spoken = write_recording(clips / "test", folder, options.listened)
    training = ["train.py", "keyword", "--config", "configs/keyword/spoken_words_tc_resnet.yaml"]
    trial.step("doctor.py", clips, result=_matching("low-rate"))
    trial.step(*training, f"data.folder={clips}", AT_RATE, "--run", model, result=_matching("accuracy"))
    trial.step("test.py", "keyword", model, result=_matching("accuracy"))
    trial.step("export.py", model, "--format", "litert", result=_last_line)
    hearing = ["test.py", "keyword", model, "--recording", recording, "--spoken", spoken]
    trial.step(*hearing, result=_matching("missed", "false alarms"))
    bundle = model / "export"
    listened = trial.step("listen.py", "--model", bundle, recording, result=_count)
    shown = trial.step("examples/stream_keyword.py", bundle, recording, result=_count)
    same = _are_equal(_detections(listened), _detections(shown))
    trial.steps.append(Step(trial.name, "listen and the example", 0.0, "equal" if same else "DIFFERENT"))
    return trial.steps


def write_words(source: Path, folder: Path) -> None:
    """The recordings of lists of words as ``SPLIT/WORD/SPEAKER_nohash_NUMBER.wav`` of 8 kHz.

    Raises:
        CorpusError: the lists are missing.
    """
    for split in SPLITS:
        path = source / f"{split}.tsv"
        if not path.is_file():
            hint = "--words FOLDER with train.tsv, dev.tsv and test.tsv"
            raise CorpusError("the recorded words are missing", where=path, hint=hint)
        for number, utterance in enumerate(read_manifest(path)):
            clip = folder / split / utterance.hanzi / f"{utterance.speaker}_nohash_{number}.wav"
            if not clip.is_file():
                write_wav(clip, read_audio(utterance.audio, RATE), RATE)


def write_recording(clips: Path, folder: Path, count: int) -> tuple[Path, Path]:
    """Clips of each word in random order, with pauses: ``stream.wav``; their times: ``spoken.tsv``."""
    rng = np.random.default_rng(0)
    chosen = [path for word in sorted(clips.iterdir()) for path in _some(sorted(word.iterdir()), count)]
    pieces, lines, at = [], ["start\tend\tkeyword"], 0
    for path in (chosen[i] for i in rng.permutation(len(chosen))):
        clip = read_audio(path, RATE)
        lines.append(f"{at / RATE:.3f}\t{(at + len(clip)) / RATE:.3f}\t{path.parent.name}")
        pieces += [clip, 0.001 * rng.standard_normal(round(PAUSE_SECONDS * RATE)).astype(np.float32)]
        at += sum(map(len, pieces[-2:]))
    write_wav(folder / "stream.wav", np.concatenate(pieces), RATE)
    write_text(folder / "spoken.tsv", "\n".join(lines) + "\n")
    return folder / "stream.wav", folder / "spoken.tsv"


def _some(paths: list[Path], count: int) -> list[Path]:
    return paths[:: max(1, len(paths) // count)][:count]


def _listed(manifest: Path, path: Path) -> Path:
    """A file with the recordings of a manifest, one per line, for ``transcribe.py --list``."""
    write_text(path, "".join(f"{utterance.audio}\n" for utterance in read_manifest(manifest)))
    return path


def _transcript_error(manifest: Path, folder: Path) -> str:
    utterances = read_manifest(manifest)
    texts = [(folder / f"{utterance.audio.stem}.txt").read_text(encoding="utf-8") for utterance in utterances]
    texts = ["".join(text.split()) for text in texts]
    counts = total(
        count_errors(utterance.hanzi, text) for utterance, text in zip(utterances, texts, strict=True)
    )
    right = sum(utterance.hanzi == text for utterance, text in zip(utterances, texts, strict=True))
    return f"CER {counts.rate:.2%}, {right} of {len(texts)} strings correct"


def _error_rates(output: str) -> str:
    results = json.loads(output)
    names = [name for name in results if name.endswith(("error_rate", "cer")) or name in ("cer", "ser")]
    return ", ".join(f"{name} {results[name]:.2%}" for name in names if isinstance(results[name], float))


def _count(output: str) -> str:
    return f"{len(output.splitlines())} keywords detected"


def _detections(output: str) -> list[tuple[str, str, float]]:
    """Time, word and score of each line of ``listen`` or of the example."""
    found = re.findall(r"^([\d.]+)(?: s)?\s+(\S+)\s+([\d.]+)", output, re.MULTILINE)
    return [(seconds, word, float(score)) for seconds, word, score in found]


def _are_equal(left: list[tuple[str, str, float]], right: list[tuple[str, str, float]]) -> bool:
    """Whether times and words are the same, and the scores as far as both print them (two digits)."""
    same = [detection[:2] for detection in left] == [detection[:2] for detection in right]
    return same and all(abs(a[2] - b[2]) < 0.006 for a, b in zip(left, right, strict=True))


def _first_line(output: str) -> str:
    return output.strip().splitlines()[0] if output.strip() else ""


def _last_line(output: str) -> str:
    return output.strip().splitlines()[-1] if output.strip() else ""


def _matching(*words: str) -> Callable[[str], str]:
    """The lines of an output that contain one of these words."""
    return lambda output: "; ".join(
        " ".join(line.split()) for line in output.splitlines() if any(word in line for word in words)
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", nargs="+", choices=("digits", "keywords"), default=("digits", "keywords"))
    parser.add_argument("--words", type=Path, default=WORDS, help="folder with train.tsv, dev.tsv, test.tsv")
    parser.add_argument(
        "--listened", type=positive, default=8, help="clips of each word to listen to (default: %(default)s)"
    )
    parser.add_argument("--runs", type=Path, default=Path("runs/benchmarks/telephone"), metavar="FOLDER")
    return parser


if __name__ == "__main__":
    run_command(main)
