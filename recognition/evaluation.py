"""Runs loaded models on a test set: results of all utterances, with the evidence about their errors.

The evidence is the scores of references, the gold pass (hanzi from the reference syllables), noise, and what
the training texts contain. ``test.py`` loads the models and reads the lists; ``analysis`` computes the rates.
"""

from __future__ import annotations

import dataclasses
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING

from tqdm import tqdm

from analysis.inputs.sound import median_pitch, signal_to_noise
from analysis.inputs.training_texts import Training, count_seen, read_training
from analysis.inputs.utterance_results import (
    HANZI,
    LANGUAGE,
    OUTPUT,
    SPEECH,
    SYLLABLES,
    Scores,
    UtteranceResult,
    as_text,
    same_reading,
)
from data.manifest import Transcript, Utterance
from model_language.converters.user_word_converter import AnyConverter, UserWordConverter
from model_language.vocabulary.symbols import Symbols
from recognition.cluster_jobs import results_by_job
from recognition.inspection import token_scores
from utils.audio.reading import read_audio
from utils.errors import AudioError, require
from utils.hypotheses.recognition import Recognition
from utils.mandarin.output_units import HANZI as HANZI_UNITS
from utils.mandarin.output_units import TONELESS, tokens_of
from utils.metrics import real_time_factor
from utils.processes import are_jobs_elsewhere
from utils.run_folder.run import RunFolder

if TYPE_CHECKING:  # they load TensorFlow
    from recognition.recognizer import Recognizer

STAGE_LEVELS = {SPEECH: SYLLABLES, LANGUAGE: HANZI}


@dataclass(frozen=True)
class Evaluation:
    """The results of the models on a test set.

    Attributes:
        utterances: results of all utterances, without those that were rejected.
        training: for each level, what is known of the model that writes it and of its training texts.
        settings: computing time, and how many sentences each model was trained on, for ``results.json``.
        recognizer: the first stage; None if there was none.
        rejected: ids of the utterances whose recordings cannot be read.
    """

    utterances: list[UtteranceResult]
    training: Mapping[str, Training]
    settings: Mapping[str, object]
    recognizer: Recognizer | None = None
    rejected: Sequence[str] = ()

    @property
    def automatic_pinyin(self) -> tuple[str, ...]:
        """As in :class:`analysis.inputs.utterance_results.SystemOutput`: of a model whose units are hanzi."""
        return (OUTPUT,) if self.recognizer and self.recognizer.units == HANZI_UNITS else ()


def evaluate_speech(
    recognizer: Recognizer,
    run: RunFolder,
    utterances: Sequence[Utterance],
    explain: bool,
    load: Callable[[], Recognizer],
) -> Evaluation:
    """Recognise the syllables of a test set; with hanzi as output units, the hanzi.

    Args:
        recognizer: recognizer of the speech run.
        run: the speech run.
        utterances: the test set.
        explain: also compute what only a report needs: noise and scores.
        load: loads the recognizer again, on another machine.

    Raises:
        AudioError: no recording can be read.
    """
    found, seconds = recognise_all(recognizer, utterances, explain, load)
    results = [result for result in found if not isinstance(result, AudioError)]
    if not results:
        raise next(result for result in found if isinstance(result, AudioError))
    unread = (isinstance(result, AudioError) for result in found)
    rejected = [utterance.id for utterance in compress(utterances, unread)]
    training = {SYLLABLES: read_training(run.manifests("train"))}
    if recognizer.units == HANZI_UNITS:
        hanzi = frozenset(recognizer.acoustic.vocabulary.tokens)
        training[HANZI] = dataclasses.replace(training[SYLLABLES], hanzi=hanzi, candidates=lambda _: hanzi)
    audio_seconds = sum(result.seconds for result in results)
    settings = {
        "rejected": len(rejected),
        "audio_seconds": audio_seconds,
        "seconds": seconds,
        "real_time_factor": real_time_factor(seconds, audio_seconds),
        "seen_in_training": {SPEECH: _count_seen(training[SYLLABLES], results)},
    }
    return Evaluation(results, training, settings, recognizer, rejected)


