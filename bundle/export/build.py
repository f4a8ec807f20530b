"""Exports a model as a bundle folder: writes each requested artefact, measures it, and writes the report.

The folder appears when it is complete. An int8 artefact that predicts too many other labels than the source
model is converted again with more layers left in float; if that does not help, there is none.
"""

import math
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from tqdm import tqdm

from bundle.check.measuring import allowed_loss, measure, runtime_version, verdict
from bundle.export.artefact_writer import ArtefactWriter
from bundle.export.source import ExportSource
from bundle.folder import CLIPS, LABELS, STREAM, files_in
from bundle.report import ArtefactResult, accuracy_text, report_json, report_text
from bundle.runtimes.artefacts import INPUT
from bundle.runtimes.litert import FLEX, NOT_RUNNABLE, needs_flex
from bundle.variants import Format, Precision, UnavailableError, Variant
from model_keyword.labels import write_labels
from streaming.conversion.modes import Mode
from streaming.conversion.plan import check_streamable
from utils.backend.model_cost import multiply_accumulates
from utils.errors import BundleError
from utils.files import remove_path, replacing_folder, write_json, write_text
from utils.run_folder.bundle_files import FORMAT, METADATA, write_metadata
from utils.run_folder.environment import package_versions
from utils.run_folder.run import RunFolder

_PACKAGES = ("tensorflow", "keras", "numpy", "ai-edge-litert", "onnx", "onnxruntime", "tf2onnx")


TESTS, DEVELOPMENT = "tests.npz", "development.npz"  # clips in a temporary folder
FRACTIONS = (1 / 8, 1 / 4, 1 / 2, 3 / 4)
"""Fraction of the tensors between layers that each attempt after the first keeps in float. An attempt is a
conversion and a measurement, minutes for a speech model; hence at most five."""


def export_bundle(
    source: ExportSource,
    variants: Sequence[Variant],
    output: Path,
    *,
    frames_per_call: int = 0,
    force: bool = False,
    allow_flex: bool = False,
) -> list[ArtefactResult]:
    """Write a bundle with these artefacts, each measured in a new process.

    Args:
        source: the model and its clips.
        variants: at least one; all must be offered (see `bundle.variants`).
        output: the folder; it appears when it is complete.
        frames_per_call: frames per call of streams; 0: the minimum for the model's strides.
        force: replace an existing bundle, or an empty folder.
        allow_flex: allow TensorFlow operations in LiteRT files. Such files are written, but not measured.

    Returns:
        Measurements and problems of each artefact. An artefact that can't be written is a problem in the
        list; if none can be written, that is an error.

    Raises:
        ConfigError: streams are requested and the model can't stream; each obstacle is named.
        BundleError: the folder exists, is a file or a run, or has files but no bundle; the
            model's stream differs from the model; or no variant can be written.
    """
    _check_output(output, force)
    # wake_word.py exports in the process of its training, on a GPU: references must not be rounded to TF32.
    tf.config.experimental.enable_tensor_float_32_execution(False)
    states = list(dict.fromkeys(variant.state for variant in variants))
    streams = any(state.is_streaming for state in states)
    with ArtefactWriter(source, frames_per_call, allow_flex) as writer, replacing_folder(output) as folder:
        _write_parts(writer, folder, states, streams)
        writer.describe(states, folder / "models")
        accuracy = writer.accuracies(source.tests, streams) if len(source.tests) else None
        with tempfile.TemporaryDirectory() as temporary:
            clips = Path(temporary)
            _write_clips(writer, variants, clips)
            results = _write_all(writer, variants, folder, clips, accuracy)
        frames = source.golden.inputs.shape[1]
        costs = {state: _cost(writer.stage(state).model, frames) for state in states}
        _write_report(writer, folder, results, accuracy, costs)
    return results


def _check_output(output: Path, force: bool) -> None:
    """Raise BundleError if a bundle here would replace something else, or without ``force`` a bundle."""
    another = "--output chooses another folder"
    if output.exists() and not output.is_dir():
        raise BundleError("there is a file where the bundle's folder would be", where=output, hint=another)
    if RunFolder(output).config_file.exists():
        raise BundleError("the folder is a run, which the bundle would replace", where=output, hint=another)
    if output.is_dir() and any(output.iterdir()) and not (output / METADATA).exists():
        raise BundleError(
            "the folder has files, and is no bundle that could be replaced", where=output, hint=another
        )
    if output.exists() and not force:
        raise BundleError("the folder exists already", where=output, hint=f"--force replaces it, {another}")


