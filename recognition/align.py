"""Forced alignment: finds when each syllable of a known text is spoken in a recording.

    python -m recognition.align talk.wav --text talk.txt --format textgrid > talk.TextGrid
    python -m recognition.align --manifest dev.tsv --output aligned/

The acoustic model computes the logits of all speech in the recording, and the best CTC path of the text's
syllables gives their times (Viterbi algorithm). The probability of a syllable is the model's at its peak: a
low one means another sound than the text has, such as a misread word, or another tone or reading. What hanzi
may sound like in speech (tone sandhi, neutral tones) counts as right. The least probable syllables are listed
after the results.
"""

from utils.command.entry import run_command

import sys
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tqdm import tqdm

from data.corpora.tools.lists import read_utterances
from model_speech.acoustic_logits import AcousticLogits, load_acoustic_logits
from model_speech.ctc.alignment import align_text
from recognition.confidence import load_calibration
from recognition.pieces import Piece, batches_of, windows
from recognition.recognizer import Recognizer
from utils.command.arguments import not_negative
from utils.command.parser import CommandParser
from utils.errors import CorpusError, UserError, require
from utils.files import read_text, write_text
from utils.hypotheses.recognition import Alternative, Ending, Recognition, syllable_times
from utils.hypotheses.transcript_formats import FORMATS
from utils.mandarin.pinyin import hanzi_to_pinyin, is_hanzi
from utils.mandarin.sandhi import spoken_variants
from utils.mandarin.typed_pinyin import read_syllables
from utils.run_folder.run import PRETRAINED_SPEECH

UNLIKELY = 0.05
"""If the median probability of the syllables is lower, the text is probably that of another recording."""
LONGEST_SECONDS = 1200.0
"""Longest recording: the alignment takes two bytes for each frame and syllable, 350 MB for this one."""
EXAMPLES = """\
examples:
  python -m recognition.align talk.wav --text talk.txt
  python -m recognition.align talk.wav --text "今天天气很好" --format ctm
  python -m recognition.align talk.wav --text "jin1 tian1 tian1 qi4" --format json
  python -m recognition.align --manifest dev.tsv --format textgrid --output aligned/
"""


@dataclass(frozen=True)
class KnownText:
    """A text of one character or syllable a position.

    Attributes:
        hanzi: as many as syllables, or empty.
        pinyin: canonical syllables.
    """

    hanzi: str
    pinyin: tuple[str, ...]

    @classmethod
    def read(cls, text: str, where: str) -> "KnownText":
        """Hanzi with punctuation, or pinyin.

        Raises:
            CorpusError: the text has something else, or nothing.
        """
        hanzi = "".join(character for character in text if unicodedata.category(character)[0] not in "PZC")
        if is_hanzi(hanzi):
            return cls(hanzi, tuple(hanzi_to_pinyin(hanzi)))
        others = "".join(dict.fromkeys(character for character in hanzi if not is_hanzi(character)))
        require(
            not any(map(is_hanzi, hanzi)),
            f"the text has '{others[:20]}' beside hanzi",
            where=where,
            hint="write numbers and foreign words as hanzi, or the whole text as pinyin",
            error=CorpusError,
        )
        pinyin = read_syllables(text) if hanzi else ()
        require(pinyin, "the text is empty", where=where, hint="write what is spoken", error=CorpusError)
        return cls("", pinyin)


def align_recording(
    acoustic: AcousticLogits, audio: str | Path | np.ndarray, text: KnownText, lead_seconds: float = 0.0
) -> Recognition:
    """The text with the time and the probability (``confidence``) of each syllable.

    Args:
        acoustic: the acoustic model.
        audio: a file, or mono samples (n,) in [-1, 1] at the model's sample rate.
        text: all that is spoken.
        lead_seconds: from the emission of a syllable to its middle, see
            :attr:`recognition.confidence.Calibration.lead_seconds`.

    Raises:
        AudioError: the recording can't be read.
        ConfigError: the classes of the model are not tonal syllables.
        CorpusError: it is too long or has no speech, the speech is too short for the text, or the model does
            not know a syllable.
    """
    name = str(audio) if isinstance(audio, str | Path) else "samples"
    acoustic.vocabulary.require_tonal_syllables("forced alignment needs a model")
    logits, middles, seconds = _frames(acoustic, audio, name)
    unknown = [syllable for syllable in text.pinyin if syllable not in acoustic.vocabulary]
    require(
        not unknown,
        f"the model does not know the syllable '{unknown[0] if unknown else ''}'",
        where=name,
        hint="write the text as pinyin with tones, with another reading",
        error=CorpusError,
    )
    readings = spoken_variants(text.hanzi, text.pinyin) if text.hanzi else ()
    found = align_text(logits, text.pinyin, acoustic.vocabulary, readings)
    if found is None:
        spoken = len(logits) * acoustic.frame_seconds
        raise CorpusError(
            f"{len(text.pinyin)} syllables don't fit into {spoken:.1f} s of speech",
            where=name,
            hint="the text must be that of the recording",
        )
    frames, log_probabilities = found
    # As frames of the whole recording, in which pauses have been cut out of the logits.
    positions = middles[frames] / acoustic.frame_seconds - 0.5
    times = syllable_times(positions, acoustic.frame_seconds, seconds, lead_seconds=lead_seconds)
    score = float(log_probabilities.sum(dtype=np.float64))
    confidence = tuple(np.exp(log_probabilities).tolist())
    best = (Alternative(text.pinyin, text.hanzi, score),)
    return Recognition(0.0, seconds, tuple(times), best, confidence=confidence, id=name)


