"""Measures phrases of a list by unseen speakers: correct, wrong, falsely accepted; time of a long list.

    python -m benchmarks.recognition.phrases --run runs/real
    python -m benchmarks.recognition.phrases --run runs/real --fit      # on dev speakers only

Needs the project's shared recordings (``--audio``). With the lists

(a) the 12 words of ``dspspeech20``, test speakers;
(b) 200 phrases of 2 to 4 syllables of the Lingua Libre speakers that ``--speakers`` keeps out of training,
    and three near neighbours of each: one tone, one final, one syllable away;

it prints how many phrases are recognised, and (c) how many clips of other speech are accepted as a phrase of
each list. (d) 10,000 phrases: processor time against free decoding of the same clips.

``--fit`` uses dev speakers: the words of ``dspspeech20``, and phrases of 2 to 4 syllables that are cut from
the sentences of Common Voice by an alignment, in lists with neighbours, against all other speech. It prints
the weights for ``recognition/phrases/confidence.py``, calibration errors, and rates at thresholds.
"""

from utils.command.entry import run_command

import argparse
import csv
import lzma
import random
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from tqdm import tqdm

from benchmarks.support.near_phrases import with_neighbours
from benchmarks.support.shared_lists import SHARED
from model_speech.acoustic_logits import AcousticLogits, load_acoustic_logits
from model_speech.ctc.alignment import align_text
from model_speech.ctc.decoder import greedy_decode
from recognition.options import PHRASE_THRESHOLD
from recognition.phrases.confidence import SHARPNESS
from recognition.phrases.grammar import parse_grammar
from recognition.phrases.phrase_list import list_phrases
from recognition.phrases.search import Candidate, PhraseSearch
from recognition.phrases.segments import utterances
from recognition.pieces import Piece
from recognition.recognizer import Recognizer
from utils.audio.reading import read_audio
from utils.command.parser import CommandParser
from utils.errors import CorpusError
from utils.hypotheses.calibration import calibration_error, logistic_regression, probabilities
from utils.mandarin.pinyin import hanzi_to_pinyin, is_hanzi
from utils.text_table import print_table
from utils.vocabulary import SPACE

HELD_OUT = ("Jouketou",)
PHRASES, TIMED_PHRASES, TIMED_CLIPS = 200, 10_000, 60
THRESHOLDS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
CUT_OFF = "s05"  # a dev speaker of dspspeech20: in most of his clips the second syllable is cut off
WORD, CUT, SENTENCE = "a word", "a cut phrase", "a sentence"


@dataclass(frozen=True)
class Clip:
    """A recording with its text in hanzi, without punctuation; ``logits`` (T, C) for a part of one."""

    audio: Path
    seconds: float
    speaker: str
    text: str
    logits: np.ndarray | None = None


@dataclass(frozen=True)
class Trial:
    """The best phrase for a clip, or None; ``listed``: whether the clip's text is in the list."""

    clip: Clip
    listed: bool
    best: Candidate | None

    @property
    def right(self) -> bool:
        """Whether the best phrase is the spoken text, or sounds the same (中国 and 中國)."""
        if not self.listed or self.best is None:
            return False
        found = self.best.phrase
        return found.text == self.clip.text or tuple(hanzi_to_pinyin(self.clip.text)) in found.pronunciations

    def accepted(self, threshold: float) -> bool:
        """Whether the best phrase is accepted."""
        return self.best is not None and self.best.evidence.listed >= threshold


def main() -> None:
    """Fit, or print the table of the test sets."""
    options = _parser().parse_args()
    acoustic = load_acoustic_logits(options.run)
    if options.fit:
        _fit(acoustic, options.audio)
    else:
        _print_rates(acoustic, options)
        _print_times(acoustic, options)


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
    rows = []
    clips = {"spoken": [*words, *phrases], "other": other}
    trials = {name: _trials(acoustic, searches, of_kind) for name, of_kind in clips.items()}
    for (name, search), own in zip(searches.items(), (words, phrases), strict=True):
        spoken = [trial for trial in trials["spoken"][name] if trial.listed and trial.clip in own]
        not_spoken = [trial for trial in trials["spoken"][name] + trials["other"][name] if not trial.listed]
        right = sum(trial.right for trial in spoken)
        accepted = sum(trial.right and trial.accepted(options.threshold) for trial in spoken)
        false = sum(trial.accepted(options.threshold) for trial in not_spoken)
        rates = (
            _rate(right, len(spoken)),
            _rate(accepted, len(spoken)),
            _rate(false, len(not_spoken)),
        )
        rows.append((name, len(search.phrases), len(spoken), *rates))
    headings = ("list", "entries", "clips", "best phrase correct", "accepted and correct", "accepted falsely")
    print_table("phrases of speakers who are not in the training data", headings, rows)


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
        print(f"{name}: {value:.2f} s of processor time for {audio:.0f} s of audio")
    print(f"ratio: {seconds['phrases'] / seconds['free']:.3f}")


