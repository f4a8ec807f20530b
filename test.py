"""Test a run on a whole test set: error rates with intervals, kinds of errors, hypotheses."""

from utils.command.entry import run_command

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis.inputs.utterance_results import (
    KEYWORD,
    LANGUAGE,
    LEVELS,
    PIPELINE,
    SPEECH,
    TASK_LEVELS,
    SystemOutput,
    UtteranceResult,
)
from analysis.keyword.clip_report import (
    decisions_of,
    decisions_tsv,
    keyword_results,
    keyword_tables,
    recording_table,
    write_keyword_report,
)
from analysis.page.report import WORST_SHOWN, Evidence, add_page_language, write_report_page
from analysis.results.collect import collect_results
from analysis.results.result_files import hypotheses_tsv, n_best_lines, summary, write_results
from analysis.results.terminal import results_text
from data.evaluation_lists import lists_of_split, read_test_transcripts, read_test_utterances
from data.manifest import SPLITS
from keywords.options import add_keyword_options, read_data_config, settle_keyword_options
from recognition.command_line.search import add_joint_options, add_search_options, add_word_option
from recognition.options import SearchOptions, check_joint_options, given_settings
from utils.audio.reading import read_audio
from utils.backend.quiet import silence_tensorflow
from utils.cluster import add_cluster, on_cluster
from utils.command.arguments import not_negative, positive
from utils.command.parser import CommandParser
from utils.files import remove_leftovers, reserve, write_json, write_text
from utils.hypotheses.inspection import Inspection
from utils.run_folder.run import RunFolder, open_run
from utils.vocabulary import first_few

if TYPE_CHECKING:
    from recognition.evaluation import Evaluation

N_BEST = "n_best.jsonl"
RESULTS_BYTES = 1 << 16  # disk space for the results, checked before the test
COMMON_OPTIONS = (
    *("--split", "--manifest", "--limit", "--report", "--language", "--output", "--json"),
    *("--joint", "--words", "--beam", "--syllables", "--weights", "--recording", "--spoken"),
)
EXAMPLES = """\
examples:
  python test.py speech runs/demo/speech
  python test.py language runs/demo/language --manifest transcripts/thchs_test.tsv
  python test.py pipeline runs/demo/speech runs/demo/language --split dev --beam 10
  python test.py pipeline runs/compact runs/transformer --manifest datasets/aishell1/test.tsv --json
  python test.py speech runs/compact --cluster head:6379
  python test.py speech runs/compact --syllables runs/syllables --split dev --insertion-bonus 2
  python test.py pipeline runs/demo/speech runs/demo/language --beam 10 --report report
  python test.py speech runs/compact --beam 10 --n-best 5
  python test.py keyword runs/words --split test --report report
  python test.py keyword runs/words --weights last data.folder=datasets/speech_commands
  python test.py keyword runs/words --shift-ms -200 -100 100 200
  python test.py keyword runs/words --recording day.flac --spoken spoken.tsv --report report

Writes hypotheses.tsv and results.json into RUN/test/SPLIT (for pipeline: SPLIT-with-LANGUAGERUN in the
speech run; for a packed model: into the folder of its name in runs/), or into --output. For --manifest
FOLDER/NAME.tsv and --recording FOLDER/NAME.wav, SPLIT is FOLDER-NAME. Rates are true edit distances, not
capped; intervals are bootstrapped. Recordings that cannot be read are named and left out, and the exit code
is 1 (keyword: a note names the list of them, and it stays 0).
--n-best N writes the lists of hypotheses too (n_best.jsonl), and counts the errors of the best of each list.

--report DIR also writes a page to be opened in a browser (report.html, which needs no other file), and all
results as JSON and CSV files: every error with its kind and its cause, rates by speaker, length, position,
frequency, speed and noise, and the rates that perfect parts of the pipeline would have.

keyword reports accuracy; precision, recall and F1 of each word; and which words are confused (decisions.tsv).
A --manifest is tested as it is; a split also has the silence and the unknown words of the run's config.
--recording lets the run's exported stream process a long recording, and reports missed keywords and false
alarms at each threshold.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line, test, print the results and write them."""
    parser = _parser()
    options, options.overrides = parser.parse_known_args(arguments)
    unknown = [word for word in options.overrides if options.task != KEYWORD or word.startswith("-")]
    if unknown:
        parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    if options.task == KEYWORD:
        settle_keyword_options(options, parser)
        return _test_recording(options) if options.recording else _test_keyword(options)
    if options.task == PIPELINE:
        check_joint_options(SearchOptions(**given_settings(vars(options))))
    with on_cluster(getattr(options, "cluster", None)):
        settings, evaluation = _evaluate(options)
    levels = LEVELS if evaluation.automatic_pinyin else TASK_LEVELS[options.task]
    results = collect_results(
        systems=[SystemOutput(options.task, evaluation.utterances, evaluation.automatic_pinyin)],
        levels=levels,
        task=options.task,
        title=f"{options.task} on {_split_name(options)}",
        training=evaluation.training,
        settings={**settings, **evaluation.settings},
        breakdowns=bool(options.report),
    )
    figures = summary(results)
    tables = {"hypotheses.tsv": hypotheses_tsv(evaluation.utterances)}
    if getattr(options, "n_best", None):
        tables[N_BEST] = n_best_lines(evaluation.utterances)
    try:
        written = _write_folder(options, figures, tables)
        if options.report:
            evidence = _collect_evidence(options, evaluation, levels[-1])
            page = write_report_page(options.report, results, evidence, options.language)
            written += [page, *write_results(options.report, results)]
    finally:  # after the files, which a closed pipe (`| head`) must not prevent; and also on a full disk
        print(json.dumps(figures, ensure_ascii=False, indent=2) if options.json else results_text(results))
    if not options.json:
        print(f"written: {', '.join(map(str, written))}")
    return _report_rejected(evaluation)


