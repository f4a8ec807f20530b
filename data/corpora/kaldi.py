"""Data folders of Kaldi, ESPnet, WeNet, icefall → manifests: whatever their recipes can prepare.

A data folder has ``wav.scp`` (``RECORDING PATH``), ``text`` (``UTTERANCE WORDS…``), and may have ``segments``
(``UTTERANCE RECORDING START END``) and ``utt2spk`` (``UTTERANCE SPEAKER``). Given a folder of data folders,
each of them is a split. A path that isn't absolute is looked for from the data folder upwards, since recipes
write it from where they ran. A ``wav.scp`` line that is a command (``sph2pipe … |``) is refused: a list is no
program, and nothing in it is run. Segments are cut to files below the output folder (``kaldi_segments``).
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tqdm import tqdm

from data.corpora.tools.command import corpus_command, corpus_parser
from data.corpora.tools.download import check_space
from data.corpora.tools.kaldi_segments import Segment, cut_segments, missing_seconds, read_segments
from data.corpora.tools.preparation import Candidate, Corpus, Problem
from data.corpora.tools.transcripts import MISSING, candidate_of, read_transcripts, utf8_lines
from utils.errors import CorpusError, run_command
from utils.files import is_file
from utils.processes import thread_pool

NAME = "kaldi"

_LEVELS = 4  # of folders above a data folder in which a relative path is looked for
_BYTES_A_SECOND = 2 * 48_000  # of a segment, at the highest usual rate


def corpus_into(output: Path) -> Corpus:
    """The corpus whose segments are cut to ``output``."""
    return Corpus(NAME, (), lambda root, workers: find_utterances(root, output, workers))


def find_utterances(root: Path, output: Path, workers: int) -> Iterator[Candidate]:
    """All utterances of the data folders at or below ``root``.

    Args:
        root: a data folder, or a folder of some.
        output: gets ``segments/SPLIT/…`` if there is a ``segments`` file.
        workers: recordings cut at a time.

    Raises:
        CorpusError: there is no data folder, one has no ``text``, all recordings of one are commands, or the
            disk is too small for the segments.
    """
    folders = (
        [root] if (root / "wav.scp").is_file() else sorted(path.parent for path in root.glob("[!.]*/wav.scp"))
    )
    if not folders:
        what = "no data folder here: wav.scp and text expected, in this folder or in those below"
        raise CorpusError(what, where=root, hint="give e.g. data/train, or data for all its splits")
    for folder in folders:
        recordings = read_recordings(folder / "wav.scp")
        texts = read_transcripts(folder / "text")
        speakers = _read_speakers(folder / "utt2spk")
        if (folder / "segments").is_file():
            place = output / "segments" / folder.resolve().name
            segments = list(read_segments(folder / "segments"))
            audio = _cut_all(segments, recordings, place, workers)
        else:
            audio = list(recordings.items())
        yield from _candidates(folder, audio, texts, speakers)


def read_recordings(path: Path) -> dict[str, Path | Problem]:
    """The recordings that a ``wav.scp`` names: id → its file, or why it is refused.

    Raises:
        CorpusError: the file can't be read, or all its lines are commands.
    """
    folder = path.resolve().parent
    bases = [folder, *folder.parents][: _LEVELS + 1]
    recordings: dict[str, Path | Problem] = {}
    commands = []
    for number, line, readable in utf8_lines(path):
        name, place = (*line.split(None, 1), "")[:2]
        place = place.strip()
        where = f"{path}:{number}"
        if name in recordings:
            recordings[name] = Problem("recording comes twice in wav.scp", where)
        elif place.endswith("|") or place.startswith("|"):
            commands.append(where)
            recordings[name] = Problem("wav.scp names a command, which is not run", f"{where}: {place}")
        elif not place or not readable:
            recordings[name] = Problem("not a line of wav.scp", f"{where}: RECORDING PATH expected")
        else:
            recordings[name] = _find_file(bases, place)
    if commands and len(commands) == len(recordings):
        what = f"all {len(commands)} recordings are commands (… |), and no command of a list is run"
        hint = "write the recordings to files first, e.g. with Kaldi's wav-copy, and name those"
        raise CorpusError(what, where=commands[0], hint=hint)
    return recordings


def _find_file(bases: Sequence[Path], place: str) -> Path:
    """An absolute path as it is, another from the first folder in which the file is there."""
    return next((base / place for base in bases if is_file(base / place)), bases[0] / place)


def _read_speakers(path: Path) -> dict[str, str] | None:
    """Utterance → speaker, None without the file; a line that isn't two words names no speaker."""
    if not path.is_file():
        return None
    lines = (line.split() for _, line, readable in utf8_lines(path) if readable)
    return {fields[0]: fields[1] for fields in lines if len(fields) == 2}


def _cut_all(
    segments: Sequence[Segment], recordings: Mapping[str, Path | Problem], folder: Path, workers: int
) -> list[tuple[str, Path | Problem]]:
    """The file of each segment, or why it has none."""
    results: list[tuple[str, Path | Problem]] = []
    wanted: dict[Path, list[Segment]] = defaultdict(list)
    seen: set[str] = set()
    for segment in segments:
        audio = segment.problem or recordings.get(segment.recording)
        if audio is None:
            audio = Problem("no such recording in wav.scp", segment.recording)
        if segment.id in seen:
            audio = Problem("segment comes twice", segment.recording)
        seen.add(segment.id)
        if isinstance(audio, Problem):
            results.append((segment.id, audio))
        else:
            wanted[audio].append(segment)
    seconds = sum(missing_seconds(audio, of_it, folder) for audio, of_it in wanted.items())
    if seconds:
        folder.mkdir(parents=True, exist_ok=True)
        check_space(folder, round(seconds * _BYTES_A_SECOND))
    with thread_pool(workers) as pool:
        cuts = pool.map(lambda item: cut_segments(*item, folder), wanted.items())
        for files in tqdm(cuts, "cutting segments", len(wanted), disable=None, unit=" recordings"):
            results += files.items()
    return results


def _candidates(
    folder: Path,
    recordings: Sequence[tuple[str, Path | Problem]],
    texts: Mapping[str, str | Problem],
    speakers: Mapping[str, str] | None,
) -> Iterator[Candidate]:
    split = folder.resolve().name
    for name, audio in recordings:
        if isinstance(audio, Problem):
            yield Candidate(name, split, folder, problem=audio)
            continue
        speaker = (speakers or {}).get(name, "")
        note = "" if speaker or speakers is None else "no speaker in utt2spk"
        text = texts.get(name, Problem(MISSING, f"not in {folder / 'text'}"))
        yield candidate_of(name, split, audio, speaker, text, note)
    for name in sorted(texts.keys() - {name for name, _ in recordings}):
        yield Candidate(name, split, folder, problem=Problem("transcript without a recording", name))


CORPUS = corpus_into(Path("datasets", NAME))
_ABOUT = (
    "Data folders of Kaldi, ESPnet, WeNet or icefall: wav.scp, text, and perhaps segments, utt2spk.\n"
    "ROOT is one, or a folder of several, each a split. Segments become files in OUTPUT/segments."
)


def main(argv: list[str] | None = None) -> int:
    """The command ``python -m data.corpora.kaldi``."""
    return corpus_command(CORPUS, None, _parser().parse_args(argv), corpus_into)


def _parser() -> argparse.ArgumentParser:
    return corpus_parser(CORPUS, None, _ABOUT)


if __name__ == "__main__":
    run_command(main)