def evaluate_language(
    converter: AnyConverter, run: RunFolder, transcripts: Sequence[Transcript], explain: bool
) -> Evaluation:
    """Convert the reference syllables of a test set to hanzi; arguments as in :func:`evaluate_speech`."""
    hanzi = _converted(converter, [each.pinyin for each in transcripts])
    results = [
        UtteranceResult(each.id, "", 0.0, each.pinyin, each.pinyin, each.hanzi, output, gold_hanzi=output)
        for each, output in zip(transcripts, hanzi, strict=True)
    ]
    if explain:
        results = with_language_scores(results, converter)
    training = {HANZI: language_training(run)}
    seen = {LANGUAGE: _count_seen(training[HANZI], results)}
    return Evaluation(results, training, {"seen_in_training": seen})


def evaluate_pipeline(
    recognizer: Recognizer,
    runs: tuple[RunFolder, RunFolder],
    utterances: Sequence[Utterance],
    explain: bool,
    explain_language: bool,
    load: Callable[[], Recognizer],
) -> Evaluation:
    """Recognise syllables and hanzi of a test set, and convert the reference syllables too (the gold pass).

    Args:
        recognizer: recognizer of both runs.
        runs: the speech run and the language run.
        utterances: the test set.
        explain: also compute noise and acoustic scores.
        explain_language: also compute the scores of the second stage.
        load: loads the recognizer again, on another machine.

    Raises:
        AudioError: no recording can be read.
        ConfigError: the first stage writes hanzi itself.
    """
    converter = recognizer.converter
    assert converter
    require(
        recognizer.units != HANZI_UNITS,
        "this model has hanzi as output units: there is no second stage to test",
        where=runs[0].path,
        hint=f"python test.py speech {runs[0].path}",
    )
    speech = evaluate_speech(recognizer, runs[0], utterances, explain, load)
    gold_hanzi = _converted(converter, [each.reference_pinyin for each in speech.utterances])
    results = [
        dataclasses.replace(result, gold_hanzi=hanzi)
        for result, hanzi in zip(speech.utterances, gold_hanzi, strict=True)
    ]
    if explain_language:
        results = with_language_scores(results, converter)
    training = {**speech.training, HANZI: language_training(runs[1])}
    seen = {stage: _count_seen(training[level], results) for stage, level in STAGE_LEVELS.items()}
    settings = {**speech.settings, "seen_in_training": seen}
    return Evaluation(results, training, settings, recognizer, speech.rejected)


def recognise_all(
    recognizer: Recognizer,
    utterances: Sequence[Utterance],
    explain: bool,
    load: Callable[[], Recognizer],
) -> tuple[list[UtteranceResult | AudioError], float]:
    """Recognise all utterances and measure the time; print the errors of recordings that cannot be read.

    Returns:
        The result or the error of each utterance, and the seconds. These include reading the audio and
        computing the features, not the loading of the models; on a cluster they include all.
    """
    start = time.perf_counter()
    bar = tqdm(total=len(utterances), unit="utt", disable=None)
    if are_jobs_elsewhere():
        by_first = {}
        for first, found in results_by_job(load, partial(_recognise_job, explain), utterances):
            by_first[first] = found
            bar.update(len(found))
        results = [result for first in sorted(by_first) for result in by_first[first]]
        seconds = time.perf_counter() - start
    else:
        results = []
        for result in _recognise(recognizer, utterances):
            results.append(result)
            bar.update()
        seconds = time.perf_counter() - start
        if explain:
            progress = tqdm(results, "noise and search", unit="utt", disable=None)
            results = [_explained(result, recognizer) for result in progress]
    bar.close()
    for result in results:
        if isinstance(result, AudioError):
            print(result.labelled(), file=sys.stderr)
    return results, seconds


def _recognise(
    recognizer: Recognizer, utterances: Sequence[Utterance]
) -> Iterator[UtteranceResult | AudioError]:
    """The result of each utterance, or the error of a recording that cannot be read."""
    outputs = _outputs(recognizer, ((utterance.id, utterance.audio) for utterance in utterances))
    for utterance, output in zip(utterances, outputs, strict=True):
        if isinstance(output, AudioError):
            yield output
        else:
            yield utterance_result(utterance, output, recognizer)