def _frames(
    acoustic: AcousticLogits, audio: str | Path | np.ndarray, name: str
) -> tuple[np.ndarray, np.ndarray, float]:
    """Logits (T, C) of all speech, the time of each frame's middle (T,), and the length, both in seconds."""
    logits, times, seconds = [], [], 0.0

    for window in windows([(name, audio)], acoustic.features.sample_rate, Recognizer(acoustic).piece):
        pieces = [part for _, _, part in window if isinstance(part, Piece)]
        found: dict[int, np.ndarray] = {}
        for batch in batches_of([len(each.features) for each in pieces]):
            rows, lengths = acoustic.logits([pieces[i].features for i in batch])
            found |= {i: rows[n, : lengths[n]] for n, i in enumerate(batch)}
        for i, each in enumerate(pieces):
            middles = (np.arange(len(found[i])) + 0.5) * acoustic.frame_seconds - each.padding
            inside = (middles >= 0) & (middles < each.seconds)
            logits.append(found[i][inside])
            times.append(each.start + middles[inside])
        for _, _, part in window:
            if isinstance(part, Ending):
                seconds = part.seconds
                if part.error:
                    raise part.error
        _check_length(max(seconds, times[-1][-1] if times and len(times[-1]) else 0.0), name)
    blank = acoustic.vocabulary.blank_index
    if all((rows.argmax(axis=1) == blank).all() for rows in logits):
        raise CorpusError("there is no speech", where=name, hint="give another recording")
    return np.concatenate(logits), np.concatenate(times), seconds


def _check_length(seconds: float, name: str) -> None:
    require(
        seconds <= LONGEST_SECONDS,
        f"the recording is longer than {LONGEST_SECONDS / 60:g} minutes",
        where=name,
        hint="cut the recording and its text into parts",
        error=CorpusError,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """The command ``python -m recognition.align``."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if (options.recording is None) == (options.manifest is None) or bool(options.text) != bool(
        options.recording
    ):
        parser.error("give a recording and --text, or --manifest")
    if options.manifest and not options.output:
        parser.error("--manifest needs --output DIR")
    acoustic = load_acoustic_logits(options.speech)
    lead_seconds = load_calibration(options.speech).lead_seconds
    form, worst, failed = FORMATS[options.format], [], 0
    jobs = list(_jobs(options.recording, options.text, options.manifest))
    for name, audio, text in tqdm(jobs, unit="recording", disable=None if options.output else True):
        try:
            aligned = align_recording(acoustic, audio, text, lead_seconds)
        except UserError as error:
            if not options.manifest:
                raise
            tqdm.write(error.labelled(), file=sys.stderr)
            failed += 1
            continue
        content = "".join(form.write(name, [aligned, Ending(aligned.end)]))
        if options.output:
            write_text(options.output / f"{name}{form.suffix}", content)
        else:
            print(content, end="")
        median = float(np.median(aligned.confidence))
        if median < UNLIKELY:
            problem = f"warning: {audio}: half of the syllables have a probability of at most {median:.1%}"
            tqdm.write(f"{problem}; is the text that of the recording?", file=sys.stderr)
        worst += [(sure, name, *each) for sure, *each in _syllables(aligned)]
    if worst[: options.worst]:
        print("least probable syllables:", file=sys.stderr)
    for sure, name, time, syllable in sorted(worst)[: options.worst]:
        print(f"{sure:7.2%}  {name}  {time:.2f} s  {syllable}", file=sys.stderr)
    if failed:
        print(f"{failed} of {len(jobs)} recordings were not aligned", file=sys.stderr)
    return 1 if failed else 0


def _jobs(recording: Path | None, text: str, manifest: Path | None) -> Iterator[tuple[str, Path, KnownText]]:
    """Name, file and text of each recording."""
    if manifest:
        for utterance in read_utterances(manifest):
            yield utterance.id, utterance.audio, KnownText(utterance.hanzi, utterance.pinyin)
    elif recording:
        is_file = Path(text).suffix == ".txt"
        content = read_text(text, "the text", CorpusError) if is_file else text
        yield recording.stem, recording, KnownText.read(content, text if is_file else "--text")


def _syllables(aligned: Recognition) -> Iterator[tuple[float, float, str]]:
    """Probability, start and text of each syllable."""
    texts = aligned.hanzi or [""] * len(aligned.pinyin)
    for hanzi, syllable, (start, _), sure in zip(
        texts, aligned.pinyin, aligned.times, aligned.confidence, strict=True
    ):
        yield sure, start, f"{hanzi} {syllable}".strip()


def _parser() -> CommandParser:
    parser = CommandParser(description=__doc__, epilog=EXAMPLES)
    parser.add_argument("recording", type=Path, nargs="?")
    parser.add_argument("--text", help="what is spoken, as hanzi or pinyin, or a .txt file with it")
    parser.add_argument("--manifest", type=Path, help="recordings with their texts")
    parser.add_argument(
        "--speech", type=Path, default=PRETRAINED_SPEECH, metavar="RUN", help="default: the shipped model"
    )
    parser.add_argument("--format", choices=sorted(FORMATS), default="textgrid", help="default: textgrid")
    parser.add_argument("--output", type=Path, metavar="DIR", help="write a file for each recording there")
    parser.add_argument(
        "--worst",
        type=not_negative,
        default=10,
        help="number of the least probable syllables to list (default: 10)",
    )
    return parser


if __name__ == "__main__":
    run_command(main)
