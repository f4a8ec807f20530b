"""Tests of downloads from a local server: resumed transfers, checksums, disk space, unpacking."""

import hashlib
import http.server
import threading
from collections import namedtuple
from dataclasses import dataclass, field, replace

import pytest

from data.corpora import magicdata
from data.corpora.tools.command import corpus_command
from data.corpora.tools.download import (
    ATTEMPTS,
    Archive,
    download_corpus,
    fetch,
    unpack,
    verify,
)
from tests.support.archives import tar_bytes
from utils.errors import CacheError, CorpusError

CONTENT = bytes(range(256)) * 40  # 10,240 bytes


@dataclass
class Server:
    """The server's behaviour, and the requests that it received."""

    content: bytes = CONTENT
    ranges: bool = True
    drop_after: int | None = None  # bytes of each answer, then the connection ends
    status: int = 200
    requested: list[str | None] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    url: str = ""


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        server = self.server.behaviour
        range_header = self.headers.get("Range")
        server.requested.append(range_header)
        server.paths.append(self.path)
        if server.status != 200:
            self.send_error(server.status)
            return
        start = int(range_header.removeprefix("bytes=").rstrip("-")) if range_header and server.ranges else 0
        size = len(server.content)
        if start >= size:
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{size}")
            self.end_headers()
            return
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{size - 1}/{size}")
        self.send_header("Content-Length", str(size - start))
        self.end_headers()
        end = size if server.drop_after is None else start + server.drop_after
        self.wfile.write(server.content[start:end])

    def log_message(self, *arguments):
        pass