def _outputs(
    recognizer: Recognizer, sources: Iterable[tuple[str, Path]]
) -> Iterator[Recognition | AudioError]:
    errors: list[AudioError] = []  # since the last recognition
    for output in recognizer.recognise(sources, lambda _, error: errors.append(error)):
        yield from errors
        errors.clear()
        yield output
    yield from errors


def _recognise_job(
    explain: bool, recognizer: Recognizer, utterances: Sequence[Utterance]
) -> list[UtteranceResult | AudioError]:
    results = _recognise(recognizer, utterances)
    return [_explained(result, recognizer) if explain else result for result in results]


def _explained(result: UtteranceResult | AudioError, recognizer: Recognizer) -> UtteranceResult | AudioError:
    return result if isinstance(result, AudioError) else with_acoustic_scores(result, recognizer)


def _count_seen(training: Training, results: Sequence[UtteranceResult]) -> int | None:
    return count_seen(training, ("".join(result.reference_hanzi) for result in results))


def utterance_result(utterance: Utterance, output: Recognition, recognizer: Recognizer) -> UtteranceResult:
    """An utterance of a list with its recognition; without tones if the output units have none."""
    toneless, pinyin = recognizer.units == TONELESS, output.pinyin
    if recognizer.units == HANZI_UNITS:
        pinyin = same_reading(pinyin, output.hanzi, utterance.pinyin, utterance.hanzi)
    return UtteranceResult(
        id=utterance.id,
        speaker=utterance.speaker,
        seconds=output.seconds,
        reference_pinyin=tokens_of(TONELESS, utterance.pinyin, "") if toneless else utterance.pinyin,
        pinyin=pinyin,
        reference_hanzi=utterance.hanzi,
        hanzi=output.hanzi,
        spoken_pinyin=utterance.spoken_pinyin,
        n_best=output.n_best if recognizer.n_best > 1 else (),
        audio=str(utterance.audio),
        times=output.times,
    )


def with_acoustic_scores(result: UtteranceResult, recognizer: Recognizer) -> UtteranceResult:
    """Add the recording's signal-to-noise ratio and pitch; for a wrong output, its score and the reference's.

    Raises:
        AudioError: the recording cannot be read any more.
    """
    samples, scores = read_audio(result.audio, recognizer.sample_rate), None
    texts = (result.reference_pinyin, result.reference_hanzi), (result.pinyin, result.hanzi)
    reference, output = (tokens_of(recognizer.units, pinyin, as_text(hanzi)) for pinyin, hanzi in texts)
    if output != reference:
        scores = token_scores(recognizer, samples, (reference, output))
    return dataclasses.replace(
        result,
        snr=signal_to_noise(samples, recognizer.sample_rate),
        pitch=median_pitch(samples, recognizer.sample_rate),
        speech_scores=Scores(*scores) if scores else None,
    )


def _converted(converter: AnyConverter, sentences: Sequence[Sequence[str]]) -> list[str]:
    """The text of each sentence."""
    hanzi = converter.convert(sentences)
    return list(map(converter.words.text, hanzi)) if isinstance(converter, UserWordConverter) else hanzi


def with_language_scores(
    results: Sequence[UtteranceResult], converter: AnyConverter
) -> list[UtteranceResult]:
    """Add the second stage's scores of the reference hanzi and of its own, both for the reference syllables.

    Args:
        results: with gold hanzi; those whose gold hanzi are correct need no scores, and a text with words in
            Latin letters has none.
        converter: the stage that wrote them.
    """
    wrong = [
        index
        for index, result in enumerate(results)
        if result.gold_hanzi != result.reference_hanzi
        and len(result.gold_hanzi or "") == len(result.reference_pinyin)
    ]
    syllables = [results[index].reference_pinyin for index in wrong]
    references = converter.scores(syllables, [results[index].reference_hanzi for index in wrong])
    outputs = converter.scores(syllables, [results[index].gold_hanzi for index in wrong])
    scored = list(results)
    for index, reference, output in zip(wrong, references, outputs, strict=True):
        scored[index] = dataclasses.replace(scored[index], language_scores=Scores(reference, output))
    return scored


def language_training(run: RunFolder) -> Training:
    """The hanzi that a language run can write, and its training texts as far as its lists still exist."""
    symbols = Symbols.load(run.path)
    return read_training(run.manifests("train"), frozenset(symbols.hanzi.tokens), symbols.lexicon.candidates)
