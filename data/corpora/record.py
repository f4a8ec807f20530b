"""Records sentences read by one speaker, or imports recordings, and writes manifests to adapt a model.

    python -m data.corpora.record recordings/mine

Shows sentences, in an order that covers all initials, finals, tones and tone pairs early, and records them.
Level and length of a recording are checked at once; if it fails, the sentence must be read again. Every 6th
sentence goes to ``dev.tsv``, the others to ``train.tsv``. A later call continues with the sentences that have
no recording yet.
"""

from utils.command.entry import run_command

import re
import shlex
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from data.corpora.tools.reading_aloud import choose_sentences, find_problem
from data.manifest import Transcript, Utterance, read_transcripts, write_manifest
from data.synthesis.reading import Sentence
from data.synthesis.sentences import draw_sentences, read_sentences
from utils.audio.folders import find_recordings
from utils.audio.levels import speech_level
from utils.audio.microphone import microphone_blocks
from utils.audio.properties import audio_seconds
from utils.audio.reading import SAMPLE_RATE, read_audio
from utils.audio.samples import write_wav
from utils.command.arguments import positive, positive_number
from utils.command.parser import CommandParser
from utils.errors import AudioError, CorpusError
from utils.files import write_text

HELD_OUT = 6  # every 6th sentence goes to the dev set
_CANDIDATES, _SEED = 1000, 16  # sentences of the grammar to choose from
_BLOCK_SECONDS = 0.05
_KEY_SECONDS = 0.15  # cut off at the end of a recording: the sound of the key
_MINUTES = 5.0  # default length of all recordings

EXAMPLES = """\
examples:
  python -m data.corpora.record recordings/mine                       # five minutes, from the microphone
  python -m data.corpora.record recordings/mine --minutes 10          # go on up to ten minutes
  python -m data.corpora.record recordings/mine --sentences mine.txt  # own sentences, one per line
  python -m data.corpora.record recordings/mine --from phone/         # recordings made elsewhere

keys: Enter starts and stops a recording, r records the previous sentence again, s leaves a sentence out for
this time, q ends. --from: FOLDER/sentences.tsv, which the first call writes, lists the sentences. Files are
matched by the last number in their names (12.wav, take_012.flac, from 1; 0.wav, 1.wav, ... from 0). As many
files as sentences may also be without numbers, in alphabetical order. The sentence of each file is printed.
Files that would replace recordings are refused, unless --replace is given.
The microphone needs: pip install -r requirements/microphone.txt
"""

Take = Callable[[], np.ndarray]
"""Records until the speaker presses Enter: → (samples,) float32 at 16 kHz."""


@dataclass(frozen=True)
class RecordingFolder:
    """The files of one speaker: ``sentences.tsv``, ``wav/NUMBER.wav``, ``train.tsv`` and ``dev.tsv``."""

    path: Path

    @property
    def sentences_file(self) -> Path:
        """The sentences, as ``number, pinyin, hanzi``."""
        return self.path / "sentences.tsv"

    def sentences(self) -> list[Transcript]:
        """The sentences to record; none in a new folder."""
        return read_transcripts(self.sentences_file) if self.sentences_file.is_file() else []

    def write_sentences(self, sentences: Sequence[Sentence]) -> None:
        """Write the list of sentences; the first ones must be those that it had before."""
        lines = [
            f"{number:03}\t{' '.join(s.pinyin)}\t{s.hanzi}\n" for number, s in enumerate(sentences, start=1)
        ]
        write_text(self.sentences_file, "".join(lines))

    def audio(self, sentence: Transcript) -> Path:
        """The recording of a sentence, which may not exist yet."""
        return self.path / "wav" / f"{sentence.id}.wav"

    def write_manifests(self, speaker: str) -> tuple[int, int, float]:
        """Write the manifests; return the sizes of train and dev, and the seconds of both."""
        splits: dict[str, list[Utterance]] = {"train": [], "dev": []}
        for number, sentence in enumerate(self.sentences(), start=1):
            audio = self.audio(sentence)
            if audio.is_file():
                split = "dev" if number % HELD_OUT == 0 else "train"
                seconds = audio_seconds(audio)
                splits[split].append(
                    Utterance(
                        f"{speaker}_{sentence.id}", audio, seconds, speaker, sentence.pinyin, sentence.hanzi
                    )
                )
        for split, utterances in splits.items():
            write_manifest(self.path / f"{split}.tsv", utterances)
        seconds = sum(utterance.seconds for utterances in splits.values() for utterance in utterances)
        return len(splits["train"]), len(splits["dev"]), seconds


