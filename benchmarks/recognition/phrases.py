"""Phrases of a list, said by people never heard: right, wrong, falsely accepted; and the time of a long list.

    python -m benchmarks.recognition.phrases --run runs/real
    python -m benchmarks.recognition.phrases --run runs/real --fit      # on dev speakers only

Needs the project's shared recordings (``--audio``). With the lists

(a) the 12 words of ``dspspeech20``, test speakers;
(b) 200 phrases of 2 to 4 syllables of the Lingua Libre speakers that ``--speakers`` keeps out of training,
    and three near neighbours of each: one tone, one final, one syllable away;

it prints how many phrases are recognised, and (c) how many clips of other speech are accepted as a phrase of
each list. (d) 10,000 phrases: processor time against free decoding of the same clips.

``--fit`` uses the words of ``dspspeech20`` and the sentences of Common Voice, dev speakers: lists of all, of
every other word, with neighbours, of neighbours alone, against the speech of both. It prints the weights for
``recognition/phrases/confidence.py``, the calibration error over speakers left out, and rates at thresholds.
"""

import argparse
import csv
import lzma
import random
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from tqdm import tqdm

from benchmarks.support.calibration import calibration_error, logistic_regression, sigmoid
from benchmarks.support.commands import ROOT
from benchmarks.support.near_phrases import with_neighbours
from model_speech.ctc.greedy import greedy_decode
from recognition.loading import load_acoustic_logits
from recognition.options import PHRASE_THRESHOLD
from recognition.phrases.confidence import confidence
from recognition.phrases.grammar import parse_grammar
from recognition.phrases.phrase_list import list_phrases
from recognition.phrases.search import Candidate, PhraseSearch
from recognition.phrases.segments import utterances
from recognition.recognizer import AcousticLogits, Recognizer
from utils.audio.reading import read_audio
from utils.errors import CorpusError, run_command
from utils.features.speech import extract_features
from utils.mandarin.pinyin import is_hanzi
from utils.vocabulary import SPACE

SHARED = ROOT.parent / "shared" / "data"
HELD_OUT = ("Jouketou",)
PHRASES, TIMED_PHRASES, TIMED_CLIPS = 200, 10_000, 60
THRESHOLDS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
LISTED, NEAR, OTHER = "listed", "only neighbours of the words", "other"


@dataclass(frozen=True)
class Clip:
    """A recording with its text in hanzi, without punctuation."""

    audio: Path
    seconds: float
    speaker: str
    text: str


@dataclass(frozen=True)
class Trial:
    """The best phrase for a clip, if any fits; ``listed``: whether the clip's text is in the list."""

    clip: Clip
    listed: bool
    best: Candidate | None

    @property
    def right(self) -> bool:
        """Whether the best phrase is what was said."""
        return self.listed and self.best is not None and self.best.phrase.text == self.clip.text

    def accepted(self, threshold: float) -> bool:
        """Whether the best phrase is accepted."""
        return self.best is not None and confidence(self.best.evidence) >= threshold


def main() -> int:
    """Fit, or print the table of the test lists."""
    options = _parser().parse_args()
    acoustic = load_acoustic_logits(options.run)
    if options.fit:
        _fit(acoustic, options.audio)
    else:
        _print_rates(acoustic, options)
        _print_times(acoustic, options)
    return 0


def _print_rates(acoustic: AcousticLogits, options: argparse.Namespace) -> None:
    words = read_clips(options.audio / "dspspeech20" / "test.tsv")
    phrases = _phrases_of(options.audio, options.speakers)
    searches = {
        "(a) 12 words": _search([*dict.fromkeys(clip.text for clip in words)], acoustic, False),
        f"(b) {len(phrases)} phrases": _search([clip.text for clip in phrases], acoustic, True),
    }
    other = [
        clip
        for name in ("common_voice_zh/test", "aishell1_two_speakers/test_other_speaker")
        for clip in read_clips(options.audio / f"{name}.tsv")
    ]
    table = Table("list", "entries", "clips", "best phrase right", "accepted and right", "accepted falsely")
    clips = {"said": [*words, *phrases], "other": other}
    trials = {name: _trials(acoustic, searches, of_kind) for name, of_kind in clips.items()}
    for (name, search), own in zip(searches.items(), (words, phrases), strict=True):
        said = [trial for trial in trials["said"][name] if trial.listed and trial.clip in own]
        not_said = [trial for trial in trials["said"][name] + trials["other"][name] if not trial.listed]
        right = sum(trial.right for trial in said)
        accepted = sum(trial.right and trial.accepted(options.threshold) for trial in said)
        false = sum(trial.accepted(options.threshold) for trial in not_said)
        row = (str(len(search.phrases)), str(len(said)), _rate(right, len(said)), _rate(accepted, len(said)))
        table.add_row(name, *row, _rate(false, len(not_said)))
        if options.show:
            _print_wrong(name, said)
    Console(width=130).print(table)


