"""Recognise a recording with exported models and onnxruntime, without TensorFlow and Keras.

    python export.py runs/compact --format onnx --precision float
    python examples/recognise_exported.py runs/compact/export recording.wav [runs/transformer/export]

Prints pinyin, and hanzi if a converter's bundle is given. Recordings longer than 20 s must be cut first.
"""

import json
import sys
from pathlib import Path

import numpy as np
import onnxruntime

sys.path.insert(0, str(Path(__file__).parents[1]))
from utils.audio.padding import with_pauses
from utils.audio.reading import read_audio
from utils.features.speech import FeatureConfig, extract_features


def lines(path):
    """The lines of a UTF-8 file, unchanged."""
    return path.read_text(encoding="utf-8").split("\n")[:-1]


def logits(bundle, values, precision="float"):
    """The ONNX model's logits of one utterance: (T, bins) float32 or (L,) int32 → (rows, classes)."""
    session = onnxruntime.InferenceSession(bundle / f"onnx/non_stream_{precision}.onnx")
    given = {"input": values[None], "lengths": np.array([len(values)], np.int32)}
    return session.run(["output"], {each.name: given[each.name] for each in session.get_inputs()})[0][0]


def recognise(bundle, recording):
    """The tonal syllables of a recording, decoded greedily; "_" is the blank."""
    facts, labels = json.loads((bundle / "bundle.json").read_text("utf-8")), lines(bundle / "labels.txt")
    settings, rule = FeatureConfig(**facts["features"]), facts["decoding"]
    samples, _ = with_pauses(read_audio(recording, settings.sample_rate), settings.sample_rate)
    features = extract_features(samples, settings)
    # The output of a causal model is delayed: append zeros for the look-ahead, and drop the first rows.
    missing = rule["look_ahead"] and -len(features) % rule["time_stride"] + rule["look_ahead"]
    features = np.pad(features, ((0, missing), (0, 0)))
    best = logits(bundle, features).argmax(axis=1)[rule["look_ahead"] // rule["time_stride"] :]
    return [labels[k] for k in best[np.append(True, best[1:] != best[:-1])] if labels[k] not in (" ", "_")]


def convert(bundle, syllables):
    """The best hanzi of each syllable among its candidates."""
    tokens, hanzi = lines(bundle / "pinyin.txt"), lines(bundle / "labels.txt")
    candidates = dict(line.split("\t") for line in lines(bundle / "lexicon.tsv"))
    ids = np.array([tokens.index(name) if name in tokens else 1 for name in syllables], np.int32)
    scores = [dict(zip(hanzi, row, strict=True)) for row in logits(bundle, ids)]
    allowed = (candidates.get(name, "") for name in syllables)
    return "".join(max(a, key=row.get, default="□") for a, row in zip(allowed, scores, strict=True))


if __name__ == "__main__":
    print(*(pinyin := recognise(Path(sys.argv[1]), sys.argv[2])))
    if sys.argv[3:] and pinyin:
        print(convert(Path(sys.argv[3]), pinyin))
