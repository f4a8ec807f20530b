"""Tasks of the comparison: features and speech detection, ours and those of other libraries."""

from pathlib import Path

import numpy as np

from benchmarks.peers.entry import Arrays, Peer, Task, Work

RATE = 16_000
RECORDINGS = Path(__file__).parents[2] / "examples" / "recordings"
BINS, FRAME, HOP, FFT = 80, 400, 160, 512
_STEP = 480  # samples of a decision about speech: 30 ms, the longest of WebRTC


def recordings() -> Arrays:
    """The recordings that ship: samples, one after the other, and the end of each."""
    from utils.audio.reading import read_audio

    clips = [read_audio(path) for path in sorted(RECORDINGS.glob("*.ogg"))]
    return {"samples": np.concatenate(clips), "ends": np.cumsum([len(clip) for clip in clips])}


def _clips(inputs: Arrays) -> list[np.ndarray]:
    return np.split(inputs["samples"], inputs["ends"][:-1])


def our_features(inputs: Arrays) -> Work:
    """Log mel energies of each recording."""
    from utils.features.settings import FeatureConfig
    from utils.features.speech import extract_features

    clips, config = _clips(inputs), FeatureConfig(bins=BINS, normalise="none")
    return lambda: {"features": np.concatenate([extract_features(clip, config) for clip in clips])}


def features_python_speech_features(inputs: Arrays) -> Work:
    """The reference of our features, with the same numbers."""
    from python_speech_features import logfbank

    clips = [clip.astype(np.float64) * 32768.0 for clip in _clips(inputs)]
    return lambda: {"features": np.concatenate([logfbank(clip, nfilt=BINS) for clip in clips])}


def features_librosa(inputs: Arrays) -> Work:
    """librosa's mel spectrogram, with its own filters, and the logarithm."""
    import librosa

    clips = _clips(inputs)
    settings = {"sr": RATE, "n_fft": FFT, "win_length": FRAME, "hop_length": HOP, "n_mels": BINS}

    def features(clip: np.ndarray) -> np.ndarray:
        return np.log(librosa.feature.melspectrogram(y=clip, center=False, **settings).T + 1e-10)

    return lambda: {"features": np.concatenate([features(clip) for clip in clips])}


def features_kaldi_native_fbank(inputs: Arrays) -> Work:
    """Kaldi's filter bank in C++, in single precision, without its dither."""
    import kaldi_native_fbank

    clips, options = [clip * np.float32(32768) for clip in _clips(inputs)], kaldi_native_fbank.FbankOptions()
    options.frame_opts.dither = 0.0
    options.mel_opts.num_bins = BINS

    def features(clip: np.ndarray) -> np.ndarray:
        bank = kaldi_native_fbank.OnlineFbank(options)
        bank.accept_waveform(RATE, clip)
        bank.input_finished()
        return np.stack([bank.get_frame(frame) for frame in range(bank.num_frames_ready)])

    return lambda: {"features": np.concatenate([features(clip) for clip in clips])}


def _same_features(_: Arrays, ours: Arrays, theirs: Arrays) -> str:
    silence = np.log(np.finfo(float).eps)  # digital; fainter sound, of rounding, is 0 in single precision
    ours, theirs = (np.maximum(each["features"], silence) for each in (ours, theirs))
    if ours.shape == theirs.shape:
        return f"largest difference {np.abs(ours - theirs).max():.0e}"
    return f"other filters and frames: {len(theirs)} frames, ours {len(ours)}"


def speech_in_noise() -> Arrays:
    """The recordings between pauses of faint noise, all 40 dB above it, and where they are."""
    clips, rng = _clips(recordings()), np.random.default_rng(0)
    pause = np.zeros(4 * RATE // _STEP * _STEP, np.float32)
    parts, spoken = [pause], [np.zeros(len(pause) // _STEP, bool)]
    for clip in clips * 4:
        clip = clip[: len(clip) // _STEP * _STEP]
        parts += [0.1 * clip / np.sqrt(np.square(clip).mean()), pause]
        spoken += [np.ones(len(clip) // _STEP, bool), spoken[0]]
    samples = np.concatenate(parts)
    noise = rng.normal(scale=1e-3, size=len(samples))
    return {"samples": (samples + noise).astype(np.float32), "spoken": np.concatenate(spoken)}


def our_speech(inputs: Arrays) -> Work:
    """The stretches that are recognised."""
    from recognition.voice_activity import speech_stretches

    def work() -> Arrays:
        found = np.zeros(len(inputs["spoken"]), bool)
        for stretch in speech_stretches([inputs["samples"]], RATE):
            found[stretch.start // _STEP : (stretch.start + len(stretch.samples)) // _STEP] = True
        return {"spoken": found}

    return work


def speech_webrtc(inputs: Arrays) -> Work:
    """WebRTC's detector, which decides independently for each 30 ms."""
    import webrtcvad

    def work() -> Arrays:
        detector = webrtcvad.Vad(2)
        pcm = (inputs["samples"].clip(-1, 1) * 32767).astype("<i2")
        frames = (pcm[start : start + _STEP].tobytes() for start in range(0, len(pcm) - _STEP + 1, _STEP))
        return {"spoken": np.array([detector.is_speech(frame, RATE) for frame in frames])}

    return work


def _found_speech(inputs: Arrays, ours: Arrays, theirs: Arrays) -> str:
    def right(found: np.ndarray) -> float:
        return 100 * float((found == inputs["spoken"][: len(found)]).mean())

    return f"{right(theirs['spoken']):.1f} % of 30 ms right, ours {right(ours['spoken']):.1f} %"


TASKS = (
    Task(
        "features",
        __name__,
        recordings,
        "our_features",
        (
            Peer(
                "python_speech_features",
                "features_python_speech_features",
                ("python_speech_features==0.6", "numpy==2.4.6", "scipy==1.17.1"),
            ),
            Peer("librosa", "features_librosa", ("librosa==0.11.0",)),
            Peer(
                "kaldi-native-fbank",
                "features_kaldi_native_fbank",
                ("kaldi-native-fbank==1.23.0", "numpy==2.4.6"),
            ),
        ),
        _same_features,
    ),
    Task(
        "voice activity",
        __name__,
        speech_in_noise,
        "our_speech",
        (Peer("webrtcvad-wheels", "speech_webrtc", ("webrtcvad-wheels==2.0.14.post1", "numpy==2.4.6")),),
        _found_speech,
    ),
)
