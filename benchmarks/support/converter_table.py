"""Makes the table of the converters' figures for the terminal, and as Markdown for the docs."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from rich.table import Table

from benchmarks.support.pinyin_sentences import AISHELL, ASKED, THCHS, TONELESS
from utils.errors import CorpusError
from utils.files import write_text
from utils.text_table import markdown_table

BEGIN, END = "<!-- figures of benchmarks.model_language.pinyin_to_hanzi -->", "<!-- end of the figures -->"
SHOWN = [(name, given) for name in (THCHS, AISHELL) for given in ASKED[name]]
BLIND, SAMPLED = "°", "†"
WIDTH = 140  # columns of characters that the summary needs
_ABSENT = "-"

Facts = Mapping[str, Any]  # a converter of the JSON file
_SPEED: tuple[tuple[str, Callable[[Facts], str]], ...] = (
    ("sentences/s", lambda converter: f"{converter['speed']['sentences_a_second']:,.0f}"),
    ("one sentence, ms", lambda converter: f"{converter['speed']['milliseconds']:,.1f}"),
    ("start, s", lambda converter: f"{converter['speed']['start_seconds']:.1f}"),
    ("memory, MB", lambda converter: f"{converter['speed']['peak_memory'] / 1e6:,.0f}"),
    ("disk, MB", lambda converter: f"{converter['size'] / 1e6:,.0f}"),
)
NOTES = (
    "CER of hanzi in %; 10 % wrong: every tenth syllable replaced, left out or joined by another, as our "
    "acoustic models mistake them (`tests/support/pinyin_noise.py`), so that one left out costs at "
    f"least one error. {BLIND} makes no use of tones. {SAMPLED} slow: a fixed sample of the sentences. "
    "AISHELL-1 writes 余 as 馀, which counts as an error of every converter. "
    "simplepinyin has probably seen AISHELL-1. "
    "Speed: AISHELL-1 dev in batches, a process of its own, "
    "nothing requested of the converter but its first answer; one sentence: the median of single "
    "sentences; start: until the first sentence is there; memory: the most that the process has held; "
    "disk: the library and its data, without Python and frameworks."
)


def as_table(results: Facts) -> Table:
    """The summary for the terminal."""
    table = Table(title=f"pinyin → hanzi, CER %, {results['date']}, {machine_line(results)}")
    table.add_column("converter")
    for title in _titles():
        table.add_column(title.replace(" test: ", "\n").replace(" dev: ", "\n"), justify="right")
    for converter in results["converters"]:
        table.add_row(*_summary_row(converter))
    return table


def as_markdown(results: Facts) -> str:
    """The summary, intervals and sentence errors, versions of the converters, and skipped converters."""
    converters = results["converters"]
    parts = [
        f"Measured {results['date']} on {machine_line(results)} by `{results['command']}`.",
        markdown_table(["converter", *_titles()], [_summary_row(converter) for converter in converters]),
        NOTES,
    ]
    for name, ways in ASKED.items():
        rows = [_detail_row(converter, name, ways) for converter in converters]
        sizes = [
            score for converter in converters for score in converter["scores"] if score["test_set"] == name
        ]
        most = max(sizes, key=lambda score: score["sentences"], default=None)
        count = f"{most['sentences']:,} sentences, {most['characters']:,} hanzi" if most else "not measured"
        titles = [f"{figure}, {given}" for given in ways for figure in ("CER", "sentences wrong")]
        parts += [f"**{name}** ({count}), % with the 95 % interval:"]
        parts += [markdown_table(["converter", *titles], rows)]
    about = [
        [converter["name"], converter["version"], converter["licence"], _sample(converter)]
        for converter in converters
    ]
    parts += ["What they are:", markdown_table(["converter", "version", "licence", "sentences"], about)]
    parts += [f"Left out: {skipped['name']}: {skipped['reason']}." for skipped in results["skipped"]]
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def write_markdown(path: Path, results: Facts) -> None:
    """Write the figures into a document, between its marks, or into a new document.

    Raises:
        CorpusError: the document has no marks for them.
    """
    text = f"{BEGIN}\n\n{as_markdown(results)}\n{END}\n"
    if path.is_file():
        before, begin, rest = path.read_text(encoding="utf-8").partition(BEGIN)
        _, end, after = rest.partition(END)
        if not (begin and end):
            hint = f"mark the position by the lines '{BEGIN}' and '{END}', or name a new file"
            raise CorpusError("the document has no marks for the figures", where=path, hint=hint)
        text = before + text.removesuffix("\n") + after
    write_text(path, text)


def machine_line(results: Facts) -> str:
    """Processor, cores, memory, Python."""
    machine = results["machine"]
    return (
        f"{machine['processor']}, {machine['cores']} cores, {machine['memory_gib']:.0f} GiB, "
        f"Python {machine['python']}"
    )


def _titles() -> list[str]:
    return [*(f"{name}: {given}" for name, given in SHOWN), *(title for title, _ in _SPEED)]


def _summary_row(converter: Facts) -> list[str]:
    found = {(score["test_set"], score["given"]): score for score in converter["scores"]}
    cells = [_plain(converter, found.get(key), key[1]) for key in SHOWN]
    name = converter["name"] + (f" {SAMPLED}" if converter["most"] else "")
    return [name, *cells, *(cell(converter) for _, cell in _SPEED)]


def _plain(converter: Facts, score: Facts | None, given: str) -> str:
    if score is None:
        return _ABSENT
    return f"{100 * score['cer']['rate']:.2f}" + (BLIND if _is_blind(converter, given) else "")


def _is_blind(converter: Facts, given: str) -> bool:
    return not converter["tones"] and given != TONELESS


def _detail_row(converter: Facts, name: str, ways: Iterable[str]) -> list[str]:
    found = {score["given"]: score for score in converter["scores"] if score["test_set"] == name}
    cells = [converter["name"] + (f" {SAMPLED}" if converter["most"] else "")]
    for given in ways:
        for figure in ("cer", "sentence_error"):
            rate = found[given][figure] if given in found else None
            cells.append(_with_interval(rate) if rate else _ABSENT)
    return cells


def _with_interval(rate: Facts) -> str:
    low, high = 100 * rate["low"], 100 * rate["high"]
    return f"{100 * rate['rate']:.2f} ({low:.2f}-{high:.2f})"


def _sample(converter: Facts) -> str:
    return f"{converter['most']:,} of each kind" if converter["most"] else "all"
