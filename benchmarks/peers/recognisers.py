"""Recognisers of whole recordings for the comparison: a line is a path, the answer JSON with the text.

``seconds`` is processor time, from the file to the text, without loading the models.
"""

import json
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.peers.serve import Answer


def build_ours(run: str, search: str) -> Answer:
    """Recognise as ``transcribe.py`` does, all recordings of a batch together.

    Args:
        run: folder of the speech run.
        search: ``joint``, or ``greedy`` with the converter after it.
    """
    from model_language.registry import load_converter
    from model_speech.acoustic_logits import load_acoustic_logits
    from recognition.loading import load_joint_search_for
    from recognition.recognizer import Recognizer
    from utils.run_folder.run import PRETRAINED

    converter = load_converter(PRETRAINED)
    joint = load_joint_search_for(Path(run), converter) if search == "joint" else None
    recognizer = Recognizer(load_acoustic_logits(Path(run)), converter, joint=joint)

    def answer(lines: Sequence[Sequence[str]]) -> list[str]:
        began = time.process_time()
        paths = [Path(" ".join(words)) for words in lines]
        results = list(recognizer.recognise([(str(path), path) for path in paths]))
        seconds = (time.process_time() - began) / len(lines)
        return [
            json.dumps({"seconds": seconds, "hanzi": result.hanzi, "pinyin": result.pinyin})
            for result in results
        ]

    return answer


def build_whisper(folder: str, beam: str) -> Answer:
    """faster-whisper in int8 on one thread, with its own settings but for the language and the beam."""
    from faster_whisper import WhisperModel

    model = WhisperModel(folder, device="cpu", compute_type="int8", cpu_threads=1)

    def text_of(path: str) -> str:
        began = time.process_time()
        segments, _ = model.transcribe(path, language="zh", beam_size=int(beam))
        text = "".join(segment.text for segment in segments)
        return json.dumps({"seconds": time.process_time() - began, "hanzi": text})

    return lambda lines: [text_of(" ".join(words)) for words in lines]
