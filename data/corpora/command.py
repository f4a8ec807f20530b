"""The command line that all corpora share: ``prepare ROOT`` and ``download ROOT``."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from data.corpora.download import Archive, download_corpus
from data.corpora.preparation import Corpus, prepare
from data.corpora.summary import print_summary
from utils.arguments import positive

_PREPARE_EXAMPLE = """examples:
  python -m data.corpora.{name} prepare {folder}
  python -m data.corpora.{name} prepare {folder} --output datasets/{name} --workers 8
"""
_DOWNLOAD_EXAMPLE = """  python -m data.corpora.{name} download {folder}
  python -m data.corpora.{name} download {folder} --url https://openslr.elda.org/resources/…
"""
_CHECKSUM = (
    "SHA-256 that the archive must have. Without it the MD5 sum that public recipes use is checked: it finds "
    "damage in transfer, but does not prove where the file comes from; the server publishes no sum itself"
)


def corpus_command(corpus: Corpus, archive: Archive | None, about: str, argv: list[str] | None = None) -> int:
    """Run ``prepare`` or ``download`` for one corpus.

    Returns:
        The exit code: 0, or 1 if a split came out empty.

    Raises:
        UserError: the corpus is not there, can't be fetched, or none of it can be used.
    """
    options = _parser(corpus, archive, about).parse_args(argv)
    root = Path(options.root)
    if options.action == "download":
        folder = download_corpus(archive, root, options.url, options.sha256)
        print(f"{folder}: ready; now: python -m data.corpora.{corpus.name} prepare {root}")
        return 0
    output = Path(options.output or Path("datasets", corpus.name))
    summary = prepare(corpus, root, output, options.workers)
    print_summary(summary)
    print(f"written: {output}/{{{','.join(summary['splits'])},rejected}}.tsv and summary.json")
    empty = [name for name, size in summary["splits"].items() if not size["utterances"]]
    if empty:
        print(f"no usable utterance in: {', '.join(empty)}", file=sys.stderr)
    return 1 if empty else 0


def _parser(corpus: Corpus, archive: Archive | None, about: str) -> argparse.ArgumentParser:
    names = {"name": corpus.name, "folder": f"~/corpora/{corpus.name}"}
    examples = (_PREPARE_EXAMPLE + (_DOWNLOAD_EXAMPLE if archive else "")).format(**names)
    settings = {"formatter_class": argparse.RawDescriptionHelpFormatter, "epilog": examples}
    parser = argparse.ArgumentParser(f"python -m data.corpora.{corpus.name}", description=about, **settings)
    actions = parser.add_subparsers(dest="action", required=True)
    preparing = actions.add_parser("prepare", help="check the corpus and write its manifests", **settings)
    preparing.add_argument("root", help="the folder of the corpus")
    preparing.add_argument("--output", help=f"folder of the manifests (default: datasets/{corpus.name})")
    workers = os.cpu_count() or 1
    preparing.add_argument(
        "--workers", type=positive, default=workers, help="default: %(default)s, the CPU's cores"
    )
    if archive:
        loading = actions.add_parser("download", help=f"fetch and unpack {archive.url}", **settings)
        loading.add_argument("root", help=f"the folder that will hold {archive.folder}")
        loading.add_argument(
            "--url", default=archive.url, help="a mirror of the same archive (default: %(default)s)"
        )
        loading.add_argument("--sha256", help=_CHECKSUM)
    return parser
