"""Every artefact of every speech model and converter at the size of its recipe: bytes, difference, time.

    nice -n 15 python -m benchmarks.bundle.export_matrix [runs/dfcnn configs/speech/compact_thchs30.yaml …]

An argument is a run folder, which is exported with its weights, or a recipe, whose model gets random weights
and is checked on noise (a converter: on random syllables). Default: all recipes below. Random weights show
whether a format supports a model and what it costs; only trained weights show whether int8 keeps the error
rate.

Columns: MB of the file; the largest difference of a logit, divided by the largest logit; fraction of rows of
    logits with the same best class; error rate on the test set, if there is one; milliseconds per second of
    audio (or per sentence of 40 syllables), on one thread; whether the artefact passed.
"""

from utils.command.entry import run_command

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import keras
import numpy as np

from bundle.export.build import export_bundle
from bundle.export.language_source import language_source
from bundle.export.source import Clips, ExportSource
from bundle.export.speech_source import speech_source
from bundle.report import ArtefactResult
from bundle.variants import ArtefactMode, offered
from model_language import registry as converters
from model_language.vocabulary.symbols import build_symbols
from model_speech.registry import MODELS
from training.run import RECIPES
from utils.config import load_config, save_yaml, to_plain
from utils.features.speech import feature_bins
from utils.run_folder.run import RunFolder, open_run
from utils.vocabulary import acoustic_vocabulary

ALL = [
    *(f"configs/speech/{name}_thchs30.yaml" for name in ("compact", "dfcnn", "gru_ctc")),
    "configs/speech/compact_streaming.yaml",
    *(f"configs/speech/{name}_aishell1.yaml" for name in ("dfsmn", "conformer")),
    *(f"configs/language/{name}_thchs30.yaml" for name in ("transformer", "cbhg")),
]
SHORT = 300  # frames
HEADER = "| model | artefact | MB | difference | same class | error rate | ms | passed |"
RULER = "| --- | --- | ---: | ---: | ---: | ---: | ---: | --- |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Export each model to its own folder and print its rows."""
    options = _parser().parse_args(arguments)
    print(HEADER, RULER, sep="\n", flush=True)
    for path in map(Path, options.models or ALL):
        with tempfile.TemporaryDirectory() as folder:
            run = path if path.is_dir() else random_run(path, Path(folder) / "run")
            for row in table_rows(read_source(run, options.test), Path(folder) / "bundle"):
                print(row, flush=True)


def random_run(recipe: Path, folder: Path) -> RunFolder:
    """A run folder of a recipe's model with random weights and no data."""
    task = recipe.parent.name
    schema, variants, _ = RECIPES[task]
    config, run = load_config(schema, recipe, variants=variants), RunFolder(folder)
    keras.utils.set_random_seed(0)
    if task == "speech":
        vocabulary = acoustic_vocabulary()
        vocabulary.save(run.vocabulary("acoustic.txt"))
        bins = feature_bins(config.features)
        model = MODELS[config.model.name].build(config.model, bins, len(vocabulary))
    else:
        symbols = build_symbols()
        symbols.save(run.path)
        model = converters.MODELS[config.model.name].build(config.model, symbols, run)
    save_yaml(run.config_file, to_plain(config) | {"data": {}})
    model.save_weights(run.best_weights)
    return run.path


def read_source(run: Path, tests: Sequence[str]) -> ExportSource:
    """The export source of a run; without recordings int8 is calibrated on the golden noise."""
    read = {"speech": speech_source, "language": language_source}[open_run(run).config()["task"]]
    source = read(run, overrides=[f"data.test=[{','.join(tests)}]"] if tests else [])
    if len(source.calibration):
        return source
    golden = source.golden
    if golden.lengths is not None:  # noise of 3 s gives the same checks as noise of 8 s
        lengths = np.minimum(golden.lengths, SHORT)
        golden = Clips(golden.inputs[:, :SHORT], golden.references, lengths)
    return replace(source, golden=golden, calibration=golden)


def table_rows(source: ExportSource, output: Path) -> list[str]:
    """Export all non-streaming variants; one row of the table each."""
    variants = [
        variant for variant in offered(source.raw, streams=False) if variant.state is ArtefactMode.NON_STREAM
    ]
    return [_row(source, made) for made in export_bundle(source, variants, output)]


def _row(source: ExportSource, made: ArtefactResult) -> str:
    variant, found = made.variant, made.measured
    passed = "; ".join(made.problems) or "yes"
    if not found:
        return f"| {source.model.name} | {variant.format} {variant.precision} | | | | | | {passed} |"
    difference = max(found["difference"].values()) / max(1.0, found["largest"])
    rate = f"{1 - found['accuracy']['non_stream']:.2%}" if "accuracy" in found else ""
    seconds = found["call_positions"] * source.frame_seconds or found["call_positions"] / 40
    cells = [
        source.model.name,
        f"{variant.format} {variant.precision}",
        f"{found['bytes'] / 1e6:.1f}",
        f"{difference:.1e}",
        f"{found['agreement']:.1%}",
        rate,
        f"{found['latency_us'] / 1000 / seconds:.1f}",
        passed,
    ]
    return "| " + " | ".join(cells) + " |"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("models", nargs="*", help="run folders or recipes (default: every recipe's model)")
    parser.add_argument(
        "--test", nargs="+", default=[], help="lists that error rates of run folders come from"
    )
    return parser


if __name__ == "__main__":
    run_command(main)
