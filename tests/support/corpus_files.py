"""Writes files of miniature corpora, and reads the rejected candidates of a preparation."""

import io
from pathlib import Path

import numpy as np
import soundfile


def wav(seconds=0.1, rate=16000, channels=1, seed=0) -> bytes:
    """Write a WAV file of noise."""
    samples = np.random.default_rng(seed).uniform(-0.1, 0.1, (round(seconds * rate), channels))
    buffer = io.BytesIO()
    soundfile.write(buffer, samples, rate, format="WAV", subtype="PCM_16")
    return buffer.getvalue()


def write(path: Path, content: bytes | str) -> Path:
    """Write a file and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def rejected(output: Path) -> dict[str, tuple[str, str, str]]:
    """Read ``rejected.tsv``: id → (split, reason, detail)."""
    lines = (output / "rejected.tsv").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "split\tid\treason\tdetail"
    rows = [line.split("\t") for line in lines[1:]]
    return {name: (split, reason, detail) for split, name, reason, detail in rows}
