"""Tests of object stores: recordings, manifests and packed corpora equal local files; errors are named."""

import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

import data.features.packing as packing
from analysis.inputs.training_texts import read_training
from data.batches import packed_source
from data.batches.packed_source import PackedCorpus, is_packed
from data.corpora import manifest_lists
from data.evaluation_lists import lists_of_split, read_test_utterances
from data.features.cache import prepare_features
from data.features.packing import pack_corpus
from data.manifest import COLUMNS, read_manifest, write_manifest
from preflight.listings import read_listing
from tests.data.test_packed_corpus import COPIES, FEATURES, source
from tests.support.tiny_corpus import write_tiny_corpus
from utils.addresses import address_of
from utils.audio.reading import read_audio
from utils.audio.samples import write_wav
from utils.config import save_yaml
from utils.errors import AudioError, CacheError, ConfigError, StoreError, UserError
from utils.object_store import read_part
from utils.run_folder.run import RunFolder

fsspec = pytest.importorskip("fsspec", reason="pip install -r requirements/object_store.txt")


@pytest.fixture(scope="module")
def manifest(tmp_path_factory) -> Path:
    return write_tiny_corpus(tmp_path_factory.mktemp("corpus"), utterances=20)


@pytest.fixture
def memory() -> Iterator[object]:
    """A store in this process: ``memory://``."""
    system = fsspec.filesystem("memory")
    yield system
    system.store.clear()


def upload(folder: Path, address: str) -> str:
    for path in folder.rglob("*"):
        if path.is_file():
            name = f"{address}/{path.relative_to(folder).as_posix()}"
            with fsspec.open(name, "wb") as file:
                file.write(path.read_bytes())
    return address


def test_a_file_of_this_machine_by_its_address(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"content")
    assert read_part(f"file://{tmp_path}/a.txt", 1, 3) == b"ont"


def test_addresses_survive_paths():
    assert address_of("s3://bucket/a.wav") == address_of(Path("s3://bucket") / "a.wav") == "s3://bucket/a.wav"
    assert address_of(Path("https://host:80/a b.wav")) == "https://host:80/a b.wav"
    assert address_of(Path("file:///data/a.wav")) == address_of("file:///data/a.wav") == "file:///data/a.wav"
    assert "where: file:///data/a.wav:3" in UserError("wrong", where=Path("file:///data/a.wav:3")).labelled()
    for local in ("a.wav", "/data/s3:/a.wav", Path("C:/a.wav"), "data:", "", "12:/a"):
        assert address_of(local) is None


def test_features_of_recordings_in_a_store(manifest, memory, tmp_path):
    """The manifest may be local and contain addresses, or be in the store beside the recordings."""
    upload(manifest.parent, "memory://corpus")
    local = read_manifest(manifest)
    there = [replace(u, audio=Path("memory://corpus") / u.audio.relative_to(manifest.parent)) for u in local]
    write_manifest(tmp_path / "list.tsv", there)
    assert "\tmemory://corpus/" in (tmp_path / "list.tsv").read_text(encoding="utf-8")
    beside = f"memory://corpus/{manifest.name}"
    assert read_manifest(tmp_path / "list.tsv") == read_manifest(beside) == there
    assert [Path(line.audio) for line in read_listing(beside).lines] == [u.audio for u in there]
    caches = [
        prepare_features(utterances, FEATURES, tmp_path / name, workers=1)
        for name, utterances in (("here", local), ("there", there))
    ]
    for utterance in local:
        np.testing.assert_array_equal(*(cache.features(utterance.id) for cache in caches))


def test_lists_in_a_store_are_those_of_a_test(manifest, memory, tmp_path):
    address = f"{upload(manifest.parent, 'memory://corpus')}/{manifest.name}"
    run = RunFolder(tmp_path)
    save_yaml(run.config_file, {"data": {"test": [address], "train": [address]}})
    (listed,) = lists_of_split(run, "test")
    assert len(read_test_utterances([listed])) == 20
    assert read_training(run.manifests("train")).sentences == {u.hanzi for u in read_manifest(manifest)}
    memory.store.clear()
    assert read_training(run.manifests("train")).sentences is None


