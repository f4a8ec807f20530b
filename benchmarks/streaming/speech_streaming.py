"""Compares a streamed acoustic model with whole recordings: output and speed.

    python -m benchmarks.streaming.speech_streaming runs/streaming/demo
    python -m benchmarks.streaming.speech_streaming runs/streaming/demo --chunk 80 320

Every recording of the test set is recognised as a whole and chunk by chunk. The table has both syllable error
rates, the number of recordings with equal pinyin, and the real-time factor for each chunk size: processor
seconds of all threads per second of audio, for features, model and greedy decoding, one recording at a time.
"""

from utils.command.entry import run_command

import itertools
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from tqdm import tqdm

from data.evaluation_lists import lists_of_split, read_test_utterances
from data.manifest import Utterance
from model_speech.acoustic_model import AcousticModel, load_acoustic_model
from model_speech.causal import CausalModel, causal_model
from model_speech.ctc.decoder import greedy_decode
from recognition.live.partial_results import PartialResultDecoder
from recognition.recognizer import Recognizer
from streaming.speech.keras_stream import keras_stream
from streaming.speech.stream import SpeechStream
from utils.audio.reading import read_audio
from utils.command.arguments import positive
from utils.command.parser import CommandParser
from utils.features.speech import extract_features
from utils.metrics import count_errors, total
from utils.run_folder.run import open_run
from utils.text_table import print_table
from utils.vocabulary import SPACE

Pinyin = list[tuple[str, ...]]


def main(arguments: Sequence[str] | None = None) -> None:
    """Recognise the test set in all ways and print the table."""
    options = _parser().parse_args(arguments)
    manifests = lists_of_split(open_run(options.run, "speech"), options.split, options.manifest)
    utterances = read_test_utterances(manifests, options.limit)
    acoustic = load_acoustic_model(options.run)
    model = causal_model(acoustic, open_run(options.run, "speech"))
    sounds = [read_audio(utterance.audio, acoustic.features.sample_rate) for utterance in utterances]
    rows = []
    whole, factor = _whole(acoustic, sounds)
    rows.append(("whole", _error(utterances, whole), "", factor))
    for chunk in options.chunk:
        frames = round(chunk / 1000 / model.features.hop_seconds)
        recognised, factor = _streamed(model, acoustic, sounds, frames, f"{chunk} ms a call")
        same = sum(syllables == other for syllables, other in zip(recognised, whole, strict=True))
        error = _error(utterances, recognised)
        rows.append((f"{chunk} ms a call", error, f"{same} of {len(whole)}", factor))
    print_table(str(options.run), ("", "syllable error", "same pinyin", "real-time factor"), rows)


def _whole(acoustic: AcousticModel, sounds: Sequence[np.ndarray]) -> tuple[Pinyin, str]:
    """Pinyin of whole recordings, and the real-time factor."""
    found, busy = [], 0.0
    for samples in tqdm(sounds, "whole", disable=None):
        start = time.process_time()
        logits, lengths = acoustic.logits([extract_features(samples, acoustic.features)])
        (hypothesis,) = greedy_decode(logits, lengths, acoustic.vocabulary.blank_index)
        busy += time.process_time() - start
        tokens = acoustic.vocabulary.decode(hypothesis.tokens)
        found.append(tuple(token for token in tokens if token != SPACE))
    return found, _factor(busy, sounds, acoustic.features.sample_rate)


def _streamed(
    model: CausalModel, acoustic: AcousticModel, sounds: Sequence[np.ndarray], frames: int, description: str
) -> tuple[Pinyin, str]:
    """Pinyin recognised chunk by chunk, and the real-time factor."""
    decoder = PartialResultDecoder(Recognizer(acoustic))
    stream = SpeechStream(model, keras_stream(model, frames), frames, decoder)
    stream.feed(sounds[0])  # compiles the model
    stream.reset()
    found, busy = [], 0.0
    block = frames * model.features.hop_samples
    for samples in tqdm(sounds, description, disable=None):
        start, events = time.process_time(), []
        for begin in range(0, len(samples), block):
            events += stream.feed(samples[begin : begin + block])
        events += stream.flush()
        busy += time.process_time() - start
        segments = (event for event in events if event.is_final)
        found.append(tuple(itertools.chain.from_iterable(segment.best.pinyin for segment in segments)))
    return found, _factor(busy, sounds, model.features.sample_rate)


def _error(utterances: Sequence[Utterance], recognised: Pinyin) -> str:
    counts = [
        count_errors(utterance.pinyin, pinyin)
        for utterance, pinyin in zip(utterances, recognised, strict=True)
    ]
    return f"{total(counts).rate:.2%}"


def _factor(busy: float, sounds: Sequence[np.ndarray], rate: int) -> str:
    return f"{busy / (sum(map(len, sounds)) / rate):.4f}"


def _parser() -> CommandParser:
    parser = CommandParser(description=__doc__)
    parser.add_argument("run", type=Path, help="run folder of a model that streams")
    parser.add_argument("--split", default="test", help="split of the run's config (default: test)")
    parser.add_argument(
        "--manifest", type=Path, action="append", metavar="LIST", help="list to use instead of the split"
    )
    parser.add_argument("--limit", type=positive, help="use only this many recordings")
    parser.add_argument("--chunk", type=positive, nargs="+", default=[80], metavar="MS", help="(default: 80)")
    return parser


if __name__ == "__main__":
    run_command(main)
