"""Results of small artificial tests with every kind of error, for reports; no model or recording."""

import base64
import io
import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import soundfile

from analysis.inputs.text_files import Problem
from analysis.inputs.training_texts import Training
from analysis.inputs.utterance_results import (
    HANZI,
    LEVELS,
    SYLLABLES,
    TASK_LEVELS,
    SystemOutput,
    UtteranceResult,
)
from analysis.intervals.comparison import Change
from analysis.page.report import Evidence
from analysis.results.collect import collect_results
from analysis.results.result_files import summary
from analysis.results.results import Results
from tests.support.injected_errors import INJECTORS, gold_outcomes, inject
from utils.hypotheses.recognition import Alternative

NASTY = '</script><b id="x">&amp;\'"<!--'  # used as id, speaker and text: must be escaped
RATE = 16_000


def score(outcomes: Sequence[UtteranceResult], task: str) -> dict[str, object]:
    """The contents of ``results.json`` for these utterances."""
    systems = [SystemOutput(task, outcomes)]
    return summary(collect_results(systems, TASK_LEVELS[task], task, task, breakdowns=False))


def with_readings(outcome: UtteranceResult, readings: int, rng: random.Random) -> UtteranceResult:
    """Add even times, and n-best hypotheses: the reference and some with one other syllable."""
    found = [Alternative(outcome.pinyin, str(outcome.hanzi), -1.0)]
    found.append(Alternative(outcome.reference_pinyin, str(outcome.reference_hanzi), -1.5))
    while len(found) < readings:
        at = rng.randrange(len(outcome.pinyin))
        pinyin = (*outcome.pinyin[:at], "de5", *outcome.pinyin[at + 1 :])
        hanzi = f"{outcome.hanzi[:at]}的{outcome.hanzi[at + 1 :]}"
        found.append(Alternative(pinyin, hanzi, -2.0 - len(found)))
    step = outcome.seconds / max(len(outcome.pinyin), 1)
    times = tuple((step * n, step * (n + 1)) for n in range(len(outcome.pinyin)))
    return replace(outcome, n_best=tuple(found[:readings]), times=times)


def imagined_outcomes(
    utterances: int, speakers: int = 12, share: float = 0.2, readings: int = 5, seed: int = 0
) -> list[UtteranceResult]:
    """Outcomes with all kinds of errors."""
    gold = gold_outcomes(utterances, speakers, seed)
    rng = random.Random(seed)
    outcomes, _ = inject(gold, list(INJECTORS), share, seed)
    return [with_readings(outcome, readings, rng) for outcome in outcomes]


def training_of(outcomes: Sequence[UtteranceResult]) -> dict[str, Training]:
    """Training statistics as if half of the sentences were training sentences."""
    known = outcomes[::2]
    syllables: dict[str, int] = {}
    for outcome in known:
        for syllable in outcome.reference_pinyin:
            syllables[syllable] = syllables.get(syllable, 0) + 1
    sentences = frozenset(str(outcome.reference_hanzi) for outcome in known)
    return dict.fromkeys((SYLLABLES, HANZI), Training(syllables=syllables, sentences=sentences))


def one_system(utterances: int = 80) -> Results:
    """The result of a pipeline test; two utterances contain text that a page must escape."""
    outcomes = imagined_outcomes(utterances)
    nasty = UtteranceResult(
        NASTY, NASTY, 2.0, ("ni3", "hao3"), ("ni3",), ("你", "</script>"), ("你",), ("你", "好")
    )
    outcomes = [
        *outcomes,
        nasty,
        replace(nasty, id=f"{NASTY}2", hanzi=("</p>", "&lt;"), pinyin=("ni3", "a1")),
    ]
    settings = {
        "split": "test",
        "manifests": ["a.tsv", "<b>.tsv"],
        "beam": 10,
        "audio_seconds": 300.0,
        "real_time_factor": 0.02,
        "seen_in_training": {"speech": None, "language": 3},
    }
    return collect_results(
        [SystemOutput("pipeline", outcomes)],
        LEVELS,
        "pipeline",
        "pipeline on test",
        training_of(outcomes),
        settings,
    )


def stage_alone(name: str) -> Results:
    """The result of ``speech`` or ``language`` only; or of both with all ``right`` or ``silent`` output."""
    outcomes = imagined_outcomes(12)
    nothing = {"n_best": (), "times": (), "snr": None, "speaker": "", "seconds": 0.0}
    if name == "speech":
        changed = [replace(outcome, reference_hanzi="", hanzi="", gold_hanzi="") for outcome in outcomes]
        return collect_results([SystemOutput(name, changed)], (SYLLABLES,), name, name)
    if name == "language":
        changed = [
            replace(outcome, pinyin=outcome.reference_pinyin, hanzi=outcome.gold_hanzi, **nothing)
            for outcome in outcomes
        ]
        return collect_results([SystemOutput(name, changed)], (HANZI,), name, name)
    if name == "right":
        changed = [
            replace(
                outcome,
                pinyin=outcome.reference_pinyin,
                hanzi=outcome.reference_hanzi,
                gold_hanzi=outcome.reference_hanzi,
            )
            for outcome in outcomes
        ]
    else:
        changed = [replace(outcome, pinyin=(), hanzi="", **nothing) for outcome in outcomes]
    return collect_results([SystemOutput(name, changed)], LEVELS, "pipeline", name)


def two_systems(utterances: int = 60) -> Results:
    """The result of two systems, of which the second is better, with problems."""
    outcomes, others = imagined_outcomes(utterances, share=0.4), imagined_outcomes(utterances, share=0.1)
    results = collect_results(
        [SystemOutput("a/text", outcomes), SystemOutput(f"b {NASTY}", others)],
        LEVELS,
        "files",
        f"two against {NASTY}",
        problems=[Problem(f"a {NASTY}", "ids that come twice", 2, (NASTY,), "the first counts")],
    )
    extra = Change(NASTY, (1, 0), "<i>你</i>", ("你</dd>", "<i>你</i>"))
    compared = tuple(
        replace(comparison, better=(*comparison.better, extra)) for comparison in results.comparisons
    )
    return replace(results, comparisons=compared)


def evidence_of(id: str, seconds: float = 0.4) -> Evidence:
    """A short tone, and a picture of one pixel."""
    sound = io.BytesIO()
    tone = 0.1 * np.sin(np.arange(round(seconds * RATE)) * 2 * np.pi * 440 / RATE)
    soundfile.write(sound, tone, RATE, format="MP3")
    pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    return Evidence(
        id=id,
        sound=f"data:audio/mpeg;base64,{base64.b64encode(sound.getvalue()).decode('ascii')}",
        picture=f"data:image/png;base64,{pixel}",
        seconds=seconds,
        tracks=(("spectrogram", "a tone"), ("posteriors", NASTY)),
    )