def _print_times(acoustic: AcousticLogits, options: argparse.Namespace) -> None:
    """(d): the same clips with 10,000 phrases and without, alternately; processor time."""
    with lzma.open(options.words, "rt", encoding="utf-8") as file:
        titles = [line.strip() for line in file if 2 <= len(line.strip()) <= 6]
    began = time.process_time()
    search = _search(random.Random(0).sample(titles, TIMED_PHRASES), acoustic, False)
    print(f"{TIMED_PHRASES:,} phrases read in {time.process_time() - began:.1f} s of processor time")
    clips = random.Random(0).sample(read_clips(options.audio / "common_voice_zh" / "dev.tsv"), TIMED_CLIPS)
    sources = [(str(clip.audio), read_audio(clip.audio, acoustic.features.sample_rate)) for clip in clips]
    recognizers = {"free": Recognizer(acoustic), "phrases": Recognizer(acoustic, phrases=search)}
    seconds = dict.fromkeys(recognizers, np.inf)
    for _ in range(3):
        for name, recognizer in recognizers.items():
            began = time.process_time()
            list(recognizer.recognise(sources))
            seconds[name] = min(seconds[name], time.process_time() - began)
    audio = sum(clip.seconds for clip in clips)
    for name, value in seconds.items():
        print(f"{name}: {value:.2f} s of processor time for {audio:.0f} s of sound")
    print(f"ratio: {seconds['phrases'] / seconds['free']:.3f}")


def _fit(acoustic: AcousticLogits, audio: Path) -> None:
    """Weights of the confidence and rates at several thresholds, on dev speakers."""
    spoken = [read_clips(audio / name / "dev.tsv") for name in ("dspspeech20", "common_voice_zh")]
    words, sentences = ([*dict.fromkeys(clip.text for clip in clips)] for clips in spoken)
    searches = {
        "words": _search(words, acoustic, False),
        "every other word": _search(words[::2], acoustic, False),
        "the other words": _search(words[1::2], acoustic, False),
        "words and neighbours": _search(words, acoustic, True),
        NEAR: _search(words, acoustic, True, leave_out=True),
        "sentences": _search(sentences, acoustic, False),
    }
    found = _trials(acoustic, searches, [*spoken[0], *spoken[1]])
    trials = [trial for each in found.values() for trial in each if trial.best]
    # Speech that differs from a phrase by one syllable is the hardest to refuse: in a row of its own.
    near = {id(trial) for trial in found[NEAR] if trial.clip.text in words}
    kinds = np.array([LISTED if trial.listed else NEAR if id(trial) in near else OTHER for trial in trials])
    features = np.array([list(trial.best.evidence.features().values()) for trial in trials])  # (N, F)
    right = np.array([trial.right for trial in trials])
    speakers = np.array([trial.clip.speaker for trial in trials])
    weights = logistic_regression(features, right)
    print(f"{len(trials)} trials of {len(set(speakers))} speakers, {right.mean():.1%} right")
    print(f"BIAS = {weights[-1]:.3f}")
    names = trials[0].best.evidence.features()
    print(f"WEIGHTS = {dict(zip(names, weights[:-1].round(3).tolist(), strict=True))}")
    probabilities = _of_speakers_left_out(features, right, speakers)
    print(f"speakers left out: calibration error {calibration_error(probabilities, right):.1%}")
    table = Table(
        "threshold", "accepted and right, listed", "accepted, a neighbour listed", "accepted, other"
    )
    for threshold in THRESHOLDS:
        accepted = probabilities >= threshold
        shown = ((accepted & right)[kinds == LISTED], accepted[kinds == NEAR], accepted[kinds == OTHER])
        table.add_row(f"{threshold:.2f}", *(f"{part.mean():.2%}" for part in shown))
    Console(width=130).print(table)
    for name, each in found.items():
        listed = [trial for trial in each if trial.listed]
        if listed:
            print(f"{name}: best phrase right {_rate(sum(trial.right for trial in listed), len(listed))}")


def _of_speakers_left_out(features: np.ndarray, right: np.ndarray, speakers: np.ndarray) -> np.ndarray:
    """Probability of each trial (N,) by weights that were fitted without its speaker."""
    probabilities = np.zeros(len(right))
    for part in range(5):
        left_out = np.isin(speakers, sorted(set(speakers))[part::5])
        weights = logistic_regression(features[~left_out], right[~left_out])
        probabilities[left_out] = sigmoid(features[left_out] @ weights[:-1] + weights[-1])
    return probabilities