def _evaluate(options: argparse.Namespace) -> tuple[dict[str, Any], "Evaluation"]:
    """Test an acoustic model, a language model, or both together.

    Returns:
        The settings that ``results.json`` records, and the results.
    """
    paths = {stage: getattr(options, f"{stage}_run", None) for stage in (SPEECH, LANGUAGE)}
    runs = {stage: open_run(path, stage) for stage, path in paths.items() if path}
    lists = lists_of_split(next(iter(runs.values())), options.split, options.manifest)
    read: Callable[..., list[Any]] = (
        read_test_transcripts if options.task == LANGUAGE else read_test_utterances
    )
    tested = read(lists, options.limit)
    _reserve_output(options)
    silence_tensorflow()
    from recognition import evaluation as of_a_test_set  # here: see utils.backend.quiet

    explain, search = bool(options.report), SearchOptions(**given_settings(vars(options)))
    recorded = search.recorded()
    # Scores of the second stage do not include the bonus of user words.
    explain_language = explain and LANGUAGE in runs and not search.words
    if options.task == LANGUAGE:
        del recorded["beam"]
        from model_language.registry import load_converter_with  # here: see utils.backend.quiet

        converter = load_converter_with(search.words, runs[LANGUAGE].path)
        evaluation = of_a_test_set.evaluate_language(converter, runs[LANGUAGE], tested, explain_language)
    else:
        from recognition.loading import load_recognizer

        if explain and not options.n_best:
            search = replace(search, n_best=search.beam_width)
        language = runs[LANGUAGE].path if LANGUAGE in runs else None
        load = partial(load_recognizer, runs[SPEECH].path, language, search)
        recognizer = load()
        if recognizer.converter is None:
            evaluation = of_a_test_set.evaluate_speech(recognizer, runs[SPEECH], tested, explain, load)
        else:
            both = runs[SPEECH], runs[LANGUAGE]
            evaluation = of_a_test_set.evaluate_pipeline(
                recognizer, both, tested, explain, explain_language, load
            )
    settings = {
        "split": _split_name(options),
        "manifests": [str(path) for path in lists],
        **{name: value for name in ("limit", "n_best") if (value := getattr(options, name, None))},
        **{f"{stage}_run": str(paths[stage]) for stage in runs},
        **recorded,
    }
    return settings, evaluation


