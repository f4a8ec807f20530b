"""A bundle's folder in; labels, settings and artefacts out, each checked to belong to the others.

    bundle.json     features, decoding, artefacts, the SHA-256 of every file, and its own
    labels.txt      one a line, in the order of the logits
    pinyin.txt      of a converter: its input tokens, a line an id; lexicon.tsv: the hanzi each may become
    golden/         clips.npz: inputs, and the source model's answers; artefacts.npz: those of each artefact
    export.md       the table: parity, accuracy, size, latency; export.json: the same, and more
    models/         summary and drawing of each mode
    litert/ onnx/ … the artefacts, each with its accuracy beside it

No framework is loaded but the one that runs the artefact asked for.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bundle.runtimes.artefacts import Artefact, open_artefact
from model_keyword.labels import labels_hash
from utils.errors import BundleError, ConfigError
from utils.features.keyword import KeywordFeatureConfig, describe_mismatch, features_hash
from utils.features.speech import FeatureConfig, settings_hash
from utils.files import read_arrays, write_json
from utils.run_folder.checksum_files import file_hash

FORMAT = 2  # of bundle.json; raised when older readers would misunderstand it
_WITHOUT_CHECKSUM = 1  # the format before, which is read too
_CHECKSUM = "checksum"
FACTS, LABELS = "bundle.json", "labels.txt"
CLIPS, ANSWERS, STREAM = "golden/clips.npz", "golden/artefacts.npz", "golden/stream.json"
_AGAIN = "copy the whole folder again, or run export.py again"


@dataclass(frozen=True)
class Bundle:
    """An opened bundle: its labels and features belong together, its artefacts are checked when opened.

    Attributes:
        path: the folder.
        facts: bundle.json.
        labels: of the logits, in their order.
    """

    path: Path
    facts: Mapping[str, Any]
    labels: tuple[str, ...]

    @property
    def artefacts(self) -> Mapping[str, Mapping[str, Any]]:
        """Path in the bundle → format, state, precision and whether the export's proof was passed."""
        return self.facts["artefacts"]

    @property
    def features(self) -> KeywordFeatureConfig | FeatureConfig:
        """Settings of the front end of a keyword or speech model."""
        return _FEATURES[self.facts["kind"]][0](**self.facts["features"])

    @property
    def decoding(self) -> Mapping[str, Any]:
        """How logits become keywords: smoothing, threshold, refractory time."""
        return self.facts["decoding"]

    @property
    def stream(self) -> Mapping[str, float]:
        """``chunk``, ``seconds`` and ``due`` of its streams (see `bundle.export.workshop.Workshop.geometry`).

        Raises:
            BundleError: it holds none.
        """
        if not self.facts["stream"]:
            hint = "export.py RUN --mode stream_external adds one"
            raise BundleError("the bundle holds no stream", where=self.path, hint=hint)
        return self.facts["stream"]

    def open(self, artefact: str, threads: int = 1) -> Artefact:
        """Open one artefact, by its path in the bundle.

        Raises:
            BundleError: no such artefact, or its file isn't the one that was exported.
        """
        if artefact not in self.artefacts:
            hint = f"there are: {', '.join(self.artefacts)}"
            raise BundleError(f"no artefact '{artefact}'", where=self.path, hint=hint)
        for name in self.facts["files"]:
            if name == artefact or name.startswith(artefact + "/"):
                self._check_file(name)
        opened = open_artefact(self.path / artefact, threads)
        self._check_shape(opened, artefact)
        return opened

    def golden(self) -> dict[str, np.ndarray]:
        """Golden clips and the source model's answers.

        Raises:
            BundleError: the file isn't the one that was exported.
        """
        self._check_file(CLIPS)
        return read_arrays(self.path / CLIPS)

    def check(self) -> None:
        """See that every file is there and unchanged, and none too many.

        Raises:
            BundleError: a part is missing, changed, or doesn't belong; it is named.
        """
        for name in self.facts["files"]:
            self._check_file(name)
        known = {self.path / name for name in self.facts["files"]} | {self.path / FACTS}
        folders = {name.partition("/")[0] for name in self.artefacts} | {"golden"}
        for folder in sorted(folders):
            for path in sorted((self.path / folder).rglob("*")):
                if path.is_file() and path not in known:
                    what = f"{path.relative_to(self.path)} isn't part of this bundle"
                    raise BundleError(what, where=self.path, hint="take it out")

    def _check_file(self, name: str) -> None:
        path = self.path / name
        if not path.is_file():
            raise BundleError(f"the bundle lacks {name}", where=self.path, hint=_AGAIN)
        if file_hash(path) != self.facts["files"].get(name):
            what = f"{name} doesn't belong to this bundle: it isn't the file that was exported"
            raise BundleError(what, where=self.path, hint=_AGAIN)

    def _check_shape(self, opened: Artefact, name: str) -> None:
        wanted = tuple(self.facts["artefacts"][name]["input_shape"])
        if opened.facts.input_shape != wanted:
            what = f"{name} takes {opened.facts.input_shape}, the bundle says {wanted}"
            raise BundleError(what, where=self.path, hint=_AGAIN)


