"""Builds the command line of a corpus's module: ``prepare`` and, if it may be, ``download``."""

import argparse
import shlex
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from data.corpora.tools.download import download_corpus, unpack_corpus
from data.corpora.tools.preparation import Corpus, prepare
from utils.audio.reading import SAMPLE_RATE
from utils.cluster import add_cluster, on_cluster
from utils.command.arguments import add_workers, positive
from utils.command.parser import CommandParser
from utils.errors import ConfigError, CorpusError
from utils.text_table import print_table


def corpus_command(corpus: Corpus) -> Callable[[list[str] | None], int]:
    """Make the ``main`` of a corpus's module: ``prepare`` and, if a program may download it, ``download``.

    It takes the words of the command line (None for the program's own) and returns the exit code: 0, or 1 if
    a split is empty. It raises a UserError if the corpus is not there, can't be downloaded, or none of it is
    usable.
    """

    def main(argv: list[str] | None = None) -> int:
        options = corpus_parser(corpus).parse_args(argv)
        return _download(corpus, options) if options.action == "download" else run_prepare(corpus, options)

    return main


def run_prepare(corpus: Corpus, options: argparse.Namespace) -> int:
    """Prepare a corpus with the options of :func:`add_prepare`; returns the exit code."""
    if options.unpack_to and not options.archive:
        raise ConfigError("--unpack-to without --archive", hint="give the archive: --archive FILE")
    output = Path(options.output or Path("datasets", corpus.name))
    root = _unpack(corpus, options) if options.archive else Path(options.root)
    with on_cluster(options.cluster):
        summary = prepare(corpus, root, output, options.workers, options.sample_rate)
    print_summary(summary)
    print(f"written: {output}/{{{','.join(summary['splits'])},rejected}}.tsv and summary.json")
    empty = [name for name, size in summary["splits"].items() if not size["utterances"]]
    if empty:
        print(f"no usable utterance in: {', '.join(empty)}", file=sys.stderr)
    return 1 if empty else 0


def _unpack(corpus: Corpus, options: argparse.Namespace) -> Path:
    """Unpack the archives of ``--archive``; returns the folder that holds them."""
    root = options.unpack_to or options.archive[0].parent
    names = {archive.file: archive for archive in corpus.archives}
    for file in options.archive:
        archive = names.get(file.name, corpus.archives[0])  # the only archive may have been renamed
        if len(names) > 1 and file.name not in names:
            raise CorpusError("another archive", where=file, hint=f"its name is {' or '.join(names)}")
        print(f"{unpack_corpus(archive, file, root)}: ready")
    return root


def _download(corpus: Corpus, options: argparse.Namespace) -> int:
    root = Path(options.root)
    for archive in corpus.archives:
        if options.only in (None, archive.folder):
            url = options.url and f"{options.url.rstrip('/')}/{archive.file}"
            print(f"{download_corpus(archive, root, url)}: ready")
    print(f"now: python -m data.corpora.{corpus.name} prepare {shlex.quote(str(root))}")
    return 0


def corpus_parser(corpus: Corpus) -> CommandParser:
    """Build the command line of one corpus."""
    examples = _examples(corpus)
    parser = CommandParser(description=corpus.about, epilog=examples)
    actions = parser.add_subparsers(dest="action", required=True)
    add_prepare(actions, corpus, examples)
    if corpus.archives and not corpus.by_hand:
        _add_download(actions, corpus, examples)
    return parser


