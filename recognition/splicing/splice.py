"""Makes new recordings from parts of real ones, and their manifest (spliced speech).

    python -m recognition.splicing.splice pretrained/audio_to_pinyin --manifest train.tsv \
        --output datasets/spliced

An acoustic model that learns from few recordings also learns their sentences by heart. Here the recordings
are cut at their syllables (forced alignment by a trained model), and runs of a speaker's syllables are joined
in new combinations (compare arXiv 2210.13067, which joins single syllables). The levels of the recordings are
made equal, and neighbours are cross-faded. Recordings without a speaker's name are not used.
"""

from utils.command.entry import run_command

import argparse
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from tqdm import tqdm

from data.manifest import Utterance, read_manifest, write_manifest
from recognition.calibrate import measure_lead
from recognition.loading import load_acoustic_logits
from recognition.splicing.plan import FEWEST_RUNS, RUNS, Spliced, plan_utterances
from recognition.splicing.snippets import (
    Snippet,
    cut_recordings,
    quietest_part,
    read_recording,
    recording_level,
    successive_runs,
)
from utils.audio.reading import SAMPLE_RATE, write_wav
from utils.command.arguments import not_negative, positive
from utils.errors import CorpusError, require
from utils.run_folder.run import open_run

_FADE = SAMPLE_RATE // 125  # samples over which two snippets are cross-faded: 8 ms
_LARGEST_GAIN_DB = 12.0
_PEAK = 0.97
_TIMED = 200  # recordings by which the moment of emission is measured


def join(snippets: Sequence[Snippet], recordings: Sequence[Path]) -> np.ndarray:
    """Snippets → one recording (samples,) float32 within ±0.97, at 16 kHz.

    Successive syllables of a recording stay as they are; other neighbours are cross-faded over 8 ms. All
    recordings get the level of the first. The background of the first is before and after the speech.
    """
    first = recordings[snippets[0].recording]
    level, background = recording_level(first), quietest_part(first)
    joined = background
    for run in successive_runs(snippets):
        recording, start, end = recordings[run[0].recording], run[0].start, run[-1].end
        samples = read_recording(recording)
        gain_db = level - recording_level(recording)
        gain = 10 ** (np.clip(gain_db, -_LARGEST_GAIN_DB, _LARGEST_GAIN_DB) / 20)
        joined = cross_fade(joined, samples[max(0, start - _FADE) : end] * np.float32(gain))
    joined = cross_fade(joined, background)
    return joined * np.float32(min(1.0, _PEAK / max(np.abs(joined).max(), 1e-9)))


def cross_fade(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Join two signals (samples,) that overlap by 8 ms; the shorter one limits the overlap."""
    size = min(_FADE, len(left), len(right))
    rising = np.linspace(0.0, 1.0, size, dtype=np.float32)
    overlap = left[len(left) - size :] * (1 - rising) + right[:size] * rising
    return np.concatenate([left[: len(left) - size], overlap, right[size:]])


def splice(utterances: Sequence[Utterance], planned: Sequence[Spliced], output: Path) -> Path:
    """Write the planned recordings and, last, their manifest ``train.tsv``; returns its path.

    Raises:
        AudioError: a recording can't be read.
        OSError: a file can't be written.
    """
    recordings = [utterance.audio for utterance in utterances]
    made, name = [], output.absolute().name  # in the ids, which differ from those of other folders
    for number, snippets in enumerate(tqdm(planned, "splicing", disable=None)):
        audio = output.absolute() / "train" / f"{name}_{number:06}.wav"
        samples = join(snippets, recordings)
        write_wav(audio, samples)
        sources = [(utterances[snippet.recording], snippet.position) for snippet in snippets]
        pinyin = tuple(source.pinyin[position] for source, position in sources)
        hanzi = "".join(source.hanzi[position] for source, position in sources)
        speaker = sources[0][0].speaker
        made.append(Utterance(audio.stem, audio, len(samples) / SAMPLE_RATE, speaker, pinyin, hanzi))
    write_manifest(output / "train.tsv", made)
    return output / "train.tsv"


def main(arguments: Sequence[str] | None = None) -> int:
    """The command ``python -m recognition.splicing.splice``."""
    options = _parser().parse_args(arguments)
    acoustic = load_acoustic_logits(open_run(options.run, "speech").path)
    require(
        acoustic.features.sample_rate == SAMPLE_RATE,
        f"an acoustic model at {acoustic.features.sample_rate} Hz",
        where=options.run,
        hint=f"splicing needs one at {SAMPLE_RATE} Hz",
        error=CorpusError,
    )
    fewest, most = options.runs
    require(
        fewest <= most <= FEWEST_RUNS,
        f"--runs {fewest} {most}",
        hint=f"the lower number first, and at most {FEWEST_RUNS}",
    )
    utterances = [utterance for path in options.manifest for utterance in read_manifest(path)]
    utterances = [utterance for utterance in utterances if utterance.speaker]
    timed = utterances[:: max(1, len(utterances) // _TIMED)]
    shown = tqdm(utterances, "aligning", disable=None)
    snippets = list(cut_recordings(acoustic, shown, measure_lead(acoustic, timed)))
    by_speaker: dict[str, list[Snippet]] = defaultdict(list)
    for utterance, found in zip(utterances, snippets, strict=True):
        by_speaker[utterance.speaker] += found
    planned = plan_utterances(by_speaker, options.count, options.seed, (fewest, most))
    require(
        planned,
        "no speaker has enough syllables that can be cut",
        where=options.manifest[0],
        hint="splicing needs at least a dozen recordings of a speaker, and a model that recognises them",
        error=CorpusError,
    )
    manifest = splice(utterances, planned, options.output)
    total, used = sum(len(u.pinyin) for u in utterances), sum(map(len, snippets))
    print(f"{used} of {total} syllables of {len(by_speaker)} speakers can be used")
    print(f"written: {manifest}, {len(planned)} utterances")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path, help="a speech run that recognises these recordings well")
    parser.add_argument("--manifest", type=Path, nargs="+", required=True, help="recordings with their texts")
    parser.add_argument("--output", type=Path, required=True, help="where train/ and train.tsv are written")
    parser.add_argument("--count", type=positive, default=5000, help="number of utterances (default: 5000)")
    parser.add_argument(
        "--runs",
        type=positive,
        nargs=2,
        default=RUNS,
        metavar=("FEWEST", "MOST"),
        help="runs that are joined to an utterance (default: 2 4; with 1 1, pieces are only cut out)",
    )
    parser.add_argument("--seed", type=not_negative, default=0, help="default: 0")
    return parser


if __name__ == "__main__":
    run_command(main)
