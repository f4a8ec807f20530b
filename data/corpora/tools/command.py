"""The command line that all corpora share: ``prepare ROOT`` and ``download ROOT``."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path

from data.corpora.tools.download import Archive, ByHand, download_corpus
from data.corpora.tools.preparation import Corpus, prepare
from data.corpora.tools.summary import print_summary
from utils.audio.reading import SAMPLE_RATE
from utils.cli import positive
from utils.errors import CorpusError

Source = Archive | tuple[Archive, ...] | ByHand | None

_PREPARE_EXAMPLE = """examples:
  python -m data.corpora.{name} prepare {folder}
  python -m data.corpora.{name} prepare {folder} --output datasets/{name} --workers 8
  python -m data.corpora.{name} prepare {folder} --sample-rate 8000     # telephone speech
"""
_DOWNLOAD_EXAMPLE = """  python -m data.corpora.{name} download {folder}
"""
_MIRROR_EXAMPLE = """  python -m data.corpora.{name} download {folder} --url https://openslr.elda.org/resources/…
"""
_PART_EXAMPLE = """  python -m data.corpora.{name} download {folder} --only {part}
"""
_CHECKSUM = (
    "SHA-256 that the archive must have. Without it the MD5 sum or the size that public recipes use is "
    "checked: it finds damage in transfer, but does not prove where the file comes from"
)


def corpus_command(
    corpus: Corpus,
    source: Source,
    options: argparse.Namespace,
    into: Callable[[Path], Corpus] | None = None,
) -> int:
    """Run ``prepare`` or ``download`` for one corpus.

    Args:
        corpus: what to prepare.
        source: where it comes from; None if there is no ``download``.
        options: what the parser of :func:`corpus_parser` has read.
        into: for a corpus that writes recordings of its own: the corpus for an output folder.

    Returns:
        The exit code: 0, or 1 if a split came out empty.

    Raises:
        UserError: the corpus is not there, can't be fetched, or none of it can be used.
    """
    root = Path(options.root)
    if options.action == "download":
        return _download(corpus, source, root, options)
    output = Path(options.output or Path("datasets", corpus.name))
    corpus = into(output) if into else corpus
    summary = prepare(corpus, root, output, options.workers, options.sample_rate)
    print_summary(summary)
    print(f"written: {output}/{{{','.join(summary['splits'])},rejected}}.tsv and summary.json")
    empty = [name for name, size in summary["splits"].items() if not size["utterances"]]
    if empty:
        print(f"no usable utterance in: {', '.join(empty)}", file=sys.stderr)
    return 1 if empty else 0


def _download(corpus: Corpus, source: Source, root: Path, options: argparse.Namespace) -> int:
    if isinstance(source, ByHand):
        raise CorpusError(source.reason, where=root, hint=source.steps)
    if isinstance(source, Archive):
        print(f"{download_corpus(source, root, options.url, options.sha256)}: ready")
    else:
        for archive in source:
            if options.only in (None, archive.folder):
                url = f"{options.url.rstrip('/')}/{archive.url.rpartition('/')[2]}"
                print(f"{download_corpus(archive, root, url)}: ready")
    print(f"now: python -m data.corpora.{corpus.name} prepare {root}")
    return 0


def corpus_parser(corpus: Corpus, source: Source, about: str) -> argparse.ArgumentParser:
    """The command line of one corpus.

    Args:
        corpus: what to prepare.
        source: where it comes from; None if there is no ``download``.
        about: a line for ``--help``.
    """
    settings = {
        "formatter_class": argparse.RawDescriptionHelpFormatter,
        "epilog": _examples(corpus.name, source),
    }
    parser = argparse.ArgumentParser(f"python -m data.corpora.{corpus.name}", description=about, **settings)
    actions = parser.add_subparsers(dest="action", required=True)
    add_prepare(actions, corpus.name, settings)
    if source:
        _add_download(actions, source, settings)
    return parser


def add_prepare(actions: argparse._SubParsersAction, name: str, settings: dict) -> None:
    """Add ``prepare`` to the actions of a corpus's command line.

    Args:
        actions: of the parser.
        name: of the corpus.
        settings: of the action's own parser.
    """
    preparing = actions.add_parser("prepare", help="check the corpus and write its manifests", **settings)
    preparing.add_argument("root", help="the folder of the corpus")
    preparing.add_argument("--output", help=f"folder of the manifests (default: datasets/{name})")
    preparing.add_argument(
        "--sample-rate",
        type=positive,
        default=SAMPLE_RATE,
        metavar="HZ",
        help="reject recordings of a lower rate; 8000 for telephone speech, which is then trained with "
        "features.sample_rate=8000 (default: %(default)s)",
    )
    workers = os.cpu_count() or 1
    preparing.add_argument(
        "--workers", type=positive, default=workers, help="default: %(default)s, the CPU's cores"
    )


def _examples(name: str, source: Source) -> str:
    examples = _PREPARE_EXAMPLE
    if source:
        examples += _DOWNLOAD_EXAMPLE
    if isinstance(source, Archive):
        examples += _MIRROR_EXAMPLE
    if isinstance(source, tuple):
        examples += _PART_EXAMPLE
    part = source[-1].folder if isinstance(source, tuple) else ""
    return examples.format(name=name, folder=f"~/corpora/{name}", part=part)


def _add_download(actions: argparse._SubParsersAction, source: Source, settings: dict) -> None:
    if isinstance(source, ByHand):
        loading = actions.add_parser("download", help="say how to get the corpus", **settings)
        loading.add_argument("root", help="the folder that will hold the corpus")
        return
    if isinstance(source, Archive):
        loading = actions.add_parser("download", help=f"fetch and unpack {source.url}", **settings)
        loading.add_argument("root", help=f"the folder that will hold {source.folder}")
        loading.add_argument(
            "--url", default=source.url, help="a mirror of the same archive (default: %(default)s)"
        )
        loading.add_argument("--sha256", help=_CHECKSUM)
        return
    folders = [archive.folder for archive in source]
    server = source[0].url.rpartition("/")[0]
    size = sum(archive.size for archive in source) / 1e9
    loading = actions.add_parser("download", help=f"fetch and unpack {size:.0f} GB from {server}", **settings)
    loading.add_argument("root", help=f"the folder that will hold {', '.join(folders)}")
    loading.add_argument("--only", choices=folders, help="one of the archives (default: all)")
    loading.add_argument(
        "--url", default=server, help="a mirror's folder with the same archives (default: %(default)s)"
    )
