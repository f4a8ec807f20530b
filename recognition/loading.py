"""Loads the models of a recognizer from run folders, and joins them as options specify.

Packed runs load without TensorFlow.
"""

from functools import partial
from pathlib import Path

from model_language.converters.user_word_converter import AnyConverter
from model_language.language_model import RESCORING, HanziLanguageModel
from model_language.ngram.syllables import load_syllable_ngram
from model_language.punctuation import load_punctuation
from model_language.registry import (
    load_converter_with,
    load_hanzi_model,
    load_joint_search,
    needs_syllable_ngram,
)
from model_language.search.joint import JointSearch
from model_language.search.sequences import SequenceSearch
from model_speech.acoustic_logits import load_acoustic_logits
from model_speech.ctc.shallow_fusion import Fusion
from recognition.confidence import load_calibration
from recognition.live.loading import new_live_stream
from recognition.options import SearchOptions
from recognition.phrases.search import load_phrases
from recognition.recognizer import Recognizer
from utils.run_folder.run import PRETRAINED_LANGUAGE_MODEL, SEARCH, RunFolder
from utils.vocabulary import BLANK, SPACE, Vocabulary


def load_recognizer(speech: Path, language: Path | None, search: SearchOptions) -> Recognizer:
    """Load the models of both stages, and the searches that the options ask for.

    Args:
        speech: run of the acoustic model.
        language: run of the converter; None gives syllables only. A search for phrases needs none.
        search: the settings of the searches.

    Raises:
        RunError: a run is damaged or of another kind.
        PhraseError: the phrase file is wrong.
        ConfigError: the options contradict each other.
    """
    converter = load_converter_with(search.words, language) if language and not search.phrases else None
    joint = None
    if converter and search.joint:
        joint = load_joint_search_for(
            speech,
            converter,
            syllables=search.syllables,
            language=search.language_weight,
            bonus=search.joint_bonus,
            rescoring=search.rescoring_weight,
            language_model=search.language_model,
        )
    acoustic = load_acoustic_logits(speech)
    return Recognizer(
        acoustic,
        converter,
        beam=search.beam_width,
        n_best=search.n_best,
        fusion=load_fusion(search, acoustic.vocabulary),
        joint=joint,
        workers=search.workers,
        phrases=load_phrases(search, acoustic.vocabulary) if search.phrases else None,
        calibration=load_calibration(speech),
        minimum_confidence=search.minimum_confidence,
        new_stream=partial(new_live_stream, speech),
        punctuation=load_punctuation() if converter and search.punctuation else None,
    )


def load_joint_search_for(
    run: Path,
    converter: AnyConverter,
    *,
    syllables: str | Path | None = None,
    language: float | None = None,
    bonus: float | None = None,
    rescoring: float | None = None,
    language_model: Path | HanziLanguageModel | None = None,
) -> JointSearch | SequenceSearch:
    """A joint search with the weights that suit an acoustic model.

    Args:
        run: the speech run; its config may have weights chosen on dev speakers, as
            ``search: {language_weight: W, joint_bonus: B, rescoring_weight: R}``. An adapted run has those of
            its initial run.
        converter, syllables, language, bonus, rescoring: as for
            :func:`model_language.registry.load_joint_search`.
        language_model: a run of ``causal_cnn``, or the loaded model; None: the one that comes with this
            project, where ``rescoring`` or the config of the speech run gives it a weight.

    Raises:
        RunError: a run is damaged or of another kind.
    """
    if syllables is None or not needs_syllable_ngram(converter):  # with it, other weights suit
        chosen = RunFolder(run).config().get(SEARCH) or {}
        language = chosen.get("language_weight") if language is None else language
        bonus = chosen.get("joint_bonus") if bonus is None else bonus
        rescoring = chosen.get("rescoring_weight") if rescoring is None else rescoring
    if rescoring is None and language_model:
        rescoring = RESCORING
    model = load_hanzi_model(language_model or PRETRAINED_LANGUAGE_MODEL) if rescoring else None
    return load_joint_search(converter, syllables, language, bonus, rescoring, model)


def load_language_model_for(run: Path) -> HanziLanguageModel | None:
    """The language model that :func:`load_joint_search_for` loads for a speech run by default.

    Raises:
        RunError: it is missing or damaged.
    """
    chosen = RunFolder(run).config().get(SEARCH) or {}
    return load_hanzi_model(PRETRAINED_LANGUAGE_MODEL) if chosen.get("rescoring_weight") else None


def load_fusion(search: SearchOptions, vocabulary: Vocabulary) -> Fusion | None:
    """The language model of ``--syllables`` for the beam search; None without it or with weight 0.

    The insertion bonus compensates for the language model, and is of no use without it.

    Raises:
        RunError: the run is of another kind, or damaged.
    """
    if not search.syllables or not search.fusion_weight:
        return None
    model = load_syllable_ngram(search.syllables)
    ids = model.ids(vocabulary.tokens)
    ids[[token in (SPACE, BLANK) for token in vocabulary.tokens]] = -1
    return Fusion(model, ids, search.fusion_weight, search.insertion_bonus)
