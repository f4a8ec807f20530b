"""Typed wake words: calls that are detected, and false alarms an hour, by people who were never heard.

    python -m benchmarks.recognition.wake_words [--run pretrained/audio_to_pinyin]
    python -m benchmarks.recognition.wake_words --fit        # thresholds, on dev speakers only

Each of the twelve words of ``dspspeech20`` is called by the test speakers, and each of five invented names by
synthetic voices that no training has used, with a second of faint noise before and after. The background is
read speech of the test speakers of Common Voice and AISHELL-1 in one stream; for a word, the sentences that
contain it do not count. Printed: recall, false alarms, and the cost of a second of sound.

The model that ships was trained on the same twelve words of other speakers. ``--fit`` prints the thresholds
for ``recognition/phrases/spotter.py``: scores of random titles of Wikipedia in sentences of dev speakers.

Needs the project's shared recordings (``--audio``), and the synthesiser for the names.
"""

import argparse
import lzma
import random
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from tqdm import tqdm

from benchmarks.recognition.phrases import SHARED, Clip, read_clips
from benchmarks.support.tables import print_table
from data.synthesis.speech import speak
from data.synthesis.synthesiser import Synthesiser, SynthesiserError
from data.synthesis.voices import generate_voices
from recognition.loading import load_acoustic_logits, load_logit_stream
from recognition.phrases.grammar import parse_grammar
from recognition.phrases.phrase_list import list_phrases
from recognition.phrases.spotter import ALARMS, PhraseSpotter
from recognition.recognizer import AcousticLogits
from utils.audio.reading import read_audio
from utils.errors import run_command
from utils.mandarin.pinyin import hanzi_to_pinyin
from utils.run_folder.run import PRETRAINED_SPEECH

BACKGROUND = ("common_voice_zh/test", "aishell1_two_speakers/test_other_speaker")
NAMES = ("小书童", "云雀助手", "阿福管家", "青龙卫士", "小鹿叮当")
VOICES, SEED = 40, 7007
MARGIN_SECONDS, MARGIN_LEVEL = 1.0, 1e-3
FITTED = 80  # titles of each length
PEAK_ROWS = 12  # two scores this close are of the same false alarm


class Rows:
    """Samples → all rows of logits of a stream.

    Args:
        run: the speech run.
    """

    def __init__(self, run: Path):
        self.acoustic: AcousticLogits = load_acoustic_logits(run)
        self._stream = load_logit_stream(run, self.acoustic)
        self.seconds = self.busy = 0.0  # of sound, of processor time

    def of(self, samples: np.ndarray) -> np.ndarray:
        """(samples,) → (rows, C)."""
        began, rate = time.process_time(), self.acoustic.features.sample_rate
        pieces = [self._stream.feed(samples[at : at + rate]) for at in range(0, len(samples), rate)]
        rows = np.concatenate([*pieces, self._stream.flush()])
        self.busy += time.process_time() - began
        self.seconds += len(samples) / rate
        return rows

    def of_clip(self, clip: Clip) -> np.ndarray:
        """The rows of a recording."""
        return self.of(read_audio(clip.audio, self.acoustic.features.sample_rate))


def main() -> int:
    """Fit, or print the table."""
    options = _parser().parse_args()
    rows = Rows(options.run)
    if options.fit:
        _fit(rows, options)
    else:
        _test(rows, options)
    return 0


def _test(rows: Rows, options: argparse.Namespace) -> None:
    calls = _calls(rows, read_clips(options.audio / "dspspeech20" / "test.tsv"))
    calls |= _named(rows)
    background = [clip for name in BACKGROUND for clip in read_clips(options.audio / f"{name}.tsv")]
    found = [rows.of_clip(clip) for clip in tqdm(background, "background", disable=None)]
    table, searched, busy = [], 0.0, 0.0
    for word, streams in calls.items():
        spotter = _spotter([word], rows.acoustic, options.alarms_per_hour)
        detected = 0
        for stream in streams:
            spotter.reset()
            detected += bool(spotter.feed(stream))
        spotter.reset()
        began = time.process_time()
        others = [each for clip, each in zip(background, found, strict=True) if word not in clip.text]
        alarms = sum(len(spotter.feed(each)) for each in others)
        hours = sum(map(len, others)) * rows.acoustic.frame_seconds / 3600
        busy, searched = busy + time.process_time() - began, searched + hours * 3600
        recall = detected / len(streams)
        table.append((word, len(streams), recall, alarms, alarms / hours))
    print_table(
        "typed wake words",
        ("word", "calls", "detected", "false alarms", "an hour"),
        [
            (word, str(count), f"{recall:.1%}", str(n), f"{rate:.1f}")
            for word, count, recall, n, rate in table
        ],
    )
    for title, group in (("words of people", table[: -len(NAMES)]), ("invented names", table[-len(NAMES) :])):
        means = np.mean([[recall, rate] for _, _, recall, _, rate in group], axis=0)
        print(f"{title}: {means[0]:.1%} detected, {means[1]:.2f} false alarms an hour")
    print(
        f"acoustic model: {1000 * rows.busy / rows.seconds:.1f} ms of processor time a second of sound, ",
        end="",
    )
    print(f"search of one word: {1000 * busy / searched:.2f} ms")