def choose(folder: RecordingFolder, own: Path | None, minutes: float | None, count: int | None) -> None:
    """Write the sentences to record, or add more to those of an earlier call.

    Args:
        folder: the speaker's folder.
        own: a text with sentences, one per line; all of them, in their order, if neither ``minutes`` nor
            ``count`` is given. None: sentences of the project's grammar.
        minutes: estimated length of all recordings.
        count: number of all sentences, in place of ``minutes``.
    """
    before = [Sentence((sentence.hanzi,), sentence.pinyin) for sentence in folder.sentences()]
    if own is None:
        candidates = draw_sentences(_CANDIDATES, _SEED)
        minutes = _MINUTES if minutes is None and not before else minutes
    else:
        candidates, rejected = read_sentences(own)
        for line, reason in rejected:
            print(f"note: {own}:{line} is left out: {reason}", file=sys.stderr)
    if own is not None and minutes is None and count is None:
        texts = {sentence.hanzi for sentence in before}
        chosen = before + [sentence for sentence in candidates if sentence.hanzi not in texts]
    else:
        chosen = choose_sentences(candidates, before, 60 * (minutes or 0.0), count)
    if len(chosen) > len(before):
        folder.write_sentences(chosen)


def record_sentences(folder: RecordingFolder, speaker: str, take: Take, ask: Callable[[str], str]) -> None:
    """Record all sentences that have no recording; every accepted recording is saved at once.

    Args:
        folder: the speaker's folder.
        speaker: name for the manifests.
        take: makes a recording.
        ask: shows a prompt and returns the line that was typed.
    """
    sentences = folder.sentences()
    waiting = [sentence for sentence in sentences if not folder.audio(sentence).is_file()]
    previous: list[Transcript] = []
    while waiting:
        sentence = waiting[0]
        done = sum(folder.audio(other).is_file() for other in sentences)
        print(f"\n{done + 1}/{len(sentences)}  {sentence.hanzi}\n    {' '.join(sentence.pinyin)}")
        again = ", r: the previous one again" if previous else ""
        key = _ask(ask, f"Enter: start{again}, s: skip, q: quit > ")
        if key == "q":
            return
        if key == "s":
            waiting.pop(0)
        elif key == "r" and previous:
            waiting.insert(0, previous.pop())
        elif key == "":
            samples = take()
            if problem := find_problem(samples, SAMPLE_RATE, len(sentence.pinyin)):
                print(f"  not kept: {problem}. Please read it again.")
                continue
            write_wav(folder.audio(sentence), samples)
            folder.write_manifests(speaker)
            previous.append(waiting.pop(0))
            level = speech_level(samples, SAMPLE_RATE)
            print(f"  good: {len(samples) / SAMPLE_RATE:.1f} s, {level:.0f} dB")


def import_recordings(folder: RecordingFolder, speaker: str, source: Path, replace: bool = False) -> int:
    """Check and copy recordings that were made elsewhere, print which sentence each is; return how many fail.

    Args:
        folder: the speaker's folder.
        speaker: name for the manifests.
        source: folder of the recordings.
        replace: whether other recordings of the same sentences may be replaced.

    Raises:
        AudioError: there is no recording in the folder.
        CorpusError: the files do not fit the sentences, or would replace other recordings.
    """
    matched = _matched(find_recordings(source), folder.sentences(), source)
    known = [path for path, sentence in matched if folder.audio(sentence).is_file()]
    if known and not replace:
        raise CorpusError(
            f"{len(known)} of the files would replace other recordings, {known[0].name} first",
            where=source,
            hint="move them away, or replace the recordings: --replace",
        )
    refused = 0
    for path, sentence in matched:
        samples, problem = _checked(path, sentence)
        if problem:
            refused += 1
            print(f"{path}: not taken for {sentence.id} {sentence.hanzi}: {problem}")
        else:
            write_wav(folder.audio(sentence), samples)
            print(f"{path}: {sentence.id} {sentence.hanzi}")
    folder.write_manifests(speaker)
    return refused