def _fit(acoustic: AcousticLogits, audio: Path) -> None:
    """Weights of the confidence and rates at several thresholds, on dev speakers."""
    words = [clip for clip in read_clips(audio / "dspspeech20" / "dev.tsv") if clip.speaker != CUT_OFF]
    sentences = read_clips(audio / "common_voice_zh" / "dev.tsv")
    cut = [part for clip in sentences for part in _cut_phrases(acoustic, clip)]
    cut = list({clip.text: clip for clip in cut}.values())
    random.Random(1).shuffle(cut)
    searches = {
        "words": _search((clip.text for clip in words), acoustic, False),
        "words and neighbours": _search((clip.text for clip in words), acoustic, True),
    }
    for start in range(0, len(cut) - PHRASES // 2, PHRASES):
        name = f"cut phrases {start // PHRASES + 1} and neighbours"
        searches[name] = _search((clip.text for clip in cut[start : start + PHRASES]), acoustic, True)
    clips = [*words, *cut, *sentences]
    groups = zip((WORD, CUT, SENTENCE), (words, cut, sentences), strict=True)
    kinds = {id(clip): kind for kind, group in groups for clip in group}
    found = _trials(acoustic, searches, clips)
    trials = [trial for each in found.values() for trial in each if trial.best]
    evidence = [trial.best.evidence for trial in trials if trial.best]
    features = np.array([list(each.features().values()) for each in evidence])  # (N, F)
    listed = np.array([trial.listed for trial in trials])
    right = np.array([trial.right for trial in trials])
    speakers = np.array([trial.clip.speaker for trial in trials])
    shares = np.where(listed, 1 / listed.sum(), 1 / (~listed).sum())
    weights = logistic_regression(features, listed, shares)
    print(f"{len(trials)} trials of {len(set(speakers))} speakers, {listed.mean():.1%} listed")
    print(f"BIAS = {weights[-1]:.3f}")
    names = evidence[0].features()
    print(f"WEIGHTS = {dict(zip(names, weights[:-1].round(3).tolist(), strict=True))}")
    odds = np.array([1 / each.share - 1 for each in evidence])
    print(f"SHARPNESS = {_sharpness(odds[listed], right[listed]):.2f}")
    found_listed = _of_speakers_left_out(features, listed, shares, speakers)
    share = np.array([each.share for each in evidence])
    print(f"speakers left out: calibration error {calibration_error(found_listed, listed):.1%}, ", end="")
    print(f"of the share {calibration_error(share[listed], right[listed]):.1%}")
    kind = np.array([kinds[id(trial.clip)] for trial in trials])
    rows = []
    for threshold in THRESHOLDS:
        accepted = found_listed >= threshold
        others = (accepted[~listed & (kind == name)] for name in dict.fromkeys(kind))
        parts = ((accepted & right)[listed], *others)
        rows.append((f"{threshold:.2f}", *(f"{part.mean():.2%}" for part in parts)))
    names = [f"{name}, accepted" for name in dict.fromkeys(kind)]
    print_table("rates by threshold", ("threshold", "listed, accepted and right", *names), rows, left=0)
    for name, each in found.items():
        own = [trial for trial in each if trial.listed]
        print(f"{name}: best phrase right {_rate(sum(trial.right for trial in own), len(own))}")


def _sharpness(odds: np.ndarray, right: np.ndarray) -> float:
    """The factor of the scores with the highest likelihood, from the odds against the best phrase."""
    factors = np.arange(0.05, 2.0, 0.05)
    against = np.maximum(odds, 1e-9)[:, None] ** (factors / SHARPNESS)  # (N, factors)
    share = 1 / (1 + against)
    likelihood = np.log(np.where(right[:, None], share, against * share)).sum(axis=0)
    return float(factors[likelihood.argmax()])


def _of_speakers_left_out(
    features: np.ndarray, listed: np.ndarray, shares: np.ndarray, speakers: np.ndarray
) -> np.ndarray:
    """Probability of each trial (N,) by weights that were fitted without its speaker."""
    result = np.zeros(len(listed))
    for part in range(5):
        out = np.isin(speakers, sorted(set(speakers))[part::5])
        result[out] = probabilities(
            features[out], logistic_regression(features[~out], listed[~out], shares[~out])
        )
    return result


def _cut_phrases(acoustic: AcousticLogits, clip: Clip) -> Iterator[Clip]:
    """The phrases of a sentence, cut half-way between the peaks of two syllables of its alignment."""
    rng, logits, pinyin = random.Random(clip.audio.name), _logits(acoustic, clip), hanzi_to_pinyin(clip.text)
    aligned = align_text(logits, pinyin, acoustic.vocabulary)
    if aligned is None:
        return
    frames = aligned[0].tolist()
    borders = [0, *((frame + following + 1) // 2 for frame, following in pairwise(frames)), len(logits)]
    first = 0
    while first + 2 <= len(pinyin):
        last = min(first + rng.randint(2, 4), len(pinyin))
        part = logits[borders[first] : borders[last]]
        if len(part) >= last - first:
            yield Clip(clip.audio, clip.seconds, clip.speaker, clip.text[first:last], part)
        first = last


def _trials(
    acoustic: AcousticLogits, searches: dict[str, PhraseSearch], clips: Sequence[Clip]
) -> dict[str, list[Trial]]:
    """Search each clip in each list; of several utterances in a clip take the one with the best phrase."""
    texts = {name: {phrase.text for phrase in search.phrases} for name, search in searches.items()}
    found: dict[str, list[Trial]] = {name: [] for name in searches}
    for clip in tqdm(clips, unit="clip", disable=None):
        spoken = list(_utterances(acoustic, clip))
        for name, search in searches.items():
            candidates = [best for logits in spoken for best in search.candidates(logits)]
            best = max(candidates, key=lambda candidate: candidate.evidence.listed, default=None)
            found[name].append(Trial(clip, clip.text in texts[name], best))
    return found


def _logits(acoustic: AcousticLogits, clip: Clip) -> np.ndarray:
    """Logits (T, C) of a clip."""
    samples = read_audio(clip.audio, acoustic.features.sample_rate)
    logits, lengths = acoustic.logits([Piece.of_samples(0.0, samples, acoustic).features])
    return logits[0, : lengths[0]]


def _utterances(acoustic: AcousticLogits, clip: Clip) -> Iterator[np.ndarray]:
    """Logits (T, C) of each utterance in a clip, cut as the recogniser cuts it."""
    if clip.logits is not None:
        yield clip.logits
        return
    logits, vocabulary = _logits(acoustic, clip), acoustic.vocabulary
    (free,) = greedy_decode(logits[None], np.array([len(logits)]), vocabulary.blank_index)
    space = vocabulary.index(SPACE)
    frames = [frame for token, frame in zip(free.tokens, free.frames, strict=True) if token != space]
    for first, end in utterances(frames, len(logits), acoustic.frame_seconds):
        yield logits[first:end]


def _search(texts: Iterable[str], acoustic: AcousticLogits, neighbours: bool) -> PhraseSearch:
    """A search for texts, with or without their near neighbours."""
    texts = list(dict.fromkeys(texts))
    content = with_neighbours(texts) if neighbours else "\n".join(texts)
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
        raise CorpusError("the recordings are missing", where=path, hint="--audio FOLDER")
    clips = []
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            text = "".join(character for character in row["hanzi"] if character.isalnum())
            if is_hanzi(text):
                clips.append(Clip(path.parent / row["audio"], float(row["seconds"]), row["speaker"], text))
    return clips


def _rate(part: int, whole: int) -> str:
    return f"{part} of {whole}, {part / max(whole, 1):.1%}"


def _parser() -> CommandParser:
    parser = CommandParser(description=__doc__)
    parser.add_argument("--run", type=Path, required=True, help="run of the acoustic model")
    parser.add_argument("--audio", type=Path, default=SHARED / "audio", metavar="FOLDER")
    titles = SHARED / "words" / "wikipedia_titles.txt.xz"
    parser.add_argument("--words", type=Path, default=titles, metavar="FILE", help="phrases for (d)")
    parser.add_argument("--speakers", nargs="+", default=HELD_OUT, metavar="NAME", help="speakers for (b)")
    parser.add_argument("--threshold", type=float, default=PHRASE_THRESHOLD, metavar="P")
    parser.add_argument("--fit", action="store_true", help="weights and threshold on dev speakers instead")
    return parser


if __name__ == "__main__":
    run_command(main)
