"""Embedded words in, a corpus of spoken Mandarin commands out: a folder for each word, in many voices.

A synthesiser says sixteen commands, some of them easily confused, and other words that begin or end like
them (``_unknown_``); noise without words lies in ``_background_noise_``. Voices of dev and test are in no
other split: ``validation_list.txt`` and ``testing_list.txt`` name their clips, ``manifest.tsv`` says who
says what. The same settings give the same bytes; an interrupted run goes on where it was.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from data.features.waveform_effects import add_room, coloured_noise, generated_room
from data.keywords.clips import UNKNOWN
from data.keywords.folders import DEV_LIST, NOISE_FOLDER, SPLITS, TEST_LIST
from data.manifest import Utterance, write_manifest
from data.synthesis.acoustics import hum
from data.synthesis.card import read_card
from data.synthesis.clips import (
    SpokenClip,
    Unspoken,
    Voice,
    background_babble,
    make_clips,
    voices_of_splits,
)
from data.synthesis.reading import make_sentence, spoken_input
from data.synthesis.synthesiser import COMMAND, Synthesiser, check_installed
from utils.audio.reading import SAMPLE_RATE, write_wav
from utils.cli import not_negative, positive
from utils.config import at_least
from utils.errors import run_command
from utils.files import write_json, write_text

RECIPE = 1  # raise it when the sound of a corpus with the same settings changes

_COMMANDS = """
    打开 关闭 开灯 关灯 开始 停止 暂停 继续
    上一首 下一首 大声 小声 左转 右转 确认 取消
"""
COMMANDS = tuple(_COMMANDS.split())
# Words that are no commands: most begin or end like one, or have its sounds in other tones.
_OTHERS = """
    打卡 打包 打扫 大会 大概 大学 大雪 大厅 大胜 关门 关心 关系 管理 惯例 开门
    开车 开会 开心 开水 凯旋 楷体 台灯 电灯 看灯 等等 开除 可是 凑齐 停车 听说
    听指挥 挺直 暂时 站台 赞成 战胜 继承 记住 急需 季度 上一页 上一次 上衣 上手 下一页
    下一站 下一次 下手 小说 小时 小学 消失 想升 左边 左手 坐船 桌子 右边 右手 又赚
    邮电 友谊 确实 却是 取钱 去年 区县 取笑 今天 明天 你好 谢谢 再见 天气 音乐
    电话 时间 现在 手机 医生 学校 没有 知道 中国 朋友 东西
