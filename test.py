"""Test a run on a whole test set: run folders and a manifest in, error rates, error types, hypotheses out."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from tqdm import tqdm

from analysis.errors.explanation import listened, utterance_result, with_gold_hanzi, with_language_scores
from analysis.errors.oracles import gold_counts
from analysis.inputs.training_texts import Training, count_seen, read_training
from analysis.inputs.utterance_results import (
    HANZI,
    KEYWORD,
    LANGUAGE,
    PIPELINE,
    SPEECH,
    SYLLABLES,
    SystemOutput,
    UtteranceResult,
)
from analysis.keyword.report import keyword_tables, recording_table, write_keyword_report
from analysis.keyword.scores import decisions_of, decisions_tsv, keyword_results
from analysis.page.evidence import WORST_SHOWN, Evidence
from analysis.page.report import write_report_page
from analysis.results.collect import collect_results
from analysis.results.files import write_results
from analysis.results.results import REPORTED
from analysis.results.scores import TASK_LEVELS, hypotheses_tsv, score, score_distinct
from analysis.results.test_tables import print_results
from data.evaluation_lists import lists_of_split, read_test_transcripts, read_test_utterances
from data.manifest import Utterance
from keywords.options import add_keyword_options, settle_keyword_options
from model_language.vocabulary.symbols import Symbols
from recognition.options import (
    add_joint_options,
    add_search_options,
    add_word_option,
    beam_width,
    search_settings,
)
from utils.audio.reading import read_audio
from utils.backend.quiet import silence_tensorflow
from utils.cli import not_negative, positive
from utils.errors import run_command
from utils.files import remove_leftovers, reserve, write_json, write_text
from utils.hypotheses.recognition import Inspection
from utils.metrics import real_time_factor
from utils.run_folder.run import RunFolder, open_run

RESULTS_BYTES = 1 << 16
Known = Mapping[str, Training]  # by level, of the model that writes it
EXAMPLES = """\
examples:
  python test.py speech runs/demo/speech
  python test.py language runs/demo/language --manifest transcripts/thchs_test.tsv
  python test.py pipeline runs/demo/speech runs/demo/language --split dev --beam 10
  python test.py pipeline runs/compact runs/transformer --manifest datasets/aishell1/test.tsv --json
  python test.py speech runs/compact --syllables runs/syllables --split dev --insertion-bonus 2
  python test.py pipeline runs/demo/speech runs/demo/language --beam 10 --report report
  python test.py keyword runs/words --split test --report report
  python test.py keyword runs/words --weights last data.folder=datasets/speech_commands
  python test.py keyword runs/words --shift-ms -200 -100 100 200
  python test.py keyword runs/words --recording day.flac --said said.tsv --report report

Writes hypotheses.tsv and results.json into RUN/test/SPLIT (for pipeline: SPLIT-with-LANGUAGERUN in the
speech run), or into --output. Rates are true edit distances, not capped; intervals are bootstrapped.
With --report DIR it also tells why: every error with its kind and the stage to blame, rates by speaker,
length, position, frequency, speed and noise, and what perfect parts would bring: a page to be opened in
a browser (report.html, needs nothing else), and the same facts as JSON and CSV files.
For keyword: accuracy, precision, recall and F1 of each word, and which is taken for which (decisions.tsv); a
--manifest is scored as it is, while a split has the silence and unknown words of the run's config. With
--recording what its exported stream makes of a long recording: misses and false alarms at each threshold.
"""


@dataclass(frozen=True)
class Tested:
    """Figures for ``results.json``, results by utterance, the training texts and what recognised."""

    results: dict[str, Any]
    utterances: list[UtteranceResult]
    training: Known
    recognizer: Any = None


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line, recognise the test set, print and write what came of it."""
    parser = _parser()
    options, options.overrides = parser.parse_known_args(arguments)
    if wrong := [word for word in options.overrides if options.task != KEYWORD or word.startswith("-")]:
        parser.error(f"unrecognized arguments: {' '.join(wrong)}")
    if options.task == KEYWORD:
        settle_keyword_options(options, parser)
        return _test_recording(options) if options.recording else _test_keyword(options)
    tested = options.test(options)
    results = tested.results
    if options.json:
        print(json.dumps(results, ensure_ascii=False, indent=2))
    else:
        console = Console()
        if not console.is_terminal:
            console.width = 110
        print_results(results, console)
    # After the printing: a disk that is full by now loses nothing.
    written = _write_results(options, results, "hypotheses.tsv", hypotheses_tsv(tested.utterances))
    if options.report:
        written += _report(options, tested)
    if not options.json:
        print(f"written: {', '.join(map(str, written))}")
    return 0


