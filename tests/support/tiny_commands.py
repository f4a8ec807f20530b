"""Quick inputs for commands: a corpus of chirps, arguments of train.py, the expected content of runs."""

import json
from pathlib import Path

import h5py
import numpy as np
import yaml

from data.manifest import read_manifest, write_manifest
from tests.support.corpus_files import write
from tests.support.fork_server import ForkServer
from tests.support.tiny_corpus import write_tiny_corpus
from utils.run_folder import checksums
from utils.run_folder.run import RunFolder
from utils.run_folder.temporary import is_temporary

TIMING = {"seconds", "real_time_factor"}
TRAINING = (
    *("model.width=8", "model.blocks=1", "features.bins=16", "augment.copies=1", "data.batch_utterances=4"),
    *("training.epochs=4", "training.checkpoint_steps=2", "training.deterministic=true"),
    "data.workers=1",
)


class TinyRuns:
    """A trained speech run and a language run, with their inputs.

    Args:
        server: server that trains them.
        folder: folder for all files.
    """

    def __init__(self, server: ForkServer, folder: Path):
        self.utterances = read_manifest(write_tiny_corpus(folder / "corpus", 14))
        self.train, self.dev = folder / "train.tsv", folder / "dev.tsv"
        write_manifest(self.train, self.utterances[:10])
        write_manifest(self.dev, self.utterances[10:])
        self.config = write(folder / "tiny.yaml", "model: {name: compact}\n")
        self.speech, self.language = folder / "speech", folder / "language"
        self.trained = server.run("train", *self.training(self.speech, folder / "features"))
        assert self.trained.code == 0, self.trained.output
        text = write(folder / "text.tsv", "a\tni3 hao3\t你好\nb\tma1 shi4 wo3\t妈是我\n")
        ngram = write(folder / "ngram.yaml", "model: {name: ngram, order: 2}\n")
        lists = [f"data.train=[{text}]", f"data.dev=[{text}]", f"data.cache={folder / 'texts'}"]
        ended = server.run("train", "language", "--config", ngram, "--run", self.language, *lists)
        assert ended.code == 0, ended.output

    def training(
        self, run: Path, cache: Path, train: Path | None = None, **overrides: object
    ) -> list[object]:
        """Arguments of train.py that make the speech run, or another one."""
        lists = [f"data.train=[{train or self.train}]", f"data.dev=[{self.dev}]", f"data.test=[{self.dev}]"]
        more = [f"{key.replace('__', '.')}={value}" for key, value in overrides.items()]
        location = ["--run", run, f"data.cache={cache}"]
        return ["speech", "--config", self.config, *location, *TRAINING, *lists, *more]

    @property
    def both(self) -> list[object]:
        """Arguments of transcribe.py."""
        return ["--speech", self.speech, "--language", self.language]


def bytes_of(folder: Path) -> dict[str, bytes]:
    """The files of a folder, without hidden ones."""
    return {
        str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("[!.]*") if path.is_file()
    }


def temporary_files(folder: Path) -> list[Path]:
    """Unfinished files of a folder and its subfolders."""
    return [path for path in folder.rglob(".*") if path.is_file() and is_temporary(path)]


def run_content(run: RunFolder) -> dict[str, object]:
    """The content of a finished speech run, without its data, times of day and seconds."""
    metrics = json.loads(run.metrics.read_text(encoding="utf-8"))
    return {
        "names": sorted(path.name for path in run.path.iterdir() if path.name != "test"),
        "best": weights_of(run.best_weights),
        "last": weights_of(run.last_weights),
        "state": state_of(run.checkpoint),
        "history": [line.rpartition(",")[0] for line in run.history.read_text(encoding="utf-8").splitlines()],
        "metrics": {name: without_timing(metrics[name]) for name in ("best", "last")},
        "config": {key: value for key, value in run.config().items() if key not in ("data", "environment")},
        "vocabulary": run.vocabulary("acoustic.txt").read_bytes(),
        "summary": (run.path / "model_summary.txt").read_bytes(),
    }


def check_run_is_whole(run: RunFolder) -> None:
    """Check that each file of a run, finished or not, can be read and has its checksum."""
    assert not checksums.exist(run.path) or not checksums.differences(run.path)
    for path in (run.best_weights, run.last_weights):
        assert not path.exists() or weights_of(path)
    assert not run.checkpoint.exists() or state_of(run.checkpoint)
    assert not run.config_file.exists() or isinstance(yaml.safe_load(run.config_file.read_text()), dict)
    assert not run.metrics.exists() or json.loads(run.metrics.read_text())["best"]
    if run.history.exists():
        lines = run.history.read_text(encoding="utf-8").splitlines()
        assert len({line.count(",") for line in lines}) == 1


def without_timing(row: dict[str, object]) -> dict[str, object]:
    """The figures that are the same on every machine."""
    return {key: value for key, value in row.items() if key not in TIMING}


def weights_of(path: Path) -> dict[str, bytes]:
    """The arrays of a weights file."""
    arrays: dict[str, bytes] = {}

    def take(name: str, item: h5py.Dataset | h5py.Group) -> None:
        if isinstance(item, h5py.Dataset):
            arrays[name] = item[()].tobytes()

    with h5py.File(path) as file:
        file.visititems(take)
    return arrays


def state_of(path: Path) -> dict[str, object]:
    """The content of a checkpoint, without seconds."""
    with np.load(path) as saved:
        arrays = {name: saved[name].tobytes() for name in saved.files if name != "state"}
        state = json.loads(str(saved["state"]))
    history = [without_timing(row) for row in state.pop("history")]
    return {**arrays, "history": history, "state": {k: v for k, v in state.items() if k != "epoch_seconds"}}
