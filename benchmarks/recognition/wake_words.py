"""Measures typed wake words: recall by unseen speakers, and false alarms an hour.

    python -m benchmarks.recognition.wake_words [--run pretrained/audio_to_pinyin]

Each of the twelve words of ``dspspeech20`` is spoken by the test speakers, and each of five invented names by
synthetic voices that are in no training data, with a second of faint noise before and after. The background
is read speech of the test speakers of Common Voice and AISHELL-1 in one stream; for a word, the sentences
that contain it or its syllables do not count. The table has recall, false alarms, and the processor time of a
second of audio.

The model that ships was trained on the same twelve words of other speakers. The thresholds are those of the
run (``python -m recognition.phrases.fit_thresholds``).

Needs the project's shared recordings (``--audio``), and the synthesiser for the names.
"""

from utils.command.entry import run_command

import time
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from tqdm import tqdm

from benchmarks.recognition.phrases import Clip, read_clips
from benchmarks.support.shared_lists import SHARED
from data.synthesis.speech import speak
from data.synthesis.synthesiser import Synthesiser, SynthesiserError
from data.synthesis.voices import generate_voices
from model_speech.acoustic_logits import AcousticLogits, load_acoustic_logits
from recognition.live.loading import load_logit_stream
from recognition.phrases.grammar import parse_grammar
from recognition.phrases.phrase_list import list_phrases
from recognition.phrases.spotter import PhraseSpotter
from recognition.phrases.thresholds import load_phrase_thresholds
from utils.audio.reading import read_audio
from utils.command.parser import CommandParser
from utils.mandarin.pinyin import hanzi_to_pinyin
from utils.run_folder.run import PRETRAINED_SPEECH
from utils.text_table import print_table

BACKGROUND = ("common_voice_zh/test", "aishell1_two_speakers/test_other_speaker")
NAMES = ("小书童", "云雀助手", "阿福管家", "青龙卫士", "小鹿叮当")
VOICES, SEED = 40, 7007
MARGIN_SECONDS, MARGIN_LEVEL = 1.0, 1e-3


class Rows:
    """Samples → all rows of logits of a stream.

    Args:
        run: the speech run.
    """

    def __init__(self, run: Path):
        self.acoustic: AcousticLogits = load_acoustic_logits(run)
        self._stream = load_logit_stream(run, self.acoustic)
        self.seconds = self.busy = 0.0  # seconds of audio, and of processor time

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


def main() -> None:
    """Print the table."""
    options = _parser().parse_args()
    rows, thresholds = Rows(options.run), load_phrase_thresholds(options.run)
    calls = _calls(rows, read_clips(options.audio / "dspspeech20" / "test.tsv"))
    calls |= _named(rows)
    background = [clip for name in BACKGROUND for clip in read_clips(options.audio / f"{name}.tsv")]
    found = [rows.of_clip(clip) for clip in tqdm(background, "background", disable=None)]
    spoken = [_syllables(clip.text) for clip in background]
    table, searched, busy = [], 0.0, 0.0
    for word, streams in calls.items():
        phrases, acoustic = list_phrases(parse_grammar(word)), rows.acoustic
        settings = acoustic.vocabulary, acoustic.frame_seconds, options.alarms_per_hour, thresholds
        spotter = PhraseSpotter(phrases, *settings)
        detected = 0
        for stream in streams:
            spotter.reset()
            detected += bool(spotter.feed(stream) + spotter.flush())
        spotter.reset()
        began = time.process_time()
        others = [
            each
            for clip, syllables, each in zip(background, spoken, found, strict=True)
            if word not in clip.text and _syllables(word) not in syllables
        ]
        alarms = sum(len(spotter.feed(each)) for each in others)
        hours = sum(map(len, others)) * rows.acoustic.frame_seconds / 3600
        busy, searched = busy + time.process_time() - began, searched + hours * 3600
        recall = detected / len(streams)
        table.append((word, len(streams), recall, alarms, alarms / hours))
    print_table(
        "typed wake words",
        ("word", "calls", "detected", "false alarms", "an hour"),
        [(word, count, f"{recall:.1%}", n, f"{rate:.1f}") for word, count, recall, n, rate in table],
    )
    for title, group in (("recorded words", table[: -len(NAMES)]), ("invented names", table[-len(NAMES) :])):
        recall, rate = np.mean([[each[2], each[4]] for each in group], axis=0)
        print(f"{title}: {recall:.1%} detected, {rate:.2f} false alarms an hour")
    print(
        f"acoustic model: {1000 * rows.busy / rows.seconds:.1f} ms of processor time a second of audio, ",
        end="",
    )
    print(f"search of one word: {1000 * busy / searched:.2f} ms")


def _syllables(text: str) -> str:
    """Tonal syllables between spaces."""
    return f" {' '.join(hanzi_to_pinyin(text))} "


def _calls(rows: Rows, clips: Iterable[Clip]) -> dict[str, list[np.ndarray]]:
    """The rows of each utterance of each word."""
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
                    continue  # this voice can't speak it
                calls[name].append(rows.of(_with_margins(samples, rows)))
    return calls


def _with_margins(samples: np.ndarray, rows: Rows) -> np.ndarray:
    """The samples with faint noise before and after."""
    length = round(MARGIN_SECONDS * rows.acoustic.features.sample_rate)
    noise = np.random.default_rng(len(samples)).normal(0, MARGIN_LEVEL, (2, length)).astype(np.float32)
    return np.concatenate([noise[0], samples, noise[1]])


def _parser() -> CommandParser:
    parser = CommandParser(description=__doc__)
    parser.add_argument("--run", type=Path, default=PRETRAINED_SPEECH, help="default: the model that ships")
    parser.add_argument("--audio", type=Path, default=SHARED / "audio", metavar="FOLDER")
    parser.add_argument("--alarms-per-hour", type=float, default=1.0, metavar="N", help="default: 1")
    return parser


if __name__ == "__main__":
    run_command(main)
