"""Check manifests, recordings, recipes or run folders; print one line for each problem."""

from __future__ import annotations

from utils.command.entry import run_command

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from data.corpora.tools.lists import is_plain_list
from data.manifest import is_manifest
from model_speech.packed_run import is_packed
from preflight.examine import (
    WITHOUT_MODEL,
    examine_audio,
    examine_texts,
    examine_vocabulary,
    recordings_as_listing,
)
from preflight.findings import (
    Finding,
    about,
    apply,
    as_json,
    check_name,
    count_line,
    format_findings,
    has_errors,
)
from preflight.listings import Listing, find_manifests, lines_of, of_role, read_listing
from utils.audio.folders import find_recordings, recording_names
from utils.audio.reading import SAMPLE_RATE
from utils.backend.quiet import silence_tensorflow
from utils.cluster import add_cluster, on_cluster
from utils.command.arguments import positive
from utils.command.parser import CommandParser
from utils.errors import ConfigError, CorpusError
from utils.run_folder.run import RunFolder
from utils.vocabulary import Vocabulary

if TYPE_CHECKING:
    from training.tasks.speech import SpeechConfig

EXAMPLES = """\
examples:
  python doctor.py datasets/aishell1
  python doctor.py datasets/mine/train.tsv datasets/mine/test.tsv --no-audio
  python doctor.py --config configs/speech/compact_thchs30.yaml data.batch_utterances=16 --overfit
  python doctor.py --config configs/keyword/speech_commands.yaml
  python doctor.py runs/compact datasets/mine/test.tsv
  python doctor.py recordings/ strange.wav
  python doctor.py datasets/aishell1 --cluster head:6379

A manifest whose name begins with train, dev or test, or ends with _train, _dev or _test, is checked as that
split; a recipe names its splits. A list of audio, pinyin and hanzi without a header counts as a manifest.
With a run folder, manifests are checked against its vocabulary and its model's time stride.
Exit code: 0 no error (there may be warnings), 1 errors, 2 a wrong command line.
"""
OVERFIT_MINUTES = 5  # default time limit of --overfit


