"""Encodes tones with FFmpeg, as phones, browsers and cameras do."""

import io
from collections.abc import Sequence

import av
import numpy as np

RATE = 48_000
SECONDS = 3.0
TONE = (0.5 * np.sin(2 * np.pi * 440 * np.arange(int(SECONDS * RATE)) / RATE)).astype(np.float32)
SILENCE = np.zeros_like(TONE)


def encoded(form: str, codec: str, tracks: Sequence[np.ndarray] = (TONE,), rate: int = RATE) -> bytes:
    """A file of FFmpeg's format ``form``.

    Args:
        codec: FFmpeg's name of it.
        tracks: (samples,) for mono, or (channels, samples) for stereo and 7.1, float32; of any
            number of tracks.
        rate: Hz.
    """
    content = io.BytesIO()
    with av.open(content, "w", format=form) as container:
        planes = [np.atleast_2d(samples) for samples in tracks]
        layouts = [{1: "mono", 2: "stereo", 8: "7.1"}[len(channels)] for channels in planes]
        streams = [container.add_stream(codec, rate=rate, layout=layout) for layout in layouts]
        for stream, channels, layout in zip(streams, planes, layouts, strict=True):
            frame = av.AudioFrame.from_ndarray(channels.T.reshape(1, -1), "flt", layout)
            frame.sample_rate = rate
            size = stream.codec_context.frame_size or 1024
            to_codec = av.AudioResampler(stream.format.name, layout, rate, frame_size=size)
            for part in [*to_codec.resample(frame), *to_codec.resample(None), None]:
                container.mux(stream.encode(part))
    return content.getvalue()
