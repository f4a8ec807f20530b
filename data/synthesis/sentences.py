"""Makes the sentences of synthetic speech: draws them from a grammar, or reads the user's own text.

A grammar consists of word lists and rules. A sentence is drawn by choosing one alternative of every rule that
it uses: each word occurs often enough to be learnt, but whole sentences are hardly ever repeated, because
there are tens of millions of them.
"""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from data.synthesis.reading import Sentence, make_sentence
from utils.errors import CorpusError
from utils.mandarin.pinyin import hanzi_to_pinyin, is_hanzi, is_syllable, normalise_syllable

GRAMMAR_PATH = Path(__file__).with_name("grammar.txt")
MIN_SYLLABLES, MAX_SYLLABLES = 4, 16  # sentences of the grammar with fewer or more are not used
MAX_TEXT_SYLLABLES = 40  # longer lines of the user's text are left out: about ten seconds of speech
_DOMAIN = "sentence."
_MOST_ATTEMPTS = 50  # drawn sentences for each that is new and neither too short nor too long


@dataclass(frozen=True)
class Grammar:
    """``rules[name]`` are the alternatives of a rule, tuples of words and ``<name>`` references."""

    rules: dict[str, tuple[tuple[str, ...], ...]]

    @property
    def domains(self) -> tuple[str, ...]:
        """The rules of whole sentences."""
        return tuple(name for name in self.rules if name.startswith(_DOMAIN))


def read_grammar(path: str | Path = GRAMMAR_PATH) -> Grammar:
    """Read a grammar file in the format that ``grammar.txt`` describes."""
    rules: dict[str, list[tuple[str, ...]]] = {}
    kind, current = "", []
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        if header := re.fullmatch(r"(\S+) ([:=])", line):
            current, kind = rules.setdefault(header[1], []), header[2]
        else:
            current.extend([tuple(line.split())] if kind == ":" else [(word,) for word in line.split()])
    return Grammar({name: tuple(alternatives) for name, alternatives in rules.items()})


class Drawer:
    """Draws expansions of rules; each rule uses all its alternatives, shuffled, before it repeats one.

    So no word of a list is missing by chance, and a sentence rarely compares a thing with itself.
    """

    def __init__(self, grammar: Grammar, rng: np.random.Generator):
        self.grammar, self.rng = grammar, rng
        self._remaining: dict[str, list[int]] = {}

    def expand(self, name: str) -> list[str]:
        """Draw an expansion of the rule ``name``: words and pauses."""
        alternatives = self.grammar.rules[name]
        if not self._remaining.get(name):
            self._remaining[name] = self.rng.permutation(len(alternatives)).tolist()
        return [
            word
            for item in alternatives[self._remaining[name].pop()]
            for word in (self.expand(item[1:-1]) if item[0] == "<" else [item])
        ]


def draw_sentences(count: int, seed: int, grammar: Grammar | None = None) -> list[Sentence]:
    """Draw ``count`` distinct sentences; the same seed gives the same sentences in the same order.

    A smaller ``count`` gives the first sentences of a longer list. The domains take turns.

    Raises:
        CorpusError: the grammar does not have enough sentences.
    """
    grammar = grammar or read_grammar()
    drawer, attempts = Drawer(grammar, np.random.default_rng([seed, 0x7E87])), 0
    sentences: dict[str, Sentence] = {}
    while len(sentences) < count:
        attempts += 1
        if attempts > _MOST_ATTEMPTS * count:
            raise CorpusError(f"the grammar hardly has {count} sentences", hint="ask for fewer")
        domain = grammar.domains[len(sentences) % len(grammar.domains)]
        sentence = make_sentence(drawer.expand(domain))
        if MIN_SYLLABLES <= len(sentence.pinyin) <= MAX_SYLLABLES:
            sentences.setdefault(sentence.hanzi, sentence)
    return list(sentences.values())


def read_sentences(path: str | Path) -> tuple[list[Sentence], list[tuple[int, str]]]:
    """Read the user's own text: lines of ``pinyin<TAB>hanzi``, or of hanzi, with pypinyin's reading.

    Punctuation becomes a pause.

    Returns:
        The distinct sentences in the order of the file, and ``(line number, reason)`` of every line left out.

    Raises:
        CorpusError: the file can't be read or has no usable line.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise CorpusError(
            f"can't read the text: {error}", where=path, hint="give a UTF-8 text file"
        ) from error
    sentences: dict[str, Sentence] = {}
    rejected: list[tuple[int, str]] = []
    for number, line in enumerate(lines, 1):
        sentence = _sentence_of_line(line)
        if isinstance(sentence, str):
            rejected.append((number, sentence))
        elif sentence.hanzi in sentences:
            rejected.append((number, "duplicate sentence"))
        else:
            sentences[sentence.hanzi] = sentence
    if not sentences:
        raise CorpusError(
            "no line can be spoken",
            where=path,
            hint="write one sentence per line, as pinyin<TAB>hanzi or hanzi",
        )
    return list(sentences.values()), rejected


def _sentence_of_line(line: str) -> Sentence | str:
    """The sentence of one line of the user's text, or the reason why it has none."""
    reading, _, text = line.rpartition("\t")
    parts = [part for part in re.split(r"[\s，。！？；：、,.!?;:“”‘’「」《》（）()…—-]+", text) if part]
    hanzi = "".join(parts)
    if not is_hanzi(hanzi):
        return "characters that are not hanzi" if hanzi else "empty"
    if len(hanzi) > MAX_TEXT_SYLLABLES:
        return f"{len(hanzi)} syllables, more than {MAX_TEXT_SYLLABLES}"
    try:
        pinyin = [normalise_syllable(s) for s in reading.split()] if reading else hanzi_to_pinyin(hanzi)
    except CorpusError as error:
        return str(error)
    if len(pinyin) != len(hanzi) or not all(map(is_syllable, pinyin)):
        return f"syllables and hanzi differ in number: {len(pinyin)} and {len(hanzi)}"
    if mute := [syllable for syllable in pinyin if not re.search("[aoeiuv]", syllable)]:
        return f"the synthesiser can't say {mute[0]}"  # 嗯, 呒: syllables without a vowel
    ends = np.cumsum([len(part) for part in parts])[:-1]
    return Sentence(tuple(parts), tuple(pinyin), tuple(int(end) for end in ends))
