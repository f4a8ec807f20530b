"""Real spoken words, people never heard: several keyword models, whole clips against streams, in one table.

    python -m benchmarks.spoken_words
    python -m benchmarks.spoken_words --models ds_tc_resnet --epochs 2

Trains each model on the training speakers of a folder of recorded words (lists train.tsv, dev.tsv, test.tsv;
twelve Mandarin words with hard pairs in the shared data), by configs/keyword/spoken_words_*.yaml,
exports it, and prints what the files exported do on the test speakers: accuracy, size, and time of
a call on one thread, of a whole clip and of one hop of a stream. Says so where the recordings are absent.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from analysis.history import read_history
from benchmarks.shared_parts.commands import ROOT, run
from utils.errors import CorpusError, run_command

WORDS = ROOT.parent / "shared" / "data" / "audio" / "dspspeech20"
CONFIG = "configs/keyword/spoken_words_{}.yaml"
MODELS = ("tc_resnet", "ds_tc_resnet", "ds_cnn")
CLIP, STREAM = "litert/non_stream_{}.tflite", "litert/stream_external_{}.tflite"


def main() -> int:
    """Train, export, print the table."""
    options = _parser().parse_args()
    lists = {split: options.words / f"{split}.tsv" for split in ("train", "dev", "test")}
    for path in lists.values():
        if not path.is_file():
            hint = "--words FOLDER with train.tsv, dev.tsv and test.tsv"
            raise CorpusError("the recorded words aren't there", where=path, hint=hint)
    rows = [_measure(name, lists, options) for name in options.models]
    table = Table(
        "model", "parameters", "training", "file", "accuracy", "kB", "µs a call", title=str(WORDS.name)
    )
    for row in rows:
        _add(table, row)
    Console(width=110).print(table)
    return 0


def _measure(name: str, lists: dict[str, Path], options: argparse.Namespace) -> dict[str, Any]:
    """Train and export one model, or take what an earlier call left; its figures."""
    folder = options.runs / name
    data = [f"data.{split}=[{path}]" for split, path in lists.items()]
    more = [f"training.epochs={options.epochs}"] if options.epochs else []
    config = ["--config", CONFIG.format(name), "--run", str(folder)]
    run("train.py", "keyword", *config, *data, *more, *options.overrides)
    if not (folder / "export").is_dir():
        modes = ["--mode", "non_stream", "stream_external", "--precision", "float", "int8"]
        run("export.py", str(folder), "--format", "litert", *modes)
    exported = json.loads((folder / "export" / "export.json").read_text(encoding="utf-8"))
    seconds = sum(read_history(folder / "history.csv")["seconds"])
    return {"name": name, "seconds": seconds, **exported}


def _add(table: Table, row: dict[str, Any]) -> None:
    """A line for each file of a model."""
    first = [row["name"], f"{row['parameters']:,}", f"{row['seconds'] / 60:.1f} min"]
    for path, way in ((CLIP, "non_stream"), (STREAM, "reset1")):
        for precision in ("float", "int8"):
            found = row["artefacts"][path.format(precision)]
            shown = f"{found['accuracy'][way]:.2%}" + ("" if found["passed"] else " (fails)")
            kind = "whole clip" if way == "non_stream" else f"hop of {1000 * row['stream']['seconds']:.0f} ms"
            size, call = f"{found['bytes'] / 1000:.0f}", f"{found['latency_us']:.0f}"
            table.add_row(*first, f"{kind}, {precision}", shown, size, call)
            first = ["", "", ""]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--words", type=Path, default=WORDS, help="folder with train.tsv, dev.tsv, test.tsv")
    parser.add_argument(
        "--models", nargs="+", default=MODELS, metavar="NAME", help="see model_keyword/registry"
    )
    parser.add_argument("--epochs", type=int, default=0, help="evaluation intervals, for a trial")
    parser.add_argument("--runs", type=Path, default=Path("runs/benchmarks/spoken_words"), metavar="FOLDER")
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="for train.py")
    return parser


if __name__ == "__main__":
    run_command(main)
