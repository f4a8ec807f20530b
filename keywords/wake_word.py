"""Makes a small model that detects a wake word typed in hanzi: synthesis, training, export, calibration.

    clips/       the word in many voices, similar words, ordinary speech, noise (negatives.tsv)
    streams/     long recordings of voices that are not in the training data, with the word at known times
    run/         the run folder of train.py keyword
    export/      the bundle for listen.py; written when the threshold is known
    trade_off/   misses against false alarms at each threshold, as a table and a picture
    report.md    the expected performance; report.json: the same data
    source.json  the word and the settings of the clips that all of this was made from

Finished stages are not repeated, and interrupted ones are resumed: give the same command again.
"""

import json
import os
import shlex
import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from analysis.keyword.detections import late_seconds_of, match, write_detection_report
from analysis.keyword.wake_word_report import (
    SYNTHETIC,
    WakeWordResults,
    detections_by_kind,
    report_text,
    summary_lines,
    warnings_of,
)
from data.keywords.folders import NOISE_FOLDER
from data.keywords.long_recordings import Material, write_long_recording
from data.synthesis.clips import SpokenClip
from data.synthesis.wake_word_clips import choose_stream_clips, corpus_card, generate
from keywords.backgrounds import check_halves
from keywords.calibration import ChosenThreshold, calibrate, of_keyword, spoken_by_test_voices
from keywords.listening import Listener, open_listener
from keywords.wake_word_request import Request
from streaming.conversion.modes import Mode
from utils.audio.folders import find_recordings
from utils.backend.quiet import silence_tensorflow
from utils.errors import BundleError, RunError
from utils.files import remove_leftovers, write_json, write_text
from utils.run_folder.checksum_files import file_hash
from utils.run_folder.run import RunFolder, config_differences, describe_differences, locked

_SMOOTHING_MS = 200.0  # the word nearly fills its clip, so its probability is high for a short time only
SMALL_STEPS, SMALL_HOURS = 150, 0.1  # training steps, and hours of synthesised speech, of a quick trial
_TEST_CLIPS = 200  # clips to compare the exported model with its source
SOURCE = "source.json"  # description of the clips that the model and the streams come from
EXPORTED = "exported.json"  # checksum of the exported weights
REPORT = "report.json"  # the results and the request; written last
_MADE_FROM_CLIPS = ("run", "streams", "uncalibrated", "export", REPORT)


def make_wake_word(request: Request) -> list[str]:
    """Run all stages that are not finished.

    Returns:
        Lines for the user: results and warnings.

    Raises:
        CorpusError: the clips cannot be made, the test voices do not say the word (checked before the
            training), or all thresholds have more false alarms than allowed.
        RunError: the folder has the model of other clips or of another recipe, or another process writes it.
        AudioError, ConfigError, BundleError: see the message.
    """
    output = request.output
    _check_source(request)
    if (lines := _finished_lines(request)) is not None:
        return lines
    _check_request(request)
    with locked(RunFolder(output)):
        return _do_stages(request)


def _do_stages(request: Request) -> list[str]:
    output = request.output
    remove_leftovers(output, deep=False)
    write_json(output / SOURCE, corpus_card(request.clips, request.word, request.settings).description)
    with _stage(output, 1, "clips", "speaking the word and what sounds nearly like it"):
        clips = generate(request.clips, request.word, request.settings, request.workers)
    with _stage(output, 2, "streams", "putting test voices into a long recording"):
        streams = {
            split: _stream(request, clips[split], split)
            for split in (("test",) if request.backgrounds else ("dev", "test"))
        }
        # Before the training takes its time: with few --hours, the recording may lack the word.
        spoken_by_test_voices(streams["test"], request.word.hanzi)
    with _stage(output, 3, "training", "training"):
        _train(request, clips)
    with _stage(output, 4, "export", "exporting the model"):
        bundle = _export(output)
    with _stage(output, 5, "calibration", "listening"):
        return _calibrate(request, clips, streams, bundle)


