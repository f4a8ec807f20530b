"""Writes a corpus of chirps that stand for syllables, which a model learns in seconds."""

from pathlib import Path

import numpy as np
import soundfile

from data.manifest import Utterance, write_manifest

SYLLABLES = {"ma1": "妈", "ni3": "你", "hao3": "好", "shi4": "是", "bu4": "不", "wo3": "我"}
RATE = 16_000


def write_tiny_corpus(folder: Path, utterances: int = 24, seed: int = 0, longest: int = 4) -> Path:
    """Write WAV files of up to ``longest`` syllables and ``manifest.tsv``; returns the manifest's path."""
    rng = np.random.default_rng(seed)
    rows = []
    (folder / "wav").mkdir(parents=True, exist_ok=True)
    for index in range(utterances):
        chosen = rng.choice(len(SYLLABLES), size=rng.integers(longest - 2, longest + 1))
        samples = np.concatenate([_chirp(int(i), rng) for i in chosen])
        audio = folder / "wav" / f"T{index % 4:02}_{index:03}.wav"
        soundfile.write(audio, samples, RATE)
        syllables = [list(SYLLABLES)[i] for i in chosen]
        hanzi = "".join(SYLLABLES[s] for s in syllables)
        rows.append(
            Utterance(audio.stem, audio, len(samples) / RATE, f"T{index % 4:02}", tuple(syllables), hanzi)
        )
    write_manifest(folder / "manifest.tsv", rows)
    return folder / "manifest.tsv"


def _chirp(index: int, rng: np.random.Generator) -> np.ndarray:
    """0.25 s of a tone at the syllable's pitch, a short silence, a little noise."""
    time = np.arange(int(0.25 * RATE)) / RATE
    tone = 0.3 * np.sin(2 * np.pi * (300 + 450 * index) * time) * np.hanning(len(time))
    return np.concatenate([tone, np.zeros(RATE // 20)]) + 0.001 * rng.standard_normal(len(time) + RATE // 20)
