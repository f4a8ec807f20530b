"""The options of ``transcribe.py``, the texts of its help, and which options contradict each other."""

import argparse
from pathlib import Path

from recognition.command_line.search import add_joint_options, add_phrase_options, add_search_options
from recognition.options import CHANNELS, MIX, SEPARATE, given_settings, transcription_search
from utils.cluster import add_cluster
from utils.command.arguments import fraction, language_run, listed_paths, positive, split_names
from utils.command.parser import CommandParser
from utils.errors import ConfigError, UserError
from utils.hypotheses.transcript_formats import FORMATS
from utils.hypotheses.transcript_jobs import PIPE
from utils.run_folder.run import PRETRAINED_STREAMING

COMMON_OPTIONS = (
    *("--microphone", "--stream", "--format", "--output", "--digits", "--words", "--phrases"),
    *("--minimum-confidence", "--speech", "--language"),
)
EXAMPLES = """\
examples:
  python transcribe.py recording.wav
  python transcribe.py talks/ --format srt --output subtitles/     # called again, it goes on where it stopped
  python transcribe.py *.flac --speech runs/compact --language runs/ngram --format json --beam 10 --n-best 5
  python transcribe.py --list files.txt --output texts/
  python transcribe.py talks/ --output texts/ --cluster head:6379
  python transcribe.py talk.m4a --format vtt --digits
  python transcribe.py call.wav --channels separate --channel-names 客服,客户
  python transcribe.py meeting.wav --joint --words names.txt
  python transcribe.py commands/ --phrases phrases.txt      # only these phrases; everything else is rejected
  python transcribe.py lecture.flac --syllables runs/syllables --workers 1
  python transcribe.py --microphone                         # until Ctrl-C
  arecord -f S16_LE -r 16000 | python transcribe.py - --rate 16000
  arecord -f S16_LE -r 16000 | python transcribe.py - --rate 16000 --stream
  arecord -f S16_LE -r 16000 | python transcribe.py - --rate 16000 --stream --phrases phrases.txt
  python transcribe.py --microphone --no-second-pass        # for slow machines

Reads what libsndfile or FFmpeg reads (WAV, FLAC, OGG, MP3, m4a, mp4, webm, mkv …), of any length, sample rate
and number of channels. It is cut at pauses; the text appears line by line, and memory use is constant.
Without --speech and --language the models of this project are used (pretrained/). With --joint, syllables
and hanzi are searched together, which helps where the acoustic model is not certain. It is the default where
none of --speech, --language, --beam, --syllables and --phrases is given; --no-joint turns it off. With
--stream the syllables appear while they are spoken (on standard error; a terminal shows corrections too), by
a small streaming model. When an utterance ends with a pause, the large model recognises it again, which gives
the text; --no-second-pass leaves the text of the small one. Ctrl-C ends the sound, and the last utterance
gets its text too. For a file that can't be read an error is printed, and again a list at the end; the other
files are transcribed, and the exit code is 1.
"""


def transcription_parser(description: str | None) -> CommandParser:
    """The parser of ``transcribe.py``."""
    parser = CommandParser(description=description, epilog=EXAMPLES, common=COMMON_OPTIONS)
    parser.add_argument(
        "paths",
        nargs="*",
        type=Path,
        metavar="FILE_OR_FOLDER",
        help="recordings and folders; - is standard input",
    )
    parser.add_argument("--list", type=Path, metavar="FILE", help="a text file with more paths, one per line")
    parser.add_argument(
        "--microphone", action="store_true", help="the default microphone, as with --stream; Ctrl-C ends it"
    )
    parser.add_argument("--speech", type=Path, metavar="RUN", help="run of the acoustic model")
    parser.add_argument("--language", type=language_run, metavar="RUN", help="run of the language model")
    parser.add_argument("--format", choices=tuple(FORMATS), default="text", help="default: text")
    parser.add_argument(
        "--channels",
        choices=CHANNELS,
        default=MIX,
        help="of a recording with several: mixed, the first one only, or a transcript of each (default: mix)",
    )
    parser.add_argument(
        "--channel-names",
        type=split_names,
        default=(),
        metavar="A,B",
        help="with --channels separate (default: left and right, or numbers)",
    )
    parser.add_argument(
        "--no-punctuation", action="store_false", default=None, dest="punctuation", help="hanzi only"
    )
    parser.add_argument("--digits", action="store_true", help="numbers as digits: 123 for 一百二十三")
    parser.add_argument(
        "--output",
        type=Path,
        metavar="DIR",
        help="one file per recording in DIR; finished transcripts are skipped, other files never replaced",
    )
    parser.add_argument(
        "--n-best",
        type=positive,
        default=1,
        help="hypotheses (or phrases) of each segment in JSON; without --joint at most --beam hypotheses",
    )
    parser.add_argument(
        "--minimum-confidence",
        type=fraction,
        default=0.0,
        metavar="P",
        help="segments whose syllables are less certain on average have no text (0 to 1; default: 0)",
    )
    parser.add_argument(
        "--rate", type=positive, metavar="HZ", help="standard input is raw mono 16-bit audio of this rate"
    )
    parser.add_argument(
        "--stream",
        action="store_true",
        help="recognise while the audio arrives, and show syllables while they are spoken",
    )
    parser.add_argument(
        "--no-second-pass",
        action="store_false",
        dest="second_pass",
        help="with --stream: the text of the small streaming model, which the large one does not revise",
    )
    add_search_options(parser)
    add_joint_options(parser)
    add_phrase_options(parser)
    add_cluster(parser)
    return parser


def complete_options(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Check the parsed options of ``transcribe.py``; set ``search``, and what one option means for another.

    ``paths`` are then all recordings, those of ``--list`` too; the microphone is :data:`PIPE`.

    Raises:
        UserError: options contradict each other, or the list can't be read.
        SystemExit: no input is given, or one that excludes another option.
    """
    if options.microphone:
        if options.paths or options.list or options.rate:
            parser.error("--microphone can't be combined with recordings or --rate")
        options.paths, options.stream = [PIPE], True
    if not options.paths and not options.list:
        parser.error("give recordings, folders, --list FILE, or --microphone")
    options.search = transcription_search(options.speech, options.language, **given_settings(vars(options)))
    if options.channels != MIX and (options.stream or options.cluster or PIPE in options.paths):
        raise ConfigError("--channels is for files", hint="leave out --stream, --cluster and '-'")
    if options.channel_names and options.channels != SEPARATE:
        raise ConfigError("--channel-names without --channels separate", hint="add --channels separate")
    if options.cluster and (not options.output or options.stream or PIPE in options.paths):
        raise ConfigError("--cluster transcribes files", hint="give --output DIR, no '-', no --stream")
    options.paths = [*options.paths, *(listed_paths(options.list) if options.list else ())]
    if options.rate and set(options.paths) != {PIPE}:
        raise UserError("--rate is the sample rate of raw audio from a pipe", hint="use it with '-' alone")
    if options.n_best > 1 and options.format != "json":
        raise UserError(f"--n-best {options.n_best} with --format {options.format}", hint="add --format json")
    if not options.second_pass:
        if options.speech or not options.stream:
            hint = "add --stream or --microphone, and leave out --speech"
            raise ConfigError("--no-second-pass is for live audio with the shipped models", hint=hint)
        options.speech = PRETRAINED_STREAMING
