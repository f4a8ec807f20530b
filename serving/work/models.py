"""What a worker computes: recognises pieces of audio and converts pinyin, with models loaded once.

Requests with words or phrases of their own share the models: what differs is a small object on top, and the
last few of these are kept.
"""

import re
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any, Self

import numpy as np

from model_language.converters.user_word_converter import UserWordConverter
from model_language.pinyin_to_hanzi import ConvertedLine, PinyinToHanzi
from model_language.punctuation import Punctuation, load_punctuation
from model_language.registry import load_converter, load_second_pass
from model_language.search.user_words import UserWord, UserWords, parse_user_words, without_comment
from model_speech.acoustic_logits import AcousticLogits, load_acoustic_logits
from recognition.confidence import Calibration, load_calibration
from recognition.live.loading import load_first_pass, load_live_stream
from recognition.live.punctuated_stream import PunctuatedStream
from recognition.live.two_pass_stream import TwoPassStream
from recognition.loading import load_joint_search_for, load_language_model_for
from recognition.options import PHRASE_THRESHOLD
from recognition.phrases.grammar import parse_grammar
from recognition.phrases.phrase_list import list_phrases
from recognition.phrases.search import PhraseSearch
from recognition.recognizer import Recognizer
from serving.work.uploads import SoundPiece
from streaming.speech.recognizer import LiveStream
from utils.errors import ConfigError, CorpusError, UserError
from utils.hypotheses.recognition import Recognition
from utils.mandarin.latin_readings import spelling_readings
from utils.mandarin.pinyin import is_syllable
from utils.run_folder.run import PRETRAINED_LANGUAGE_MODEL, PRETRAINED_STREAMING

_KEPT = 16  # recognizers and converters with words or phrases of requests
_LONGEST_WORD = 4  # hanzi; a longer text in a prompt is a sentence
_SHORTEST_OF_SENTENCE = 3  # hanzi; shorter words of sentences are mostly frequent ones, which need no help
_HANZI, _LATIN = r"[\u3400-\u9fff\U00020000-\U0003ffff]", r"[A-Za-z0-9]*[A-Za-z][A-Za-z0-9]*"
# Short words with both (T恤, 卡拉OK) between other characters; hanzi; Latin letters (AT&T, C++).
_STRETCH = re.compile(
    rf"(?P<mixed>(?<!\w)(?:{_LATIN}{_HANZI}{{1,2}}|{_HANZI}{{1,2}}{_LATIN})(?!\w))"
    rf"|(?P<hanzi>{_HANZI}+)|[A-Za-z0-9]+(?:&[A-Za-z0-9]+)*\+*"
)
# Characters that are words by themselves, not parts of names.
_PARTICLES = frozenset("的地得了着过在是有和与或对把被从向到给就都也还不没很我你他她它们这那个请去来说")
_PHRASES = "phrases"
_WARM_ROWS = 20  # rows of logits


@dataclass(frozen=True)
class Search:
    """What a request wants to be recognised.

    Attributes:
        words: user words, as in a file of ``--words``.
        prompt: any text, whose words are user words, see :func:`prompt_words`.
        phrases: the text of a phrase file: only these are recognised. Empty: anything is.
        threshold: least probability that a phrase of the list was spoken.
        n_best: hypotheses, or phrases, of each segment.
    """

    words: str = ""
    prompt: str = ""
    phrases: str = ""
    threshold: float = PHRASE_THRESHOLD
    n_best: int = 1


@dataclass(frozen=True, eq=False)
class RecogniseJob:
    """A piece of audio, and how it is to be recognised."""

    piece: SoundPiece
    search: Search


@dataclass(frozen=True)
class ConvertJob:
    """Lines of pinyin to convert; see :class:`~model_language.pinyin_to_hanzi.PinyinToHanzi`.

    Attributes:
        first_number: number of the first line, for messages.
    """

    lines: tuple[str, ...]
    n_best: int
    words: str
    strict: bool
    recognised: bool
    second_pass: bool
    first_number: int = 1


