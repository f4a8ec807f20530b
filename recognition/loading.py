"""Loads the models of a recognizer or of a live stream from run folders, and joins them as options specify.

Packed runs load without TensorFlow.
"""

from collections.abc import Mapping
from pathlib import Path

from model_language.converters.base import Converter
from model_language.language_model import RESCORING, HanziLanguageModel
from model_language.ngram.syllables import load_syllable_ngram
from model_language.registry import load_converter, load_hanzi_model
from model_language.search.joint import JointSearch, load_joint_search, needs_syllable_ngram
from model_speech.acoustic_logits import AcousticLogits
from model_speech.causal_timing import CausalTiming
from model_speech.ctc.shallow_fusion import Fusion
from model_speech.onnx_acoustic import OnnxStreaming, load_onnx_acoustic
from model_speech.packed_run import is_packed
from recognition.confidence import load_calibration
from recognition.options import SearchOptions
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
from utils.run_folder.run import PRETRAINED_LANGUAGE_MODEL, PRETRAINED_STREAMING, SEARCH, RunFolder
from utils.vocabulary import BLANK, SPACE, Vocabulary


def load_recognizer(
    run: Path,
    converter: Converter | None,
    search: SearchOptions,
    window_seconds: float = WINDOW_SECONDS,
) -> Recognizer:
    """Load a speech run and its searches.

    Args:
        run: the speech run.
        converter: second stage; None gives syllables only. With ``search.phrases`` it is None.
        search: the settings of the searches.
        window_seconds: see :class:`Recognizer`.

    Raises:
        RunError: a run is damaged or of another kind.
        PhraseError: the phrase file is wrong.
        ConfigError: the options contradict each other.
    """
    joint = None
    if converter and search.joint:
        joint = load_joint_search_for(run, converter, **search.joint_settings)
    acoustic = load_acoustic_logits(run)
    return Recognizer(
        acoustic,
        converter,
        beam=search.beam_width,
        n_best=search.n_best,
        fusion=load_optional_fusion(search, acoustic.vocabulary),
        joint=joint,
        workers=search.workers,
        window_seconds=window_seconds,
        phrases=load_optional_phrases(search, acoustic.vocabulary),
        calibration=load_calibration(run),
        minimum_confidence=search.minimum_confidence,
    )


def load_both_stages(
    speech: Path,
    language: Path | None,
    search: SearchOptions,
    window_seconds: float = WINDOW_SECONDS,
) -> Recognizer:
    """:func:`load_recognizer` of a speech run, with the converter of a language run; None: no converter.

    Args:
        speech, language: the runs.
        search: the settings of the searches.
        window_seconds: see :class:`Recognizer`.
    """
    converter = load_converter(language, search.words) if language else None
    return load_recognizer(speech, converter, search, window_seconds)


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
    if isinstance(acoustic, OnnxStreaming):
        return acoustic, acoustic.stream(), _frames_in(acoustic, chunk_seconds)
    if is_packed(RunFolder(run)):
        return None
    from model_speech.causal import causal_model, streaming_obstacles  # here: they load Keras
    from streaming.speech.keras_stream import keras_stream

    if streaming_obstacles(acoustic):
        return None
    model = causal_model(acoustic, RunFolder(run))
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
    if is_packed(RunFolder(run)):
        return load_onnx_acoustic(run)
    silence_tensorflow()
    from model_speech.acoustic_model import load_acoustic_model  # here: it loads Keras

    return load_acoustic_model(run)


def runs_in_use(search: SearchOptions, runs: Mapping[str, Path]) -> dict[str, Path]:
    """The run of each stage, and the further runs that the searches load, by name.

    Args:
        search: the settings of the searches.
        runs: the runs of the stages ``speech`` and ``language``.
    """
    used = dict(runs)
    if search.syllables:
        used["syllables"] = search.syllables
    if search.joint and search.rescoring_weight != 0:
        used["language_model"] = search.language_model or PRETRAINED_LANGUAGE_MODEL
    return used


def load_optional_fusion(search: SearchOptions, vocabulary: Vocabulary) -> Fusion | None:
    """The language model of ``--syllables``, see :func:`load_fusion`; None without it or with weight 0.

    The insertion bonus compensates for the language model, and is of no use without it.
    """
    if not search.syllables or not search.fusion_weight:
        return None
    return load_fusion(search.syllables, vocabulary, search.fusion_weight, search.insertion_bonus)


def load_optional_phrases(search: SearchOptions, vocabulary: Vocabulary) -> PhraseSearch | None:
    """The search for the phrases of ``--phrases``; None without it.

    Raises:
        PhraseError: the file is wrong, or the acoustic model does not know its syllables.
    """
    if not search.phrases:
        return None
    phrases, source = read_phrases(search.phrases), str(search.phrases)
    return PhraseSearch(phrases, vocabulary, search.phrase_threshold, search.n_best, source)


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
