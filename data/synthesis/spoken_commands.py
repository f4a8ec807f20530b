"""Generates a corpus of spoken Mandarin commands: sixteen words in many voices, a folder for each word.

A synthesiser says sixteen commands, some of them easily confused, and other words that begin or end like
them (``_unknown_``); ``_background_noise_`` holds noise without words. The voices of dev and test are in no
other split: ``validation_list.txt`` and ``testing_list.txt`` list their clips, ``manifest.tsv`` has their
words and speakers. The same settings give the same bytes; an interrupted run continues.
"""

from utils.command.entry import run_command

import json
import time
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from data.keywords.clips import UNKNOWN
from data.manifest import SPLITS, Utterance, write_manifest
from data.synthesis.clips import SpokenClip, make_splits, write_background_noise
from data.synthesis.corpus_card import CorpusCard
from data.synthesis.reading import make_sentence, spoken_input
from data.synthesis.synthesiser import Unspoken
from data.synthesis.voices import Voice, assign_all_voices
from utils.command.arguments import add_workers
from utils.command.parser import CommandParser

RECIPE = 1  # raise it when the sound of a corpus with the same settings changes

_COMMANDS = """
    打开 关闭 开灯 关灯 开始 停止 暂停 继续
    上一首 下一首 大声 小声 左转 右转 确认 取消
"""
COMMANDS = tuple(_COMMANDS.split())
# Words that are not commands: most begin or end like one, or have its syllables in other tones.
_OTHERS = """
    打卡 打包 打扫 大会 大概 大学 大雪 大厅 大胜 关门 关心 关系 管理 惯例 开门
    开车 开会 开心 开水 凯旋 楷体 台灯 电灯 看灯 等等 开除 可是 凑齐 停车 听说
    听指挥 挺直 暂时 站台 赞成 战胜 继承 记住 急需 季度 上一页 上一次 上衣 上手 下一页
    下一站 下一次 下手 小说 小时 小学 消失 想升 左边 左手 坐船 桌子 右边 右手 又赚
    邮电 友谊 确实 却是 取钱 去年 区县 取笑 今天 明天 你好 谢谢 再见 天气 音乐
    电话 时间 现在 手机 医生 学校 没有 知道 中国 朋友 东西
"""
OTHERS = tuple(_OTHERS.split())

_OTHERS_KEY = 12  # purpose of a random generator


@dataclass(frozen=True)
class CommandSettings:
    """Everything that determines the bytes of the corpus, beside the words and this code.

    Attributes:
        voices: number of voices of train, dev and test together.
        takes: number of clips of each command in each voice.
        others: number of other words that each voice speaks.
        seed: seed of voices, prosody and acoustics.
    """

    voices: int = 120
    takes: int = 2
    others: int = 18
    seed: int = 0


SMALL = CommandSettings(voices=24, takes=1, others=8)


def plan_clips(settings: CommandSettings) -> dict[str, list[SpokenClip]]:
    """Plan the clips of each split: every command in every voice, and some of the other words."""
    return {
        split: [clip for voice in voices for clip in _plan_voice(voice, settings)]
        for split, voices in assign_all_voices(settings.voices, settings.seed).items()
    }


def generate(root: str | Path, settings: CommandSettings, workers: int = 2) -> list[Unspoken[SpokenClip]]:
    """Generate the corpus in ``root``, or what is missing of it; a complete one is left unchanged.

    Returns:
        The clips that could not be spoken, also in ``unspoken.tsv``; [] for a corpus that was complete.

    Raises:
        CorpusError: ``root`` holds something else, too few voices, or the synthesiser fails.
    """
    root = Path(root)
    card = CorpusCard(
        root,
        identity={"corpus": "spoken commands", "settings": asdict(settings)},
        parts=[RECIPE, asdict(settings), COMMANDS, OTHERS],
    )
    if card.is_complete():
        return []
    card.start()
    plan = plan_clips(settings)
    groups = {split: [clips] for split, clips in plan.items()}
    made, unspoken = make_splits(groups, root, settings.seed, workers)
    others = [clip for clip in plan["train"] if clip.label == UNKNOWN]
    write_background_noise(root, others or plan["train"], settings.seed)
    utterances = [_utterance(root, clip) for split in SPLITS for clip in made[split]]
    write_manifest(root / "manifest.tsv", utterances)
    card.finish(clips={split: len(made[split]) for split in SPLITS})
    return unspoken


def _plan_voice(voice: Voice, settings: CommandSettings) -> list[SpokenClip]:
    """Plan all clips of one voice."""
    rng = np.random.default_rng([settings.seed, _OTHERS_KEY, *voice.name.encode()])
    picked = rng.permutation(len(OTHERS))[: settings.others]
    commands = [
        SpokenClip(word, _spoken(word), voice, take) for word in COMMANDS for take in range(settings.takes)
    ]
    return commands + [SpokenClip(UNKNOWN, _spoken(OTHERS[i]), voice, int(i)) for i in sorted(picked)]


def _spoken(word: str) -> tuple[str, ...]:
    """The syllables for the synthesiser."""
    return spoken_input(make_sentence([word]))


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


_EXAMPLES = """examples:
  python -m data.synthesis.spoken_commands --output datasets/commands
  python -m data.synthesis.spoken_commands --output /tmp/commands --small
  python train.py keyword --config configs/keyword/commands.yaml data.folder=datasets/commands
"""


def main(argv: list[str] | None = None) -> int:
    """The command ``python -m data.synthesis.spoken_commands``."""
    options = _parser().parse_args(argv)
    settings = SMALL if options.small else CommandSettings()
    root, start = Path(options.output), time.monotonic()
    unspoken = generate(root, settings, options.workers)
    clips = json.loads((root / "corpus.json").read_text(encoding="utf-8"))["clips"]
    shown = ", ".join(f"{clips[split]:,} {split}" for split in SPLITS)
    print(f"{root}: {len(COMMANDS)} commands, {shown} clips; {time.monotonic() - start:.0f} s")
    for reason, count in Counter(failure.reason for failure in unspoken).items():
        print(f"  {count} clips could not be spoken ({reason}): {root / 'unspoken.tsv'}")
    return 0


def _parser() -> CommandParser:
    parser = CommandParser(
        description="Spoken Mandarin commands in many voices, for keyword spotting.",
        epilog=_EXAMPLES,
    )
    parser.add_argument("--output", required=True, help="folder of the corpus: new, unfinished or complete")
    parser.add_argument(
        "--small", action="store_true", help=f"{SMALL.voices} voices instead of {CommandSettings().voices}"
    )
    add_workers(parser)
    return parser


if __name__ == "__main__":
    run_command(main)