@dataclass(frozen=True)
class Failure:
    """Why a job could not be done: an error of the user, unless ``internal``."""

    problem: str
    hint: str | None = None
    where: str | None = None
    internal: bool = False

    @classmethod
    def of(cls, error: UserError) -> "Failure":
        """A failure with the texts of an error."""
        return cls(error.message, error.hint, None if error.where is None else str(error.where))

    @property
    def message(self) -> str:
        """What is wrong, and where."""
        return f"{self.problem} ({self.where})" if self.where else self.problem


@dataclass(frozen=True, eq=False)
class _SpeechModel:
    """A speech run, and what is loaded from it."""

    run: Path
    acoustic: AcousticLogits
    calibration: Calibration

    @classmethod
    def load(cls, run: Path) -> Self:
        return cls(run, load_acoustic_logits(run), load_calibration(run))


class Models:
    """The models of a worker: the language models at once, each network when it is needed first.

    Args:
        speech, language: run folders.

    Raises:
        UserError: a run is damaged or of another kind.
    """

    def __init__(self, speech: Path, language: Path):
        self._run, self._converter = speech, load_converter(language)
        self._language_model = load_language_model_for(speech)
        self._kept: OrderedDict[Hashable, Any] = OrderedDict()

    def load_networks(self) -> float:
        """Load what the first recording and the first live stream need; again, it takes a moment.

        Returns:
            Latency of a live stream in seconds.

        Raises:
            UserError: a network is damaged.
        """
        recognizer = self.recognizer(Search())
        # Some tables are made with the first utterance.
        shape = _WARM_ROWS, len(recognizer.acoustic.vocabulary)
        recognizer.segments_of_logits(np.random.default_rng(0).normal(0, 9, shape), 0, 1)
        return self.live_stream(Search()).look_ahead_seconds

    @property
    def sample_rate(self) -> int:
        """Hz, of the pieces."""
        return self._speech.acoustic.features.sample_rate

    def compute(self, jobs: Sequence[Any]) -> list[list[Recognition] | list[ConvertedLine] | Failure]:
        """The result of each job; those that are recognised in the same way are one batch."""
        results: list[Any] = [None] * len(jobs)
        groups: dict[Search, list[int]] = {}
        for index, job in enumerate(jobs):
            if isinstance(job, RecogniseJob):
                groups.setdefault(job.search, []).append(index)
            else:
                results[index] = _caught(partial(self._convert, job))
        for search, indices in groups.items():
            found = _caught(lambda: self._recognise([jobs[index].piece for index in indices], search))  # noqa: B023
            for row, index in enumerate(indices):
                results[index] = found if isinstance(found, Failure) else found[row]
        return results

    def _recognise(self, pieces: Sequence[SoundPiece], search: Search) -> list[list[Recognition]]:
        recognizer = self.recognizer(search)
        return recognizer.recognise_pieces([recognizer.piece(piece.start, piece.samples) for piece in pieces])

    def recognizer(self, search: Search) -> Recognizer:
        """What recognises in this way; the last few are kept.

        Raises:
            UserError: the words or phrases can't be used.
        """
        return self._recognizer(search, self._speech)

    def live_stream(self, search: Search, second_pass: bool = True) -> LiveStream:
        """A new stream that recognises live audio in this way.

        Args:
            search: what is to be recognised.
            second_pass: whether a model of whole utterances reads each of them again; False: the text of the
                streaming model is final.

        Raises:
            UserError: the words or phrases can't be used, or there is no streaming model of this sample rate.
        """
        recognizer = self.recognizer(search)
        acoustic = self._streaming.acoustic
        first_pass = self._cached(("first pass", search), lambda: load_first_pass(recognizer, acoustic))
        stream = load_live_stream(self._run, recognizer, first_pass)
        if not second_pass and isinstance(stream, TwoPassStream):
            if not first_pass:
                raise ConfigError(
                    f"there is no streaming model for {self.sample_rate} Hz", hint="leave out second_pass"
                )
            recognizer = self._recognizer(search, self._streaming)
            stream = load_live_stream(PRETRAINED_STREAMING, recognizer, None)
        return stream if search.phrases else PunctuatedStream(stream, self._punctuation)

    @cached_property
    def _speech(self) -> _SpeechModel:
        return _SpeechModel.load(self._run)

    @cached_property
    def _punctuation(self) -> Punctuation:
        return load_punctuation()

    @cached_property
    def _streaming(self) -> _SpeechModel:
        return _SpeechModel.load(PRETRAINED_STREAMING)

    def _recognizer(self, search: Search, speech: _SpeechModel) -> Recognizer:
        return self._cached((search, speech.run), lambda: self._new_recognizer(search, speech))

    def _new_recognizer(self, search: Search, speech: _SpeechModel) -> Recognizer:
        if search.phrases:
            listed = list_phrases(parse_grammar(search.phrases, _PHRASES))
            phrases = PhraseSearch(
                listed, speech.acoustic.vocabulary, search.threshold, search.n_best, _PHRASES
            )
            return Recognizer(
                speech.acoustic, n_best=search.n_best, phrases=phrases, calibration=speech.calibration
            )
        own = (
            parse_user_words(search.words).words
            + prompt_words(search.prompt, self._converter.word_starts).words
        )
        words = UserWordConverter(self._converter, UserWords(own))
        joint = load_joint_search_for(speech.run, words, language_model=self._language_model)
        return Recognizer(
            speech.acoustic,
            words,
            n_best=search.n_best,
            joint=joint,
            calibration=speech.calibration,
        )

    def _convert(self, job: ConvertJob) -> list[ConvertedLine]:
        key = (job.words, job.strict, job.recognised, job.second_pass)
        to_hanzi = self._cached(key, lambda: self._to_hanzi(*key))
        return to_hanzi.explain(job.lines, job.n_best, job.first_number)

    def _to_hanzi(self, words: str, strict: bool, recognised: bool, rescored: bool) -> PinyinToHanzi:
        model = self._language_model or PRETRAINED_LANGUAGE_MODEL
        second_pass = load_second_pass(language_model=model) if rescored else None
        return PinyinToHanzi(self._converter, parse_user_words(words), strict, recognised, second_pass)

    def _cached(self, key: Hashable, make: Callable[[], Any]) -> Any:
        if key not in self._kept:
            self._kept[key] = make()
            if len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        return self._kept[key]