@pytest.fixture
def server():
    behaviour = Server()
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as httpd:
        httpd.behaviour = behaviour
        behaviour.url = f"http://127.0.0.1:{httpd.server_port}/corpus.tgz"
        thread = threading.Thread(target=httpd.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield behaviour
        httpd.shutdown()
        thread.join()


def archive_of(content: bytes, url: str) -> Archive:
    md5 = hashlib.md5(content, usedforsecurity=False).hexdigest()
    return Archive(url=url, checksum=md5, folder="corpus", unpacked=2.0)


@pytest.mark.parametrize(
    ("part", "behaviour", "requested"),
    [
        (b"", {}, [None]),
        (b"", {"drop_after": 4000}, [None, "bytes=4000-", "bytes=8000-"]),
        (CONTENT[:1234], {}, ["bytes=1234-"]),
        (CONTENT, {}, ["bytes=10240-"]),
        (CONTENT * 2, {}, ["bytes=20480-", None]),
        (b"?" * 500, {"ranges": False}, ["bytes=500-"]),
    ],
    ids=["whole", "dropped", "second run", "complete", "of another file", "no ranges"],
)
def test_a_transfer_goes_on_behind_what_is_there(server, tmp_path, part, behaviour, requested):
    vars(server).update(behaviour)
    if part:
        (tmp_path / "x.part").write_bytes(part)
    assert fetch(server.url, tmp_path / "x.part", pause=0).read_bytes() == CONTENT
    assert server.requested == requested


def test_a_full_disk_is_not_reported_as_a_network_failure(server, tmp_path):
    (tmp_path / "x.part").symlink_to("/dev/full")
    with pytest.raises(OSError, match=r"No space left.*x\.part"):
        fetch(server.url, tmp_path / "x.part", pause=0)
    assert len(server.requested) == 1, "tried again"
    with pytest.raises(IsADirectoryError):
        (tmp_path / "folder").mkdir()
        fetch(server.url, tmp_path / "folder", pause=0)


def test_no_progress_ends_with_a_hint(server, tmp_path):
    server.drop_after = 0
    with pytest.raises(CorpusError, match="run the command again: it continues after 0 bytes"):
        fetch(server.url, tmp_path / "x.part", pause=0)
    assert len(server.requested) == ATTEMPTS


@pytest.mark.parametrize(("status", "requests"), [(404, 1), (503, ATTEMPTS)])
def test_a_refusal_is_final_but_an_overloaded_server_is_retried(server, tmp_path, status, requests):
    server.status = status
    with pytest.raises(CorpusError, match=str(status)):
        fetch(server.url, tmp_path / "x.part", pause=0)
    assert len(server.requested) == requests


def test_wrong_checksum_removes_a_download(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(CONTENT)
    verify(path, hashlib.sha256(CONTENT).hexdigest())
    with pytest.raises(CorpusError, match="md5 is"):
        verify(path, "0" * 32)
    assert not path.exists()


def test_the_disk_must_hold_the_archive_and_its_content(server, tmp_path, monkeypatch):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr("shutil.disk_usage", lambda folder: usage(0, 0, 30_000))
    fetch(server.url, tmp_path / "a.part", unpacked=1.9, pause=0)
    with pytest.raises(CacheError, match=r"need [\d.]+kB, [\d.]+kB are free"):
        fetch(server.url, tmp_path / "b.part", unpacked=2.0, pause=0)
    assert not (tmp_path / "b.part").exists()


def test_download_unpacks_once_and_leaves_nothing_else(server, tmp_path):
    server.content = tar_bytes({"corpus/data/a.wav.trn": b"text", "corpus/readme": b""})
    archive = archive_of(server.content, server.url)
    (tmp_path / "new" / "corpus").mkdir(parents=True)  # empty
    folder = download_corpus(archive, tmp_path / "new", pause=0)
    assert (folder / "data" / "a.wav.trn").read_bytes() == b"text"
    assert [path.name for path in folder.parent.iterdir()] == ["corpus"]
    assert download_corpus(archive, tmp_path / "new") == folder
    assert len(server.requested) == 1


def test_without_a_sum_the_size_is_checked_before_the_file_is_loaded(server, tmp_path):
    server.content = tar_bytes({"corpus/readme": b"text"})
    size = len(server.content)
    archive = Archive(url=server.url, folder="corpus", unpacked=2.0, size=size + 1)
    with pytest.raises(CorpusError, match=rf"has {size} bytes, {size + 1} expected"):
        download_corpus(archive, tmp_path, pause=0)
    assert not any(tmp_path.iterdir())
    assert download_corpus(replace(archive, size=size), tmp_path / "b", pause=0).is_dir()


def wrong_gzip_sum(content: bytes) -> bytes:
    """A bit is flipped in the last 8 bytes: checksum and length."""
    return content[:-5] + bytes([content[-5] ^ 1]) + content[-4:]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (tar_bytes({"../evil": b""}), "unsafe"),
        (tar_bytes({"corpus/a": CONTENT})[:-200], "damaged"),
        (wrong_gzip_sum(tar_bytes({"corpus/a": CONTENT})), "damaged"),
        (b"\n<!DOCTYPE html><html>not an archive</html>", "this is a web page, not a tar archive, "),
        (b"PK\x03\x04 and so on", "this is a zip archive, not a tar archive, "),
        (b"no archive at all", r"\(file could not be opened successfully\), "),
        (tar_bytes({"other/a": b""}), "no folder corpus inside"),
    ],
    # not by content, which includes the time
    ids=["unsafe", "cut off", "gzip sum", "page", "zip", "no archive", "other folder"],
)
def test_bad_archives_leave_nothing_behind(tmp_path, content, message):
    (tmp_path / "in").mkdir()
    file = tmp_path / "in" / "corpus.tgz"
    file.write_bytes(content)
    with pytest.raises(CorpusError, match=message):
        unpack(file, tmp_path / "in", ["corpus"])
    assert [path.name for path in (tmp_path / "in").iterdir()] == ["corpus.tgz"]
    assert not (tmp_path / "evil").exists()


def test_command_downloads_one_of_several_archives_from_a_mirror(server, tmp_path, capsys):
    server.content = tar_bytes({"dev/readme": b""})
    archives = tuple(replace(archive, size=len(server.content)) for archive in magicdata.CORPUS.archives)
    arguments = ["download", str(tmp_path), "--only", "dev", "--url", server.url.rpartition("/")[0]]
    assert corpus_command(replace(magicdata.CORPUS, archives=archives))(arguments) == 0
    assert server.paths == ["/dev_set.tar.gz"] and [path.name for path in tmp_path.iterdir()] == ["dev"]
    assert "python -m data.corpora.magicdata prepare" in capsys.readouterr().out
