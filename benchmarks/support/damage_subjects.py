"""Tiny runs, bundles and caches, and the commands that read them, for ``benchmarks.project.corruption``."""

import json
import shutil
import tempfile
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import compare_runs
import convert
import doctor
import export
import inspect_model
import listen
import train
import transcribe
from data.features.augment import AugmentConfig
from data.features.cache import prepare_features
from data.keywords.clip_cache import load_clips
from data.keywords.clips import KeywordDataConfig, read_keyword_clips
from data.manifest import read_manifest
from data.text.pinyin_pair_preparation import prepare_pairs
from data.text.pinyin_pairs import pairs_from_text
from tests.support.scripts import load_script
from tests.support.tiny_corpus import write_tiny_corpus
from tests.support.tiny_words import SMALL, write_tiny_words
from utils.audio.reading import SAMPLE_RATE
from utils.features.speech import FeatureConfig
from utils.files import write_text

SPEECH = {
    "compact": ("model.width=8", "model.blocks=1"),
    "compact_streaming": ("model.width=8", "model.blocks=1", "features.normalise=running"),
    "conformer": ("model.blocks=1", "model.width=16", "model.heads=2", "model.kernel=6"),
    "dfcnn": ("model.filters=[4,4,4]", "model.dense=8"),
    "dfsmn": ("model.blocks=2", "model.hidden=32", "model.projection=16", "model.past=3", "model.future=3"),
    "gru_ctc": ("model.stack=8", "model.width=16", "model.dense=1", "model.recurrent=1"),
}
LANGUAGE = {
    "transformer": ("model.width=16", "model.blocks=1", "model.heads=2", "training.epochs=1"),
    "published_transformer": ("model.width=16", "model.blocks=1", "model.heads=2", "training.epochs=1"),
    "cbhg": ("model.embedding=12", "model.width=8", "model.bank=4", "training.epochs=1"),
    "ngram": ("model.order=2",),
    "syllable_ngram": ("model.order=2",),
    "gated_cnn": (
        *("model.width=16", "model.dilations=[1,2]", "model.choices=8", "model.rows.steps=20"),
        *("data.batch_syllables=512", "data.batch_sentences=32", "training.epochs=1"),
    ),
    "combined": ("model.dictionary=0", "model.ngrams=500", "model.order=3"),
}
LINES = ("数学公式", "办理公事", "发动攻势", "他的公事", "跑得快", "慢慢地走", "她去了北京", "历史的背景")
PINYIN = "shu4 xue2 gong1 shi4\nta1 de5 gong1 shi4\n"
_test = load_script("test.py")


@dataclass(frozen=True)
class Command:
    """A command that reads a folder.

    Attributes:
        name: name in the table.
        run: runs it in this process; returns what it prints and writes, without times.
        slow: whether it is too slow to be run when it doesn't open the damaged file.
    """

    name: str
    run: Callable[[], str]
    slow: bool = False


@dataclass(frozen=True)
class Subject:
    """A folder whose files are damaged.

    Attributes:
        name: name in the table.
        folder: folder with the files.
        commands: commands that read it.
    """

    name: str
    folder: Path
    commands: Sequence[Command]


