"""Opens the folder of a bundle: labels, settings and exported models (artefacts), checked against hashes.

    bundle.json     features, decoding, artefacts, the SHA-256 of every other file, and its own checksum
    labels.txt      one per line, in the order of the logits
    pinyin.txt      of a converter: its input tokens, one per line; lexicon.tsv: the possible hanzi of each
    golden/         clips.npz: inputs and the source model's outputs
    export.md       the table: differences, accuracy, size, latency; export.json: the same and more
    models/         summary and drawing of each mode
    litert/ onnx/ … the artefacts, each with its accuracy in a file beside it

Only the runtime of the requested artefact is loaded.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bundle.runtimes.artefacts import Artefact, open_artefact
from streaming.keyword import DetectionConfig
from utils.errors import BundleError, ConfigError
from utils.features.keyword import KeywordFeatureConfig, features_hash
from utils.features.settings import FeatureConfig, settings_hash
from utils.run_folder.bundle_files import (
    COPY_AGAIN,
    METADATA,
    checked_file,
    not_a_bundle,
    read_lines,
    read_metadata,
    write_metadata,
)
from utils.run_folder.checksum_files import file_hash

LABELS = "labels.txt"
CLIPS, STREAM = "golden/clips.npz", "golden/stream.json"
# Kind of model → class and hash function of its feature settings.
_FEATURES: dict[str, tuple[type, Callable[[Any], str]]] = {
    "keyword": (KeywordFeatureConfig, features_hash),
    "speech": (FeatureConfig, settings_hash),
}


@dataclass(frozen=True)
class Bundle:
    """An opened bundle. Its labels and features are checked, its artefacts when they are opened.

    Attributes:
        path: the folder.
        metadata: contents of bundle.json.
        labels: labels of the logits, in order.
    """

    path: Path
    metadata: Mapping[str, Any]
    labels: tuple[str, ...]

    @property
    def artefacts(self) -> Mapping[str, Mapping[str, Any]]:
        """Path in the bundle → format, state, precision and whether it passed the checks of the export."""
        return self.metadata["artefacts"]

    @property
    def features(self) -> KeywordFeatureConfig | FeatureConfig:
        """Feature settings of a keyword or speech model."""
        return _FEATURES[self.metadata["kind"]][0](**self.metadata["features"])

    @property
    def decoding(self) -> Mapping[str, Any]:
        """Parameters of decoding, of a keyword model smoothing, threshold and refractory time."""
        return self.metadata["decoding"]

    @property
    def stream(self) -> Mapping[str, float]:
        """``chunk``, ``seconds``, ``due`` and ``delay`` of its streams (see `ArtefactWriter.geometry`).

        Raises:
            BundleError: it has no stream.
        """
        if not self.metadata["stream"]:
            raise BundleError(
                "the bundle has no stream",
                where=self.path,
                hint="export.py RUN --mode stream_external adds one",
            )
        return self.metadata["stream"]

    def open(self, artefact: str, threads: int = 1) -> Artefact:
        """Open one artefact, by its path in the bundle.

        Raises:
            BundleError: there is no such artefact, or its file has changed since the export.
        """
        if artefact not in self.artefacts:
            raise BundleError(
                f"no artefact '{artefact}'", where=self.path, hint=f"available: {', '.join(self.artefacts)}"
            )
        for name in self.metadata["files"]:
            if name == artefact or name.startswith(artefact + "/"):
                self._check_file(name)
        return open_artefact(self.path / artefact, threads)

    def check(self) -> None:
        """Check that every file is present and unchanged.

        Raises:
            BundleError: a file is missing or changed; it is named.
        """
        for name in self.metadata["files"]:
            self._check_file(name)

    def _check_file(self, name: str) -> None:
        checked_file(self.path, self.metadata, name)


def open_bundle(path: str | Path) -> Bundle:
    """Open a bundle; check its labels and features.

    Raises:
        BundleError: this is not a bundle, its format is newer, or a file has changed; the file is named.
    """
    path = Path(path)
    metadata = read_metadata(path)
    bundle = Bundle(path, metadata, ())
    for name in metadata["tables"]:
        bundle._check_file(name)
    labels = read_lines(path, metadata, LABELS)
    _check_features(metadata, path)
    return Bundle(path, metadata, labels)


def find_bundle(artefact: str | Path) -> tuple[Bundle, str]:
    """The bundle that contains an artefact's file, and the artefact's path in it.

    Raises:
        BundleError: there is no such file, or it is not in a bundle.
    """
    artefact = Path(artefact)
    if not artefact.exists():
        raise BundleError("no such file", where=artefact, hint="export.py RUN writes a bundle of artefacts")
    if (artefact / "export" / METADATA).is_file():
        raise not_a_bundle(artefact)
    for folder in artefact.absolute().parents:
        if (folder / METADATA).is_file():
            return open_bundle(folder), artefact.absolute().relative_to(folder).as_posix()
    raise BundleError(
        "this artefact is not in a bundle",
        where=artefact,
        hint=f"leave it in the folder that export.py wrote: its {METADATA} has the settings",
    )


def write_decoding(path: Path, detection: DetectionConfig) -> None:
    """Replace the detection parameters of a keyword bundle. Artefacts and checks don't depend on them.

    Raises:
        BundleError: this is not a bundle, or it is damaged.
    """
    write_metadata(path, dict(open_bundle(path).metadata) | {"decoding": asdict(detection)})


def _check_features(metadata: Mapping[str, Any], path: Path) -> None:
    if metadata["kind"] not in _FEATURES:
        return
    config, hash_of = _FEATURES[metadata["kind"]]
    try:
        own = config(**metadata["features"])
    except (TypeError, ValueError, ConfigError) as error:
        raise BundleError(
            f"the features in {METADATA} are damaged ({error})", where=path, hint=COPY_AGAIN
        ) from error
    if hash_of(own) != metadata["features_hash"]:
        raise BundleError(
            f"the features in {METADATA} have changed, or this version computes them differently",
            where=path,
            hint=COPY_AGAIN,
        )


def files_in(folder: Path) -> dict[str, str]:
    """Path in the folder → SHA-256, of all files but bundle.json."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != METADATA)
    return {path.relative_to(folder).as_posix(): file_hash(path) for path in paths}
