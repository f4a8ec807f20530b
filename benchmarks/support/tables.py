"""Prints the table of a benchmark and, where a document is named, writes it there between its marks."""

from collections.abc import Sequence
from pathlib import Path

from utils.errors import CorpusError
from utils.files import write_text
from utils.text_table import Rows, markdown_table, text_table

END = "<!-- end of the figures -->"


def show(
    benchmark: str,
    columns: Sequence[str],
    rows: Rows,
    document: Path | None = None,
    notes: str = "",
    left: int = 1,
) -> None:
    """Print a table and notes about it.

    Args:
        benchmark: name of the module, which is in the mark of the document.
        columns, rows: headings and cells.
        document: a Markdown file with the marks ``<!-- figures of BENCHMARK -->`` and :data:`END`.
        notes: text below the table.
        left: number of columns, from the first, that are aligned left.

    Raises:
        CorpusError: the document has no marks.
    """
    print(text_table(columns, rows, left))
    if notes:
        print(notes)
    if document:
        begin = f"<!-- figures of {benchmark} -->"
        before, found, rest = document.read_text(encoding="utf-8").partition(begin)
        _, end, after = rest.partition(END)
        if not (found and end):
            hint = f"mark the position by the lines '{begin}' and '{END}'"
            raise CorpusError("the document has no marks for the figures", where=document, hint=hint)
        below = f"\n{notes}\n" if notes else ""
        write_text(document, f"{before}{begin}\n{markdown_table(columns, rows, left)}{below}{END}{after}")