def _write_results(options: argparse.Namespace, results: dict[str, Any], name: str, table: str) -> list[Path]:
    """Write a table of what was recognised, and the figures beside it; returns both files."""
    folder = _folder(options)
    (folder / "results.json").unlink(missing_ok=True)  # written last: it belongs to the table beside it
    write_text(folder / name, table)
    write_json(folder / "results.json", results)
    return [folder / name, folder / "results.json"]


def _test_recording(options: argparse.Namespace) -> int:
    """Misses and false alarms of a run's exported stream in a long recording: printed and written."""
    _check_folders(options)
    from keywords.long_recordings import recording_results  # here: see utils.backend.quiet

    folder = _folder(options)
    (folder / "results.json").unlink(missing_ok=True)
    report = options.report or folder
    results = recording_results(options.keyword_run / "export", options.recording, options.said, report)
    print(json.dumps(results, ensure_ascii=False, indent=2) if options.json else recording_table(results))
    write_json(folder / "results.json", results)
    return 0


def _test_keyword(options: argparse.Namespace) -> int:
    """What a keyword model answers for the clips of a split or of manifests: printed and written."""
    _check_folders(options)
    silence_tensorflow()
    from keywords.evaluation import hear_split  # here: see utils.backend.quiet

    heard = hear_split(
        options.keyword_run, options.split, options.weights, options.overrides, options.manifest or (),
        options.shift_ms,
    )  # fmt: skip
    decisions = decisions_of(heard.clips, heard.probabilities, heard.model.labels)
    facts = {"task": KEYWORD, "split": _split_name(options), "run": str(options.keyword_run)}
    facts |= {"weights": options.weights, "parameters": heard.model.model.count_params()}
    results = {**facts, **keyword_results(decisions, heard.model.labels), "rejected": heard.rejected}
    results["accuracy_by_shift"] = dict(heard.accuracy_by_shift)
    print(json.dumps(results, ensure_ascii=False, indent=2) if options.json else keyword_tables(results))
    written = _write_results(options, results, "decisions.tsv", decisions_tsv(decisions))
    if options.report:
        written.append(write_keyword_report(options.report, results, decisions))
        write_json(options.report / "results.json", results)
    if not options.json:
        print(f"written: {', '.join(map(str, written))}")
    return 0


def _report(options: argparse.Namespace, tested: Tested) -> list[Path]:
    """Write a report: the page and the facts; returns its files."""
    settings = {name: value for name, value in tested.results.items() if name in REPORTED}
    facts = collect_results(
        systems=[SystemOutput(options.task, tested.utterances)],
        levels=TASK_LEVELS[options.task],
        task=options.task,
        title=f"{options.task} on {tested.results['split']}",
        training=tested.training,
        settings=settings,
    )
    page = write_report_page(options.report, facts, _evidence(options, tested))
    return [page, *write_results(options.report, facts)]


def _evidence(options: argparse.Namespace, tested: Tested) -> dict[str, Evidence]:
    """Sound and picture of the worst utterances; nothing where nobody listened."""
    recognizer = tested.recognizer
    if recognizer is None:
        return {}
    from analysis.page.collect_evidence import collect_evidence  # here: matplotlib takes its time

    def inspect(outcome: UtteranceResult) -> Inspection | None:
        return recognizer.inspect(read_audio(outcome.audio, recognizer.sample_rate))

    return collect_evidence(tested.utterances, TASK_LEVELS[options.task][-1], inspect, options.examples)