def can_stream(source: ExportSource) -> list[str]:
    """Why the source model can't stream, one line per layer; empty if it can."""
    if source.row_stride:
        return list(source.obstacles)
    return [str(obstacle) for obstacle in check_streamable(source.model)]


def _cost(model: keras.Model, frames: int) -> int | None:
    """Multiply-accumulates per call; None if those of a layer are unknown."""
    try:
        return multiply_accumulates(model, frames)
    except ValueError:
        return None


def _write_parts(writer: ArtefactWriter, folder: Path, states: Sequence[Mode], streams: bool) -> None:
    """Write labels, tables, golden clips, and the geometry of streams and utterances."""
    source = writer.source
    write_labels(folder / LABELS, source.labels)
    for name, text in source.tables.items():
        write_text(folder / name, text)
    (folder / CLIPS).parent.mkdir()
    golden: dict[str, Any] = writer.golden(states)
    np.savez_compressed(folder / CLIPS, **golden)
    geometry = writer.geometry if streams else {"due": 0, "delay": 0}
    write_json(folder / STREAM, {**geometry, "row_stride": source.row_stride})


def _write_clips(writer: ArtefactWriter, variants: Sequence[Variant], folder: Path) -> None:
    """Write the clips to measure artefacts on, and those to choose the float layers of int8 on."""
    source = writer.source
    tests: dict[str, Any] = source.test_arrays(source.tests)
    np.savez(folder / TESTS, **tests)
    quantised = [variant for variant in variants if variant.precision is Precision.INT8]
    if quantised and len(source.development_clips):
        streams = any(variant.is_streaming for variant in quantised)
        development: dict[str, Any] = writer.development_arrays(streams)
        np.savez(folder / DEVELOPMENT, **development)


def _write_all(
    writer: ArtefactWriter,
    variants: Sequence[Variant],
    folder: Path,
    clips: Path,
    accuracy: Mapping[str, float] | None,
) -> list[ArtefactResult]:
    results = []
    for variant in tqdm(variants, unit="artefact", disable=None):
        try:
            results.append(_make(writer, variant, folder, clips, accuracy))
        except BundleError as error:
            if len(variants) == 1:
                raise
            remove_path(folder / variant.path)
            reason = f"{error.message} ({error.hint})" if error.hint else error.message
            unavailable = reason if isinstance(error, UnavailableError) else ""
            problem = f"not available for this model: {reason}" if unavailable else f"not written: {reason}"
            results.append(ArtefactResult(variant, {}, [problem], unavailable))
            continue
        kind = writer.source.kind
        write_text(folder / f"{variant.path}.accuracy.txt", accuracy_text(results[-1], kind))
    if not any(result.measured for result in results):
        reasons = "; ".join(f"{result.variant}: {', '.join(result.problems)}" for result in results)
        raise BundleError(
            f"no artefact can be written ({reasons})", hint="export another precision or format"
        )
    return results


def _make(
    writer: ArtefactWriter, variant: Variant, folder: Path, clips: Path, accuracy: Mapping[str, float] | None
) -> ArtefactResult:
    """Write and measure one artefact."""
    start, float_layers, path = time.perf_counter(), (), folder / variant.path
    if variant.precision is Precision.INT8:
        float_layers = write_int8(writer, variant, folder, clips / DEVELOPMENT)
    else:
        writer.write(variant, path)
    seconds = time.perf_counter() - start
    if variant.format is Format.LITERT and needs_flex(path.read_bytes()):
        measured, problems = {FLEX: True}, [f"not checked: {NOT_RUNNABLE}"]
    else:
        measured = measure(folder, variant, clips / TESTS if accuracy else None)
        problems = verdict(variant, measured, accuracy)
    measured |= {"bytes": _size(path), "seconds_to_make": round(seconds, 2)}
    measured |= {"runtime": runtime_version(variant), "float_layers": list(float_layers)}
    return ArtefactResult(variant, measured, problems)


