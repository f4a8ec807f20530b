"""Calibrates the confidence of recognised syllables on recordings of dev speakers with known texts.

    python -m recognition.calibrate RUN --manifest dev.tsv [--check test.tsv]

Recognises the recordings, with tonal syllables also by the joint search (for syllables and hanzi together),
compares the syllables with their texts, fits a logistic regression for each search
(:mod:`recognition.confidence`) and writes ``confidence.json`` into the run.
It also measures how long before the middle of a syllable the model emits it, for the times of syllables.
Prints, for the recordings that it was fitted on and for those to check: the expected calibration error over
ten bins of equal size, and the area under the ROC curve for telling right from wrong syllables.
"""

from utils.command.entry import run_command

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rapidfuzz.distance import Levenshtein
from tqdm import tqdm

from data.corpora.tools.lists import read_utterances
from data.manifest import Utterance
from model_language.registry import load_converter
from model_speech.acoustic_logits import AcousticLogits, load_acoustic_logits
from model_speech.ctc.alignment import align_text
from recognition.confidence import FEATURES_OF, JOINT, JOINT_NGRAM, PLAIN, Calibration
from recognition.loading import load_joint_search_for
from recognition.recognizer import Recognizer
from utils.audio.levels import decibels, moving_power
from utils.audio.reading import read_audio
from utils.command.parser import CommandParser
from utils.errors import CorpusError, require
from utils.features.speech import extract_features
from utils.files import write_json
from utils.hypotheses.calibration import area_under_curve, calibration_error, logistic_regression
from utils.mandarin.output_units import TONAL, compared, read_tokens, tokens_of
from utils.run_folder.run import PRETRAINED, RunFolder, open_run

MINIMUM = 100  # syllables to fit on
_LEADS = (-0.2, 0.3, 0.01)  # first, end and step of the leads that are tried, in seconds
_LEVEL_SECONDS = 0.08  # window in which the level is measured


@dataclass(frozen=True)
class Observations:
    """Recognised syllables.

    Attributes:
        features: (syllables, features) float64, see :func:`recognition.confidence.syllable_features`.
        right: (syllables,) bool, whether each is correct: equal to the syllable of the text aligned with it.
    """

    features: np.ndarray
    right: np.ndarray


def observe(recognizer: Recognizer, utterances: Sequence[Utterance]) -> Observations:
    """Recognise utterances and compare their syllables, or hanzi if these are the units, with the texts.

    Raises:
        CorpusError: no syllable was recognised.
    """
    features, right = [], []
    recognised = recognizer.recognise((utterance.id, utterance.audio) for utterance in utterances)
    shown = tqdm(recognised, "recognising", len(utterances), disable=None)
    for utterance, result in zip(utterances, shown, strict=True):
        if result.pinyin:
            features.append(result.certainty)
            texts = (utterance.pinyin, utterance.hanzi), (result.pinyin, result.hanzi)
            right.append(_correct(*(compared(recognizer.units, *text) for text in texts)))
    if not right:
        raise CorpusError(
            "nothing was recognised in these recordings",
            hint="give recordings of speech, or train longer",
        )
    return Observations(np.concatenate(features), np.concatenate(right))


def _correct(reference: Sequence[str], hypothesis: Sequence[str]) -> np.ndarray:
    """Whether each syllable of the hypothesis equals the one that it is aligned with: (syllables,) bool."""
    right = np.ones(len(hypothesis), bool)
    for edit in Levenshtein.editops(reference, hypothesis):
        if edit.tag != "delete":
            right[edit.dest_pos] = False
    return right


