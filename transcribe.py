"""Transcribe recordings: audio files or folders and two run folders in, text, JSON, SRT or TextGrid out."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tqdm import tqdm

from utils.arguments import positive
from utils.audio import recordings_in
from utils.errors import AudioError, RunError, UserError, run_command
from utils.files import write_text
from utils.quiet import silence_tensorflow
from utils.recognition import Recognition
from utils.run import open_run
from utils.transcript_formats import FORMATS, as_dict

DEMO = Path("runs/demo")
EXAMPLES = """\
examples:
  python transcribe.py recording.wav
  python transcribe.py talks/ --format srt --output subtitles/
  python transcribe.py *.flac --speech runs/compact --language runs/ngram --format json --beam 10 --n-best 5

Reads WAV, FLAC, OGG, MP3 and what else libsndfile reads, of any length, rate and number of channels. Without
--speech and --language the models of the demo are used (runs/demo, made by `make demo`). A file that can't be
read gives an error line; the others are transcribed, and the exit code is then 1.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line, recognise file after file, print or write each transcript as it is done."""
    options = _parser().parse_args(arguments)
    files = _files(options.paths)
    targets = _targets(files, options)
    speech, language = (_run(getattr(options, stage), stage) for stage in ("speech", "language"))
    silence_tensorflow()
    from pipeline import Recognizer, load_acoustic_model, load_converter  # here: see utils.quiet

    recognizer = Recognizer(
        load_acoustic_model(speech), load_converter(language), options.beam, options.n_best
    )
    failed: list[str] = []

    def report(name: str, error: AudioError) -> None:
        failed.append(name)
        tqdm.write(f"error: {error}", file=sys.stderr)

    # Without --output the transcripts themselves show how far it is.
    hidden = None if options.output else True
    sources = tqdm([(str(path), path) for path, _ in files], unit="file", disable=hidden)
    for recognition in recognizer.recognise(sources, on_error=report):
        target = targets.get(Path(recognition.id))
        if target:
            write_text(target, FORMATS[options.format].write(recognition))
        else:
            _print(recognition, options.format, several=len(files) > 1)
    if failed:
        print(f"{len(failed)} of {len(files)} files could not be read", file=sys.stderr)
    return 1 if failed else 0


def _files(paths: Sequence[Path]) -> list[tuple[Path, Path]]:
    """Each file to transcribe, with the path under which its transcript goes into the output folder.

    Folders are searched at all depths for files with the ending of an audio format.
    """
    files: dict[Path, Path] = {}
    for path in paths:
        if path.is_dir():
            files.update((one, one.relative_to(path)) for one in recordings_in(path))
        else:
            files[path] = Path(path.name)
    return list(files.items())


def _targets(files: Sequence[tuple[Path, Path]], options: argparse.Namespace) -> dict[Path, Path]:
    """Where each file's transcript is written; empty when they are printed."""
    if not options.output:
        if len(files) > 1 and options.format in ("srt", "textgrid"):
            hint = f"give --output DIR for the {len(files)} {options.format} files"
            raise UserError(
                "several transcripts of this format can't be printed one after another", hint=hint
            )
        return {}
    suffix = FORMATS[options.format].suffix
    # a.wav and a.mp3 side by side become a.wav.txt and a.mp3.txt.
    common = Counter(name.with_suffix("") for _, name in files)
    names = {
        path: name.with_suffix(suffix) if common[name.with_suffix("")] == 1 else Path(f"{name}{suffix}")
        for path, name in files
    }
    for name, times in Counter(names.values()).items():
        if times > 1:
            raise UserError(f"{times} files would be written as '{name}'", hint="transcribe them separately")
    return {path: options.output / name for path, name in names.items()}


def _run(given: Path | None, stage: str) -> Path:
    """The run folder of a stage; the demo's where none is given."""
    run = given or DEMO / stage
    if not given and not run.is_dir():
        raise RunError(f"there is no {run}", hint=f"give --{stage} RUN, or make the demo's models: make demo")
    return open_run(run, stage).path  # a wrong folder is told before models are loaded


def _print(recognition: Recognition, form: str, several: bool) -> None:
    if form == "json" and several:
        text = json.dumps(as_dict(recognition), ensure_ascii=False) + "\n"
    else:
        text = FORMATS[form].write(recognition)
        text = f"{recognition.id}\t{text}" if several else text
    print(text, end="", flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("paths", nargs="+", type=Path, metavar="FILE_OR_FOLDER", help="what to transcribe")
    parser.add_argument("--speech", type=Path, metavar="RUN", help="run of the acoustic model")
    parser.add_argument("--language", type=Path, metavar="RUN", help="run of the language model")
    parser.add_argument("--format", choices=tuple(FORMATS), default="text", help="default: text")
    parser.add_argument(
        "--output", type=Path, metavar="DIR", help="write one file for each recording into DIR"
    )
    parser.add_argument("--beam", type=positive, default=1, help="prefixes kept; 1 (default) is greedy")
    parser.add_argument(
        "--n-best", type=positive, default=1, help="readings of each recording in JSON, at most --beam"
    )
    return parser


if __name__ == "__main__":
    run_command(main)
