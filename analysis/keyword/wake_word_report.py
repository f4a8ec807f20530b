"""What was measured of a wake word's model in; a short report for its user, as Markdown, out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from analysis.intervals.exact_intervals import rate_interval, share_interval
from analysis.keyword.detections import LATE_SECONDS, DetectedKeyword, OperatingPoint, SpokenKeyword, match

_ENOUGH = 3.0  # alarms to be expected at the rate asked for: with fewer, none seen proves nothing
_LOW_RECALL = 0.5
SYNTHETIC = "synthesised speech: no background recordings were given"


@dataclass(frozen=True)
class WakeWordResults:
    """What the report tells.

    Attributes:
        word: hanzi; ``pinyin`` its reading, ``forms`` all that counts as the word.
        voices: of each split.
        clips: of each split.
        background: where the false alarms were counted.
        asked: false alarms an hour that were allowed.
        calibrated: the chosen threshold on the sound that it was chosen on, and its hours.
        chosen: the same threshold on sound and voices that nothing was chosen on.
        hours: of that sound; ``calibration_hours`` of the other.
        stream: hours of the recording of test voices; ``stream_alarms`` in it.
        by_kind: kind → (times said, times that it woke).
        parameters: of the model.
        artefact: bytes, microseconds a call, seconds of sound a call.
        stages: name → (seconds, CPU seconds).
    """

    word: str
    pinyin: str
    forms: Sequence[str]
    voices: Mapping[str, int]
    clips: Mapping[str, int]
    background: str
    asked: float
    calibrated: OperatingPoint
    calibration_hours: float
    chosen: OperatingPoint
    hours: float
    stream: float
    stream_alarms: int
    by_kind: Mapping[str, tuple[int, int]]
    parameters: int
    artefact: Mapping[str, float]
    stages: Mapping[str, tuple[float, float]]


def detections_by_kind(
    heard: Sequence[DetectedKeyword], said: Sequence[SpokenKeyword], word: str
) -> dict[str, tuple[int, int]]:
    """How often each kind of thing was said, and how often the word was heard when it wasn't said.

    Args:
        heard: at the chosen threshold.
        said: all that was said when; where it isn't the word, the kind stands in its place.
        word: the label of the word.
    """
    own = [one for one in said if one.keyword == word]
    others = [one for one in said if one.keyword != word]
    woken = Counter(
        next((o.keyword for o in others if o.start <= heard[i].seconds <= o.end + LATE_SECONDS), "between")
        for i in match(heard, own).false_alarms
    )
    times = Counter(one.keyword for one in others)
    return {
        kind: (times[kind], woken[kind]) for kind in [*sorted(times), *(["between"] * bool(woken["between"]))]
    }


def warnings_of(results: WakeWordResults) -> list[str]:
    """What the user should know before relying on the figures."""
    found = []
    if results.hours * results.asked < _ENOUGH:
        found.append(
            f"{results.hours:.2f} h of sound can't show {results.asked:g} false alarms an hour: give at "
            f"least {2 * _ENOUGH / results.asked:.0f} h of background recordings"
        )
    if 1 - results.chosen.false_reject_rate < _LOW_RECALL:
        found.append(
            "most calls are missed at this threshold: allow more alarms an hour, or choose a longer word"
        )
    if results.chosen.false_alarms_per_hour > 2 * results.asked:
        found.append("more alarms than asked for on sound that nothing was chosen on: give more of it")
    return found


def summary_lines(results: WakeWordResults) -> list[str]:
    """The figures that matter, a line each."""
    chosen, hits = results.chosen, results.chosen.said - results.chosen.missed
    said = max(chosen.said, 1)  # a recording of seconds may hold none
    recall, alarms = share_interval(hits, said), rate_interval(chosen.false_alarms, results.hours)
    return [
        f"recall {100 * hits / said:.1f} % ({hits} of {chosen.said}, {100 * recall[0]:.1f}-"
        f"{100 * recall[1]:.1f} %) on synthetic voices that trained nothing",
        f"false alarms {chosen.false_alarms_per_hour:.2f} an hour ({chosen.false_alarms} in "
        f"{results.hours:.2f} h, {alarms[0]:.2f}-{alarms[1]:.2f}) on {results.background}",
        f"threshold {chosen.threshold:g}, chosen on {results.calibration_hours:.2f} h of other sound with "
        f"{results.calibrated.false_alarms} false alarms ({results.asked:g} an hour allowed)",
        f"{results.parameters:,} parameters, {results.artefact['bytes'] / 1000:.0f} kB; "
        f"{results.artefact['latency_us']:.0f} µs for "
        f"{1000 * results.artefact['call_seconds']:g} ms of sound",
    ]


def report_text(results: WakeWordResults, command: str) -> str:
    """The contents of ``report.md``.

    Args:
        results: what was measured.
        command: how to listen.
    """
    voices = ", ".join(f"{count} {split}" for split, count in results.voices.items())
    clips = ", ".join(f"{count:,} {split}" for split, count in results.clips.items())
    lines = [
        f"# {results.word} ({results.pinyin})",
        "",
        *(f"- {line}" for line in summary_lines(results)),
        "",
        "Intervals hold with 95 % confidence (Clopper-Pearson, Garwood). All voices are synthetic: people "
        "will be heard less well; how much, nothing here can tell.",
        *(f"\n**{warning}.**" for warning in warnings_of(results)),
        "",
        f"Heard as the word: {'; '.join(results.forms)}. Voices: {voices}. Clips: {clips}.",
        "",
        f"What woke it in {results.stream:.2f} h of test voices ({results.stream_alarms} false alarms):",
        "",
        "| said | times | woke it |",
        "| --- | ---: | ---: |",
        *(f"| {kind} | {times} | {woken} |" for kind, (times, woken) in results.by_kind.items()),
        "",
        "| stage | seconds | CPU seconds |",
        "| --- | ---: | ---: |",
        *(f"| {name} | {seconds:.0f} | {cpu:.0f} |" for name, (seconds, cpu) in results.stages.items()),
        "",
        "`trade_off.tsv` and `trade_off.png` in `trade_off/` have all thresholds; `clips/negatives.tsv` what "
        "the model was taught not to hear. A stage's time is that of the call that finished it.",
        "",
        f"    {command}",
    ]
    return "\n".join(lines) + "\n"
