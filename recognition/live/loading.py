"""Loads a stream that recognises live audio, for any speech run. Packed runs load without TensorFlow."""

from pathlib import Path

from model_speech.acoustic_logits import AcousticLogits, load_acoustic_logits
from model_speech.causal_timing import CausalTiming
from model_speech.onnx_streaming import OnnxStreaming
from model_speech.packed_run import is_packed
from recognition.confidence import load_calibration
from recognition.live.partial_results import PartialResultDecoder
from recognition.live.punctuated_stream import PunctuatedStream
from recognition.live.two_pass_stream import FirstPass, TwoPassStream
from recognition.live.windowed_logits import WindowedLogits
from recognition.recognizer import Recognizer
from streaming.chunks import StreamedModel
from streaming.speech.recognizer import LiveStream
from streaming.speech.stream import LogitStream, SpeechStream
from utils.run_folder.run import PRETRAINED_STREAMING, RunFolder


def new_live_stream(run: Path, recognizer: Recognizer) -> LiveStream:
    """:func:`load_live_stream` with partial results by the shipped streaming model."""
    stream = load_live_stream(run, recognizer, load_first_pass(recognizer))
    return PunctuatedStream(stream, recognizer.punctuation) if recognizer.punctuation else stream


def load_live_stream(run: Path, recognizer: Recognizer, first_pass: Recognizer | None) -> LiveStream:
    """A stream that recognises live audio with the models and searches of ``recognizer``, for any speech run.

    Args:
        run: the speech run. A causal network needs one pass; one of whole utterances recognises them in a
            second pass.
        recognizer: of the same run.
        first_pass: made by :func:`load_first_pass`, for the second kind; None: without partial results.
    """
    causal = _causal_network(run, recognizer.acoustic)
    if causal:
        return SpeechStream(*causal, PartialResultDecoder(recognizer))
    if not first_pass:
        return TwoPassStream(recognizer, None)
    stream = load_logit_stream(PRETRAINED_STREAMING, first_pass.acoustic)
    assert isinstance(stream, LogitStream)  # that model is causal
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


def load_logit_stream(run: Path, acoustic: AcousticLogits) -> LogitStream | WindowedLogits:
    """A stream that computes the logits of live audio with any speech run, one row per output frame.

    Args:
        run: the speech run.
        acoustic: its acoustic model.
    """
    causal = _causal_network(run, acoustic)
    return LogitStream(*causal) if causal else WindowedLogits(acoustic)


def _causal_network(run: Path, acoustic: AcousticLogits) -> tuple[CausalTiming, StreamedModel, int] | None:
    """A causal network, as a stream, and its frames in a chunk; None if it needs whole utterances."""
    if isinstance(acoustic, OnnxStreaming):
        return acoustic, acoustic.stream(), acoustic.time_stride
    if is_packed(RunFolder(run)):
        return None
    from model_speech.acoustic_model import AcousticModel  # here: they load Keras
    from model_speech.causal import causal_model, streaming_obstacles
    from streaming.speech.keras_stream import keras_stream

    assert isinstance(acoustic, AcousticModel)  # what is not packed is loaded with Keras
    if streaming_obstacles(acoustic):
        return None
    model = causal_model(acoustic, RunFolder(run))
    return model, keras_stream(model, model.time_stride), model.time_stride