def measure_lead(acoustic: AcousticLogits, utterances: Sequence[Utterance]) -> float:
    """Seconds from the emission of a syllable to its middle: where the sound is loudest on average.

    The emissions are those of the forced alignment of the known texts.
    """
    shifts = np.arange(*_LEADS)
    levels, rate = [], acoustic.features.sample_rate
    units = acoustic.vocabulary.units
    for utterance in tqdm(utterances, "timing", disable=None):
        samples = read_audio(utterance.audio, rate)
        logits, lengths = acoustic.logits([extract_features(samples, acoustic.features)])
        tokens = tokens_of(units, utterance.pinyin, utterance.hanzi)
        aligned = align_text(logits[0, : lengths[0]], tokens, acoustic.vocabulary)
        if aligned is None:
            continue
        _, ends, _ = read_tokens(units, tokens)
        power = moving_power(samples, rate, _LEVEL_SECONDS)
        emitted = (aligned[0][list(ends), None] + 0.5) * acoustic.frame_seconds
        at = emitted + shifts  # (syllables, shifts) in seconds
        levels.append(decibels(power[np.clip(at * rate, 0, len(power) - 1).astype(int)]))
    if not levels:
        return 0.0
    return round(float(shifts[np.concatenate(levels).mean(axis=0).argmax()]), 2)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command ``python -m recognition.calibrate``."""
    options = _parser().parse_args(arguments)
    run = open_run(options.run, "speech").path
    acoustic = load_acoustic_logits(run)
    recognizers, kinds = {PLAIN: Recognizer(acoustic)}, [PLAIN]
    if recognizers[PLAIN].units == TONAL:
        joint = load_joint_search_for(run, load_converter(options.language))
        recognizers[JOINT] = Recognizer(acoustic, joint=joint)
        kinds += [JOINT, *([JOINT_NGRAM] if joint.has_ngrams else [])]
    dev = [utterance for path in options.manifest for utterance in read_utterances(path)]
    observed = _observe_kinds(recognizers, kinds, dev)
    right = observed[PLAIN].right
    require(
        len(right) >= MINIMUM and 0 < right.sum() < len(right),
        f"{len(right)} syllables are recognised, {right.sum()} of them correctly: too few to fit confidences",
        where=", ".join(map(str, options.manifest)),
        hint=f"give recordings with {MINIMUM} syllables or more, or train the model longer",
        error=CorpusError,
    )
    weights = {
        kind: tuple(logistic_regression(found.features, found.right).tolist())
        for kind, found in observed.items()
    }
    named = {
        kind: dict(zip((*FEATURES_OF[kind], "offset"), values, strict=True))
        for kind, values in weights.items()
    }
    calibration = Calibration(weights, measure_lead(acoustic, dev))
    totals = {"syllables": len(observed[PLAIN].right), "lead_seconds": calibration.lead_seconds}
    write_json(RunFolder(run).confidence, {"weights": named} | totals)
    print(f"fitted: a syllable is emitted {calibration.lead_seconds:.2f} s before its middle")
    for line in _report("fitted", observed, calibration):
        print(line)
    for path in options.check:
        utterances = read_utterances(path)
        checked = _observe_kinds(recognizers, kinds, utterances)
        for line in _report(str(path), checked, calibration):
            print(line)
        lead_seconds = measure_lead(acoustic, utterances)
        print(f"{path}: a syllable is emitted {lead_seconds:.2f} s before its middle")
    return 0


def _observe_kinds(
    recognizers: dict[str, Recognizer], kinds: Sequence[str], utterances: Sequence[Utterance]
) -> dict[str, Observations]:
    """The observations for each kind of search; those with hanzi are made once."""
    observed = {kind: observe(recognizer, utterances) for kind, recognizer in recognizers.items()}
    found = {}
    for kind in kinds:
        of_kind = observed[PLAIN if kind == PLAIN else JOINT]
        found[kind] = Observations(of_kind.features[:, : len(FEATURES_OF[kind])], of_kind.right)
    return found


def _report(title: str, observed: dict[str, Observations], calibration: Calibration) -> Iterator[str]:
    for kind, found in observed.items():
        confidence = np.array(calibration.confidence(kind, found.features))
        yield (
            f"{title}, {kind}: {len(found.right)} syllables, {found.right.mean():.1%} right, "
            f"calibration error {calibration_error(confidence, found.right):.1%}, "
            f"area under the curve {area_under_curve(confidence, found.right):.3f}"
        )


def _parser() -> CommandParser:
    parser = CommandParser(description=__doc__)
    parser.add_argument("run", type=Path, help="a speech run")
    parser.add_argument("--manifest", type=Path, nargs="+", required=True, help="recordings of dev speakers")
    parser.add_argument("--check", type=Path, nargs="+", default=[], help="recordings to measure on only")
    parser.add_argument(
        "--language", type=Path, default=PRETRAINED, metavar="RUN", help="converter of the joint search"
    )
    return parser


if __name__ == "__main__":
    run_command(main)