def prompt_words(text: str, word_starts: Callable[[str], Sequence[int]]) -> UserWords:
    """The user words in a prompt.

    A line with a word and its pinyin or a weight is one, as in a file of user words. OpenAI's clients send
    any text: of other lines, the stretches of up to four hanzi between other characters are words, and so are
    the words of three hanzi or more in longer stretches, and Latin words that have a reading.

    Args:
        text: the prompt.
        word_starts: positions at which the words of a text in hanzi begin.
    """
    words: list[UserWord] = []
    for line in map(without_comment, text.splitlines()):
        lines = [line]
        fields = line.split()
        if len(fields) < 2 or all(map(is_syllable, fields)) or not _is_word(line):
            lines = list(filter(_is_word, _words_of_sentence(line, word_starts)))
        words += parse_user_words("\n".join(lines)).words
    return UserWords(words)


def _words_of_sentence(line: str, word_starts: Callable[[str], Sequence[int]]) -> Iterator[str]:
    for found in _STRETCH.finditer(line):
        stretch = found[0]
        if found["mixed"]:
            yield stretch
            continue
        if not found["hanzi"]:
            readings = spelling_readings(stretch)
            if readings and len(readings[0]) > 1 and not stretch.isdecimal():
                yield stretch
        elif len(stretch) <= _LONGEST_WORD:
            yield stretch
        else:
            parts = [stretch[start:end] for start, end in pairwise([*word_starts(stretch), len(stretch)])]
            # Characters that are no words of the dictionary, one after the other, are probably a name.
            for is_part, group in groupby(parts, lambda part: len(part) == 1 and part not in _PARTICLES):
                words = list(group)
                words = ["".join(words)] if is_part else words
                yield from (word for word in words if len(word) >= _SHORTEST_OF_SENTENCE)


def _is_word(line: str) -> bool:
    try:
        return bool(parse_user_words(line).words)
    except CorpusError:
        return False


def _caught(compute: Callable[[], Any]) -> Any:
    try:
        return compute()
    except UserError as error:
        return Failure.of(error)