def _test_speech(options: argparse.Namespace) -> Tested:
    run = open_run(options.speech_run, SPEECH)
    manifests = lists_of_split(run, options.split, options.manifest)
    utterances = read_test_utterances(manifests, options.limit)
    _check_folders(options)
    silence_tensorflow()
    recognizer = _recognizer(options, run)
    outcomes, timing = _recognise(recognizer, utterances, explained=bool(options.report))
    training = {SYLLABLES: read_training(run.manifests("train"))}
    seen = {SPEECH: count_seen(training[SYLLABLES], utterances)}
    results = _results(options, SPEECH, manifests, outcomes, training, **timing, seen_in_training=seen)
    return Tested(results, outcomes, training, recognizer)


def _test_language(options: argparse.Namespace) -> Tested:
    run = open_run(options.language_run, LANGUAGE)
    manifests = lists_of_split(run, options.split, options.manifest)
    transcripts = read_test_transcripts(manifests, options.limit)
    _check_folders(options)
    silence_tensorflow()
    from model_language.registry import load_converter  # here: see utils.backend.quiet

    converter = load_converter(run.path, options.words)
    hanzi = converter.convert([one.pinyin for one in transcripts])
    outcomes = [
        UtteranceResult(one.id, "", 0.0, one.pinyin, one.pinyin, one.hanzi, output, gold_hanzi=output)
        for one, output in zip(transcripts, hanzi, strict=True)
    ]
    if options.report and not options.words:  # their scores leave out what such words earn
        outcomes = with_language_scores(outcomes, converter)
    training = {HANZI: _language_training(run)}
    seen = {LANGUAGE: count_seen(training[HANZI], transcripts)}
    facts = {"distinct": score_distinct(outcomes), "seen_in_training": seen}
    return Tested(_results(options, LANGUAGE, manifests, outcomes, training, **facts), outcomes, training)


def _test_pipeline(options: argparse.Namespace) -> Tested:
    speech_run, language_run = open_run(options.speech_run, SPEECH), open_run(options.language_run, LANGUAGE)
    manifests = lists_of_split(speech_run, options.split, options.manifest)
    utterances = read_test_utterances(manifests, options.limit)
    _check_folders(options)
    silence_tensorflow()
    from model_language.registry import load_converter  # here: see utils.backend.quiet

    converter = load_converter(language_run.path, options.words)
    recognizer = _recognizer(options, speech_run, converter)
    outcomes, timing = _recognise(recognizer, utterances, explained=bool(options.report))
    ideal = converter.convert([one.pinyin for one in utterances])
    outcomes = with_gold_hanzi(outcomes, ideal)
    if options.report and not options.words:  # their scores leave out what such words earn
        outcomes = with_language_scores(outcomes, converter)
    training = {
        SYLLABLES: read_training(speech_run.manifests("train")),
        HANZI: _language_training(language_run),
    }
    seen = {
        SPEECH: count_seen(training[SYLLABLES], utterances),
        LANGUAGE: count_seen(training[HANZI], utterances),
    }
    facts = {**timing, "cer_from_gold_pinyin": gold_counts(outcomes).rate, "seen_in_training": seen}
    results = _results(options, PIPELINE, manifests, outcomes, training, **facts)
    return Tested(results, outcomes, training, recognizer)


def _recognizer(options: argparse.Namespace, run: RunFolder, converter: Any = None) -> Any:
    from recognition.loading import load_recognizer  # here: see utils.backend.quiet

    return load_recognizer(run.path, converter, options, n_best=beam_width(options) if options.report else 1)


