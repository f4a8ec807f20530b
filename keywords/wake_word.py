"""Makes a small model that detects a wake word typed in hanzi: synthesis, training, export, calibration.

    clips/       the word in many voices, similar words, ordinary speech, noise (negatives.tsv)
    run/         the run folder of train.py keyword
    streams/     long recordings of voices that are not in the training data, with the word at known times
    export/      the bundle for listen.py; written when the threshold is known
    trade_off/   misses against false alarms at each threshold, as a table and a picture
    report.md    the expected performance; report.json: the same data

Finished stages are not repeated, and interrupted ones are resumed: give the same command again.
"""

import json
import os
import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from analysis.keyword.detection_report import write_detection_report
from analysis.keyword.detections import match
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
from data.synthesis.wake_word_clips import choose_stream_clips, generate
from keywords.calibration import ChosenThreshold, calibrate, of_keyword
from keywords.listening import Listener, open_listener
from keywords.wake_word_request import Request
from utils.audio.reading import find_recordings
from utils.backend.quiet import silence_tensorflow
from utils.config import load_config, to_plain
from utils.errors import BundleError, CorpusError, RunError
from utils.files import remove_leftovers, write_json, write_text
from utils.run_folder.checksum_files import file_hash
from utils.run_folder.run import RunFolder, config_differences, describe_differences

_SMOOTHING_MS = 200.0  # the word nearly fills its clip, so its probability is high for a short time only
SMALL_STEPS, SMALL_HOURS = 150, 0.1  # training steps, and hours of synthesised speech, of a quick trial
_CLIP_MS = (1000, 2500)  # shortest and longest clip
_CLIP_QUANTILE = 0.95  # fraction of the word's recordings that fit into a clip
_TEST_CLIPS = 200  # clips to compare the exported model with its source


def make_wake_word(request: Request) -> list[str]:
    """Run all stages that are not finished.

    Returns:
        Lines for the user: results and warnings.

    Raises:
        CorpusError: the clips cannot be made, or all thresholds have more false alarms than allowed.
        AudioError, ConfigError, RunError, BundleError: see the message.
    """
    output = request.output
    output.mkdir(parents=True, exist_ok=True)
    remove_leftovers(output, deep=False)
    with _stage(output, 1, "clips", "speaking the word and what sounds nearly like it"):
        clips = generate(output / "clips", request.word, request.settings, request.workers)
    if (lines := _finished_lines(request)) is not None:
        return lines
    with _stage(output, 2, "training", "training"):
        _train(request, clips)
    with _stage(output, 3, "export", "exporting the model"):
        bundle = _export(output)
    with _stage(output, 4, "streams", "putting test voices into a long recording"):
        streams = {
            split: _stream(request, clips[split], split)
            for split in (("test",) if request.backgrounds else ("dev", "test"))
        }
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


def _finished_lines(request: Request) -> list[str] | None:
    """The lines for the user if this request is finished, else None.

    A request with another recipe is not finished: the training then names what differs from the run's recipe.
    """
    path = request.output / "report.json"
    if not path.is_file() or not (request.output / "export").is_dir():
        return None
    report = json.loads(path.read_text(encoding="utf-8"))
    return report.get("lines") if report["key"] == json.loads(json.dumps(request.key)) else None


def _train(request: Request, clips: Mapping[str, Sequence[SpokenClip]]) -> None:
    silence_tensorflow()
    from training.run import train_from_config  # here: see utils.backend.quiet
    from training.tasks.keyword import VARIANTS, KeywordConfig

    output, run = request.output, RunFolder(request.output / "run")
    word_seconds = [clip.seconds for clip in clips["train"] if clip.label == request.word.hanzi]
    if not word_seconds:
        raise CorpusError("the synthesiser can't say this word", where=output / "clips" / "unspoken.tsv")
    overrides = [
        f"data.folder={output / 'clips'}",
        f"data.cache={output / 'clip_store'}",
        f"data.clip_ms={clip_ms(word_seconds)}",
        f"data.workers={request.workers}",
        *request.overrides,
    ]
    if run.config_file.is_file():
        config = load_config(KeywordConfig, request.config, ["task=keyword", *overrides], VARIANTS)
        _refuse_another_recipe(run, to_plain(config))
    train_from_config("keyword", request.config, overrides, run.path)


def _refuse_another_recipe(run: RunFolder, config: Mapping[str, Any]) -> None:
    """Raise RunError, with the differences, if the run was trained with another config."""
    if differing := config_differences(run.config(), config):
        raise RunError(
            f"the model was trained with another recipe ({describe_differences(differing)})",
            where=run.path,
            hint="choose another --output, or delete this folder to train a new model on the same clips",
        )


def clip_ms(seconds: Sequence[float]) -> int:
    """Length of a clip, a multiple of 100 ms, that nearly all recordings of the word fit into."""
    length = 100 * int(np.ceil(10 * np.quantile(seconds, _CLIP_QUANTILE)))
    return min(max(length, _CLIP_MS[0]), _CLIP_MS[1])


def _export(output: Path) -> Path:
    """Export the run if needed; return the finished bundle, or one without a calibrated threshold."""
    record = output / "exported.json"  # checksum of the exported weights
    exported = {"weights": file_hash(RunFolder(output / "run").best_weights)}
    current = not record.is_file() or json.loads(record.read_text(encoding="utf-8")) == exported
    for name in ("export", "uncalibrated"):
        if not (output / name).is_dir():
            continue
        if current:
            return output / name
        shutil.rmtree(output / name)  # the bundle of a deleted run
    silence_tensorflow()
    from bundle.export.build import export_bundle
    from bundle.export.keyword_source import keyword_source
    from bundle.variants import ArtefactMode, Format, Precision, Variant

    source = keyword_source(output / "run", max_tests=_TEST_CLIPS, smoothing_ms=_SMOOTHING_MS)
    stream = Variant(Format.LITERT, ArtefactMode.EXTERNAL, Precision.FLOAT)
    (artefact,) = export_bundle(source, [stream], output / "uncalibrated")
    if artefact.problems:
        raise BundleError(f"the exported model fails: {'; '.join(artefact.problems)}", where=output)
    write_json(record, exported)
    return output / "uncalibrated"


def _stream(request: Request, clips: Sequence[SpokenClip], split: str) -> Path:
    """Make a folder with a long recording of a split's voices and the list of its words."""
    folder = request.output / "streams" / f"{split}_{request.hours:g}h"
    if (folder / "spoken.tsv").is_file():
        return folder
    root, settings = request.output / "clips", request.settings
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
    matched = match(calibration.detections, spoken)
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
    final = request.output / "export"
    command = f"python listen.py --model {final} --microphone"
    warnings = [f"note: {warning}" for warning in warnings_of(results)]
    lines = [*summary_lines(results), *warnings, f"listen: {command}"]
    write_text(request.output / "report.md", report_text(results, command))
    if bundle != final:
        bundle.rename(final)
    write_json(request.output / "report.json", {"key": request.key, "lines": lines, **asdict(results)})
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
        asked=request.alarms_per_hour,
        calibrated=calibration.chosen,
        calibration_hours=calibration.chosen_hours,
        chosen=calibration.evaluated,
        hours=calibration.hours,
        stream=calibration.stream_hours,
        stream_alarms=alarms,
        by_kind=detections_by_kind(calibration.detections, calibration.spoken, word.hanzi),
        parameters=exported["parameters"],
        artefact={
            "bytes": artefact["bytes"],
            "latency_us": artefact["latency_us"],
            "call_seconds": listener.stream.call_seconds,
        },
        stages=json.loads((request.output / "stages.json").read_text(encoding="utf-8")),
    )
