"""Task of the comparison: keyword logits of each second of continuous audio, streamed and clip by clip."""

import numpy as np

from benchmarks.peers.entry import Arrays, Peer, Task, Work

LABELS, CALLS, CLIP = 12, 100, 16_000


def frames() -> Arrays:
    """Features of the clip before the first call, and of a new frame for each call."""
    from utils.features.keyword import feature_frames, feature_values
    from utils.features.keyword_config import KeywordFeatureConfig

    config = KeywordFeatureConfig()
    size = (feature_frames(CLIP, config) + CALLS, feature_values(config))
    return {"frames": np.random.default_rng(0).normal(size=size).astype(np.float32)}


def _model():
    import keras

    from model_keyword.models.feed_forward.cnn import CnnConfig
    from model_keyword.registry import build_keyword_model
    from utils.features.keyword_config import KeywordFeatureConfig

    keras.utils.set_random_seed(0)
    return build_keyword_model(CnnConfig(), KeywordFeatureConfig(), CLIP, LABELS)


def our_stream(inputs: Arrays) -> Work:
    """The streamed model, which computes only the changes by a new frame."""
    from streaming.conversion.convert import to_mode
    from streaming.conversion.modes import Mode
    from streaming.conversion.runner import KerasStream

    stream = KerasStream(to_mode(_model(), Mode.STREAM_INTERNAL_STATE_INFERENCE))
    first = len(inputs["frames"]) - CALLS
    for frame in inputs["frames"][:first]:
        stream.step(frame[None, None])
    latest = inputs["frames"][first:, None, None]
    before = [state.numpy() for state in stream.model.variables]

    def work() -> Arrays:
        for variable, value in zip(stream.model.variables, before, strict=True):
            variable.assign(value)
        return {"logits": np.concatenate([stream.step(frame) for frame in latest])}

    return work


def clips_keras(inputs: Arrays) -> Work:
    """The model as it was trained, called with the latest second for each new frame."""
    model, length = _model(), len(inputs["frames"]) - CALLS
    starts = range(1, CALLS + 1)
    clips = [np.ascontiguousarray(inputs["frames"][None, start : start + length]) for start in starts]
    return lambda: {"logits": np.concatenate([model.predict_on_batch(clip) for clip in clips])}


def _same_logits(_: Arrays, ours: Arrays, theirs: Arrays) -> str:
    return f"largest difference of logits {np.abs(ours['logits'] - theirs['logits']).max():.0e}"


TASKS = (
    Task(
        "100 keyword frames",
        __name__,
        frames,
        "our_stream",
        (Peer("plain Keras call", "clips_keras"),),
        _same_logits,
    ),
)