def _checked(path: Path, sentence: Transcript) -> tuple[np.ndarray, str | None]:
    """The samples of a recording of a sentence, and what is wrong with it."""
    try:
        samples = read_audio(path)
    except AudioError as error:
        return np.zeros(0, np.float32), error.message
    return samples, find_problem(samples, SAMPLE_RATE, len(sentence.pinyin))


def microphone_take() -> np.ndarray:
    """Record from the microphone until Enter is pressed; (samples,) float32 at 16 kHz.

    Raises:
        AudioError: there is no microphone, or it was disconnected.
    """
    blocks: list[np.ndarray] = []
    stopped = threading.Event()
    for block in microphone_blocks(SAMPLE_RATE, _BLOCK_SECONDS):
        if not blocks:  # from here on the microphone records
            print("  speak now; then wait a moment and press Enter", end="", flush=True)
            threading.Thread(target=_wait_for_enter, args=(stopped,), daemon=True).start()
        blocks.append(block)
        if stopped.is_set():
            break
    samples = np.concatenate(blocks)
    return samples[: max(0, len(samples) - round(_KEY_SECONDS * SAMPLE_RATE))]


def _wait_for_enter(stopped: threading.Event) -> None:
    sys.stdin.readline()
    stopped.set()


def _ask(ask: Callable[[str], str], prompt: str) -> str:
    try:
        return ask(prompt).strip().lower()
    except EOFError:
        return "q"


def _matched(
    paths: Sequence[Path], sentences: Sequence[Transcript], source: Path
) -> list[tuple[Path, Transcript]]:
    """Recordings with their sentences: by the numbers in the names, or in the order of names without."""
    digits = [re.findall(r"\d+", path.stem) for path in paths]
    numbers = [int(found[-1]) for found in digits if found]
    if not numbers and len(paths) == len(sentences):
        return list(zip(paths, sentences, strict=True))
    first = 0 if 0 in numbers else 1
    places = [number - first for number in numbers]
    if len(set(places)) < len(paths) or max(places) >= len(sentences):
        raise CorpusError(
            f"the names of {len(paths)} recordings are not the numbers of some of {len(sentences)} sentences",
            where=source,
            hint="name each file by the number of its sentence in sentences.tsv, such as 012.wav",
        )
    return [(path, sentences[place]) for path, place in zip(paths, places, strict=True)]


def main(
    arguments: Sequence[str] | None = None, take: Take = microphone_take, ask: Callable[[str], str] = input
) -> int:
    """The command ``python -m data.corpora.record``."""
    options = _parser().parse_args(arguments)
    folder = RecordingFolder(options.folder)
    speaker = options.speaker or options.folder.resolve().name
    choose(folder, options.sentences, options.minutes, options.count)
    refused = 0
    if options.source:
        refused = import_recordings(folder, speaker, options.source, options.replace)
    else:
        print(f"{len(folder.sentences())} sentences in {folder.sentences_file}")
        record_sentences(folder, speaker, take, ask)
    train, dev, seconds = folder.write_manifests(speaker)
    missing = len(folder.sentences()) - train - dev
    print(f"\n{train + dev} recordings, {seconds / 60:.1f} minutes; {missing} sentences without a recording")
    if train and dev:
        lists = f'"data.train=[{folder.path}/train.tsv]" "data.dev=[{folder.path}/dev.tsv]"'
        run = shlex.quote(f"runs/{speaker}")
        print(f"adapt: python train.py speech --config configs/speech/adapt.yaml --run {run} {lists}")
    return 1 if refused else 0


def _parser() -> CommandParser:
    parser = CommandParser(description=__doc__, epilog=EXAMPLES)
    parser.add_argument("folder", type=Path, help="the folder of this speaker's recordings, new or begun")
    parser.add_argument("--sentences", type=Path, metavar="FILE", help="own sentences, one per line")
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--count", type=positive, metavar="N", help="number of sentences")
    length.add_argument(
        "--minutes",
        type=positive_number,
        metavar="M",
        help=f"length of the recordings (default: {_MINUTES:g})",
    )
    parser.add_argument("--speaker", help="name in the manifests (default: the folder's)")
    parser.add_argument(
        "--from", dest="source", type=Path, metavar="FOLDER", help="take these files instead of recording"
    )
    parser.add_argument(
        "--replace", action="store_true", help="with --from: replace other recordings of the same sentences"
    )
    return parser


if __name__ == "__main__":
    run_command(main)