@dataclass(frozen=True)
class Subjects:
    """The paths of the command line, by kind."""

    listings: list[Listing] = field(default_factory=list)
    recordings: list[Listing] = field(default_factory=list)
    runs: list[RunFolder] = field(default_factory=list)


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line, run the checks that apply, print the findings."""
    parser = _parser()
    options = parser.parse_intermixed_args(arguments)
    if options.list:
        _print_checks()
        return 0
    overrides = [word for word in options.paths if "=" in word and not os.path.lexists(word)]
    paths = [Path(word) for word in options.paths if word not in overrides]
    if overrides and not options.config:
        raise ConfigError(f"'{overrides[0]}' overrides a recipe", hint="give --config RECIPE too")
    if not paths and not options.config:
        parser.error("name a manifest, a folder, a run, a recording or --config RECIPE")
    findings = _examine(sort_subjects(paths), options, overrides)
    if options.json:
        print(json.dumps(as_json(findings), ensure_ascii=False, indent=2))
    else:
        for line in format_findings(findings):
            print(line)
        print(count_line(findings))
    return 1 if has_errors(findings) else 0


def sort_subjects(paths: Sequence[Path]) -> Subjects:
    """Sort paths into run folders, manifests and recordings by their content.

    Raises:
        CorpusError: a path does not exist, or a folder has nothing to check.
    """
    subjects = Subjects()
    for path in paths:
        if path.is_dir():
            _sort_folder(path, subjects)
        elif not path.exists():
            raise CorpusError("no such file or folder", where=path)
        elif path.suffix.lower() in (".tsv", ".txt") or is_manifest(path) or is_plain_list(path):
            subjects.listings.append(read_listing(path))
        else:
            subjects.recordings.append(recordings_as_listing(str(path.parent), [path]))
    return subjects


def _sort_folder(path: Path, subjects: Subjects) -> None:
    if RunFolder(path).config_file.is_file():
        subjects.runs.append(RunFolder(path))
    elif manifests := find_manifests(path):
        subjects.listings.extend(map(read_listing, manifests))
    elif any(recording_names(path)):
        subjects.recordings.append(recordings_as_listing(str(path), find_recordings(path)))
    else:
        raise CorpusError(
            "there is nothing to check in this folder",
            where=path,
            hint="give a folder with manifests (*.tsv), recordings, or a run's config.yaml",
        )


def _examine(subjects: Subjects, options: argparse.Namespace, overrides: Sequence[str]) -> list[Finding]:
    findings: list[Finding] = []
    recipe, where, rates = None, str(options.config), []
    listings, recordings = list(subjects.listings), list(subjects.recordings)
    if options.config or subjects.runs or options.overfit:
        silence_tensorflow()
        from preflight import recipes  # here: see utils.backend.quiet
    if options.config:
        given = recipes.read_recipe(options.config, overrides)
        if given.task == "language":
            recipes.check_texts(given)
        elif given.task == "keyword":
            recordings += recipes.keyword_listings(given)
            rates.append(given.features.sample_rate)
        else:
            recipe = given
            listings += recipes.recipe_listings(recipe)
            rates.append(recipe.features.sample_rate)
    if recipe:
        units = recipe.vocabulary.units
        findings += examine_texts(listings, initial=recipes.initial_tokens(recipe), units=units)
        findings += recipes.examine_recipe(recipe, listings)
        findings += recipes.examine_vocabulary_file(recipe, listings)
    else:
        findings += examine_texts(listings)
    for run in subjects.runs:
        run_findings = recipes.examine_run(run)
        findings += run_findings
        intact = not has_errors(run_findings)
        unusable = {"unreadable-config", "unknown-config"}.intersection(each.check for each in run_findings)
        has_recipe = not unusable and not is_packed(run)  # the config of a packed model is not a recipe
        if not (intact or has_recipe):
            continue
        rates.append((run.config().get("features") or {}).get("sample_rate", SAMPLE_RATE))
        if run.config().get("task") != "speech":
            continue
        if intact:
            findings += examine_vocabulary(listings, Vocabulary.load(run.vocabulary("acoustic.txt")))
        if has_recipe:
            own = recipes.recipe_of_run(run)
            findings += [each for each in recipes.examine_lengths(own, listings) if each not in findings]
            if recipe is None:
                recipe, where = own, str(run.path)
    with_audio = [*listings, *recordings]
    if with_audio and not options.no_audio:
        with on_cluster(options.cluster):
            findings += examine_audio(with_audio, options.workers, max(rates, default=SAMPLE_RATE))
    if options.overfit:
        findings += _overfit(recipe, listings, where, options.minutes)
    return findings


def _overfit(
    recipe: SpeechConfig | None, listings: Sequence[Listing], where: str, minutes: int
) -> list[Finding]:
    from preflight import overfit, recipes  # here: see utils.backend.quiet

    if recipe is None:
        raise ConfigError(
            "--overfit needs a speech recipe",
            hint="give --config RECIPE, or a speech run with a readable config.yaml",
        )
    listings = listings or recipes.recipe_listings(recipe)
    lines = lines_of(of_role(listings, "train") or listings)
    utterances = overfit.choose_utterances(lines, recipe)
    result = overfit.overfit(recipe, utterances, 60 * minutes)
    print(f"overfit: {len(utterances)} utterances, {result}", file=sys.stderr)
    return apply((overfit.overfit_ten,), result, where)


def _print_checks() -> None:
    silence_tensorflow()
    from preflight.recipes import WITH_MODEL  # here: see utils.backend.quiet

    checks = (*WITHOUT_MODEL, *WITH_MODEL)
    width = max(len(check_name(check)) for check in checks)
    for check in checks:
        print(f"{check_name(check):{width}}  {about(check)}")


def _parser() -> CommandParser:
    parser = CommandParser(description=__doc__, epilog=EXAMPLES)
    parser.add_argument(
        "paths",
        nargs="*",
        metavar="PATH | key=value",
        help="manifests, folders of manifests, runs, recordings; values that override the recipe",
    )
    parser.add_argument("--config", type=Path, metavar="RECIPE", help="check a recipe of train.py")
    parser.add_argument("--no-audio", action="store_true", help="do not decode recordings")
    parser.add_argument(
        "--overfit",
        action="store_true",
        help="train the recipe's model on ten utterances until it has learnt them",
    )
    parser.add_argument(
        "--minutes",
        type=positive,
        default=OVERFIT_MINUTES,
        help="time limit of --overfit; default: %(default)s",
    )
    parser.add_argument(
        "--workers",
        type=positive,
        default=os.cpu_count() or 1,
        help="processes that decode; default: %(default)s, the number of CPU cores",
    )
    add_cluster(parser)
    parser.add_argument("--json", action="store_true", help="print all findings as JSON")
    parser.add_argument("--list", action="store_true", help="print all checks and stop")
    return parser


if __name__ == "__main__":
    run_command(main)