def write_int8(writer: ArtefactWriter, variant: Variant, folder: Path, development: Path) -> tuple[str, ...]:
    """Write an int8 artefact with as few float layers as it needs to predict what the source model does.

    At most a point of the labels may differ. The references don't matter: where the source model is wrong, 8
    bits may be right by chance, which would hide what they lose elsewhere.

    Args:
        writer: writes the artefact.
        variant: a variant of precision int8.
        folder: folder of the bundle.
        development: .npz file with the clips to choose on (`ArtefactWriter.development_arrays`).

    Returns:
        Names of the float layers; empty if all layers are in 8 bits.

    Raises:
        BundleError: the artefact can't be written or run, or no attempt keeps the labels. Then there is no
            int8 artefact: with all layers in float nothing would be quantised.
    """
    for names in _attempts(writer):
        writer.write(variant, folder / variant.path, names)
        measured = measure(folder, variant, development)
        kept, allowed = min(measured["accuracy"].values()), allowed_loss(measured["labels"])
        if kept >= 1 - allowed:
            return names
    weighted = writer.weighted_layers
    left = f"{len(weighted & set(names))} of {len(weighted)} layers"
    raise BundleError(
        f"int8 changes too many results: with {left} in float, {100 * (1 - kept):.1f} % of the labels still "
        f"differ from the source model's, allowed {100 * allowed:.1f} %",
        where=variant.path,
        hint="use precision dynamic or float16",
    )


def _attempts(writer: ArtefactWriter) -> Iterator[tuple[str, ...]]:
    """Names of the layers to keep in float: none, then those around a growing fraction of the tensors.

    A part of the layers with weights is always left to quantise.
    """
    yield ()
    groups = writer.noisiest_layers
    for count in sorted({math.ceil(fraction * len(groups)) for fraction in FRACTIONS} - {0}):
        names = tuple(dict.fromkeys(name for group in groups[:count] for name in group))
        if not writer.weighted_layers <= set(names):
            yield names


def _write_report(
    writer: ArtefactWriter,
    folder: Path,
    results: Sequence[ArtefactResult],
    accuracy: Mapping[str, float] | None,
    costs: Mapping[Mode, int | None],
) -> None:
    source = writer.source
    written = [result for result in results if result.measured]
    about = {
        "model": source.model.name,
        "weights_hash": source.weights_hash,
        "parameters": source.model.count_params(),
        "accuracy": accuracy,
        "test_clips": len(source.tests),
        "test_split": source.test_split,
        "frame_seconds": source.frame_seconds,
        "row_stride": source.row_stride,
        "multiply_accumulates": costs,
        "stream": writer.geometry if any(result.variant.is_streaming for result in results) else None,
    }
    write_json(folder / "export.json", report_json(about, results))
    write_text(folder / "export.md", report_text(about, results))
    metadata = {
        "format": FORMAT,
        "kind": source.kind,
        "features": dict(source.features),
        "features_hash": source.features_hash,
        "decoding": dict(source.decoding),
        "row_stride": about.pop("row_stride"),
        "tables": sorted(source.tables),
        "stream": about.pop("stream"),
        "source": {"config_hash": source.config_hash, **about},
        "packages": package_versions(_PACKAGES) | {"backend": keras.backend.backend()},
        "artefacts": {result.variant.path: _artefact_metadata(writer, result) for result in written},
        "files": files_in(folder),
    }
    write_metadata(folder, metadata)


def _artefact_metadata(writer: ArtefactWriter, result: ArtefactResult) -> dict[str, Any]:
    variant = result.variant
    shape = writer.stage(variant.state).signature(None)[INPUT].shape.as_list()
    batch = 1 if variant.is_streaming or variant.format is Format.LITERT else None
    if shape[1] is None and variant.format is Format.LITERT and not writer.source.row_stride:
        shape[1] = writer.source.golden.inputs.shape[1]
    return {
        "format": variant.format,
        "state": variant.state,
        "precision": variant.precision,
        "input_shape": [batch, *shape[1:]],
        "passed": not result.problems,
        FLEX: FLEX in result.measured,
    }


def _size(path: Path) -> int:
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return sum(file.stat().st_size for file in files)