def add_prepare(actions: argparse._SubParsersAction, corpus: Corpus, examples: str) -> None:
    """Add ``prepare`` to the actions of a corpus's command line.

    Args:
        actions: the parser's actions.
        corpus: the corpus.
        examples: the end of its help.
    """
    preparing = actions.add_parser("prepare", help="check it and write its manifests", epilog=examples)
    if corpus.archives:
        given = preparing.add_mutually_exclusive_group(required=True)
        given.add_argument("root", nargs="?", help="the folder of the corpus, or the one that holds it")
        names = ", ".join(archive.file for archive in corpus.archives)
        given.add_argument(
            "--archive", nargs="+", type=Path, metavar="FILE", help=f"{names}: unpacked first, unless done"
        )
        preparing.add_argument(
            "--unpack-to", type=Path, metavar="DIR", help="where it is unpacked (default: beside the archive)"
        )
    else:
        preparing.add_argument("root", help="the folder of the corpus")
        preparing.set_defaults(archive=None, unpack_to=None)
    preparing.add_argument("--output", help=f"folder of the manifests (default: datasets/{corpus.name})")
    preparing.add_argument(
        "--sample-rate",
        type=positive,
        default=SAMPLE_RATE,
        metavar="HZ",
        help="reject recordings with a lower rate; 8000 for telephone speech, which is then trained with "
        "features.sample_rate=8000 (default: %(default)s)",
    )
    add_workers(preparing)
    add_cluster(preparing)


def _examples(corpus: Corpus) -> str:
    name = corpus.name
    command, folder = f"  python -m data.corpora.{name}", f"~/corpora/{name}"
    lines = [
        "examples:",
        f"{command} prepare {folder}",
        f"{command} prepare {folder} --output datasets/{name} --workers 8",
        f"{command} prepare {folder} --cluster head:6379     # on a Ray cluster",
        f"{command} prepare {folder} --sample-rate 8000     # telephone speech",
    ]
    if corpus.archives:
        files = " ".join(archive.file for archive in corpus.archives)
        lines.append(f"{command} prepare --archive {files} --unpack-to {folder}")
    if corpus.archives and not corpus.by_hand:
        lines.append(f"{command} download {folder}")
        lines.append(f"{command} download {folder} --url https://openslr.elda.org/resources/NUMBER")
    return "\n".join(lines)


def _add_download(actions: argparse._SubParsersAction, corpus: Corpus, examples: str) -> None:
    folders = [archive.folder for archive in corpus.archives]
    server = corpus.archives[0].url.rpartition("/")[0]
    loading = actions.add_parser("download", help=f"download it from {server}, unpack it", epilog=examples)
    loading.add_argument("root", help=f"the folder that will hold {', '.join(folders)}")
    loading.add_argument("--url", help=f"a mirror's folder with the same archives (default: {server})")
    loading.add_argument("--only", choices=folders, help="one of several archives (default: all)")


_SIZE_COLUMNS = {
    "utterances": "utterances",
    "hours": "hours",
    "speakers": "speakers",
    "distinct_sentences": "distinct\ntexts",
    "distinct_syllables": "tonal\nsyllables",
    "spoken_readings": "spoken\ndiffers",
}


def print_summary(summary: Mapping[str, Any]) -> None:
    """Print the statistics of a prepared corpus."""
    sizes = [
        (name, *({key: size[key] for key in _SIZE_COLUMNS} | {"hours": f"{size['hours']:,.2f}"}).values())
        for name, size in summary["splits"].items()
    ]
    print_table(f"{summary['corpus']}: utterances", ("split", *_SIZE_COLUMNS.values()), sizes)
    print(_rate_line(summary["sample_rates"]))
    for title, counts in (("rejected (see rejected.tsv)", summary["rejected"]), ("notes", summary["notes"])):
        if counts:
            ordered = sorted(counts.items(), key=lambda item: -item[1])
            print_table(title, ("reason", "utterances"), ordered)
        else:
            print(f"{title}: none")


def _rate_line(rates: Mapping[str, int]) -> str:
    """The sample rates of the recordings, and how to train if one is below the usual rate."""
    shown = ", ".join(f"{int(rate):,} Hz ({count:,} utterances)" for rate, count in rates.items())
    lowest = min(map(int, rates))
    if lowest >= SAMPLE_RATE:
        return f"sample rates: {shown}"
    reason = "other rates are converted to it" if len(rates) > 1 else "no recording has a higher rate"
    return f"sample rates: {shown}; train with features.sample_rate={lowest}: {reason}"
