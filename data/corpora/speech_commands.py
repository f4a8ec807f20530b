"""Downloads Speech Commands and unpacks it: one-second recordings of English words, a folder for each word.

The corpus (Warden 2018, arXiv:1804.03209; CC BY 4.0) has 35 words by 2,618 speakers in version 2, 30 words in
version 1, six recordings of noise in ``_background_noise_``, and lists of the clips for validation and test.
``data/keywords/clips.py`` reads the folder as it is; the usual task has ten words, unknown words and silence
as labels.
"""

from utils.command.entry import run_command

from collections import Counter
from dataclasses import replace
from pathlib import Path

from data.corpora.tools.download import Archive, download_corpus
from data.keywords.folders import DEV_LIST, NOISE_FOLDER, TEST_LIST, KeywordClip, read_recordings
from data.manifest import SPLITS
from utils.command.parser import CommandParser
from utils.errors import CorpusError

_SERVER = "https://storage.googleapis.com/download.tensorflow.org/data"
# The corpus's authors publish no checksums; public recipes (torchaudio among them) check these.
ARCHIVES = {
    version: Archive(
        url=f"{_SERVER}/speech_commands_v0.0{version}.tar.gz",
        folder=f"speech_commands_v0.0{version}",
        unpacked=1.6,
        checksum=checksum,
        size=size,
        bare=True,
    )
    for version, size, checksum in (
        (1, 1_489_096_277, "743935421bb51cccdb6bdd152e04c5c70274e935c82119ad7faeec31780d811d"),
        (2, 2_428_923_189, "af14739ee7dc311471de98f5f9d2c9191b18aedfe957f4a6ff791c709868ff58"),
    )
}
TEN_WORDS = ("yes", "no", "up", "down", "left", "right", "on", "off", "stop", "go")

# In quotes: YAML reads a bare yes, no, on and off as true and false.
_TEN_WORDS = "'data.words=[{}]'".format(",".join(f'"{word}"' for word in TEN_WORDS))
_EXAMPLES = f"""examples:
  python -m data.corpora.speech_commands --output datasets/speech_commands
  python -m data.corpora.speech_commands --version 1 --output datasets/speech_commands_1
  python train.py keyword --config configs/keyword/speech_commands.yaml {_TEN_WORDS}
"""


def read_speech_commands(folder: Path) -> list[KeywordClip]:
    """Read the recordings of an unpacked corpus, split by its lists.

    Raises:
        CorpusError: the folder is something else, or a part of it is missing.
    """
    missing = [name for name in (DEV_LIST, TEST_LIST, NOISE_FOLDER) if not (folder / name).exists()]
    if missing:
        raise CorpusError(
            f"not Speech Commands: no {', '.join(missing)}",
            where=folder,
            hint="remove the folder and download again, or choose another one",
        )
    return read_recordings(folder)


def main(argv: list[str] | None = None) -> int:
    """The command ``python -m data.corpora.speech_commands``."""
    options = _parser().parse_args(argv)
    output = Path(options.output)
    archive = replace(ARCHIVES[options.version], folder=output.name)
    download_corpus(archive, root=output.parent, url=options.url)
    recordings = read_speech_commands(output)
    words = {recording.label for recording in recordings}
    sizes = Counter(recording.split for recording in recordings)
    print(f"{output}: {len(recordings):,} recordings of {len(words)} words")
    print("\n".join(f"  {split:5} {sizes[split]:7,}" for split in SPLITS))
    return 0


def _parser() -> CommandParser:
    parser = CommandParser(
        description="Download, check and unpack Speech Commands; an unpacked corpus is only counted.",
        epilog=_EXAMPLES,
    )
    parser.add_argument(
        "--version", type=int, choices=sorted(ARCHIVES), default=2, help="default: %(default)s"
    )
    parser.add_argument(
        "--output", default="datasets/speech_commands", help="folder of the corpus (default: %(default)s)"
    )
    parser.add_argument("--url", help="a mirror of the same archive")
    return parser


if __name__ == "__main__":
    run_command(main)