class Workshop:
    """Makes the subjects below a folder; existing ones are used again."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.manifest = folder / "corpus" / "manifest.tsv"
        if not self.manifest.is_file():
            write_tiny_corpus(self.manifest.parent, utterances=6)
        self.audio = str(sorted((folder / "corpus" / "wav").glob("*.wav"))[0])
        self.text, self.pinyin = folder / "text.txt", folder / "pinyin.txt"
        write_text(self.text, "".join(f"{line}\n" for line in LINES * 12))
        write_text(self.pinyin, PINYIN)
        self.list = folder / "text.tsv"
        write_text(self.list, "a\tshu4 xue2\t数学\nb\tbei3 jing1\t北京\n")
        self.words = (
            write_tiny_words(folder / "words") if not (folder / "words").is_dir() else folder / "words"
        )

    def speech(self, name: str, every: bool) -> Subject:
        """A speech run; with ``every`` command, or only with those that depend on the model."""
        lists = [f"data.{split}=[{self.manifest}]" for split in ("train", "dev", "test")]
        size = ["features.bins=16", "data.workers=1", "training.epochs=1", "training.kept_weights=1"]
        data = [*lists, *size, f"data.cache={self.folder / 'features'}"]
        run = self._trained("speech", name, [*data, *SPEECH[name]])
        best = run / "best.weights.h5"
        arguments = (self.audio, "--speech", run, "--language", self.language("ngram", every=False).folder)
        commands = [
            Command("transcribe", lambda: _printed(transcribe.main, *arguments), slow=not every),
            Command("test", lambda: self._tested("speech", run), slow=True),
            Command("inspect_model weights", lambda: _printed(inspect_model.main, "weights", run)),
            Command("doctor", lambda: _printed(doctor.main, run, "--no-audio")),
        ]
        if every:
            commands += [
                Command("inspect_model weights FILE", lambda: _printed(inspect_model.main, "weights", best)),
                Command(
                    "inspect_model significance", lambda: _printed(inspect_model.main, "significance", run)
                ),
                Command("inspect_model transfer", lambda: self._transferred(run), slow=True),
                *self._training("speech", run, data, name, SPEECH[name]),
            ]
        if name == "compact_streaming":
            commands.append(Command("export", lambda: self._exported(run), slow=True))
        return Subject(f"speech run, {name}", run, commands)

    def language(self, name: str, every: bool) -> Subject:
        """A language run; see :meth:`speech`."""
        data = [f"data.train=[{self.text}]", f"data.dev=[{self.text}]", f"data.test=[{self.list}]"]
        data.append(f"data.cache={self.folder / 'texts'}")
        network = []
        if name == "combined":
            network = [f"model.network_run={self.language('gated_cnn', every=False).folder}"]
        run = self._trained("language", name, [*data, *network, *LANGUAGE[name]])
        commands = [Command("doctor", lambda: _printed(doctor.main, run, "--no-audio"))]
        if name == "syllable_ngram":
            speech = self.speech("compact", every=False).folder
            arguments = (self.audio, "--speech", speech, "--syllables", run, "--beam", 4)
            commands.append(Command("transcribe --syllables", lambda: _printed(transcribe.main, *arguments)))
            return Subject(f"language run, {name}", run, commands)
        commands += [
            Command("convert", lambda: _printed(convert.main, self.pinyin, "--model", run), not every),
            Command("test", lambda: self._tested("language", run), slow=True),
        ]
        if name in ("transformer", "published_transformer", "cbhg", "gated_cnn"):
            commands.append(
                Command("inspect_model weights", lambda: _printed(inspect_model.main, "weights", run))
            )
        if every:
            picture = self.folder / "attention.html"
            sentence = ("attention", run, "shu4 xue2", "--output", picture)
            commands += [
                Command("inspect_model attention", lambda: _printed(inspect_model.main, *sentence)),
                *self._training("language", run, data, name, LANGUAGE[name]),
            ]
        return Subject(f"language run, {name}", run, commands)

    def shipped(self) -> Subject:
        """A copy of the shipped converter."""
        run = self.folder / "runs" / "shipped"
        if not run.is_dir():
            shutil.copytree("pretrained/pinyin_to_hanzi", run)
        command = Command("convert", lambda: _printed(convert.main, self.pinyin, "--model", run))
        return Subject("language run, shipped", run, [command])

    def keyword(self) -> Subject:
        """A keyword run."""
        data = [*SMALL, f"data.folder={self.words}", f"data.cache={self.folder / 'clips'}"]
        run = self._trained("keyword", "dnn", data)
        commands = [
            Command("test", lambda: self._tested("keyword", run), slow=True),
            Command("inspect_model weights", lambda: _printed(inspect_model.main, "weights", run)),
            Command("doctor", lambda: _printed(doctor.main, run, "--no-audio")),
            *self._training("keyword", run, data, "dnn", ()),
            Command("export", lambda: self._exported(run), slow=True),
        ]
        return Subject("keyword run", run, commands)

    def bundle(self) -> Subject:
        """The bundle of a keyword run."""
        folder = self.folder / "bundle"
        if not folder.is_dir():
            chosen = ("--format", "litert", "--mode", "stream_external", "--precision", "float")
            _printed(export.main, self.keyword().folder, *chosen, "--output", folder)
        words = str(next((self.words / "test").rglob("*.wav")))
        commands = [
            Command("listen", lambda: _printed(listen.main, "--model", folder, words)),
            Command("export verify", lambda: _printed(export.main, "verify", folder), slow=True),
        ]
        return Subject("bundle", folder, commands)

    def caches(self) -> list[Subject]:
        """The four caches, read as a training does."""
        folders = {name: self.folder / "caches" / name for name in ("features", "clips", "pairs", "pinyin")}
        clips = read_keyword_clips(KeywordDataConfig(folder=str(self.words)))["dev"]
        utterances, config = read_manifest(self.manifest)[:4], FeatureConfig(bins=8)

        def features() -> str:
            found = prepare_features(utterances, config, folders["features"], AugmentConfig(copies=0), 1)
            return str([found.features(name).tobytes() for name in found.ids])

        def keyword_clips() -> str:
            store = load_clips(clips, SAMPLE_RATE, 3200, folders["clips"], 1)
            return str((store.clips, store.samples.tobytes()))

        def pairs() -> str:
            shards = prepare_pairs([self.text], folders["pairs"], workers=1).shards
            return str([(s.syllables.tobytes(), s.hanzi.tobytes(), s.rejected) for s in shards])

        def pinyin() -> str:
            return str(pairs_from_text(self.text, cache=folders["pinyin"]))

        readers = {"features": features, "clips": keyword_clips, "pairs": pairs, "pinyin": pinyin}
        for read in readers.values():
            read()
        return [
            Subject(f"cache of {name}", folders[name], [Command("training", read)])
            for name, read in readers.items()
        ]

    def _training(
        self, task: str, run: Path, data: Sequence[str], name: str, sizes: Sequence[str]
    ) -> list[Command]:
        """Trainings that read a run: finished, resumed, or as initial weights of another run."""

        config = [f"model.name={name}", *data, *sizes]

        def resumed() -> str:
            # A run without its figures is not finished. The files that the training writes are restored:
            # layers that Keras numbers by itself have other names in the summary of a second model of one
            # process.
            names = ("metrics.json", "model_summary.txt", "checksums")
            kept = {run / name: (run / name).read_bytes() for name in names}
            (run / "metrics.json").unlink()
            try:
                return self._train(task, run, config)
            finally:
                for path, content in kept.items():
                    path.write_bytes(content)

        def begun() -> str:
            with tempfile.TemporaryDirectory(dir=self.folder) as folder:
                self._train(task, Path(folder) / "new", [*config, f"initialise_from={run}"])
            return "trained"

        commands = [
            Command("train, finished", lambda: self._train(task, run, config), slow=True),
            Command("train, gone on with", resumed, slow=True),
            Command("compare_runs", lambda: _printed(compare_runs.main, run, "--csv")),
        ]
        if task != "keyword":
            commands.append(Command("train initialise_from", begun, slow=True))
        return commands

    def _trained(self, task: str, name: str, overrides: Sequence[str]) -> Path:
        run = self.folder / "runs" / name
        if not (run / "metrics.json").is_file():
            self._train(task, run, [f"model.name={name}", *overrides])
            self._tested(task, run, run / "test" / "trial")
        return run

    def _train(self, task: str, run: Path, overrides: Sequence[str]) -> str:
        recipe = self.folder / "recipe.yaml"
        write_text(recipe, f"task: {task}\n")
        _printed(train.main, task, "--config", recipe, "--run", run, "--no-checks", *overrides)
        return (run / "metrics.json").read_text(encoding="utf-8")

    def _tested(self, task: str, run: Path, output: Path | None = None) -> str:
        if run.name == "syllable_ngram":
            return ""
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            printed = _printed(_test.main, task, run, "--json", "--output", output or folder)
        figures = json.loads(printed)
        return str({key: value for key, value in figures.items() if "rate" in key and "real_time" not in key})

    def _transferred(self, run: Path) -> str:
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            new, vocabulary = Path(folder) / "new", run / "vocabulary" / "acoustic.txt"
            return _printed(inspect_model.main, "transfer", run, new, "--vocabulary", vocabulary).replace(
                folder, ""
            )

    def _exported(self, run: Path) -> str:
        chosen = ("--format", "litert", "--mode", "stream_external", "--precision", "float")
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            _printed(export.main, run, *chosen, "--output", Path(folder) / "bundle")
        return "exported"


def _printed(main: Callable[[Sequence[str]], int | None], *arguments: object) -> str:
    """What a command prints to its standard output, and its exit code if it isn't 0."""
    output = StringIO()
    with redirect_stdout(output):
        code = main([str(argument) for argument in arguments])
    return output.getvalue() + (f"exit code {code}\n" if code else "")
