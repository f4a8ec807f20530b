"""Recognise a recording with exported models and onnxruntime, without TensorFlow and Keras.

The commands, for recordings of at most 20 s:
    python export.py runs/compact --format onnx --precision float
    python examples/recognise_exported.py runs/compact/export recording.wav [runs/transformer/export]
"""

import sys
from pathlib import Path

import numpy as np
import onnxruntime

sys.path.insert(0, str(Path(__file__).parents[1]))
from utils.audio.padding import with_pauses
from utils.audio.reading import read_audio
from utils.errors import UserError, require
from utils.features.settings import FeatureConfig
from utils.features.speech import extract_features
from utils.run_folder.bundle_files import checked_file, read_lines, read_metadata


def logits(bundle, values, model="onnx/non_stream_float.onnx"):
    """The ONNX model's logits of one utterance: (T, bins) float32 or (L,) int32 → (rows, classes)."""
    session = onnxruntime.InferenceSession(checked_file(bundle, read_metadata(bundle), model))
    given = {"input": values[None], "lengths": np.array([len(values)], np.int32)}
    return session.run(["output"], {each.name: given[each.name] for each in session.get_inputs()})[0][0]


def recognise(bundle, recording):
    """The tonal syllables of a recording, decoded greedily; "_" is the blank."""
    facts = read_metadata(bundle, "speech")
    settings, rule = FeatureConfig(**facts["features"]), facts["decoding"]
    labels, rate = read_lines(bundle, facts, "labels.txt"), settings.sample_rate
    ahead, stride = rule["look_ahead"], rule["time_stride"]
    samples, _ = with_pauses(read_audio(recording, rate), rate, stride * settings.hop_samples)
    features = extract_features(samples, settings)
    padding = (0, ahead and -len(features) % stride + ahead)  # for a causal model, whose output is delayed
    best = logits(bundle, np.pad(features, (padding, (0, 0)))).argmax(axis=1)[ahead // stride :]
    return [labels[k] for k in best[np.append(True, best[1:] != best[:-1])] if labels[k] not in (" ", "_")]


def convert(bundle, syllables):
    """The best hanzi of each syllable among its candidates."""
    facts = read_metadata(bundle, "language")
    tokens, hanzi = (read_lines(bundle, facts, name) for name in ("pinyin.txt", "labels.txt"))
    candidates = dict(line.split("\t") for line in read_lines(bundle, facts, "lexicon.tsv"))
    ids = np.array([tokens.index(name) if name in tokens else 1 for name in syllables], np.int32)
    scores = zip(syllables, (dict(zip(hanzi, row, strict=True)) for row in logits(bundle, ids)), strict=True)
    return "".join(max(candidates.get(name, ""), key=row.__getitem__, default="□") for name, row in scores)


if __name__ == "__main__":
    try:
        require(len(sys.argv) in (3, 4), "give two or three paths", hint=__doc__.splitlines()[4].strip())
        print(*(pinyin := recognise(Path(sys.argv[1]), sys.argv[2])))
        if sys.argv[3:] and pinyin:
            print(convert(Path(sys.argv[3]), pinyin))
    except UserError as error:
        print(error.labelled(), file=sys.stderr)
        sys.exit(2)