def test_lists_of_recordings_in_a_store_are_prepared(memory, tmp_path):
    write_wav(tmp_path / "a.wav", np.zeros(8_000))
    address = f"{upload(tmp_path, 'memory://sounds')}/a.wav"
    rows = [f"a\t{address}\t9\ts\tni3 hao3\t你好", "b\tmemory://sounds/gone.wav\t9\ts\tni3 hao3\t你好"]
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "train.tsv").write_text("\t".join(COLUMNS) + "\n" + "\n".join(rows), encoding="utf-8")
    manifest_lists.main(["prepare", str(tmp_path / "in"), "--output", str(tmp_path / "out")])
    (utterance,) = read_manifest(tmp_path / "out" / "train.tsv")
    assert (address_of(utterance.audio), utterance.seconds) == (address, 0.5)
    assert "no such audio file" in (tmp_path / "out" / "rejected.tsv").read_text(encoding="utf-8")


@pytest.fixture
def packed(manifest, tmp_path, monkeypatch) -> Path:
    monkeypatch.setattr(packing, "SHARD_FEATURES", 8)
    monkeypatch.setattr(packed_source, "GROUP", 2)
    pack_corpus([manifest], tmp_path / "packed", FEATURES, COPIES, workers=1)
    return tmp_path / "packed"


def test_a_packed_corpus_in_a_store(packed, memory):
    address = upload(packed, "memory://packed")
    assert is_packed(address) and is_packed(packed) and not is_packed("memory://packed/train.tsv")
    for epoch in (1, 2):
        pairs = zip(source(packed).batches(epoch), source(address).batches(epoch), strict=True)
        for here, there in pairs:
            assert here.ids == there.ids
            np.testing.assert_array_equal(here.features, there.features)


def test_damage_in_a_store_is_named(packed, memory):
    address = upload(packed, "memory://packed")
    shard = next(path for path in packed.glob("*.npy") if ".index" not in path.name)
    for name in ("shards.tsv", shard.name, shard.with_suffix(".tsv").name):
        memory.pipe_file(f"packed/{name}", (packed / name).read_bytes()[:-9])
        with pytest.raises(CacheError, match=r"memory:/+packed"):
            list(source(address).batches(1))
        memory.pipe_file(f"packed/{name}", (packed / name).read_bytes())
    memory.rm(f"packed/{shard.name}")
    with pytest.raises(CacheError, match=shard.name):
        list(source(address).batches(1))
    with pytest.raises(CacheError, match="not a whole packed corpus"):
        PackedCorpus.open("memory://nothing")


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(ConfigError, match=r"[Ii]nstall s3fs.*s3://bucket/a\.wav.*requirements/object_store"):
        read_audio("s3://bucket/a.wav")
    with pytest.raises(ConfigError, match="Protocol not known: nowhere"):
        PackedCorpus.open("nowhere://bucket/packed")
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(ConfigError, match=r"fsspec.*requirements/object_store\.txt"):
        read_part("memory://a")


# Over HTTP


class _Folder(BaseHTTPRequestHandler):
    """Serves files by name, whole or in parts; ``/broken/`` fails."""

    folder: Path

    def do_GET(self):
        path = self.folder / self.path.lstrip("/")
        if not path.is_file():
            self.send_error(500 if "broken" in self.path else 404)
            return
        content, part = path.read_bytes(), self.headers["Range"]
        if part:
            first, _, last = part.removeprefix("bytes=").partition("-")
            content = content[int(first) : int(last) + 1 if last else None]
        self.send_response(206 if part else 200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *arguments: object) -> None:
        """Write no log."""


@pytest.fixture
def web(tmp_path) -> Iterator[str]:
    """The address of a server of ``tmp_path``."""
    pytest.importorskip("aiohttp", reason="pip install -r requirements/object_store.txt")
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Folder,), {"folder": tmp_path}))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_failures_of_the_network_name_the_file(manifest, packed, web, tmp_path):
    with pytest.raises(AudioError, match=r"no such audio file.*gone\.wav"):
        read_audio(f"{web}/gone.wav")
    with pytest.raises(StoreError, match=r"can't be read \(.*500.*http://127\.0\.0\.1:\d+/broken/a\.wav"):
        read_audio(f"{web}/broken/a.wav")
    with pytest.raises(StoreError, match=r"can't be read \(.*http://127\.0\.0\.1:1/packed/packed"):
        PackedCorpus.open("http://127.0.0.1:1/packed")
    # A server that does not answer must not count as a faulty recording, which would be left out.
    utterances = [replace(u, audio=Path(f"{web}/broken/{u.id}.wav")) for u in read_manifest(manifest)]
    write_manifest(tmp_path / "list.tsv", utterances)
    with pytest.raises(StoreError, match="broken"):
        pack_corpus([tmp_path / "list.tsv"], tmp_path / "none", FEATURES, COPIES, workers=1)
