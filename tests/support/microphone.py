"""A stand-in for the package sounddevice whose microphone plays a recording."""

import numpy as np


class Microphone:
    """A stand-in for sounddevice: plays a recording into the callback at one rate only, then is unplugged."""

    PortAudioError = RuntimeError

    def __init__(self, samples: np.ndarray, rate: int):
        self.samples, self.rate = samples, rate

    def InputStream(self, rate: int, size: int, channels: int, dtype: str, callback):
        assert (channels, dtype) == (1, "float32")
        if rate != self.rate:
            raise self.PortAudioError("Error opening InputStream: Invalid sample rate [PaErrorCode -9997]")
        for start in range(0, len(self.samples), size):
            callback(self.samples[start : start + size, None], size, None, None)
        return self

    def query_devices(self, kind: str):
        return {"name": "default", "max_input_channels": 1, "default_samplerate": float(self.rate)}

    def start(self):
        pass

    def close(self):
        pass