def open_bundle(path: str | Path, features: KeywordFeatureConfig | FeatureConfig | None = None) -> Bundle:
    """Open a bundle and check that labels and features are those of the export.

    Args:
        path: the folder.
        features: what clips will be made with, if these aren't the bundle's own settings.

    Raises:
        BundleError: no bundle, a newer format, or a part that doesn't belong; it is named.
        ConfigError: ``features`` differ from the bundle's; each setting is named with both values.
    """
    path = Path(path)
    facts = _read_facts(path)
    bundle = Bundle(path, facts, ())
    for name in (LABELS, *facts.get("tables", ())):
        bundle._check_file(name)
    labels = tuple((path / LABELS).read_text(encoding="utf-8").split("\n")[:-1])
    if labels_hash(labels) != facts["labels_hash"]:
        what = f"{LABELS} holds the labels of another model"
        raise BundleError(what, where=path, hint=_AGAIN)
    _check_features(facts, path, features)
    return Bundle(path, facts, labels)


def find_bundle(artefact: str | Path) -> tuple[Bundle, str]:
    """The bundle that an artefact's file lies in, and its path there.

    Raises:
        BundleError: there is no such file, or it lies in no bundle.
    """
    artefact = Path(artefact)
    if not artefact.exists():
        raise BundleError("no such file", where=artefact, hint="export.py RUN makes a bundle of artefacts")
    for folder in artefact.absolute().parents:
        if (folder / FACTS).is_file():
            return open_bundle(folder), artefact.absolute().relative_to(folder).as_posix()
    hint = f"leave it in the folder that export.py wrote: {FACTS} says what it was trained on"
    raise BundleError("this artefact lies in no bundle", where=artefact, hint=hint)


def _read_facts(path: Path) -> dict[str, Any]:
    try:
        facts = json.loads((path / FACTS).read_text(encoding="utf-8"))
        version, missing = facts["format"], [name for name in _PARTS if name not in facts]
    except FileNotFoundError as error:
        hint = "export.py RUN makes one"
        raise BundleError(f"no bundle: the folder holds no {FACTS}", where=path, hint=hint) from error
    except (ValueError, KeyError, TypeError, NotADirectoryError) as error:
        raise BundleError(f"{FACTS} is damaged ({error})", where=path, hint=_AGAIN) from error
    if version == _WITHOUT_CHECKSUM:
        print(f"note: {path / FACTS} has no checksum: no damage to it can be noticed", file=sys.stderr)
    elif version != FORMAT:
        what = f"{FACTS} is of format {version}, this version reads {FORMAT}"
        raise BundleError(what, where=path, hint="use the version that made it, or export again")
    elif facts.get(_CHECKSUM) != _facts_checksum(facts):
        raise BundleError(f"{FACTS} is damaged (its checksum is wrong)", where=path, hint=_AGAIN)
    if missing:
        raise BundleError(f"{FACTS} is damaged (no {', '.join(missing)})", where=path, hint=_AGAIN)
    return facts


def write_facts(path: Path, facts: Mapping[str, Any]) -> None:
    """Write bundle.json, with its own checksum, into a bundle's folder."""
    plain = json.loads(json.dumps(facts))
    write_json(path / FACTS, {**plain, _CHECKSUM: _facts_checksum(plain)})


def _facts_checksum(facts: Mapping[str, Any]) -> str:
    """SHA-256 of all but the checksum itself, as ``json.dumps`` writes it."""
    content = {name: value for name, value in facts.items() if name != _CHECKSUM}
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


_PARTS = ("kind", "features", "features_hash", "labels_hash", "decoding", "stream", "artefacts", "files")


_FEATURES = {"keyword": (KeywordFeatureConfig, features_hash), "speech": (FeatureConfig, settings_hash)}


def _check_features(
    facts: Mapping[str, Any], path: Path, asked: KeywordFeatureConfig | FeatureConfig | None
) -> None:
    if facts["kind"] not in _FEATURES:
        return
    config, hash_of = _FEATURES[facts["kind"]]
    try:
        own = config(**facts["features"])
    except (TypeError, ConfigError) as error:
        raise BundleError(
            f"the features in {FACTS} are damaged ({error})", where=path, hint=_AGAIN
        ) from error
    if hash_of(own) != facts["features_hash"]:
        what = f"the features in {FACTS} aren't those of the export, or this version computes them otherwise"
        raise BundleError(what, where=path, hint=_AGAIN)
    if asked is not None and asked != own:
        what = f"the model was trained on other features ({describe_mismatch(own, asked)})"
        raise ConfigError(what, where=path, hint="use the bundle's own settings")


def files_in(folder: Path) -> dict[str, str]:
    """Path in the folder → SHA-256, of all files but bundle.json."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != FACTS)
    return {path.relative_to(folder).as_posix(): file_hash(path) for path in paths}
