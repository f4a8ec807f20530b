"""Tests of analysis/errors: each error has one kind, its classic confusions and one cause."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein

from analysis.errors.align_all import align_all
from analysis.errors.alignment import Pair
from analysis.errors.attribution import ATTRIBUTIONS
from analysis.errors.confusions import NAMES, count_matrices, named_confusions
from analysis.errors.kinds import HANZI_ERRORS, SYLLABLE_ERRORS, hanzi_error, syllable_error
from analysis.inputs.training_texts import Training
from analysis.inputs.utterance_results import HANZI, LEVELS, SYLLABLES, Scores, UtteranceResult, as_tokens


def _outcome(
    reference: str, output: str, hanzi: str, written: str, gold: str = "", **others
) -> UtteranceResult:
    return UtteranceResult(
        "id", "", 0.0, tuple(reference.split()), tuple(output.split()), hanzi, written, gold, **others
    )


def _blamed(outcome: UtteranceResult) -> dict[str, str | None]:
    """The attribution of each wrong hanzi (of the reference, else of the output)."""
    (aligned,) = align_all([outcome], LEVELS)
    return {p.pair.reference or p.pair.hypothesis: p.attribution for p in aligned.hanzi if p.attribution}


@pytest.mark.parametrize(
    ("reference", "hypothesis", "kind"),
    [
        ("ma1", "ma1", None),
        ("ma1", "ma3", "tone only"),
        ("zhi1", "chi1", "initial only"),
        ("an1", "ang1", "final only"),
        ("qu4", "qi4", "final only"),
        ("zhang1", "zang4", "initial and tone"),
        ("jiu3", "jia4", "final and tone"),
        ("ba1", "mo1", "initial and final"),
        ("ba1", "mo2", "everything"),
        ("[wto]", "mo2", "everything"),
        ("ma1", None, "deletion"),
        (None, "ma1", "insertion"),
    ],
)
def test_kinds_of_syllable_errors(reference, hypothesis, kind):
    assert syllable_error(Pair(reference, hypothesis, 0, 0)) == kind
    assert kind is None or kind in SYLLABLE_ERRORS


@pytest.mark.parametrize(
    ("reference", "hypothesis", "spoken", "recognised", "kind"),
    [
        ("是", "是", "", "", None),
        ("是", "事", "shi4", "shi4", "exact homophone"),
        ("是", "事", "", "", "exact homophone"),
        ("是", "十", "shi4", "shi2", "homophone but for the tone"),
        ("是", "四", "shi4", "si4", "near homophone"),
        ("班", "帮", "ban1", "bang1", "near homophone"),
        ("是", "好", "shi4", "hao3", "other hanzi"),
        ("行", "型", "hang2", "xing2", "polyphone read wrongly"),
        ("长", "掌", "chang2", "zhang3", "polyphone read wrongly"),
        ("好", "号", "hao3", "hao4", "polyphone read wrongly"),
        ("大", "带", "da4", "dai4", "near homophone"),  # dai4 is an unused reading of 大
        ("大", "呆", "da4", "dai1", "other hanzi"),
        ("余", "馀", "yu2", "yu2", "variant character"),
        ("的", "地", "de5", "de5", "variant character"),
        ("她", "他", "ta1", "ta1", "variant character"),
        ("做", "作", "zuo4", "zuo4", "variant character"),
        ("\u8c48", "\uf900", "", "", "variant character"),  # 豈, and its compatibility form
        ("二", "2", "er4", "", "number or Latin form"),
        ("二", "两", "er4", "liang3", "number or Latin form"),
        ("WTO", "双", "", "", "number or Latin form"),
        ("龘", "大", "da2", "da4", "out-of-vocabulary hanzi"),
        ("薄", "博", "bao2", "bo2", "not in the lexicon"),
        ("是", None, "shi4", "", "deletion"),
        (None, "是", "", "shi4", "insertion"),
    ],
)
def test_kinds_of_hanzi_errors(reference, hypothesis, spoken, recognised, kind):
    lexicon = {"bao2": "包"}
    training = Training(hanzi=set("是班行长好大余的她做二薄"), candidates=lambda s: lexicon.get(s, reference))
    assert hanzi_error(Pair(reference, hypothesis, 0, 0), spoken, recognised, training) == kind
    assert kind is None or kind in HANZI_ERRORS


@pytest.mark.parametrize(
    ("reference", "recognised", "hanzi", "names"),
    [
        ("zhang1", "zan4", "", ("zh–z", "an–ang")),
        ("nan2", "lan2", "", ("n–l",)),
        ("fei1", "hui1", "", ("f–h",)),
        ("ren2", "leng2", "", ("r–l", "en–eng")),
        ("xun1", "song1", "", ()),
        ("sun1", "song1", "", ("un–ong",)),
        ("xun2", "xiong2", "", ("ün–iong",)),
        ("jin1", "jing1", "", ("in–ing",)),
        ("guan1", "guang1", "", ("an–ang",)),
        ("mai3", "mai2", "", ("tone 2–3",)),
        ("ni3 hao3", "ni2", "", ("third-tone sandhi",)),
        ("ni2 hao3", "ni3", "", ("third-tone sandhi",)),
        ("ni3 men5", "ni2", "", ("tone 2–3",)),
        ("bu4 shi4", "bu2", "不是", ("一/不 sandhi",)),
        ("bu4 shi4", "bu2", "", ("一/不 sandhi",)),
        ("bu4 hao3", "bu2", "", ()),
        ("yi1 ding4", "yi2", "", ("一/不 sandhi",)),
        ("yi1 ding4", "yi2", "依定", ()),
        ("yi1 tian1", "yi4", "一天", ("一/不 sandhi",)),
        ("zi3", "zi5", "", ("neutral tone",)),
        ("hua1", "huar1", "", ("erhua",)),
        ("ma1", "ma4", "", ()),
        ("ba1", "zi5", "", ()),
    ],
)
def test_classic_confusions_have_names(reference, recognised, hanzi, names):
    syllables = reference.split()
    assert named_confusions(Pair(syllables[0], recognised, 0, 0), syllables, hanzi) == names
    assert set(names) <= set(NAMES)


SYLLABLE_LISTS = st.lists(st.sampled_from(["zhi1", "zi1", "zang4", "an1", "ang1", "er2"]), max_size=8)
TEXTS = st.text(alphabet="是事时十氏好号的地得a", max_size=8)


@settings(max_examples=150)
@given(SYLLABLE_LISTS, SYLLABLE_LISTS, TEXTS, TEXTS)
def test_every_error_has_exactly_one_kind(reference, hypothesis, hanzi, written):
    (aligned,) = align_all(
        [UtteranceResult("", "", 0.0, tuple(reference), tuple(hypothesis), hanzi, written)], LEVELS
    )
    for level, kinds, tokens in (
        (SYLLABLES, SYLLABLE_ERRORS, (reference, hypothesis)),
        (HANZI, HANZI_ERRORS, (as_tokens(hanzi), as_tokens(written))),
    ):
        wrong = [token.kind for token in aligned.tokens(level) if token.kind]
        assert len(wrong) == aligned.counts(level).errors == Levenshtein.distance(*tokens)
        assert set(wrong) <= set(kinds)
        assert wrong.count("insertion") == aligned.counts(level).insertions
        assert wrong.count("deletion") == aligned.counts(level).deletions


def test_acoustic_language_both_repaired():
    outcome = _outcome(
        "ta1 shi4 lao3 shi1 yu2 an1",
        "ta1 shi4 nao3 si1 yu3 ang1",
        "他是老师余安",
        "她是脑师雨昂",
        "她是老师鱼安",
    )
    assert _blamed(outcome) == {
        "他": "language",
        "老": "acoustic",
        "师": "repaired",
        "余": "both",
        "安": "acoustic",
    }


def test_a_right_syllable_with_a_wrong_neighbour_is_attributed_to_the_first_stage():
    assert _blamed(_outcome("shi4 jie4", "shi4 jue2", "世界", "是决", "世界")) == {
        "世": "acoustic",
        "界": "acoustic",
    }
    # Without the gold pass the syllable itself decides.
    assert _blamed(_outcome("shi4 jie4", "shi4 jue2", "世界", "是决")) == {"世": "language", "界": "acoustic"}


def test_insertions_and_deletions_are_attributed_to_the_first_stage():
    assert _blamed(_outcome("ni3 hao3", "ni3 hao3 ma5", "你好", "你好吗", "你好")) == {"吗": "acoustic"}
    assert _blamed(_outcome("ni3 hao3", "ni3", "你好", "你", "你好")) == {"好": "acoustic"}
    assert _blamed(_outcome("ni3 hao3", "ni3", "你好", "你", "你号")) == {"好": "both"}


def test_label_errors_of_the_list():
    spoken = _outcome("ke3 yi3", "ke2 yi3", "可以", "咳以", "可以", spoken_pinyin=("ke2", "yi3"))
    assert _blamed(spoken) == {"可": "label"}
    # The dictionary and the recogniser agree against the list.
    assert _blamed(_outcome("shui4 fu2", "shuo1 fu2", "说服", "硕服", "税服")) == {"说": "label"}
    # The hanzi has no such reading: the error cannot be attributed to the second stage.
    assert _blamed(_outcome("ma1 hao3", "ma1 hao3", "你好", "妈好", "妈好")) == {"你": "label"}


def test_search_where_the_reference_scores_better():
    missed, found = Scores(reference=-3.0, output=-4.0), Scores(reference=-5.0, output=-4.0)
    wrong_syllable = ("ma1", "na1", "妈", "那", "妈")
    assert _blamed(_outcome(*wrong_syllable, speech_scores=missed)) == {"妈": "search"}
    assert _blamed(_outcome(*wrong_syllable, speech_scores=found)) == {"妈": "acoustic"}
    assert _blamed(_outcome(*wrong_syllable, language_scores=missed)) == {"妈": "acoustic"}
    wrong_hanzi = ("shi4", "shi4", "是", "事", "事")
    assert _blamed(_outcome(*wrong_hanzi, language_scores=missed)) == {"是": "search"}
    assert _blamed(_outcome(*wrong_hanzi, language_scores=found)) == {"是": "language"}


def test_errors_without_syllables_have_an_unknown_cause():
    outcome = UtteranceResult("", "", 0.0, (), (), "你好", "你号")
    (aligned,) = align_all([outcome], (HANZI,))
    assert [token.attribution for token in aligned.hanzi] == [None, "unknown"]
    assert aligned.hanzi[1].kind == "exact homophone"
    automatic = UtteranceResult("", "", 0.0, ("ni3", "hao3"), ("ni3", "hao4"), "你好", "你号")
    (aligned,) = align_all([automatic], LEVELS, automatic_pinyin=True)
    assert [token.attribution for token in aligned.hanzi] == [None, None]
    assert set(ATTRIBUTIONS) >= {"acoustic", "language"}


def test_a_latin_word_has_no_syllable_and_the_hanzi_beside_it_have_theirs():
    spoken, written = "wo3 xi3 huan1 shou3 ji1", "我喜欢iPhone手机"
    heard = _outcome(spoken, "wo3 xi3 huan1 shou1 ji1", written, "我喜欢iPhone收机", "我喜欢手机")
    assert _blamed(heard) == {"手": "acoustic"}
    (aligned,) = align_all([heard], LEVELS)
    assert [(token.reference_syllable, token.hypothesis_syllable) for token in aligned.hanzi[3:5]] == [
        ("", ""),
        ("shou3", "shou1"),
    ]
    converted = _outcome(spoken, spoken, written, "我喜欢iPhone首机", "我喜欢首机")
    assert _blamed(converted) == {"手": "language"}
    replaced = _outcome(spoken, "wo3 xi3 huan1 ai4 feng1 shou3 ji1", written, "我喜欢爱疯手机")
    assert sorted(_blamed(replaced).values()) == ["acoustic", "unknown"]
    misread = _outcome("wo3 de5 shui4 fu2", "wo3 de5 shuo1 fu2", "我的iPhone说服", "我的硕服")
    assert _blamed(misread) == {"iPhone": "unknown", "说": "label"}


def test_matrices_count_every_pair():
    pairs = [
        Pair("ma1", "na2", 0, 0),
        Pair("ma1", "ma1", 1, 1),
        Pair("an4", None, 2, None),
        Pair("[a]", "ma1", 3, 2),
    ]
    initial, final, tone = count_matrices(pairs)
    assert initial.labels == ("m", "n", "∅", "")
    assert initial.counts == ((1, 1, 0, 0), (0, 0, 0, 0), (0, 0, 0, 1), (0, 0, 0, 0))
    assert final.labels == ("a", "an", "")
    assert tone.counts[tone.labels.index("1")][tone.labels.index("2")] == 1