def _recognise(
    recognizer: Any, utterances: list[Utterance], explained: bool
) -> tuple[list[UtteranceResult], dict[str, float]]:
    """Recognise all; the time includes reading the audio and the features, not the loading of the models."""
    sources = ((one.id, one.audio) for one in utterances)
    began = time.perf_counter()
    recognised = list(tqdm(recognizer.recognise(sources), total=len(utterances), unit="utt", disable=None))
    seconds = time.perf_counter() - began
    audio_seconds = sum(one.seconds for one in recognised)
    outcomes = [utterance_result(*pair) for pair in zip(utterances, recognised, strict=True)]
    if explained:
        shown = tqdm(outcomes, "noise and search", unit="utt", disable=None)
        outcomes = [listened(one, recognizer) for one in shown]
    factor = real_time_factor(seconds, audio_seconds)
    return outcomes, {"audio_seconds": audio_seconds, "seconds": seconds, "real_time_factor": factor}


def _results(
    options: argparse.Namespace,
    task: str,
    manifests: list[Path],
    outcomes: list[UtteranceResult],
    training: Known,
    **facts: Any,
) -> dict[str, Any]:
    runs = {f"{stage}_run": str(getattr(options, f"{stage}_run", "")) for stage in (SPEECH, LANGUAGE)}
    return {
        "task": task,
        "split": _split_name(options),
        "manifests": [str(path) for path in manifests],
        **{name: run for name, run in runs.items() if run},
        **search_settings(options),
        **score(outcomes, task, training.get(HANZI)),
        **facts,
    }


def _language_training(run: RunFolder) -> Training:
    """What a language run can write, and what it was trained on as far as its lists are there."""
    symbols = Symbols.load(run.path)
    return read_training(run.manifests("train"), frozenset(symbols.hanzi.tokens), symbols.lexicon.candidates)


def _split_name(options: argparse.Namespace) -> str:
    if getattr(options, "recording", None):
        return options.recording.stem
    return "+".join(path.stem for path in options.manifest) if options.manifest else options.split


def _check_folders(options: argparse.Namespace) -> None:
    """See that results can be written, before the hours that they may take."""
    for folder in filter(None, (_folder(options), options.report)):
        remove_leftovers(folder)
        reserve(folder / "results.json", RESULTS_BYTES)


def _folder(options: argparse.Namespace) -> Path:
    if options.output:
        return options.output
    name = _split_name(options)
    if options.task == PIPELINE:
        return options.speech_run / "test" / f"{name}-with-{options.language_run.resolve().name}"
    return getattr(options, f"{options.task}_run") / "test" / name


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    tasks = parser.add_subparsers(dest="task", required=True, metavar="{speech,language,pipeline,keyword}")
    for task, test, text in (
        (SPEECH, _test_speech, "audio → syllables"),
        (LANGUAGE, _test_language, "true syllables → hanzi; needs no audio"),
        (PIPELINE, _test_pipeline, "audio → syllables → hanzi"),
        (KEYWORD, _test_keyword, "clips → keywords; data.folder=FOLDER says where they are now"),
    ):
        command = tasks.add_parser(
            task,
            help=text,
            description=text,
            epilog=EXAMPLES,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.set_defaults(test=test)
        _add_options(command, task)
    return parser


def _add_options(command: argparse.ArgumentParser, task: str) -> None:
    if task in (SPEECH, PIPELINE):
        command.add_argument("speech_run", type=Path, help="run folder of the acoustic model")
        add_search_options(command)
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
        command.add_argument("--limit", type=positive, help="only the first so many utterances")
    usual = None if task == KEYWORD else "test"  # see settle_keyword_options
    command.add_argument("--split", choices=("train", "dev", "test"), default=usual, help="default: test")
    command.add_argument("--manifest", type=Path, action="append", help="test on this list; may be repeated")
    command.add_argument("--json", action="store_true", help="print the results as JSON, and nothing else")
    command.add_argument("--output", type=Path, help="folder for results.json and what was recognised")
    command.add_argument("--report", type=Path, metavar="DIR", help="explain every error, into this folder")
    if task in (SPEECH, PIPELINE):
        command.add_argument(
            "--examples",
            type=not_negative,
            default=WORST_SHOWN,
            metavar="N",
            help="the N worst utterances can be heard and seen in the report (default: %(default)s)",
        )


if __name__ == "__main__":
    run_command(main)
