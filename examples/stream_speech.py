"""Recognise speech while it arrives with the exported streaming model and ai-edge-litert, without TensorFlow.

    python examples/stream_speech.py examples/recordings/common_voice_18776500.ogg
    python examples/stream_speech.py recording.wav runs/streaming/export litert/stream_external_float.tflite

Prints each syllable with the second in which it was known. It reads a recording in pieces of 68 ms, as a
microphone gives them; the model takes features, so the project's feature stream computes them.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from utils.command.entry import run_command

from bundle.folder import open_bundle
from model_speech.causal_timing import CausalTiming
from streaming.speech.stream import LogitStream
from utils.audio.reading import read_audio
from utils.errors import BundleError, require
from utils.features.settings import FeatureConfig
from utils.vocabulary import BLANK, SPACE, Vocabulary

SHIPPED = Path(__file__).parents[1] / "pretrained/audio_to_pinyin_streaming/export"
ARTEFACT = "litert/stream_external_dynamic.tflite"


def stream(samples, folder=SHIPPED, artefact=ARTEFACT):
    """Yield (second, syllable) while samples (n,) at the bundle's rate are fed; greedy CTC decoding."""
    bundle = open_bundle(folder)
    vocabulary, decoding = Vocabulary(bundle.labels), bundle.decoding
    assert isinstance(bundle.features, FeatureConfig)  # of a speech model
    timing = CausalTiming(bundle.features, vocabulary, decoding["time_stride"], decoding["look_ahead"])
    logits = LogitStream(timing, bundle.open(artefact), round(bundle.stream["chunk"]))
    piece = round(bundle.stream["seconds"] * bundle.features.sample_rate)
    previous = vocabulary.blank_index
    for start in range(0, len(samples) + piece, piece):  # the last piece is empty: the end
        rows = logits.feed(samples[start : start + piece]) if start < len(samples) else logits.flush()
        for best in rows.argmax(axis=1):
            if best != previous and vocabulary.tokens[best] not in (BLANK, SPACE):
                yield min(start + piece, len(samples)) / bundle.features.sample_rate, vocabulary.tokens[best]
            previous = best


def main(arguments=None):
    """Print the syllables of a recording."""
    options = _parser().parse_args(arguments)
    bundle = open_bundle(options.bundle)
    is_speech = bundle.metadata["kind"] == "speech"
    require(is_speech, "not a bundle of a speech model", where=options.bundle, error=BundleError)
    samples = read_audio(options.recording, bundle.features.sample_rate)
    for second, syllable in stream(samples, options.bundle, options.artefact):
        print(f"{second:6.2f}  {syllable}", flush=True)


def _parser():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("recording", help="a file with speech")
    parser.add_argument("bundle", nargs="?", type=Path, default=SHIPPED, help="default: the shipped model's")
    parser.add_argument("artefact", nargs="?", default=ARTEFACT, help="default: %(default)s")
    return parser


if __name__ == "__main__":
    run_command(main)