def _report_rejected(evaluation: "Evaluation") -> int:
    """Print which recordings could not be read; returns the exit code."""
    if not evaluation.rejected:
        return 0
    recordings = len(evaluation.rejected) + len(evaluation.utterances)
    message = f"{len(evaluation.rejected)} of {recordings} recordings could not be read"
    print(f"{message}: {first_few(evaluation.rejected)}", file=sys.stderr)
    return 1


def _test_keyword(options: argparse.Namespace) -> int:
    """Test a keyword model on the clips of a split or of manifests."""
    data = read_data_config(options.keyword_run, options.overrides)
    _reserve_output(options)
    silence_tensorflow()
    from keywords.evaluation import recognise_split  # here: see utils.backend.quiet

    recognised = recognise_split(
        options.keyword_run, data, options.split, options.weights, options.manifest or (), options.shift_ms,
    )  # fmt: skip
    decisions = decisions_of(recognised.clips, recognised.probabilities, recognised.model.labels)
    results = {
        "task": KEYWORD,
        "split": _split_name(options),
        "run": str(options.keyword_run),
        "weights": options.weights,
        "parameters": recognised.model.model.count_params(),
        **keyword_results(decisions, recognised.model.labels),
        "rejected": recognised.rejected,
        "accuracy_by_shift": dict(recognised.accuracy_by_shift),
    }
    print(json.dumps(results, ensure_ascii=False, indent=2) if options.json else keyword_tables(results))
    written = _write_folder(options, results, {"decisions.tsv": decisions_tsv(decisions)})
    if options.report:
        written.append(write_keyword_report(options.report, results, decisions))
        write_json(options.report / "results.json", results)
    if not options.json:
        print(f"written: {', '.join(map(str, written))}")
    return 0


def _test_recording(options: argparse.Namespace) -> int:
    """Test a keyword run's exported stream on a long recording."""
    _reserve_output(options)
    from keywords.recording_results import recording_results  # here: see utils.backend.quiet

    folder = _output_folder(options)
    (folder / "results.json").unlink(missing_ok=True)
    report = options.report or folder
    results = recording_results(
        RunFolder(options.keyword_run).export, options.recording, options.spoken, report
    )
    print(json.dumps(results, ensure_ascii=False, indent=2) if options.json else recording_table(results))
    write_json(folder / "results.json", results)
    return 0


def _write_folder(
    options: argparse.Namespace, figures: dict[str, Any], tables: Mapping[str, str]
) -> list[Path]:
    """Write tables of all outputs by their names, and ``results.json`` beside them; returns the files."""
    folder = _output_folder(options)
    for name in (
        N_BEST,
        "results.json",
    ):  # of an earlier test; results.json belongs to the tables: it is last
        (folder / name).unlink(missing_ok=True)
    for name, table in tables.items():
        write_text(folder / name, table)
    write_json(folder / "results.json", figures)
    return [folder / name for name in (*tables, "results.json")]


def _collect_evidence(
    options: argparse.Namespace, evaluation: "Evaluation", level: str
) -> dict[int, Evidence]:
    """Sound and picture of the worst utterances; empty without a recogniser."""
    recognizer = evaluation.recognizer
    if recognizer is None:
        return {}
    from analysis.page.collect_evidence import collect_evidence  # here: matplotlib loads slowly
    from recognition.inspection import inspection_of

    def inspect(utterance: UtteranceResult) -> Inspection | None:
        return inspection_of(recognizer, read_audio(utterance.audio, recognizer.sample_rate))

    return collect_evidence(evaluation.utterances, level, inspect, options.examples)


