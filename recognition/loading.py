"""Loads the models of a recognizer or of a live stream from run folders, and joins them as options specify.

Runs that were packed for NumPy load without TensorFlow.
"""

import argparse
import dataclasses
import importlib
from collections.abc import Mapping
from pathlib import Path

from model_language.converters.base import Converter
from model_language.language_model import HanziLanguageModel
from model_language.ngram.syllables import load_syllable_ngram
from model_language.registry import load_converter, load_hanzi_model
from model_language.search.joint import JointSearch, load_joint_search, needs_syllable_ngram
from model_language.search.second_pass import RESCORING
from model_speech.acoustic_logits import AcousticLogits
from model_speech.causal_timing import CausalTiming
from model_speech.compact_numpy import load_numpy_compact
from model_speech.compact_streaming_numpy import NAME as STREAMING
from model_speech.compact_streaming_numpy import NumpyCompactStreaming, load_numpy_compact_streaming
from model_speech.ctc.shallow_fusion import Fusion
from model_speech.ensemble import Member, member_configs, member_folder
from model_speech.int8_weights import is_packed
from recognition.confidence import load_calibration
from recognition.options import beam_width, joint_settings
from recognition.partial_results import PartialResultDecoder
from recognition.phrases.phrase_list import read_phrases
from recognition.phrases.search import PhraseSearch
from recognition.pieces import WINDOW_SECONDS
from recognition.recognizer import Recognizer
from recognition.two_pass_stream import FirstPass, TwoPassStream
from recognition.windowed_logits import WindowedLogits
from streaming.chunks import StreamedModel
from streaming.speech.recognizer import LiveStream
from streaming.speech.stream import LogitStream, SpeechStream
from utils.backend.quiet import silence_tensorflow
from utils.errors import RunError, require
from utils.run_folder.run import PRETRAINED_LANGUAGE_MODEL, PRETRAINED_STREAMING, SEARCH, RunFolder
from utils.vocabulary import BLANK, SPACE, Vocabulary


def load_recognizer(
    run: Path,
    converter: Converter | None,
    options: argparse.Namespace,
    n_best: int = 1,
    window_seconds: float = WINDOW_SECONDS,
) -> Recognizer:
    """Load a speech run and the searches that the options of :mod:`recognition.options` select.

    Args:
        run: the speech run.
        converter: second stage; None gives syllables only.
        options: with those of ``add_search_options``; with a converter also those of ``add_joint_options``.
            With ``phrases`` those of ``add_phrase_options``; the converter is None.
        n_best, window_seconds: see :class:`Recognizer`.

    Raises:
        RunError: a run is damaged or of another kind.
        PhraseError: the phrase file is wrong.
        ConfigError: the options contradict each other.
    """
    joint = None
    if converter and options.joint:
        joint = load_joint_search_for(run, converter, **joint_settings(options))
    acoustic = load_acoustic_logits(run)
    members = load_members(run, acoustic) if joint else ()
    return Recognizer(
        acoustic,
        converter,
        beam=beam_width(options),
        n_best=n_best,
        fusion=load_optional_fusion(options, acoustic.vocabulary),
        joint=joint,
        workers=options.workers,
        window_seconds=window_seconds,
        phrases=load_optional_phrases(options, acoustic.vocabulary, n_best),
        calibration=load_calibration(run),
        minimum_confidence=getattr(options, "minimum_confidence", 0.0),
        members=members,
    )


def load_both_stages(
    speech: Path,
    language: Path | None,
    options: argparse.Namespace,
    n_best: int = 1,
    window_seconds: float = WINDOW_SECONDS,
) -> Recognizer:
    """:func:`load_recognizer` of a speech run, with the converter of a language run; None: no converter.

    Args:
        speech, language: the runs.
        options: as for :func:`load_recognizer`; with a language run also those of ``add_word_option``.
        n_best, window_seconds: see :class:`Recognizer`.
    """
    converter = load_converter(language, options.words) if language else None
    return load_recognizer(speech, converter, options, n_best, window_seconds)


