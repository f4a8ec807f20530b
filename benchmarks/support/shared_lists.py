"""Recordings of ``../shared/data`` beside the checkout (not part of the repository), as checked lists."""

from pathlib import Path

from benchmarks.support.commands import ROOT, run
from utils.errors import CorpusError

SHARED = ROOT.parent / "shared" / "data"
PREPARED = ROOT / "datasets" / "audio_to_pinyin"  # as in configs/speech/whisper_base.yaml


def prepared_list(name: str) -> Path:
    """The checked manifest of a list such as ``common_voice_zh/dev``; its folder is prepared at first use.

    Raises:
        CorpusError: the collection is not beside the checkout.
    """
    folder, _, split = name.rpartition("/")
    source, prepared = SHARED / "audio" / folder, PREPARED / folder
    if not (prepared / "summary.json").is_file():
        if not source.is_dir():
            hint = "docs/shipped_acoustic_models.md describes them; to measure your own: --manifest LIST"
            raise CorpusError("this benchmark's recordings are missing", where=source, hint=hint)
        run("-m", "data.corpora.manifest_lists", "prepare", str(source), "--output", str(prepared))
    return prepared / f"{split}.tsv"
