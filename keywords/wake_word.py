"""Makes a small model that detects a wake word typed in hanzi: synthesis, training, export, calibration.

    clips/       the word in many voices, similar words, ordinary speech, noise (negatives.tsv)
    streams/     long recordings of voices that are not in the training data, with the word at known times
    run/         the run folder of train.py keyword
    export/      the bundle for listen.py
    trade_off/   misses against false alarms at each threshold, as a table and a picture
    report.md    the expected performance; report.json: the same data

Clips, recordings, training and export that are finished are not repeated: give the same command again after
an interruption, or with other recordings for the calibration.
"""

import json
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from analysis.keyword.detections import late_seconds_of, match, onset_seconds, write_detection_report
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
from data.synthesis.wake_word_clips import WakeWordSettings, choose_stream_clips, generate
from data.synthesis.wake_words import WakeWord
from keywords.calibration import ChosenThreshold, calibrate, of_keyword, spoken_by_test_voices
from keywords.listening import Listener, is_export_of, open_listener
from utils.audio.folders import find_recordings
from utils.backend.quiet import silence_tensorflow
from utils.errors import BundleError, RunError
from utils.features.keyword import KeywordFeatureConfig
from utils.files import remove_leftovers, write_json, write_text
from utils.run_folder.run import RunFolder, locked

RECIPE = Path(__file__).parents[1] / "configs" / "keyword" / "wake_word.yaml"
SMALL_STEPS, SMALL_HOURS = 150, 0.1  # training steps, and hours of synthesised speech, of a quick trial
_SMOOTHING_MS = 200.0  # the word nearly fills its clip, so its probability is high for a short time only
_TEST_CLIPS = 200  # clips to compare the exported model with its source


@dataclass(frozen=True)
class Request:
    """A request for a wake word.

    Attributes:
        word: word to detect.
        output: folder for all results.
        settings: settings of the clips.
        config: recipe (training config).
        overrides: values that replace those of the recipe.
        backgrounds: recordings without the word.
        alarms_per_hour: allowed false alarms per hour.
        hours: duration of the synthesised speech for the calibration.
        workers: number of synthesisers, and of processes that read clips.
    """

    word: WakeWord
    output: Path
    settings: WakeWordSettings = field(default_factory=WakeWordSettings)
    config: Path = RECIPE
    overrides: tuple[str, ...] = ()
    backgrounds: tuple[Path, ...] = ()
    alarms_per_hour: float = 1.0
    hours: float = 1.0
    workers: int = 2

    @property
    def clips(self) -> Path:
        """Folder of the clips."""
        return self.output / "clips"

    @property
    def run(self) -> RunFolder:
        """The run of the training."""
        return RunFolder(self.output / "run")


def make_wake_word(request: Request) -> list[str]:
    """Run all stages that are not finished, then calibrate.

    Returns:
        Lines for the user: results and warnings.

    Raises:
        CorpusError: the clips cannot be made, the folder has those of another word, the test voices do not
            say the word (checked before the training), or all thresholds have more false alarms than allowed.
        RunError: the folder has the model of another recipe, or another process writes it.
        AudioError, ConfigError, BundleError: see the message.
    """
    silence_tensorflow()
    from keywords.wake_word_training import check_recipe, train_word  # here: see utils.backend.quiet

    check_recipe(request.config, request.overrides)
    with locked(RunFolder(request.output)):
        remove_leftovers(request.output, deep=False)
        _print_stage(1, "speaking the word and what sounds nearly like it")
        clips = generate(request.clips, request.word, request.settings, request.workers)
        _print_stage(2, "putting test voices into a long recording")
        splits = ("test",) if request.backgrounds else ("dev", "test")
        streams = {split: _stream(request, clips[split], split) for split in splits}
        # Before the training takes its time: with few --hours, the recording may lack the word.
        spoken_by_test_voices(streams["test"], request.word.hanzi)
        _print_stage(3, "training")
        settings = [f"data.folder={_quoted(request.clips)}", f"data.workers={request.workers}"]
        settings += [f"data.cache={_quoted(request.output / 'clip_store')}"]
        spoken = [clip.seconds for clip in clips["train"] if clip.label == request.word.hanzi]
        train_word(request.config, [*request.overrides, *settings], spoken, request.run)
        _print_stage(4, "exporting the model")
        bundle = _export(request)
        _print_stage(5, "listening")
        return _calibrate(request, clips, streams, bundle)


