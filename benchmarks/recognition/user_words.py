"""Measures user words with Latin letters and rare names: how many are found, and what else they change.

    python -m benchmarks.recognition.user_words

30 words, each in five sentences by the synthesiser's voices that the shipped models understand best; letters
have the names that Mandarin speakers give them. Then people (Common Voice, dev): the titles of Wikipedia in
their sentences. ``changed``: characters outside the words that are right without user words, wrong with them.
"""

from utils.command.entry import run_command

import lzma
import re
from collections.abc import Sequence
from itertools import product
from tempfile import NamedTemporaryFile

import numpy as np
from rapidfuzz.distance import Levenshtein

from benchmarks.recognition.phrases import read_clips
from benchmarks.support.shared_lists import SHARED
from data.synthesis.speech import speak
from data.synthesis.synthesiser import Synthesiser
from data.synthesis.voices import Voice
from recognition import load
from utils.audio.reading import read_audio
from utils.command.parser import CommandParser
from utils.mandarin.latin_readings import spelling_readings
from utils.mandarin.pinyin import hanzi_to_pinyin
from utils.text_table import print_table

LATIN = "WiFi 5G iPhone K歌 T恤 CT PPT GPS USB VIP KTV U盘 4S店 QQ APP"
NAMES = "圣尼各老 欧阳懿 缪沛霖 瞿秋旻 亓官婧 阚清子 逄锦聚 禤振宇 佴淑媛 璩美凤 邬君梅 仝卓 婺源 亳州 歙砚"
THINGS = "我今天想用一下{}可以吗 这个{}是昨天刚买的 大家都觉得{}非常好 请问哪里有{}呢 老师告诉我们{}很重要"
PEOPLE = "我昨天在路上遇到了{} 大家都说{}非常好 请问{}在什么地方 老师给我们介绍了{} 今年夏天{}的照片很美"
VOICES, SPEED, SEED = ("quincy", "Mike", "croak", "m3", "iven4"), (120, 140), 54
COLUMNS = ("words", "spoken", "found before", "found", "changed", "words elsewhere")
Spoken = tuple[np.ndarray, str, list[str]]  # a recording, its text, the user words in it


def main() -> None:
    """Print the table."""
    _parser().parse_args()
    said = [_synthesised(LATIN, THINGS), _synthesised(NAMES, PEOPLE), _people()]
    titles = sorted({word for *_, words in said[2] for word in words})
    names, listed = ("Latin letters", "rare names", "titles, people"), f"{LATIN} {NAMES}".split()
    print_table("user words", COLUMNS, list(map(_row, names, said, (listed, listed, titles))))


def _parser() -> CommandParser:
    return CommandParser(description=__doc__)


def _row(name: str, spoken: Sequence[Spoken], listed: Sequence[str]) -> tuple[str, ...]:
    before, found = _recognised(spoken, []), _recognised(spoken, listed)
    uses = others = changed = elsewhere = 0
    hits = np.zeros(2, int)
    for (_, text, words), *texts in zip(spoken, before, found, strict=True):
        right, still = (_right(text, hypothesis, words) for hypothesis in texts)
        uses, hits = uses + len(words), hits + [sum(word in each for word in words) for each in texts]
        others, changed = others + len(_without(text, words)), changed + len(right - still)
        elsewhere += sum(word in texts[1] and word not in text for word in listed)
    return name, str(uses), *map("{:.1%}".format, (*hits / uses, changed / others)), str(elsewhere)


def _recognised(spoken: Sequence[Spoken], words: Sequence[str]) -> list[str]:
    with NamedTemporaryFile("w", encoding="utf-8") as file:
        print(*words, sep="\n", file=file, flush=True)
        recognizer = load(words=file.name)
    return [recognizer.transcribe(samples, recognizer.sample_rate).hanzi for samples, *_ in spoken]


def _right(text: str, hypothesis: str, words: Sequence[str]) -> set[int]:
    """The indices of the characters outside the words that a hypothesis has."""
    steps = Levenshtein.opcodes(*(_without(each, words) for each in (text, hypothesis)))
    return {i for step in steps if step.tag == "equal" for i in range(step.src_start, step.src_end)}


def _without(text: str, words: Sequence[str]) -> str:
    return re.sub("|".join(words) or "$^", "", text)


def _synthesised(words: str, sentences: str) -> list[Spoken]:
    found: list[Spoken] = []
    with Synthesiser() as synthesiser:
        for word, (sentence, voice) in product(words.split(), zip(sentences.split(), VOICES, strict=True)):
            before, after = (hanzi_to_pinyin(part) if part else [] for part in sentence.split("{}"))
            syllables = [*before, *(options[0] for options in spelling_readings(word)[0]), *after]
            rng = np.random.default_rng([SEED, *divmod(len(found), len(VOICES))])
            samples = speak(syllables, (), Voice(voice, voice), rng, synthesiser, SPEED)
            found.append((samples, sentence.format(word), [word]))
    return found


def _people() -> list[Spoken]:
    clips = read_clips(SHARED / "audio" / "common_voice_zh" / "dev.tsv")
    parts = {c.text[i : i + n] for c in clips for n in range(3, 7) for i in range(len(c.text) - n + 1)}
    with lzma.open(SHARED / "words" / "wikipedia_titles.txt.xz", "rt", encoding="utf-8") as titles:
        title = re.compile("|".join(sorted(parts & set(titles.read().split()), key=len, reverse=True)))
    return [(read_audio(clip.audio), clip.text, title.findall(clip.text)) for clip in clips]


if __name__ == "__main__":
    run_command(main)
