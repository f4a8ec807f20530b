"""Detect keywords in a WAV file with ai-edge-litert and NumPy only, without code of this project.

Export a run: python export.py RUN --input samples --mode stream_external --precision float
Then: python examples/stream_keyword.py RUN/export recording.wav
"""

import hashlib
import json
import sys
import wave
from collections import deque
from pathlib import Path

import numpy as np
from ai_edge_litert.interpreter import Interpreter


def refuse(problem, where, hint):
    """End the program with the three lines of an error."""
    print(f"error: {problem}\nwhere: {where}\nhint: {hint}", file=sys.stderr)
    sys.exit(2)


def read_wav(path, rate, silence):
    """Samples of a 16-bit mono WAV file of this sample rate, in [-1, 1); silence comes before and after."""
    try:
        with wave.open(str(path)) as file:
            found, content = file.getparams()[:3], file.readframes(file.getnframes())
            assert found == (1, 2, rate), f"channels, sample bytes, Hz: {found}"
            assert len(content) == 2 * file.getnframes(), "cut off"
    except (AssertionError, EOFError, OSError, wave.Error) as error:
        refuse(str(error) or "cut off", path, f"the model takes (1, 2, {rate}), mono 16-bit WAV")
    return np.pad(np.frombuffer(content, "<i2").astype(np.float32) / 32768, round(silence * rate))


def keywords(bundle, recording, artefact="litert/stream_external_float.tflite"):
    """Yield (seconds, keyword, score) of each keyword. Silence first fills the window and the mean."""
    try:
        facts = json.loads((bundle / "bundle.json").read_text(encoding="utf-8"))
        rest = json.dumps({name: facts[name] for name in facts if name != "checksum"})
        assert hashlib.sha256(rest.encode()).hexdigest() == facts["checksum"], "bundle.json is damaged"
        assert facts["kind"] == "keyword", f"not a bundle of a keyword model ({facts['kind']})"
        for name in (artefact, "labels.txt"):
            digest = hashlib.sha256((bundle / name).read_bytes()).hexdigest()
            assert digest == facts["files"][name], f"{name} is damaged"
    except (AssertionError, KeyError, OSError, TypeError, ValueError) as error:
        refuse(error, bundle, "give a bundle of: export.py RUN --mode stream_external")
    labels = (bundle / "labels.txt").read_text(encoding="utf-8").splitlines()
    rule, stream, features = facts["decoding"], facts["stream"], facts["features"]
    smoothed = max(1, round(rule["smoothing_ms"] / 1000 / stream["seconds"]))
    recent: deque = deque(maxlen=smoothed)
    silence, ignored_until = -(-stream["due"] // stream["chunk"]) + smoothed, stream["seconds"]
    values = read_wav(recording, features["sample_rate"], silence * stream["seconds"])
    if features["kind"] != "raw":  # features are computed by utils/ of this project
        sys.path.insert(0, str(Path(__file__).parents[1]))
        from utils.features.keyword import KeywordFeatureConfig, keyword_features

        values = keyword_features(values, KeywordFeatureConfig(**features))
    model = Interpreter(str(bundle / artefact), num_threads=1).get_signature_runner()
    details = model.get_input_details()
    states = {name: np.zeros(details[name]["shape"], np.float32) for name in details.keys() - {"input"}}
    for end in range(stream["chunk"], len(values) + 1, stream["chunk"]):
        found = model(input=values[None, end - stream["chunk"] : end], **states)
        states = {name: found[name + "_next"] for name in states}
        odds = np.exp(found["output"][0].astype(np.float64) - found["output"].max())
        recent.append(odds / odds.sum())
        scores = np.mean(recent, axis=0) * [label not in ("_silence_", "_unknown_") for label in labels]
        seconds, best = (end // stream["chunk"] - silence) * stream["seconds"], int(scores.argmax())
        if seconds >= ignored_until and scores[best] >= rule["threshold"]:
            yield seconds, labels[best], float(scores[best])
            ignored_until = seconds + rule["refractory_ms"] / 1000


if __name__ == "__main__":
    if len(sys.argv) != 3:
        refuse("give two paths", sys.argv[0], "python examples/stream_keyword.py RUN/export recording.wav")
    for detection in keywords(*map(Path, sys.argv[1:])):
        print("{:.2f} s  {}  {:.2f}".format(*detection))