def _calls(rows: Rows, clips: Iterable[Clip]) -> dict[str, list[np.ndarray]]:
    """The rows of each call of each word."""
    calls: dict[str, list[np.ndarray]] = {}
    for clip in tqdm(list(clips), "calls", disable=None):
        samples = read_audio(clip.audio, rows.acoustic.features.sample_rate)
        calls.setdefault(clip.text, []).append(rows.of(_with_margins(samples, rows)))
    return calls


def _named(rows: Rows) -> dict[str, list[np.ndarray]]:
    """The rows of each name, spoken once by each voice."""
    calls: dict[str, list[np.ndarray]] = {name: [] for name in NAMES}
    with Synthesiser() as synthesiser:
        for number, voice in enumerate(generate_voices(VOICES, SEED)):
            for index, name in enumerate(NAMES):
                rng = np.random.default_rng([SEED, number, index])
                try:
                    samples = speak(hanzi_to_pinyin(name), (), voice, rng, synthesiser)
                except SynthesiserError:
                    continue  # this voice can't say it
                calls[name].append(rows.of(_with_margins(samples, rows)))
    return calls


def _with_margins(samples: np.ndarray, rows: Rows) -> np.ndarray:
    """The samples with faint noise before and after."""
    length = round(MARGIN_SECONDS * rows.acoustic.features.sample_rate)
    noise = np.random.default_rng(len(samples)).normal(0, MARGIN_LEVEL, (2, length)).astype(np.float32)
    return np.concatenate([noise[0], samples, noise[1]])


def _fit(rows: Rows, options: argparse.Namespace) -> None:
    """For titles of each length: the scores that so many false alarms an hour reach."""
    with lzma.open(options.words, "rt", encoding="utf-8") as file:
        titles = [line.strip() for line in file]
    background = read_clips(options.audio / "common_voice_zh" / "dev.tsv")
    found = [rows.of_clip(clip) for clip in tqdm(background, "background", disable=None)]
    for length in (2, 3, 4):
        words = random.Random(0).sample([title for title in titles if len(title) == length], FITTED)
        spotter, peaks, hours = _spotter(words, rows.acoustic, 1.0), [], 0.0
        for clip, each in zip(background, found, strict=True):
            spotter.reset()
            absent = [index for index, word in enumerate(words) if word not in clip.text]
            for scores in spotter.scores(each)[:, absent].T:
                peaks += _peaks(scores)
            hours += len(absent) * len(each) * rows.acoustic.frame_seconds / 3600
        peaks.sort(reverse=True)
        thresholds = [round(peaks[int(alarms * hours)], 1) for alarms in ALARMS]
        print(f"{length} syllables, {hours:.0f} hours: {dict(zip(ALARMS, thresholds, strict=True))}")


def _peaks(scores: np.ndarray) -> Iterator[float]:
    """The best scores (n,) of a recording that are of different false alarms, at most three."""
    left = scores.copy()
    for _ in range(3):
        best = int(left.argmax())
        if left[best] == -np.inf:
            return
        yield float(left[best])
        left[max(0, best - PEAK_ROWS) : best + PEAK_ROWS] = -np.inf


def _spotter(words: Sequence[str], acoustic: AcousticLogits, alarms: float) -> PhraseSpotter:
    phrases = list_phrases(parse_grammar("\n".join(words)))
    return PhraseSpotter(phrases, acoustic.vocabulary, acoustic.frame_seconds, alarms)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--run", type=Path, default=PRETRAINED_SPEECH, help="default: the model that ships")
    parser.add_argument("--audio", type=Path, default=SHARED / "audio", metavar="FOLDER")
    titles = SHARED / "words" / "wikipedia_titles.txt.xz"
    parser.add_argument("--words", type=Path, default=titles, metavar="FILE", help="titles for --fit")
    parser.add_argument("--alarms-per-hour", type=float, default=1.0, metavar="N", help="default: 1")
    parser.add_argument("--fit", action="store_true", help="thresholds on dev speakers instead")
    return parser


if __name__ == "__main__":
    run_command(main)
