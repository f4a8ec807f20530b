"""Compares transcripts of any recogniser with references and reports all errors: tables, HTML, JSON, CSV.

python -m analysis.report --reference ref.txt --hypothesis hyp.txt [--hypothesis other.txt]
"""

from utils.command.entry import run_command

import os
from collections.abc import Sequence
from pathlib import Path

from analysis.inputs.hypothesis_files import read_systems, with_speakers
from analysis.inputs.normalisation import ALL, DEFAULT_RULES, NONE, RULES, rules_of
from analysis.inputs.text_files import read_text_file
from analysis.inputs.training_texts import read_training
from analysis.inputs.utterance_results import LEVELS
from analysis.page.report import add_page_language, write_report_page
from analysis.results.collect import collect_results
from analysis.results.result_files import write_results
from analysis.results.results import Results
from analysis.results.terminal import results_text
from utils.command.parser import CommandParser
from utils.errors import ConfigError

DELETED, LEFT_OUT = "deleted", "left-out"
EXAMPLES = f"""\
examples:
  python -m analysis.report --reference data/test/text --hypothesis exp/a/text
  python -m analysis.report --reference test.tsv --hypothesis a/text --hypothesis b/text --output report
  python -m analysis.report --reference test.tsv --hypothesis transcripts/
  python -m analysis.report --reference ref.txt --hypothesis hyp.txt --normalise all --speakers utt2spk

Files are lines of 'id text' (Kaldi, ESPnet, WeNet, FunASR), hanzi or pinyin; subtitles (SubRip, WebVTT, ASS,
TTML, LRC); NIST's CTM and TRN; JSON of transcribe.py, Whisper, FunASR, WeNet, NeMo; tables whose first line
names the columns, such as manifests and the hypotheses.tsv of test.py. The format is recognised from the
content. A folder, such as transcribe.py writes, has a file for each recording. CTM and subtitles have the
text of whole recordings, and so must the reference. Ids may also be the names of recordings.

Of several hypotheses, each is compared with the first: difference with its interval, matched-pairs test
(MAPSSWE), utterances that are better and worse.

Normalisation ({", ".join(RULES)}): width: full-width forms; traditional: to simplified characters;
digits: 120 → 一百二十, 3:30 → 三点三十; punctuation; case.

Writes report.html (a page to be opened in a browser, which needs no other file), report.json and CSV files.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line, print the tables, write the page, report.json and the CSV files."""
    options = _parser().parse_args(arguments)
    if options.output.exists() and not options.output.is_dir():
        raise ConfigError("--output is a file", where=options.output, hint="give a folder, new or not")
    results = report_files(
        reference=options.reference,
        hypotheses=options.hypothesis,
        rules=rules_of(options.normalise),
        leave_out=options.missing == LEFT_OUT,
        speakers=options.speakers,
        training=options.training or (),
    )
    try:
        written = [
            write_report_page(options.output, results, language=options.language),
            *write_results(options.output, results),
        ]
    finally:  # after the files, which a closed pipe (`| head`) must not prevent; and also on a full disk
        print(results_text(results))
    print(f"written: {', '.join(map(str, written))}")
    return 0


def report_files(
    reference: Path,
    hypotheses: Sequence[Path],
    rules: Sequence[str] = DEFAULT_RULES,
    leave_out: bool = False,
    speakers: Path | None = None,
    training: Sequence[Path] = (),
) -> Results:
    """Analyse hypothesis files.

    Args:
        reference, hypotheses: files or folders of transcripts (:mod:`analysis.inputs.text_files`).
        rules: rules of normalisation.
        leave_out: leave out utterances that a file lacks; else they count as deleted.
        speakers: Kaldi's ``utt2spk``; manifests contain the speakers.
        training: lists that the recogniser was trained on.

    Raises:
        CorpusError: a file cannot be read, or has no id in common with the reference.
        ConfigError: a file is given twice.
    """
    if len({os.path.realpath(path) for path in hypotheses}) < len(hypotheses):
        raise ConfigError(
            "the same hypothesis file is given twice", where=hypotheses[0], hint="give each file once"
        )
    true_texts = read_text_file(reference, is_reference=True)
    if speakers:
        true_texts = with_speakers(true_texts, speakers)
    files = read_systems(true_texts, hypotheses, rules, leave_out)
    known = read_training(training)
    return collect_results(
        systems=files.systems,
        levels=files.levels,
        task="files",
        title=" and ".join(system.name for system in files.systems) + f" against {reference}",
        training=dict.fromkeys(LEVELS, known),
        settings={
            "reference": str(reference),
            "hypotheses": [str(path) for path in hypotheses],
            "missing": LEFT_OUT if leave_out else DELETED,
            "normalisation": ", ".join(rules) or NONE,
        },
        problems=files.problems,
    )


def _parser() -> CommandParser:
    parser = CommandParser(description=__doc__, epilog=EXAMPLES)
    parser.add_argument("--reference", type=Path, required=True, metavar="FILE", help="the reference texts")
    parser.add_argument(
        "--hypothesis",
        type=Path,
        required=True,
        action="append",
        metavar="FILE",
        help="output of a system; may be repeated, the others are compared with the first",
    )
    parser.add_argument(
        "--normalise",
        default=",".join(DEFAULT_RULES),
        metavar="RULES",
        help=f"some of {', '.join(RULES)}, with commas; or {ALL}, or {NONE} (default: %(default)s)",
    )
    parser.add_argument(
        "--missing",
        choices=(DELETED, LEFT_OUT),
        default=DELETED,
        help="utterances that a hypothesis file lacks (default: %(default)s)",
    )
    parser.add_argument("--speakers", type=Path, metavar="FILE", help="Kaldi's utt2spk")
    parser.add_argument(
        "--training",
        type=Path,
        action="append",
        metavar="FILE",
        help="manifest or transcript list (.tsv) of the system's training; may be repeated",
    )
    parser.add_argument(
        "--output", type=Path, default=Path("report"), metavar="DIR", help="default: %(default)s"
    )
    add_page_language(parser)
    return parser


if __name__ == "__main__":
    run_command(main)
