"""Recognises recordings and live audio: segments with syllables, times and hanzi.

Testing, transcription and serving share it. Read ``recognizer`` (acoustic model, decoder and converter
together), ``pieces`` and ``voice_activity`` (recordings cut at pauses), ``syllables`` (those of a decoded
piece, without a joint search), then ``options`` and ``loading`` (a recognizer of run folders), ``confidence``
and ``calibrate`` (how certain a syllable is), ``no_speech`` (whether a segment is speech), ``phrases`` (only
the phrases of a list), ``live`` (live audio), ``evaluation`` and ``inspection`` (the results of a whole test
set), ``cluster_jobs`` (recordings recognised by the nodes of a cluster) and ``command_line`` (options of
commands).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from recognition.options import transcription_runs, transcription_search

if TYPE_CHECKING:
    from recognition.recognizer import Recognizer


def load(speech: str | Path | None = None, language: str | Path | None = None, **search: Any) -> Recognizer:
    """Load a recognizer with the defaults of ``transcribe.py``; this project's models need no TensorFlow.

    Args:
        speech: run folder of the acoustic model; None: that of this project.
        language: run folder of the language model that writes the hanzi; None: that of this project.
        search: settings of :class:`recognition.options.SearchOptions`, such as ``words="names.txt"``.

    Raises:
        UserError: a run or a file is missing or damaged, or settings contradict each other.
    """
    from recognition.loading import load_recognizer  # here: commands that only print their help load no model

    options = transcription_search(speech, language, **search)
    runs = transcription_runs(speech, language)
    return load_recognizer(runs["speech"], runs["language"], options)
