"""A bundle and other decoding parameters in; the bundle with these, all else as it was proven, out."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from bundle.folder import open_bundle, write_facts
from streaming.keyword.detection import DetectionConfig


def write_decoding(path: Path, detection: DetectionConfig) -> None:
    """Save when a keyword counts as heard. The artefacts and their proof don't depend on it.

    Args:
        path: of a bundle of a keyword model.
        detection: what the bundle is to say.

    Raises:
        BundleError: no bundle, or a damaged one.
    """
    facts = dict(open_bundle(path).facts)
    write_facts(path, facts | {"decoding": json.loads(json.dumps(asdict(detection)))})
