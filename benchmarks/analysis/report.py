"""Measures the error report of a large test set: time, memory and size, from the results to the open page.

    python -m benchmarks.analysis.report [--utterances 7000] [--folder DIR]

The results are synthetic: sentences of dictionary words with every kind of error, with five alternatives and
times each, by fifty speakers; half of the sentences count as training sentences. The page has sound and
pictures of as many utterances as with test.py, of realistic sizes. Peak memory is that of the whole process.
The time to open the page is measured in a headless Chromium, if there is one; its CPU seconds are those of
the main thread of the page.
"""

from utils.command.entry import run_command

import argparse
import base64
import random
import resource
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from analysis.inputs.utterance_results import LEVELS, SystemOutput, UtteranceResult
from analysis.page.evidence import WORST_SHOWN, Evidence
from analysis.page.report import write_report_page
from analysis.results.collect import collect_results
from analysis.results.result_files import write_results
from analysis.results.results import Results
from tests.support.chromium import MISSING, find_chromium, open_chromium
from tests.support.chromium import open_page as open_in
from tests.support.report_results import imagined_outcomes, training_of
from utils.command.arguments import positive
from utils.text_table import print_table

Times = dict[str, tuple[float, float]]  # step → wall and CPU seconds
SPEAKERS = 50
ERROR_RATE = 0.25  # fraction of the possible positions that get an error
SOUND, PICTURE = 30_000, 70_000  # bytes per utterance
LIMITS = {"seconds": 60, "megabytes": 2_000}  # the project's limits for 7,000 utterances


def main(arguments: Sequence[str] | None = None) -> int:
    """Make a report, open it, and print time, memory and sizes."""
    options = _parser().parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="report-", dir=options.folder) as folder:
        outcomes = imagined_outcomes(options.utterances, SPEAKERS, ERROR_RATE)
        times: Times = {}
        with _timed("collect the results", times):
            results = collect(outcomes)
        with _timed("write JSON and CSV", times):
            files = write_results(folder, results)
        with _timed("write the page", times):
            page = write_report_page(folder, results, random_evidence(results))
        opened = open_page(page)
        hanzi = sum(len(each.reference_hanzi) for each in outcomes)
        title = f"Report of {len(outcomes):,} utterances, {hanzi:,} hanzi"
        print_table(title, ("", "measured", "CPU", "allowed"), _rows(times, opened, page, files[0]))
    return 0


def collect(outcomes: Sequence[UtteranceResult]) -> Results:
    """Results of a pipeline's test with all breakdowns."""
    system = SystemOutput("pipeline", outcomes)
    return collect_results(
        [system], LEVELS, "pipeline", "pipeline on synthetic results", training_of(outcomes)
    )


def random_evidence(results: Results) -> dict[str, Evidence]:
    """Random bytes as audio and pictures of the worst utterances."""
    rng = random.Random(0)
    worst = sorted(results.systems[0].utterances, key=lambda row: -row.hanzi_errors)[:WORST_SHOWN]

    def address(kind: str, size: int) -> str:
        return f"data:{kind};base64,{base64.b64encode(rng.randbytes(size)).decode('ascii')}"

    return {
        row.id: Evidence(
            id=row.id,
            sound=address("audio/mpeg", SOUND),
            picture=address("image/webp", PICTURE),
            seconds=row.seconds,
            tracks=(("spectrogram", "random bytes"),),
        )
        for row in worst
    }


def open_page(page: Path) -> dict[str, float]:
    """Time and memory until the page has loaded with its table; empty without a browser."""
    if find_chromium() is None:
        return {}
    with open_chromium() as browser:
        open_in(browser, "about:blank").close()  # the first page of a browser takes longer
        shown = open_in(browser)
        session = shown.page.context.new_cdp_session(shown.page)
        session.send("Performance.enable", {"timeDomain": "threadTicks"})
        shown.page.goto(page.as_uri())
        assert not shown.errors and shown.run("document.querySelectorAll('tr.row').length > 0")
        metrics = {
            metric["name"]: metric["value"] for metric in session.send("Performance.getMetrics")["metrics"]
        }
        return {
            "seconds": shown.run("performance.getEntriesByType('navigation')[0].loadEventEnd") / 1000,
            "cpu_seconds": metrics["TaskDuration"],
            "megabytes": metrics["JSHeapUsedSize"] / 1e6,
        }


@contextmanager
def _timed(step: str, times: Times) -> Iterator[None]:
    began, busy = time.perf_counter(), time.process_time()
    yield
    times[step] = time.perf_counter() - began, time.process_time() - busy


def _rows(times: Times, opened: dict[str, float], page: Path, results: Path) -> Iterator[tuple[str, ...]]:
    for step, (seconds, busy) in times.items():
        yield step, f"{seconds:.1f} s", f"{busy:.1f} s", ""
    seconds, busy = map(sum, zip(*times.values(), strict=True))
    yield "all of these", f"{seconds:.1f} s", f"{busy:.1f} s", f"{LIMITS['seconds']} s"
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    yield "peak memory", f"{peak:,.0f} MB", "", f"{LIMITS['megabytes']:,} MB"
    for path in (results, page):
        yield path.name, f"{path.stat().st_size / 1e6:.1f} MB", "", ""
    if not opened:
        yield "open the page", MISSING, "", ""
        return
    times_of_page = f"{opened['seconds']:.2f} s", f"{opened['cpu_seconds']:.2f} s"
    yield "open the page in Chromium", *times_of_page, "about 1 s"
    yield "its script's memory", f"{opened['megabytes']:.0f} MB", "", ""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.analysis.report",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--utterances", type=positive, default=7_000, help="default: %(default)s")
    parser.add_argument(
        "--folder", type=Path, metavar="DIR", help="folder for its files (default: temporary)"
    )
    return parser


if __name__ == "__main__":
    run_command(main)
