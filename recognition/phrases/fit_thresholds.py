"""Chooses the thresholds of phrases in a stream for an acoustic model, on recordings of dev speakers.

    python -m recognition.phrases.fit_thresholds RUN --manifest dev.tsv --words titles.txt

Random words of two to four hanzi, and single hanzi of them, are searched for in sentences that do not contain
them. Each threshold is the score that so many wrong detections an hour reach (:data:`RATES`). The result is
written into the run as ``phrase_thresholds.json``; ``listen.py --word`` then uses it with this run.
"""

from utils.command.entry import run_command

import random
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from data.corpora.tools.lists import read_utterances
from data.manifest import Utterance
from data.text.sources import read_lines
from model_speech.acoustic_logits import AcousticLogits, load_acoustic_logits
from recognition.live.loading import load_logit_stream
from recognition.phrases.grammar import parse_grammar
from recognition.phrases.phrase_list import list_phrases
from recognition.phrases.spotter import PhraseSpotter
from recognition.phrases.thresholds import PhraseThresholds
from utils.audio.reading import read_audio
from utils.command.parser import CommandParser
from utils.errors import CorpusError
from utils.files import write_json
from utils.mandarin.pinyin import hanzi_to_pinyin, is_hanzi
from utils.run_folder.run import RunFolder, open_run
from utils.vocabulary import Vocabulary

RATES = (0.2, 1.0, 3.0)
"""False alarms of one phrase in an hour of other speech."""
LENGTHS = (1, 2, 3, 4)
_WORDS = 80  # of each length
_PEAKS, _PEAK_SECONDS = 3, 0.5  # of a word in a recording; nearer scores belong to the same false alarm


def fit_thresholds(
    rows: Sequence[np.ndarray],
    utterances: Sequence[Utterance],
    words: Sequence[str],
    acoustic: AcousticLogits,
) -> PhraseThresholds:
    """Choose thresholds from the scores of words in utterances that do not contain them.

    Args:
        rows: (n, C) logits of each utterance, computed as a stream.
        utterances: the utterances, with their text.
        words: hanzi, of which some of each length are chosen.
        acoustic: the model that computed the rows.

    Raises:
        CorpusError: no word of a length, or too little speech for the rates.
    """
    scores = {}
    for length in LENGTHS:
        chosen = _choose(words, length, acoustic.vocabulary)
        spotter = PhraseSpotter(
            list_phrases(parse_grammar("\n".join(chosen))), acoustic.vocabulary, acoustic.frame_seconds
        )
        peaks: list[Any] = []
        reach, hours = round(_PEAK_SECONDS / acoustic.frame_seconds), 0.0
        for utterance, logits in zip(utterances, rows, strict=True):
            spotter.reset()
            absent = [index for index, word in enumerate(chosen) if word not in utterance.hanzi]
            for each in spotter.scores(logits)[:, absent].T:
                peaks += _peaks(each, reach)
            hours += len(absent) * len(logits) * acoustic.frame_seconds / 3600
        peaks.sort(reverse=True)
        if max(RATES) * hours >= len(peaks):
            raise CorpusError(f"only {hours:.1f} hours × words of speech", hint="give more recordings")
        scores[length] = tuple(round(peaks[int(rate * hours)], 1) for rate in RATES)
    return PhraseThresholds(RATES, scores)


def _choose(words: Sequence[str], length: int, vocabulary: Vocabulary) -> list[str]:
    """Random words of ``length`` hanzi whose syllables the model knows."""
    units = chain.from_iterable(words) if length == 1 else words  # lists of names have no single hanzi
    candidates = sorted({unit for unit in units if len(unit) == length and all(map(is_hanzi, unit))})
    random.Random(0).shuffle(candidates)
    known = (word for word in candidates if all(s in vocabulary for s in hanzi_to_pinyin(word)))
    if chosen := list(islice(known, _WORDS)):
        return chosen
    raise CorpusError(f"no word of {length} hanzi", hint="--words needs words of two, three and four hanzi")


def _peaks(scores: np.ndarray, reach: int) -> Iterator[float]:
    """The best of the scores (n,) of a word in a recording, each from a separate false alarm."""
    left = scores.copy()
    for _ in range(_PEAKS):
        best = int(left.argmax())
        if left[best] == -np.inf:
            return
        yield float(left[best])
        left[max(0, best - reach) : best + reach] = -np.inf


def main(arguments: Sequence[str] | None = None) -> int:
    """The command ``python -m recognition.phrases.fit_thresholds``."""
    options = _parser().parse_args(arguments)
    run = open_run(options.run, "speech").path
    acoustic = load_acoustic_logits(run)
    stream, rate = load_logit_stream(run, acoustic), acoustic.features.sample_rate
    utterances = [utterance for path in options.manifest for utterance in read_utterances(path)]
    rows = []
    for utterance in tqdm(utterances, "recognising", disable=None):
        rows.append(np.concatenate([stream.feed(read_audio(utterance.audio, rate)), stream.flush()]))
    thresholds = fit_thresholds(rows, utterances, list(read_lines(options.words)), acoustic)
    write_json(RunFolder(run).phrase_thresholds, asdict(thresholds))
    for length, scores in thresholds.scores.items():
        found = ", ".join(f"{score:g} at {alarms:g}" for alarms, score in zip(RATES, scores, strict=True))
        print(f"{length} syllables: {found} false alarms an hour")
    return 0


def _parser() -> CommandParser:
    parser = CommandParser(description=__doc__)
    parser.add_argument("run", type=Path, help="a speech run")
    parser.add_argument("--manifest", type=Path, nargs="+", required=True, help="recordings of dev speakers")
    parser.add_argument(
        "--words", type=Path, required=True, metavar="FILE", help="words or names, a line each; also .xz, .gz"
    )
    return parser


if __name__ == "__main__":
    run_command(main)