def _print_stage(number: int, text: str) -> None:
    print(f"{number}/5 {text}", file=sys.stderr, flush=True)


def _quoted(path: object) -> str:
    """A path as a YAML string: without quotes, `` #`` or ``: `` in it would have a meaning."""
    return json.dumps(str(path), ensure_ascii=False)


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


def _export(request: Request) -> Path:
    """Export the run, unless its bundle is there."""
    from bundle.export.build import export_bundle
    from bundle.export.keyword_source import keyword_source
    from bundle.variants import Format, Mode, Precision, Variant

    output, weights = request.output / "export", request.run.best_weights
    if output.is_dir():
        if is_export_of(output, weights):
            return output
        shutil.rmtree(output)  # the bundle of a deleted run
    features = request.run.section("features", KeywordFeatureConfig)
    source = keyword_source(
        request.run.path,
        max_tests=_TEST_CLIPS,
        smoothing_ms=_SMOOTHING_MS,
        samples=features.kind != "micro",  # which can't be part of a model
    )
    streams = [
        Variant(format_, Mode.STREAM_EXTERNAL_STATE_INFERENCE, Precision.FLOAT)
        for format_ in (Format.LITERT, Format.ONNX)
    ]
    for artefact in export_bundle(source, streams, output):
        if artefact.problems:
            problems = "; ".join(artefact.problems)
            raise BundleError(f"the exported {artefact.variant} fails: {problems}", where=output)
    return output


def _calibrate(
    request: Request,
    clips: Mapping[str, Sequence[SpokenClip]],
    streams: Mapping[str, Path],
    bundle: Path,
) -> list[str]:
    """Choose the threshold, evaluate it on other sound, save it in the bundle, and write the report."""
    from bundle.folder import write_decoding

    word, listener = request.word.hanzi, open_listener(bundle)
    if word not in listener.labels:
        raise RunError(
            f"the model in this folder does not know '{word}'",
            where=request.run.path,
            hint="choose another --output, or delete this folder",
        )
    allowed, dev = request.alarms_per_hour, streams.get("dev")
    calibration = calibrate(listener, word, allowed, streams["test"], dev, request.backgrounds)
    spoken = of_keyword(calibration.spoken, word)
    matched = match(calibration.detections, spoken, late_seconds_of(listener.detection.refractory_ms))
    onset_ms = round(1000 * onset_seconds(calibration.detections, spoken, matched))
    threshold = calibration.chosen.threshold
    write_decoding(bundle, replace(listener.detection, threshold=threshold, onset_ms=onset_ms))
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
    command = f"python listen.py --model {shlex.quote(str(bundle))} --microphone"
    write_text(request.output / "report.md", report_text(results, command))
    write_json(request.output / "report.json", asdict(results))
    warnings = [f"note: {warning}" for warning in warnings_of(results)]
    return [*summary_lines(results), *warnings, f"listen: {command}"]


def _results(
    request: Request,
    clips: Mapping[str, Sequence[SpokenClip]],
    bundle: Path,
    listener: Listener,
    calibration: ChosenThreshold,
    alarms: int,
) -> WakeWordResults:
    word, late_seconds = request.word, late_seconds_of(listener.detection.refractory_ms)
    exported = json.loads((bundle / "export.json").read_text(encoding="utf-8"))
    artefact = next(iter(exported["artefacts"].values()))  # of LiteRT, which listen.py takes
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
        by_kind=detections_by_kind(calibration.detections, calibration.spoken, word.hanzi, late_seconds),
        parameters=exported["parameters"],
        artefact={
            "bytes": artefact["bytes"],
            "latency_us": artefact["latency_us"],
            "call_seconds": listener.stream.call_seconds,
        },
    )
