"""One artefact in, measured in a process of its own; differences to the source model, accuracy, latency out.

    python -m bundle.check.proof BUNDLE litert/stream_external_int8.tflite --result result.json [--tests FILE]

The process loads the artefact's own runtime and nothing else, so what was left in the exporter's memory can't
help. Golden clips, and the source model's answers to them, come from the bundle.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from bundle.check import utterances
from bundle.check.clips import chunks_of, evenly, streamed
from bundle.check.scoring import accuracy, final_answers, label_count, label_errors
from bundle.check.utterances import BATCH, compare
from bundle.runtimes.artefacts import Artefact, open_artefact
from bundle.variants import State
from utils.errors import run_command
from utils.files import read_arrays, replacing, write_json

MOST_SLOW_CLIPS = 250
"""Test clips that are streamed through TensorFlow, which takes a millisecond a call; spread evenly."""
CALLS, SECONDS = 300, 2.0  # that the latency is measured with: whichever comes first


def prove(artefact: Artefact, facts: Mapping[str, Any], golden: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Compare an artefact with the source model's answers to the golden clips.

    Args:
        artefact: opened.
        facts: of the stream: ``due`` and ``delay``; of whole utterances ``row_stride``.
        golden: ``inputs``, ``non_stream``, of streams ``reset`` and ``running``, of whole utterances
            ``lengths``.

    Returns:
        ``difference``: the largest, of each kind of answer; ``largest``: logit of the source; ``agreement``:
        share of clips with the same best label; ``answers``: the artefact's to the golden clips.
    """
    if facts.get("row_stride"):
        return compare(artefact.run, golden, facts["row_stride"])
    names = ["non_stream"] if artefact.mode is State.NON_STREAM else ["reset", "running"]
    answers = {name: _answers(artefact, golden["inputs"], facts, name) for name in names}
    counted = {name: _counted(values, facts, name) for name, values in answers.items()}
    same = [
        values.argmax(axis=-1) == _counted(golden[name], facts, name).argmax(axis=-1)
        for name, values in counted.items()
    ]
    return {
        "difference": {name: float(np.abs(answers[name] - golden[name]).max()) for name in names},
        "largest": float(max(np.abs(golden[name]).max() for name in names)),
        "agreement": float(np.mean([one.mean() for one in same])),
        "answers": counted,
    }


def errors_by_mode(
    artefact: Artefact, facts: Mapping[str, Any], tests: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Errors of each test clip, (N,) int: ``non_stream``; of streams ``reset1`` (a reset before each clip)
    and ``reset0``.
    """
    if facts.get("row_stride"):
        batch_size = artefact.info.input_shape[0] or BATCH
        return {"non_stream": utterances.label_errors(artefact.run, tests, facts["row_stride"], batch_size)}
    modes = {"reset1": "reset", "reset0": "running"}
    if artefact.mode is State.NON_STREAM:
        modes = {"non_stream": "non_stream"}
    return {
        name: label_errors(
            _counted(_answers(artefact, tests["inputs"], facts, how), facts, how), tests["references"]
        )
        for name, how in modes.items()
    }


def _answers(artefact: Artefact, inputs: np.ndarray, facts: Mapping[str, Any], how: str) -> np.ndarray:
    if how == "non_stream":
        return artefact.run(inputs)
    size = artefact.info.input_shape[1]
    return streamed(artefact, inputs, size, facts["due"], reset=how == "reset")


def _counted(answers: np.ndarray, facts: Mapping[str, Any], how: str) -> np.ndarray:
    return answers if how == "non_stream" else final_answers(answers, facts["delay"])


def latency(artefact: Artefact, clip: np.ndarray, due: int) -> float:
    """Median microseconds of a call (a whole clip, or a chunk), this function's loop included."""
    if artefact.mode is State.NON_STREAM:
        return _median_time(lambda _: artefact.run(clip[None]))
    chunks = chunks_of(clip, artefact.info.input_shape[1], due)
    return _median_time(lambda call: artefact.step(chunks[call % len(chunks)]))


def _median_time(call: Callable[[int], Any]) -> float:
    for number in range(5):
        call(number)
    times, end = [], time.perf_counter() + SECONDS
    while len(times) < CALLS and time.perf_counter() < end:
        start = time.perf_counter()
        call(len(times))
        times.append(time.perf_counter() - start)
    return float(np.median(times) * 1e6)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure one artefact and write what was found."""
    options = _parser().parse_args(arguments)
    facts = json.loads((options.bundle / "golden" / "stream.json").read_text(encoding="utf-8"))
    golden = read_arrays(options.bundle / "golden" / "clips.npz")
    longest = int(golden["lengths"].argmax()) if "lengths" in golden else 0
    start = time.perf_counter()
    artefact = open_artefact(options.bundle / options.artefact)
    loading = time.perf_counter() - start
    found = prove(artefact, facts, golden)
    answers = found.pop("answers")
    if options.tests:
        tests = read_arrays(options.tests)
        if artefact.mode is not State.NON_STREAM and "tensorflow" in sys.modules:
            rows = evenly(len(tests["inputs"]), MOST_SLOW_CLIPS)
            tests = {name: values[rows] for name, values in tests.items()}
        errors, references = errors_by_mode(artefact, facts, tests), tests["references"]
        found["accuracy"] = {name: accuracy(values, references) for name, values in errors.items()}
        found["errors"] = {name: values.tolist() for name, values in errors.items()}
        found["clips"], found["labels"] = len(references), label_count(references)
    artefact.reset()
    found |= {
        "latency_us": latency(artefact, golden["inputs"][longest], facts["due"]),
        "call_positions": golden["inputs"].shape[1],
        "loading_ms": loading * 1000,
        "memory_mib": psutil.Process().memory_info().rss / 2**20,
        "operations": artefact.info.operations,
        "flex": list(artefact.info.flex),
        "state_values": sum(int(np.prod(shape)) for shape in artefact.info.states.values()),
        "machine": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        "tensorflow_loaded": "tensorflow" in sys.modules,
    }
    with replacing(options.result.with_suffix(".npz")) as temporary:
        np.savez(temporary, **answers)
    write_json(options.result, found)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bundle.check.proof", description=__doc__.split("\n\n")[0]
    )
    parser.add_argument("bundle", type=Path)
    parser.add_argument("artefact", help="its path in the bundle")
    parser.add_argument("--result", type=Path, required=True, help="JSON file to write; answers go beside it")
    parser.add_argument("--tests", type=Path, help=".npz with inputs and references")
    return parser


if __name__ == "__main__":
    run_command(main)