def _split_name(options: argparse.Namespace) -> str:
    if getattr(options, "recording", None):
        return _name_with_folder(options.recording)
    return "+".join(map(_name_with_folder, options.manifest)) if options.manifest else options.split


def _name_with_folder(path: Path) -> str:
    """Lists and recordings of several corpora have the same name, such as test.tsv and stream.flac."""
    return f"{path.resolve().parent.name}-{path.stem}"


def _reserve_output(options: argparse.Namespace) -> None:
    """Check that the results can be written, before a computation that may take hours."""
    for folder in filter(None, (_output_folder(options), options.report)):
        remove_leftovers(folder)
        reserve(folder / "results.json", RESULTS_BYTES)


def _output_folder(options: argparse.Namespace) -> Path:
    if options.output:
        return options.output
    name = _split_name(options)
    if getattr(options, "limit", None):  # the results of the whole list are not replaced
        name += f"-first{options.limit}"
    stage = options.task
    if stage == PIPELINE:
        stage, name = SPEECH, f"{name}-with-{options.language_run.resolve().name}"
    run = RunFolder(getattr(options, f"{stage}_run"))
    if run.packed_network.is_file():  # models that ship are packed: the checkout stays as it is
        run = RunFolder(Path("runs/packed") / run.path.resolve().name)
    return run.tests / name


def _parser() -> CommandParser:
    parser = CommandParser(description=__doc__, epilog=EXAMPLES)
    tasks = parser.add_subparsers(dest="task", required=True, metavar="{speech,language,pipeline,keyword}")
    for task, text in (
        (SPEECH, "audio → syllables, or hanzi if these are the run's output units"),
        (LANGUAGE, "reference syllables → hanzi; needs no audio"),
        (PIPELINE, "audio → syllables → hanzi"),
        (KEYWORD, "clips → keywords; data.folder=FOLDER gives their present folder"),
    ):
        command = tasks.add_parser(task, help=text, description=text, epilog=EXAMPLES, common=COMMON_OPTIONS)
        _add_options(command, task)
    return parser


def _add_options(command: argparse.ArgumentParser, task: str) -> None:
    if task in (SPEECH, PIPELINE):
        command.add_argument("speech_run", type=Path, help="run folder of the acoustic model")
        add_search_options(command)
        add_cluster(command)
        command.add_argument(
            "--n-best",
            type=positive,
            metavar="N",
            help=f"write the N best hypotheses of each utterance as {N_BEST}; without --joint at most --beam",
        )
    if task == PIPELINE:
        add_joint_options(command)
    elif task == LANGUAGE:
        add_word_option(command)
    if task in (LANGUAGE, PIPELINE):
        command.add_argument("language_run", type=Path, help="run folder of the language model")
    if task == KEYWORD:
        command.add_argument("keyword_run", type=Path, help="run folder of the keyword model")
        add_keyword_options(command)
    else:
        command.add_argument("--limit", type=positive, help="test only the first LIMIT utterances")
        add_page_language(command)
    default = None if task == KEYWORD else "test"  # see settle_keyword_options
    command.add_argument("--split", choices=SPLITS, default=default, help="default: test")
    command.add_argument(
        "--manifest", type=Path, action="append", help="test on this manifest; may be repeated"
    )
    command.add_argument("--json", action="store_true", help="print only the results, as JSON")
    command.add_argument("--output", type=Path, help="folder for results.json and the outputs")
    command.add_argument("--report", type=Path, metavar="DIR", help="write a report of all errors into DIR")
    if task in (SPEECH, PIPELINE):
        command.add_argument(
            "--examples",
            type=not_negative,
            default=WORST_SHOWN,
            metavar="N",
            help="the report has the audio and a picture of the N worst utterances (default: %(default)s)",
        )


if __name__ == "__main__":
    run_command(main)
