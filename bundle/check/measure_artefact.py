"""Measures an exported model file (artefact): difference to the source model, accuracy, latency, memory.

    python -m bundle.check.measure_artefact BUNDLE litert/stream_external_int8.tflite --result result.json

It runs in its own process with only the artefact's runtime, so that nothing in the exporter's memory can
influence the result; ``measuring`` starts it. The golden clips (a few clips, kept in the bundle) and the
source model's outputs for them come from the bundle.
"""

from utils.command.entry import run_command

import json
import platform
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from bundle.check.scoring import (
    accuracy,
    chunks_of,
    decoded,
    evenly,
    final_outputs,
    golden_outputs,
    label_count,
    streamed,
)
from bundle.check.utterances import BATCH, compare, predicted
from bundle.runtimes.artefacts import Artefact, open_artefact
from streaming.conversion.modes import Mode
from utils.command.parser import CommandParser
from utils.files import read_arrays, write_json

MAX_SLOW_CLIPS = 250
"""Test clips, evenly spaced, that are streamed through TensorFlow, which takes a millisecond per call."""
CALLS, SECONDS = 300, 2.0  # of the latency measurement: whichever limit is reached first


def compare_with_source(
    artefact: Artefact, geometry: Mapping[str, Any], golden: Mapping[str, np.ndarray]
) -> dict[str, Any]:
    """Compare an artefact's outputs for the golden clips with those of the source model.

    Args:
        artefact: the opened artefact.
        geometry: for streams ``due`` and ``delay``, for whole utterances ``row_stride``.
        golden: ``inputs``, ``non_stream``, for streams ``reset`` and ``running``, for whole utterances
            ``lengths``.

    Returns:
        ``difference``: the largest for each kind of output; ``largest``: the source model's largest logit;
        ``agreement``: fraction of clips with the same best label.
    """
    if geometry.get("row_stride"):
        return compare(artefact.run, golden, geometry["row_stride"])
    names = golden_outputs(artefact.mode)
    outputs = {name: _outputs(artefact, golden["inputs"], geometry, name) for name in names}
    final = {name: _final(values, geometry, name) for name, values in outputs.items()}
    same = [
        values.argmax(axis=-1) == _final(golden[name], geometry, name).argmax(axis=-1)
        for name, values in final.items()
    ]
    return {
        "difference": {name: float(np.abs(outputs[name] - golden[name]).max()) for name in names},
        "largest": float(max(np.abs(golden[name]).max() for name in names)),
        "agreement": float(np.mean([values.mean() for values in same])),
    }


def accuracies(
    artefact: Artefact, geometry: Mapping[str, Any], tests: Mapping[str, np.ndarray]
) -> dict[str, float]:
    """Accuracy on test clips by mode.

    The mode is ``non_stream``; for streams ``reset1`` (a reset before each clip) and ``reset0`` (no reset).
    ``references_MODE`` in ``tests`` are the references of that mode, instead of ``references``.
    """
    modes = {"reset1": "reset", "reset0": "running"} if artefact.mode.is_streaming else {"non_stream": ""}
    measured = {}
    for name, kind in modes.items():
        if kind:
            outputs = _final(_outputs(artefact, tests["inputs"], geometry, kind), geometry, kind)
            found = decoded(outputs, int(tests.get("blank", -1)))
        else:
            size = artefact.info.input_shape[0] or BATCH
            found = predicted(artefact.run, tests, geometry.get("row_stride", 0), size)
        measured[name] = accuracy(tests.get(f"references_{name}", tests["references"]), found)
    return measured


def _outputs(artefact: Artefact, inputs: np.ndarray, geometry: Mapping[str, Any], kind: str) -> np.ndarray:
    if kind == "non_stream":
        return artefact.run(inputs)
    size = artefact.info.input_shape[1]
    return streamed(artefact, inputs, size, geometry["due"], reset=kind == "reset")


def _final(outputs: np.ndarray, geometry: Mapping[str, Any], kind: str) -> np.ndarray:
    return outputs if kind == "non_stream" else final_outputs(outputs, geometry["delay"])


def latency(artefact: Artefact, clip: np.ndarray, due: int) -> float:
    """Median time of a call (a whole clip or a chunk) in microseconds, including Python's loop."""
    if artefact.mode is Mode.NON_STREAM_INFERENCE:
        return _median_time(lambda _: artefact.run(clip[None]))
    chunks = chunks_of(clip, artefact.info.input_shape[1], due)
    return _median_time(lambda call: artefact.step(chunks[call % len(chunks)]))


def _median_time(call: Callable[[int], Any]) -> float:
    for number in range(5):
        call(number)
    times: list[float] = []
    end = time.perf_counter() + SECONDS
    while len(times) < CALLS and time.perf_counter() < end:
        start = time.perf_counter()
        call(len(times))
        times.append(time.perf_counter() - start)
    return float(np.median(times) * 1e6)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure one artefact and write the results."""
    options = _parser().parse_args(arguments)
    geometry = json.loads((options.bundle / "golden" / "stream.json").read_text(encoding="utf-8"))
    golden = read_arrays(options.bundle / "golden" / "clips.npz")
    longest = int(golden["lengths"].argmax()) if "lengths" in golden else 0
    start = time.perf_counter()
    artefact = open_artefact(options.bundle / options.artefact)
    loading = time.perf_counter() - start
    measured = compare_with_source(artefact, geometry, golden)
    if options.tests:
        tests = read_arrays(options.tests)
        if artefact.mode.is_streaming and "tensorflow" in sys.modules:
            rows = evenly(len(tests["inputs"]), MAX_SLOW_CLIPS)
            tests |= {name: values[rows] for name, values in tests.items() if name != "blank"}
        measured["accuracy"] = accuracies(artefact, geometry, tests)
        measured["clips"], measured["labels"] = len(tests["inputs"]), label_count(tests["references"])
    artefact.reset()
    measured |= {
        "latency_us": latency(artefact, golden["inputs"][longest], geometry["due"]),
        "call_positions": golden["inputs"].shape[1],
        "loading_ms": loading * 1000,
        "memory_mib": psutil.Process().memory_info().rss / 2**20,
        "operations": artefact.info.operations,
        "state_values": sum(int(np.prod(shape)) for shape in artefact.info.states.values()),
        "machine": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        "tensorflow_loaded": "tensorflow" in sys.modules,
    }
    write_json(options.result, measured)


def _parser() -> CommandParser:
    parser = CommandParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("bundle", type=Path)
    parser.add_argument("artefact", help="path in the bundle")
    parser.add_argument("--result", type=Path, required=True, help="JSON file to write")
    parser.add_argument("--tests", type=Path, help=".npz with inputs and references")
    return parser


if __name__ == "__main__":
    run_command(main)
