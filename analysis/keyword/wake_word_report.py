"""Formats the measurements of a new wake word's model as a short Markdown report for its user."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scipy.stats import beta, chi2

from analysis.keyword.detections import DetectedKeyword, OperatingPoint, SpokenKeyword, match

_MIN_EXPECTED_ALARMS = 3.0  # at the allowed rate; with fewer, seeing none proves nothing
_LOW_RECALL = 0.5  # the report warns of a recall below it
# Description of the background if the user gives no recordings.
SYNTHETIC = "synthesised speech: no background recordings were given"
CONFIDENCE = 0.95  # of the intervals


@dataclass(frozen=True)
class WakeWordResults:
    """The measurements of a report.

    Attributes:
        word, pinyin, forms: hanzi, their reading, and all pronunciations that count as the word.
        voices, clips: number in each split.
        background: description of the audio in which the false alarms were counted.
        allowed_per_hour: allowed false alarms per hour.
        calibrated, calibration_hours: the threshold on the audio that it was chosen on, and its duration.
        chosen, hours: the same threshold on other audio and voices, and its duration.
        stream, stream_alarms: hours of the recording of test voices, and the false alarms in it.
        by_kind: kind of phrase → (number spoken, number of false alarms).
        parameters: number of parameters of the model.
        artefact: ``bytes`` of the exported model; ``latency_us`` and ``call_seconds`` (of audio) of a call.
    """

    word: str
    pinyin: str
    forms: Sequence[str]
    voices: Mapping[str, int]
    clips: Mapping[str, int]
    background: str
    allowed_per_hour: float
    calibrated: OperatingPoint
    calibration_hours: float
    chosen: OperatingPoint
    hours: float
    stream: float
    stream_alarms: int
    by_kind: Mapping[str, tuple[int, int]]
    parameters: int
    artefact: Mapping[str, float]


def detections_by_kind(
    detected: Sequence[DetectedKeyword], spoken: Sequence[SpokenKeyword], word: str, late_seconds: float
) -> dict[str, tuple[int, int]]:
    """For each kind of phrase, the number of times that it was spoken and that it caused a false alarm.

    Args:
        detected: detections at the chosen threshold.
        spoken: all phrases; ``keyword`` is the word itself or the kind of another phrase.
        word: the label of the word.
        late_seconds: see :func:`analysis.keyword.detections.late_seconds_of`.
    """
    own = [phrase for phrase in spoken if phrase.keyword == word]
    others = [phrase for phrase in spoken if phrase.keyword != word]
    woken = Counter(
        next((o.keyword for o in others if o.start <= detected[i].seconds <= o.end + late_seconds), "between")
        for i in match(detected, own, late_seconds).false_alarms
    )
    times = Counter(phrase.keyword for phrase in others)
    return {
        kind: (times[kind], woken[kind]) for kind in [*sorted(times), *(["between"] * bool(woken["between"]))]
    }


def warnings_of(results: WakeWordResults) -> list[str]:
    """Reasons why the results may be unreliable."""
    found = []
    if results.hours * results.allowed_per_hour < _MIN_EXPECTED_ALARMS:
        needed = float(f"{2 * _MIN_EXPECTED_ALARMS / results.allowed_per_hour:.2g}")  # hours, two digits
        found.append(
            f"{results.hours:.2f} h of audio cannot confirm {results.allowed_per_hour:g} false alarms an "
            f"hour: give at least {needed:g} h of background recordings"
        )
    if 1 - results.chosen.false_reject_rate < _LOW_RECALL:
        found.append(
            "the word is mostly missed at this threshold: allow more alarms an hour, or choose a longer word"
        )
    if results.chosen.false_alarms_per_hour > 2 * results.allowed_per_hour:
        found.append(
            "more alarms than allowed on audio that was not used for calibration: give more recordings"
        )
    return found


def summary_lines(results: WakeWordResults) -> list[str]:
    """The main results, one line each."""
    chosen, hits = results.chosen, results.chosen.spoken - results.chosen.missed
    spoken = max(chosen.spoken, 1)  # a short recording may have none
    recall = proportion_interval(hits, spoken)
    alarms = event_rate_interval(chosen.false_alarms, results.hours)
    return [
        f"recall {100 * hits / spoken:.1f} % ({hits} of {chosen.spoken}, {100 * recall[0]:.1f}-"
        f"{100 * recall[1]:.1f} %) on synthetic voices that were not used in training",
        f"false alarms {chosen.false_alarms_per_hour:.2f} an hour ({chosen.false_alarms} in "
        f"{results.hours:.2f} h, {alarms[0]:.2f}-{alarms[1]:.2f}) on {results.background}",
        f"threshold {chosen.threshold:g}, chosen on {results.calibration_hours:.2f} h of other audio with "
        f"{results.calibrated.false_alarms} false alarms ({results.allowed_per_hour:g} an hour allowed)",
        f"{results.parameters:,} parameters, {results.artefact['bytes'] / 1000:.0f} kB; "
        f"{results.artefact['latency_us']:.0f} µs for "
        f"{1000 * results.artefact['call_seconds']:g} ms of audio",
    ]


def report_text(results: WakeWordResults, command: str) -> str:
    """The contents of ``report.md``.

    Args:
        results: the measurements.
        command: command that starts listening.
    """
    voices = ", ".join(f"{count} {split}" for split, count in results.voices.items())
    clips = ", ".join(f"{count:,} {split}" for split, count in results.clips.items())
    lines = [
        f"# {results.word} ({results.pinyin})",
        "",
        *(f"- {line}" for line in summary_lines(results)),
        "",
        "Intervals have 95 % confidence (Clopper-Pearson, Garwood). All voices are synthetic: the recall for "
        "real voices is lower, by an unknown amount.",
        *(f"\n**{warning}.**" for warning in warnings_of(results)),
        "",
        f"Counted as the word: {'; '.join(results.forms)}. Voices: {voices}. Clips: {clips}.",
        "",
        f"False alarms in {results.stream:.2f} h of test voices ({results.stream_alarms}), by phrase:",
        "",
        "| spoken | times | false alarms |",
        "| --- | ---: | ---: |",
        *(f"| {kind} | {times} | {woken} |" for kind, (times, woken) in results.by_kind.items()),
        "",
        "`trade_off/` has the results of all thresholds (`trade_off.tsv`, `trade_off.png`); "
        "`clips/negatives.tsv` lists the negative examples of the training.",
        "",
        f"    {command}",
    ]
    return "\n".join(lines) + "\n"


def event_rate_interval(events: int, hours: float) -> tuple[float, float]:
    """Interval of the number of events an hour, for independent random events (Poisson).

    Garwood, "Fiducial limits for the Poisson distribution" (Biometrika 28, 1936): exact, from the chi-squared
    distribution. Without any event in 1 h, the rate may still be 3.7 an hour.
    """
    tail = (1 - CONFIDENCE) / 2
    low = chi2.ppf(tail, 2 * events) / 2 if events else 0.0
    return float(low / hours), float(chi2.ppf(1 - tail, 2 * events + 2) / 2 / hours)


def proportion_interval(hits: int, trials: int) -> tuple[float, float]:
    """Interval of a proportion of successes in independent trials (Clopper and Pearson, Biometrika 1934)."""
    tail = (1 - CONFIDENCE) / 2
    low = beta.ppf(tail, hits, trials - hits + 1) if hits else 0.0
    high = beta.ppf(1 - tail, hits + 1, trials - hits) if hits < trials else 1.0
    return float(low), float(high)