@contextmanager
def _stage(output: Path, number: int, name: str, text: str) -> Iterator[None]:
    """Print the stage, and record its time in ``stages.json`` when it has finished."""
    print(f"{number}/5 {text}", file=sys.stderr, flush=True)
    start, cpu_start = time.monotonic(), sum(os.times()[:4])
    yield
    path = output / "stages.json"
    before = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    spent = [round(time.monotonic() - start, 1), round(sum(os.times()[:4]) - cpu_start, 1)]
    if name not in before or spent[0] > before[name][0]:  # a finished stage takes no time
        write_json(path, before | {name: spent})


def _check_source(request: Request) -> None:
    """Check that what the folder has was made from the clips of this request.

    Raises:
        RunError: it was made from the clips of another word or of other settings; the differences are named.
    """
    output = request.output
    found = [name for name in _MADE_FROM_CLIPS if (output / name).exists()]
    if not found:
        return
    requested = corpus_card(request.clips, request.word, request.settings).description
    known = output / SOURCE
    source = _read_object(known) if known.is_file() else {}
    differing = config_differences({name: source.get(name) for name in requested}, requested)
    if differing:
        other = f"other clips ({describe_differences(differing)})" if source else "unknown clips"
        raise RunError(
            f"{', '.join(found)} in this folder come from {other}",
            where=output,
            hint="choose another --output, or delete this folder",
        )


def _check_request(request: Request) -> None:
    """Check what later stages need: enough background, and a recipe of a model that can stream.

    Raises:
        AudioError, ConfigError, RunError: see the message.
    """
    check_halves(request.backgrounds)
    silence_tensorflow()
    from keywords.wake_word_training import check_recipe  # here: see utils.backend.quiet

    check_recipe(request)


def _finished_lines(request: Request) -> list[str] | None:
    """The lines for the user if this request is finished, else None.

    A request with another recipe is not finished: the training then names what differs from the run's recipe.
    A model whose run was deleted isn't either: it is to be trained again.
    """
    output = request.output
    path = output / REPORT
    if not path.is_file() or not (output / "export").is_dir() or not _is_of_run(output):
        return None
    report = _read_object(path)
    if report.get("key") != json.loads(json.dumps(request.key)):
        return None
    return [*report["lines"][:-1], f"listen: {_listen_command(output)}"]  # the folder may have been moved


def _listen_command(output: Path) -> str:
    return f"python listen.py --model {shlex.quote(str(output / 'export'))} --microphone"


def _read_object(path: Path) -> dict[str, Any]:
    """A JSON file that this command wrote.

    Raises:
        RunError: it is damaged.
    """
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError) as error:
        raise RunError(
            f"not readable ({error})", where=path, hint="delete this file, then give the same command again"
        ) from error


def _train(request: Request, clips: Mapping[str, Sequence[SpokenClip]]) -> None:
    from keywords.wake_word_training import train_word  # here: see utils.backend.quiet

    train_word(request, clips)


def _is_of_run(output: Path) -> bool:
    """Whether the exported model has the weights of the run."""
    weights, record = RunFolder(output / "run").best_weights, output / EXPORTED
    if not (weights.is_file() and record.is_file()):
        return False
    return _read_object(record) == {"weights": file_hash(weights)}


def _export(output: Path) -> Path:
    """Export the run if needed; return the finished bundle, or one without a calibrated threshold."""
    current = _is_of_run(output)
    for name in ("export", "uncalibrated"):
        if not (output / name).is_dir():
            continue
        if current:
            return output / name
        shutil.rmtree(output / name)  # the bundle of a deleted run
    silence_tensorflow()
    from bundle.export.build import export_bundle
    from bundle.export.keyword_source import keyword_source
    from bundle.variants import Format, Precision, Variant

    source = keyword_source(output / "run", max_tests=_TEST_CLIPS, smoothing_ms=_SMOOTHING_MS)
    stream = Variant(Format.LITERT, Mode.EXTERNAL, Precision.FLOAT)
    (artefact,) = export_bundle(source, [stream], output / "uncalibrated")
    if artefact.problems:
        raise BundleError(f"the exported model fails: {'; '.join(artefact.problems)}", where=output)
    write_json(output / EXPORTED, {"weights": file_hash(RunFolder(output / "run").best_weights)})
    return output / "uncalibrated"