"""
OTHERS = tuple(_OTHERS.split())

_NOISE_SECONDS = 60
_NOISE_KEY, _OTHERS_KEY = 11, 12  # purposes of random generators
_NOISE_RMS = 0.05


@dataclass(frozen=True)
class CommandSettings:
    """All that the bytes of the corpus depend on, beside the words and this code.

    Attributes:
        voices: of train, dev and test together.
        takes: clips of each command in each voice.
        others: other words that each voice says.
        seed: of voices, prosody and acoustics.
    """

    voices: int = 120
    takes: int = 2
    others: int = 18
    seed: int = 0

    def __post_init__(self):
        at_least(self, "settings", voices=6, takes=1, others=0, seed=0)


SMALL = CommandSettings(voices=24, takes=1, others=8)


def plan_clips(settings: CommandSettings) -> dict[str, list[SpokenClip]]:
    """The clips of each split: every command in every voice, and some of the other words."""
    plan = {}
    for split, voices in voices_of_splits(settings.voices, settings.seed).items():
        plan[split] = [clip for voice in voices for clip in _clips_of(voice, settings)]
    return plan


def generate(
    root: str | Path, settings: CommandSettings, workers: int = 2, command: Sequence[str] = COMMAND
) -> list[Unspoken]:
    """Make the corpus below ``root``, or what is missing of it; a complete one is left as it is.

    Returns:
        What couldn't be said, also in ``unspoken.tsv``; [] for a corpus that was complete already.

    Raises:
        CorpusError: ``root`` holds something else, too few voices, or the synthesiser fails.
    """
    root = Path(root)
    identity = _identity(settings)
    card = root / "corpus.json"
    if read_card(card, identity)["complete"]:
        return []
    if tuple(command) == COMMAND:
        check_installed()
    plan = plan_clips(settings)
    write_json(card, identity | {"complete": False})
    made: dict[str, list[SpokenClip]] = {}
    unspoken: list[Unspoken] = []
    for split in SPLITS:
        made[split], failed = make_clips(plan[split], root, settings.seed, workers, command)
        unspoken += failed
    with Synthesiser(command) as synthesiser:
        write_noises(root / NOISE_FOLDER, plan["train"], settings.seed, synthesiser)
    for split, name in (("dev", DEV_LIST), ("test", TEST_LIST)):
        write_text(root / name, "".join(f"{clip.path}\n" for clip in made[split]))
    write_manifest(root / "manifest.tsv", [_utterance(root, c) for split in SPLITS for c in made[split]])
    lines = [f"{failure.clip.path}\t{failure.reason}\n" for failure in unspoken]
    write_text(root / "unspoken.tsv", "".join(["clip\treason\n", *lines]))
    write_json(card, identity | {"complete": True, "clips": {split: len(made[split]) for split in SPLITS}})
    return unspoken


def _clips_of(voice: Voice, settings: CommandSettings) -> list[SpokenClip]:
    """All that one voice says."""
    rng = np.random.default_rng([settings.seed, _OTHERS_KEY, *voice.name.encode()])
    picked = rng.permutation(len(OTHERS))[: settings.others]
    commands = [
        SpokenClip(word, _spoken(word), voice, take) for word in COMMANDS for take in range(settings.takes)
    ]
    return commands + [SpokenClip(UNKNOWN, _spoken(OTHERS[i]), voice, int(i)) for i in sorted(picked)]


def _spoken(word: str) -> tuple[str, ...]:
    """What the synthesiser is told; of the tones that change in speech, it knows one rule itself."""
    return tuple(spoken_input(make_sentence([word])))


def _utterance(root: Path, clip: SpokenClip) -> Utterance:
    word = OTHERS[clip.number] if clip.label == UNKNOWN else clip.label
    return Utterance(
        id=clip.path.removesuffix(".wav"),
        audio=root.absolute() / clip.path,
        seconds=clip.seconds,
        speaker=clip.voice.name,
        pinyin=clip.syllables,
        hanzi=word,
    )


def write_noises(folder: Path, cast: Sequence[SpokenClip], seed: int, synthesiser: Synthesiser) -> None:
    """A minute each of hiss, rumble, mains hum, steps in a room, and voices.

    Args:
        folder: gets a WAV of each.
        cast: clips whose words the voices say; of these only ``_unknown_`` ones, if there are any.
        seed: of all chance.
        synthesiser: who speaks.
    """
    length = _NOISE_SECONDS * SAMPLE_RATE
    rng = np.random.default_rng([seed, _NOISE_KEY])
    others = [clip for clip in cast if clip.label == UNKNOWN] or list(cast)
    noises = {
        "white": coloured_noise(length, 0.0, rng),
        "pink": coloured_noise(length, 1.0, rng),
        "brown": coloured_noise(length, 2.0, rng),
        "hum": hum(length, rng, SAMPLE_RATE),
        "steps": _steps(length, rng),
        "babble": background_babble(others, synthesiser, voices=8)(rng, length),
    }
    for name, samples in noises.items():
        level = _NOISE_RMS / np.sqrt(np.mean(np.square(samples)))
        write_wav(folder / f"{name}.wav", samples * np.float32(level))


def _steps(length: int, rng: np.random.Generator) -> np.ndarray:
    """Knocks about twice a second in a room, over a little noise: (length,) float32."""
    samples = np.zeros(length, np.float32)
    places = rng.integers(0, length, 2 * _NOISE_SECONDS)
    samples[places] = rng.uniform(0.3, 1.0, len(places))
    wet = add_room(samples, generated_room(0.4, -6.0, rng, SAMPLE_RATE))
    return wet + np.float32(0.2 * np.sqrt(np.mean(np.square(wet)))) * coloured_noise(length, 1.0, rng)


def _identity(settings: CommandSettings) -> dict:
    """The settings, and a hash of them and the words."""
    parts = json.dumps([RECIPE, asdict(settings), COMMANDS, OTHERS], sort_keys=True, ensure_ascii=False)
    digest = hashlib.sha256(parts.encode()).hexdigest()[:16]
    return {"corpus": "spoken commands", "settings": asdict(settings), "hash": digest}


_EXAMPLES = """examples:
  python -m data.synthesis.spoken_commands --output datasets/commands
  python -m data.synthesis.spoken_commands --output /tmp/commands --small
  python -m data.synthesis.spoken_commands --output datasets/commands_300 --voices 300 --takes 3
  python train.py keyword --config configs/keyword/commands.yaml data.folder=datasets/commands
"""


def main(argv: list[str] | None = None) -> int:
    """The command ``python -m data.synthesis.spoken_commands``."""
    options = _parser().parse_args(argv)
    usual = SMALL if options.small else CommandSettings()
    given = {name: getattr(options, name) for name in asdict(usual) if getattr(options, name) is not None}
    settings = CommandSettings(**{**asdict(usual), **given})
    root, start = Path(options.output), time.monotonic()
    unspoken = generate(root, settings, options.workers)
    clips = json.loads((root / "corpus.json").read_text(encoding="utf-8"))["clips"]
    shown = ", ".join(f"{clips[split]:,} {split}" for split in SPLITS)
    print(f"{root}: {len(COMMANDS)} commands, {shown} clips; {time.monotonic() - start:.0f} s")
    for reason, count in Counter(failure.reason for failure in unspoken).items():
        print(f"  {count} clips could not be spoken ({reason}): {root / 'unspoken.tsv'}")
    return 0


def _parser() -> argparse.ArgumentParser:
    usual = CommandSettings()
    parser = argparse.ArgumentParser(
        "python -m data.synthesis.spoken_commands",
        description="Spoken Mandarin commands in many voices, for keyword spotting.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=_EXAMPLES,
    )
    parser.add_argument("--output", required=True, help="folder of the corpus: new, unfinished or complete")
    parser.add_argument("--voices", type=positive, help=f"of all splits together (default: {usual.voices})")
    parser.add_argument("--takes", type=positive, help=f"clips of a word and voice (default: {usual.takes})")
    parser.add_argument(
        "--others", type=not_negative, help=f"other words that each voice says (default: {usual.others})"
    )
    parser.add_argument("--seed", type=not_negative, help=f"default: {usual.seed}")
    parser.add_argument(
        "--small",
        action="store_true",
        help=f"{SMALL.voices} voices, {SMALL.takes} take, {SMALL.others} other words, where not given",
    )
    workers = os.cpu_count() or 1
    parser.add_argument(
        "--workers", type=positive, default=workers, help="default: %(default)s, the CPU's cores"
    )
    return parser


if __name__ == "__main__":
    run_command(main)
