"""Tests that workers share the memory of the models, and that forked processes compute the same with them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from serving.work import shared
from tests.support.recordings import RECORDING
from tests.support.scripts import ROOT
from tests.support.service import Service
from utils.run_folder.run import PRETRAINED, PRETRAINED_SPEECH

# In a forked child, then in the process itself: whether a network is loaded, and the text of a recording.
FORKED = """
import json, os, sys
from serving.work.models import Models, RecogniseJob, Search
from serving.work.shared import models_of
from serving.work.uploads import SoundPiece
from utils.audio.reading import read_audio
from utils.run_folder.run import PRETRAINED, PRETRAINED_SPEECH
def report(models):
    job = RecogniseJob(SoundPiece(0.0, read_audio(sys.argv[1])), Search())
    loaded = "_speech" in vars(models)
    print(json.dumps([loaded, models.compute([job])[0][0].hanzi]), flush=True)
assert len(os.listdir("/proc/self/task")) == 1, "threads are lost in a fork"
if os.fork() == 0:
    report(models_of(PRETRAINED_SPEECH, PRETRAINED))
    os._exit(0)
os.wait()
report(Models(PRETRAINED_SPEECH, PRETRAINED))
"""


@pytest.mark.parametrize(("threads", "networks"), [("1", True), ("2", False)])
def test_a_forked_process_has_the_models_and_computes_the_same(threads, networks):
    """With several threads a network is not shared: they would be missing in the child, which would hang."""
    environment = {"OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": "1"}
    environment |= {"SPEECH_SHARED_FOR": str(PRETRAINED_SPEECH), "SPEECH_SHARED_CONVERTER": str(PRETRAINED)}
    done = subprocess.run(
        [sys.executable, "-c", FORKED, str(RECORDING)],
        cwd=ROOT,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        text=True,
        timeout=120,
        check=True,
    )
    (loaded, text), (_, alone) = map(json.loads, done.stdout.splitlines())
    assert (loaded, text) == (networks, alone)
    assert text


def test_a_run_that_needs_keras_is_not_loaded_before_the_fork(tmp_path: Path, monkeypatch):
    (tmp_path / "best.weights.h5").touch()
    monkeypatch.setenv("SPEECH_SHARED_FOR", str(PRETRAINED_SPEECH))
    monkeypatch.setenv("SPEECH_SHARED_CONVERTER", str(tmp_path))
    assert shared._of_environment() == {}


def test_the_workers_of_a_service_share_their_memory(open_service: Service):
    pids = [line["pid"] for line in open_service.events("a worker is ready")]
    assert len(pids) == 2
    for pid in pids:
        memory = psutil.Process(pid).memory_full_info()
        assert memory.rss - memory.uss > 200e6