def _stream(request: Request, clips: Sequence[SpokenClip], split: str) -> Path:
    """Make a folder with a long recording of a split's voices and the list of its words."""
    folder = request.output / "streams" / f"{split}_{request.hours:g}h"
    if (folder / "spoken.tsv").is_file():
        return folder
    root, settings = request.clips, request.settings
    seconds = request.hours * 3600
    stream_clips = choose_stream_clips(root, request.word, settings, clips, round(seconds))
    noises = find_recordings(root / NOISE_FOLDER)
    write_long_recording(
        folder, Material(stream_clips, stream_clips, noises), seconds, keyword_share=1.0, seed=settings.seed
    )
    return folder


def _calibrate(
    request: Request,
    clips: Mapping[str, Sequence[SpokenClip]],
    streams: Mapping[str, Path],
    bundle: Path,
) -> list[str]:
    """Choose the threshold, evaluate it on other sound, write the report, and publish the bundle."""
    from bundle.folder import write_decoding

    word, listener = request.word.hanzi, open_listener(bundle)
    calibration = calibrate(
        listener,
        word,
        request.alarms_per_hour,
        streams["test"],
        streams.get("dev"),
        request.backgrounds,
    )
    spoken = of_keyword(calibration.spoken, word)
    matched = match(calibration.detections, spoken, late_seconds_of(listener.detection.refractory_ms))
    # From here on the files of the last report are replaced: if this is interrupted, it is to be repeated.
    (request.output / REPORT).unlink(missing_ok=True)
    write_detection_report(
        request.output / "trade_off",
        calibration.points,
        calibration.evaluated,
        calibration.detections,
        spoken,
        matched,
        calibration.stream_hours * 3600,
    )
    results = _results(request, clips, bundle, listener, calibration, len(matched.false_alarms))
    write_decoding(bundle, replace(listener.detection, threshold=calibration.chosen.threshold))
    return _finish(request, results, bundle)


def _finish(request: Request, results: WakeWordResults, bundle: Path) -> list[str]:
    """Write the report and rename the bundle; ``report.json``, which marks the end, is written last."""
    final, command = request.output / "export", _listen_command(request.output)
    warnings = [f"note: {warning}" for warning in warnings_of(results)]
    lines = [*summary_lines(results), *warnings, f"listen: {command}"]
    write_text(request.output / "report.md", report_text(results, command))
    if bundle != final:
        bundle.rename(final)
    write_json(request.output / REPORT, {"key": request.key, "lines": lines, **asdict(results)})
    return lines


def _results(
    request: Request,
    clips: Mapping[str, Sequence[SpokenClip]],
    bundle: Path,
    listener: Listener,
    calibration: ChosenThreshold,
    alarms: int,
) -> WakeWordResults:
    word = request.word
    exported = json.loads((bundle / "export.json").read_text(encoding="utf-8"))
    (artefact,) = exported["artefacts"].values()
    return WakeWordResults(
        word=word.hanzi,
        pinyin=" ".join(word.syllables),
        forms=[" ".join(form) for form in word.forms],
        voices={split: len({clip.voice.name for clip in own}) for split, own in clips.items()},
        clips={split: len(own) for split, own in clips.items()},
        background="the user's recordings" if request.backgrounds else SYNTHETIC,
        allowed_per_hour=request.alarms_per_hour,
        calibrated=calibration.chosen,
        calibration_hours=calibration.chosen_hours,
        chosen=calibration.evaluated,
        hours=calibration.hours,
        stream=calibration.stream_hours,
        stream_alarms=alarms,
        by_kind=detections_by_kind(
            calibration.detections,
            calibration.spoken,
            word.hanzi,
            late_seconds_of(listener.detection.refractory_ms),
        ),
        parameters=exported["parameters"],
        artefact={
            "bytes": artefact["bytes"],
            "latency_us": artefact["latency_us"],
            "call_seconds": listener.stream.call_seconds,
        },
        stages=json.loads((request.output / "stages.json").read_text(encoding="utf-8")),
    )