def _trials(
    acoustic: AcousticLogits, searches: dict[str, PhraseSearch], clips: Sequence[Clip]
) -> dict[str, list[Trial]]:
    """Each clip searched in each list; of several utterances in a clip the one with the surest phrase."""
    texts = {name: {phrase.text for phrase in search.phrases} for name, search in searches.items()}
    found: dict[str, list[Trial]] = {name: [] for name in searches}
    for clip in tqdm(clips, unit="clip", disable=None):
        spoken = list(_utterances(acoustic, clip))
        for name, search in searches.items():
            candidates = [best for logits in spoken for best in search.candidates(logits)]
            best = max(candidates, key=lambda candidate: confidence(candidate.evidence), default=None)
            found[name].append(Trial(clip, clip.text in texts[name], best))
    return found


def _utterances(acoustic: AcousticLogits, clip: Clip) -> Iterator[np.ndarray]:
    """Logits (T, C) of each utterance in a clip, cut as the recogniser cuts it."""
    samples = read_audio(clip.audio, acoustic.features.sample_rate)
    logits, lengths = acoustic.logits([extract_features(samples, acoustic.features)])
    logits = logits[:, : lengths[0]]
    vocabulary = acoustic.vocabulary
    (free,) = greedy_decode(logits, lengths, vocabulary.blank_index)
    space = vocabulary.index(SPACE)
    frames = [frame for token, frame in zip(free.tokens, free.frames, strict=True) if token != space]
    for first, end in utterances(frames, int(lengths[0]), acoustic.frame_seconds):
        yield logits[0, first:end]


def _search(
    texts: Iterable[str], acoustic: AcousticLogits, neighbours: bool, leave_out: bool = False
) -> PhraseSearch:
    """A search for texts, with near neighbours or (``leave_out``) for the neighbours alone."""
    texts = list(dict.fromkeys(texts))
    lines = with_neighbours(texts).split("\n") if neighbours else texts
    content = "\n".join(lines[len(texts) :] if leave_out else lines)
    return PhraseSearch(list_phrases(parse_grammar(content)), acoustic.vocabulary)


def _phrases_of(audio: Path, speakers: Sequence[str]) -> list[Clip]:
    """Clips of the speakers with distinct texts of 2 to 4 hanzi, at most ``PHRASES``, always the same."""
    clips = read_clips(audio / "lingua_libre_words" / "train.tsv")
    short = [clip for clip in clips if clip.speaker in speakers and 2 <= len(clip.text) <= 4]
    distinct = sorted({clip.text: clip for clip in reversed(short)}.values(), key=lambda clip: clip.text)
    return random.Random(0).sample(distinct, min(PHRASES, len(distinct)))


def read_clips(path: Path) -> list[Clip]:
    """The clips of a list whose text is hanzi and punctuation, which is left out.

    Raises:
        CorpusError: the list is absent.
    """
    if not path.is_file():
        raise CorpusError("the recordings aren't there", where=path, hint="--audio FOLDER")
    clips = []
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            text = "".join(character for character in row["hanzi"] if character.isalnum())
            if is_hanzi(text):
                clips.append(Clip(path.parent / row["audio"], float(row["seconds"]), row["speaker"], text))
    return clips


def _print_wrong(name: str, trials: Iterable[Trial]) -> None:
    for trial in trials:
        if not trial.right and trial.best:
            wrong, probability = trial.best.phrase.text, confidence(trial.best.evidence)
            print(f"{name}\t{trial.clip.audio.name}\t{trial.clip.text} → {wrong} ({probability:.2f})")


def _rate(part: int, whole: int) -> str:
    return f"{part} of {whole}, {part / max(whole, 1):.1%}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--run", type=Path, required=True, help="run of the acoustic model")
    parser.add_argument("--audio", type=Path, default=SHARED / "audio", metavar="FOLDER")
    titles = SHARED / "words" / "wikipedia_titles.txt.xz"
    parser.add_argument("--words", type=Path, default=titles, metavar="FILE", help="phrases for (d)")
    parser.add_argument("--speakers", nargs="+", default=HELD_OUT, metavar="NAME", help="for (b)")
    parser.add_argument("--threshold", type=float, default=PHRASE_THRESHOLD, metavar="P")
    parser.add_argument("--fit", action="store_true", help="weights and threshold on dev speakers instead")
    parser.add_argument("--show", action="store_true", help="list the phrases that were wrong")
    return parser


if __name__ == "__main__":
    run_command(main)
