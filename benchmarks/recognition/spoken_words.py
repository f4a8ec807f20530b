"""Compares keyword models on real words of unseen speakers: whole clips and streams, in one table.

    python -m benchmarks.recognition.spoken_words
    python -m benchmarks.recognition.spoken_words --models tc_resnet training.epochs=2

Trains each model on the training speakers of a folder of recorded words (lists train.tsv, dev.tsv, test.tsv;
twelve Mandarin words with hard pairs in the shared data), by configs/keyword/spoken_words_*.yaml, exports it,
and prints for the exported files on the test speakers: accuracy (of a stream with its state reset before each
clip, and never), size, and time of a call on one thread, of a whole clip and of one hop of a stream. Training
is timed from the command's start to its end. Without the recordings it stops with a message.
"""

from utils.command.entry import run_command

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.support.commands import run
from benchmarks.support.shared_lists import SHARED
from utils.command.parser import CommandParser
from utils.errors import CorpusError
from utils.text_table import print_table

WORDS = SHARED / "audio" / "dspspeech20"
CONFIG = "configs/keyword/spoken_words_{}.yaml"
MODELS = ("resnet", "ds_cnn", "tc_resnet")
COLUMNS = ("model", "parameters", "training", "file", "accuracy", "never reset", "kB", "µs a call")
CLIP, STREAM = "litert/non_stream_{}.tflite", "litert/stream_external_{}.tflite"


def main() -> None:
    """Train, export, print the table."""
    options = _parser().parse_args()
    lists = {split: options.words / f"{split}.tsv" for split in ("train", "dev", "test")}
    for path in lists.values():
        if not path.is_file():
            hint = "--words FOLDER with train.tsv, dev.tsv and test.tsv"
            raise CorpusError("the recorded words are missing", where=path, hint=hint)
    measured = [_measure(name, lists, options) for name in options.models]
    print_table(options.words.name, COLUMNS, [row for model in measured for row in _rows(model)])


def _measure(name: str, lists: dict[str, Path], options: argparse.Namespace) -> dict[str, Any]:
    """Train and export one model, or use the result of an earlier run, and return its figures."""
    folder = options.runs / name
    data = [f"data.{split}=[{path}]" for split, path in lists.items()]
    config = ["--config", CONFIG.format(name), "--run", str(folder)]
    began = time.perf_counter()
    run("train.py", "keyword", *config, *data, *options.overrides)
    seconds = time.perf_counter() - began
    if not (folder / "export").is_dir():
        modes = ["--mode", "non_stream", "stream_external", "--precision", "float", "int8"]
        run("export.py", str(folder), "--format", "litert", *modes)
    exported = json.loads((folder / "export" / "export.json").read_text(encoding="utf-8"))
    return {"name": name, "seconds": seconds, **exported}


def _rows(model: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    """A row for each file of a model."""
    first = [model["name"], f"{model['parameters']:,}", f"{model['seconds'] / 60:.1f} min"]
    for path, way in ((CLIP, "non_stream"), (STREAM, "reset1")):
        for precision in ("float", "int8"):
            found = model["artefacts"][path.format(precision)]
            shown = f"{found['accuracy'][way]:.2%}" + ("" if found["passed"] else " (fails)")
            hop = f"hop of {1000 * model['stream']['seconds']:.0f} ms"
            kind = "whole clip" if way == "non_stream" else hop
            endless = f"{found['accuracy']['reset0']:.2%}" if path == STREAM else ""
            size, call = f"{found['bytes'] / 1000:.0f}", f"{found['latency_us']:.0f}"
            yield *first, f"{kind}, {precision}", shown, endless, size, call
            first = ["", "", ""]


def _parser() -> CommandParser:
    parser = CommandParser(description=__doc__)
    parser.add_argument("--words", type=Path, default=WORDS, help="folder with train.tsv, dev.tsv, test.tsv")
    parser.add_argument(
        "--models", nargs="+", default=MODELS, metavar="NAME", help="see model_keyword/registry"
    )
    parser.add_argument("--runs", type=Path, default=Path("runs/benchmarks/spoken_words"), metavar="FOLDER")
    parser.add_argument(
        "overrides", nargs="*", default=[], metavar="key=value", help="overrides for train.py"
    )
    return parser


if __name__ == "__main__":
    run_command(main)