def load_live_stream(
    run: Path, recognizer: Recognizer, first_pass: Recognizer | None, chunk_seconds: float | None = None
) -> LiveStream:
    """A stream that recognises live audio with the models and searches of ``recognizer``, for any speech run.

    Args:
        run: the speech run. A causal network needs one pass; one of whole utterances recognises them in a
            second pass.
        recognizer: made by :func:`load_recognizer` from the same run.
        first_pass: made by :func:`load_first_pass`, for the second kind; None: without partial results.
        chunk_seconds: seconds of audio that a causal network of ``run`` processes at once; None: those of one
            logit frame.

    Raises:
        ConfigError: the chunk is no multiple of the time stride of a causal network.
    """
    causal = _causal_network(run, recognizer.acoustic, chunk_seconds)
    if causal:
        return SpeechStream(*causal, PartialResultDecoder(recognizer))
    if not first_pass:
        return TwoPassStream(recognizer, None)
    stream = load_logit_stream(PRETRAINED_STREAMING, first_pass.acoustic)
    return TwoPassStream(recognizer, FirstPass(stream, first_pass))


def load_first_pass(recognizer: Recognizer, acoustic: AcousticLogits | None = None) -> Recognizer | None:
    """The shipped streaming model, which gives the partial results of live audio.

    Args:
        recognizer: gives the final results; its converter writes the hanzi of the partial ones, too.
        acoustic: the streaming model, where it is loaded already.

    Returns:
        None where the sample rates differ.

    Raises:
        RunError: the model is missing or damaged.
    """
    acoustic = acoustic or load_acoustic_logits(PRETRAINED_STREAMING)
    if acoustic.features.sample_rate != recognizer.sample_rate:
        return None
    calibration = load_calibration(PRETRAINED_STREAMING)
    return Recognizer(acoustic, recognizer.converter, calibration=calibration)


def load_logit_stream(
    run: Path, acoustic: AcousticLogits, chunk_seconds: float | None = None
) -> LogitStream | WindowedLogits:
    """A stream that computes the logits of live audio with any speech run, one row per output frame.

    Args:
        run: the speech run.
        acoustic: its acoustic model.
        chunk_seconds: see :func:`load_live_stream`.

    Raises:
        ConfigError: see :func:`load_live_stream`.
    """
    causal = _causal_network(run, acoustic, chunk_seconds)
    return LogitStream(*causal) if causal else WindowedLogits(acoustic)


def _causal_network(
    run: Path, acoustic: AcousticLogits, chunk_seconds: float | None
) -> tuple[CausalTiming, StreamedModel, int] | None:
    """A causal network, as a stream, and its frames in a chunk; None if it needs whole utterances."""
    if is_packed(RunFolder(run)):
        if not isinstance(acoustic, NumpyCompactStreaming):
            return None
        return acoustic, acoustic.stream(), _frames_in(acoustic, chunk_seconds)
    causal = importlib.import_module("model_speech.causal")
    if causal.streaming_obstacles(acoustic):
        return None
    keras_stream = importlib.import_module("streaming.speech.keras_stream").keras_stream
    model = causal.causal_model(acoustic, RunFolder(run))
    frames = _frames_in(model, chunk_seconds)
    return model, keras_stream(model, frames), frames


def _frames_in(model: CausalTiming, chunk_seconds: float | None) -> int:
    if chunk_seconds is None:
        return model.time_stride
    return max(1, round(chunk_seconds / model.features.hop_seconds))


def load_joint_search_for(
    run: Path,
    converter: Converter,
    *,
    syllables: str | Path | None = None,
    language: float | None = None,
    bonus: float | None = None,
    rescoring: float | None = None,
    language_model: Path | HanziLanguageModel | None = None,
) -> JointSearch:
    """A joint search with the weights that suit an acoustic model.

    Args:
        run: the speech run; its config may have weights chosen on dev speakers, as
            ``search: {language_weight: W, joint_bonus: B, rescoring_weight: R}``. An adapted run has those of
            its initial run.
        converter, syllables, language, bonus, rescoring: as for
            :func:`model_language.search.joint.load_joint_search`.
        language_model: a run of ``causal_cnn``, or the loaded model; None: the one that comes with this
            project, where ``rescoring`` or the config of the speech run gives it a weight.

    Raises:
        RunError: a run is damaged or of another kind.
    """
    if syllables is None or not needs_syllable_ngram(converter):  # with it, other weights suit
        chosen = RunFolder(run).config().get(SEARCH) or {}
        language = chosen.get("language_weight") if language is None else language
        bonus = chosen.get("joint_bonus") if bonus is None else bonus
        rescoring = chosen.get("rescoring_weight") if rescoring is None else rescoring
    if rescoring is None and language_model:
        rescoring = RESCORING
    if rescoring:
        language_model = load_hanzi_model(language_model or PRETRAINED_LANGUAGE_MODEL)
    return load_joint_search(converter, syllables, language, bonus, rescoring, language_model)


