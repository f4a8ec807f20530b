"""Converts data folders of Kaldi, ESPnet, WeNet or icefall to manifests, whatever recipe prepared them.

A data folder has ``wav.scp`` (``RECORDING PATH``), ``text`` (``UTTERANCE WORDS…``), and may have ``segments``
(``UTTERANCE RECORDING START END``) and ``utt2spk`` (``UTTERANCE SPEAKER``). In a folder of data folders, each
of them is a split. A relative path is looked up in the data folder and in the folders above it, because
recipes write paths relative to where they ran. A line of ``wav.scp`` that is a command (``sph2pipe … |``) is
rejected and never run; the message says what to do. Segments are written to files in the output folder
(``kaldi_segments``).
"""

from utils.command.entry import run_command

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from operator import itemgetter
from pathlib import Path

from data.corpora.tools.command import corpus_command
from data.corpora.tools.kaldi_segments import KaldiSegment, cut_segments, read_segments
from data.corpora.tools.preparation import Candidate, Corpus, Problem
from data.corpora.tools.transcripts import MISSING, make_candidate, read_transcript_list, utf8_lines
from utils.errors import CorpusError
from utils.files import is_file
from utils.processes import collect

_PARENT_FOLDERS = 4  # folders above a data folder in which a relative path is looked up
_DECODED_DIRECTLY = (
    "sph2pipe, ffmpeg and flac only decode: put the path of their .sph, .mp3 or .flac file in place of the"
    " command, since such files are read directly"
)
_WRITE_FILES = (
    "write the recordings of other commands to files, and use the new list: mkdir wav;"
    ' while read -r id command; do sh -c "${command%|}" < /dev/null > wav/$id.wav;'
    " echo $id $PWD/wav/$id.wav; done < wav.scp > wav.scp.new"
)


def find_utterances(root: Path, output: Path, workers: int) -> Iterator[Candidate]:
    """Yield all utterances of the data folders in ``root``.

    Args:
        root: a data folder, or a folder of data folders.
        output: gets ``segments/SPLIT/…`` if there is a ``segments`` file.
        workers: number of recordings cut at a time.

    Raises:
        CorpusError: there is no data folder, one has no ``text``, or all recordings of one are commands.
    """
    single = (root / "wav.scp").is_file()
    folders = [root] if single else sorted(path.parent for path in root.glob("[!.]*/wav.scp"))
    if not folders:
        raise CorpusError(
            "no data folder here: wav.scp and text expected, in this folder or in those below",
            where=root,
            hint="give e.g. data/train, or data for all its splits",
        )
    for folder in folders:
        recordings = read_recordings(folder / "wav.scp")
        texts = read_transcript_list(folder / "text")
        speakers = _read_speakers(folder / "utt2spk")
        if (folder / "segments").is_file():
            pieces = output / "segments" / folder.resolve().name
            audio = _cut_all(read_segments(folder / "segments"), recordings, pieces, workers)
        else:
            audio = list(recordings.items())
        yield from _candidates(folder, audio, texts, speakers)


def read_recordings(path: Path) -> dict[str, Path | Problem]:
    """Read the recordings in a ``wav.scp``: id → its file, or why it is rejected.

    Raises:
        CorpusError: the file can't be read, or all its lines are commands.
    """
    folder = path.resolve().parent
    bases = [folder, *folder.parents][: _PARENT_FOLDERS + 1]
    recordings: dict[str, Path | Problem] = {}
    commands = []
    for number, line, readable in utf8_lines(path):
        name, audio = (*line.split(None, 1), "")[:2]
        audio = audio.strip()
        where = f"{path}:{number}"
        if name in recordings:
            recordings[name] = Problem("duplicate recording in wav.scp", where)
        elif audio.endswith("|") or audio.startswith("|"):
            commands.append(where)
            detail = f"{where}: {audio} ({_DECODED_DIRECTLY})"
            recordings[name] = Problem("wav.scp names a command, which is not run", detail)
        elif not audio or not readable:
            recordings[name] = Problem("not a line of wav.scp", f"{where}: RECORDING PATH expected")
        else:
            # An absolute path stays as it is.
            found = (base / audio for base in bases if is_file(base / audio))
            recordings[name] = next(found, folder / audio)
    if commands and len(commands) == len(recordings):
        raise CorpusError(
            f"all {len(commands)} recordings are commands (… |), and no command of a list is run",
            where=commands[0],
            hint=f"{_DECODED_DIRECTLY}; {_WRITE_FILES}",
        )
    return recordings


def _read_speakers(path: Path) -> dict[str, str] | None:
    """Read utterance → speaker; None without the file. A line of other than two words is ignored."""
    if not path.is_file():
        return None
    lines = (line.split() for _, line, readable in utf8_lines(path) if readable)
    return {fields[0]: fields[1] for fields in lines if len(fields) == 2}


def _cut_all(
    segments: Iterator[KaldiSegment], recordings: Mapping[str, Path | Problem], folder: Path, workers: int
) -> list[tuple[str, Path | Problem]]:
    """Write the segments to files; returns the file of each, or why it has none."""
    results: list[tuple[str, Path | Problem]] = []
    segments_of: dict[Path, list[KaldiSegment]] = defaultdict(list)
    seen: set[str] = set()
    for segment in segments:
        unknown = Problem("no such recording in wav.scp", segment.recording)
        audio = segment.problem or recordings.get(segment.recording, unknown)
        if segment.id in seen:
            audio = Problem("duplicate segment", segment.recording)
        seen.add(segment.id)
        if isinstance(audio, Problem):
            results.append((segment.id, audio))
        else:
            segments_of[audio].append(segment)
    cut = collect(
        partial(_cut_recording, folder),
        list(segments_of.items()),
        workers,
        items=len(segments_of),
        title="cutting segments",
        died=CorpusError("a process that cuts segments died", hint="run the same command again"),
        unit=" recordings",
        threads=True,
    )
    return results + sorted(cut, key=itemgetter(0))


def _cut_recording(
    folder: Path, job: tuple[Path, list[KaldiSegment]]
) -> tuple[int, list[tuple[str, Path | Problem]]]:
    return 1, list(cut_segments(*job, folder).items())


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
        yield make_candidate(
            name,
            split,
            audio,
            speaker,
            text=texts.get(name, Problem(MISSING, f"not in {folder / 'text'}")),
            note=note,
        )
    for name in sorted(texts.keys() - {name for name, _ in recordings}):
        yield Candidate(name, split, folder, problem=Problem("transcript without a recording", name))


CORPUS = Corpus(
    "kaldi",
    "Data folders of Kaldi, ESPnet, WeNet or icefall: wav.scp, text, and perhaps segments, utt2spk.\n"
    "ROOT is one, or a folder of several, each a split. Segments become files in OUTPUT/segments.",
    find_utterances,
)

main = corpus_command(CORPUS)


if __name__ == "__main__":
    run_command(main)