def load_language_model_for(run: Path) -> HanziLanguageModel | None:
    """The language model that :func:`load_joint_search_for` loads for a speech run by default.

    Raises:
        RunError: it is missing or damaged.
    """
    chosen = RunFolder(run).config().get(SEARCH) or {}
    return load_hanzi_model(PRETRAINED_LANGUAGE_MODEL) if chosen.get("rescoring_weight") else None


def load_acoustic_logits(run: Path) -> AcousticLogits:
    """Load the acoustic model of a speech run; Keras is loaded only for one that was not packed.

    Raises:
        RunError: a file is missing or damaged.
    """
    folder = RunFolder(run)
    if is_packed(folder):
        streams = (folder.config().get("model") or {}).get("name") == STREAMING
        return load_numpy_compact_streaming(run) if streams else load_numpy_compact(run)
    silence_tensorflow()
    return importlib.import_module("model_speech.acoustic_model").load_acoustic_model(run)


def load_members(run: Path, acoustic: AcousticLogits) -> list[Member]:
    """Load the other members of the ensemble that the config of a packed run lists.

    Args:
        run: the speech run.
        acoustic: its own model.

    Raises:
        RunError: a member is missing or damaged, or has another vocabulary.
        ConfigError: the list is wrong.
    """
    members = []
    for config in member_configs(run):
        path = member_folder(run, config)
        require(
            RunFolder(path).config_file.is_file(),
            f"a member of the ensemble of {run} is missing",
            where=path,
            hint="copy that folder to this path too",
            error=RunError,
        )
        found = load_acoustic_logits(path) if config.run else acoustic
        require(
            found.vocabulary.tokens == acoustic.vocabulary.tokens,
            "a member of the ensemble has another vocabulary",
            where=path,
            hint="train it with the vocabulary of the first model, or delete it from ensemble in "
            f"{RunFolder(run).config_file}",
            error=RunError,
        )
        hop_ms = found.features.hop_ms if config.hop_ms is None else config.hop_ms
        features = dataclasses.replace(found.features, hop_ms=hop_ms)
        members.append(Member(found, features, config.weight))
    return members


def runs_in_use(options: argparse.Namespace, runs: Mapping[str, Path]) -> dict[str, Path]:
    """The run of each stage, and the further runs that the searches of ``options`` load, by name.

    Args:
        options: as for :func:`load_recognizer`.
        runs: the runs of the stages ``speech`` and ``language``.
    """
    used = dict(runs)
    if options.syllables:
        used["syllables"] = options.syllables
    if options.joint:
        speech = runs["speech"]
        members = (member_folder(speech, config) for config in member_configs(speech) if config.run)
        used |= {f"member {number}": run for number, run in enumerate(members, start=1)}
        if options.rescoring_weight != 0:
            used["language_model"] = options.language_model or PRETRAINED_LANGUAGE_MODEL
    return used


def load_optional_fusion(options: argparse.Namespace, vocabulary: Vocabulary) -> Fusion | None:
    """The language model of ``--syllables``, see :func:`load_fusion`; None without it or with weight 0.

    The insertion bonus compensates for the language model, and is of no use without it.
    """
    if not options.syllables or not options.fusion_weight:
        return None
    return load_fusion(options.syllables, vocabulary, options.fusion_weight, options.insertion_bonus)


def load_optional_phrases(
    options: argparse.Namespace, vocabulary: Vocabulary, n_best: int
) -> PhraseSearch | None:
    """The search for the phrases of ``--phrases``; None without it.

    Raises:
        PhraseError: the file is wrong, or the acoustic model does not know its syllables.
    """
    if not getattr(options, "phrases", None):
        return None
    phrases, source = read_phrases(options.phrases), str(options.phrases)
    return PhraseSearch(phrases, vocabulary, options.phrase_threshold, n_best, source)


def load_fusion(run: str | Path, vocabulary: Vocabulary, weight: float, bonus: float) -> Fusion:
    """Load a language model of syllables for the beam search of an acoustic model.

    Args:
        run: a run of ``syllable_ngram``.
        vocabulary: the acoustic model's.
        weight: factor of the language model's log-probabilities.
        bonus: added for each syllable.

    Raises:
        RunError: the run is of another kind, or damaged.
    """
    model = load_syllable_ngram(run)
    ids = model.ids(vocabulary.tokens)
    ids[[token in (SPACE, BLANK) for token in vocabulary.tokens]] = -1
    return Fusion(model, ids, weight, bonus)
