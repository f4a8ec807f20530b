"""Tests of the report's page: complete, escaped; sorts, filters and plays in a browser."""

import html
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from analysis.errors.confusions import Matrix
from analysis.errors.kinds import KINDS
from analysis.inputs.utterance_results import HANZI, SYLLABLES
from analysis.page.charts import heat_map
from analysis.page.rendering import TEMPLATES
from analysis.page.report import (
    Evidence,
    marked,
    rate_text,
    report_page,
    signed_text,
    write_report_page,
)
from analysis.results.results import Results
from tests.support.chromium import WatchedPage, open_chromium, open_page
from tests.support.report_results import NASTY, evidence_of, one_system, stage_alone, two_systems


@pytest.fixture(scope="module")
def results() -> Results:
    return one_system()


@pytest.fixture(scope="module")
def evidence(results) -> dict[int, Evidence]:
    """Evidence of two utterances; the id of the second needs escaping."""
    names = [utterance.id for utterance in results.systems[0].utterances]
    return {position: evidence_of(names[position]) for position in (3, names.index(NASTY))}


@pytest.fixture(scope="module")
def page(tmp_path_factory, results, evidence) -> Path:
    return write_report_page(tmp_path_factory.mktemp("one"), results, evidence)


@pytest.fixture(scope="module")
def compared(tmp_path_factory) -> Path:
    return write_report_page(tmp_path_factory.mktemp("two"), two_systems())


def text_of(path: Path) -> str:
    """The page's text without styles, scripts and tags, with single spaces."""
    source = re.sub(r"(?s)<(script|style)\b.*?</\1>", "", path.read_text(encoding="utf-8"))
    return " ".join(html.unescape(re.sub(r"<[^>]*>", "", source)).split())


@pytest.mark.parametrize("name", ["page", "compared"])
def test_texts_stay_texts(name, request):
    path = request.getfixturevalue(name)
    source = path.read_text(encoding="utf-8")
    assert NASTY not in source and '<b id="x">' not in source and "<i>你" not in source
    assert source.count("</script>") == 3
    data = json.loads(re.findall(r"(?s)<script\b[^>]*>(.*?)</script>", source)[0])
    assert (
        any(row["id"] == NASTY for row in data["systems"][0]["rows"]) or NASTY in data["systems"][1]["name"]
    )


def test_the_page_shows_the_results(page, results):
    text = text_of(page)
    (system,) = results.systems
    for rate in system.rates:
        assert (
            f"{rate_text(rate.rate)} %" in text
            and f"{rate_text(rate.low)} – {rate_text(rate.high)} %" in text
        )
    for counts in (*system.kinds.values(), system.attribution, system.named_confusions):
        assert all(name in text for name, count in counts.items() if count)
    missing = [name for name, count in system.named_confusions.items() if not count]
    assert f"Do not occur: {', '.join(missing)}." in text
    for cut in system.breakdowns:
        assert all(group.name in text for group in cut.groups)
    for oracle in system.oracles:
        assert oracle.name in text and oracle.note in text and f"{rate_text(oracle.rate)} %" in text
    assert (
        "5 min 0 s" in text and "0.020 (50 × real time)" in text and "speech: not known, language: 3" in text
    )
    assert {kind.name for kind in KINDS} == {*system.kinds[SYLLABLES], *system.kinds[HANZI]}
    assert len({kind.sign for kind in KINDS}) == len(KINDS)
    source = page.read_text(encoding="utf-8").replace("&#39;", "'")
    occurring = [name for counts in system.kinds.values() for name, count in counts.items() if count]
    assert all(kind.explanation in source for kind in KINDS if kind.name in occurring)


@pytest.fixture(scope="module", params=["speech", "language", "right", "silent"])
def single(request, tmp_path_factory) -> Path:
    """Pages of a single stage, of a test without errors, and of one without any output."""
    return write_report_page(tmp_path_factory.mktemp(request.param), stage_alone(request.param))


def test_the_page_leaves_out_what_a_test_does_not_have(single):
    text = text_of(single)
    task = single.parent.name.rstrip("0123456789")
    assert ("Causes of the errors" in text) == (task in ("language", "silent"))
    assert ("Which sounds are confused" in text) == (task == "speech")
    assert ("No errors." in text) == (task == "right")


def test_comparisons_and_problems_are_shown(compared):
    text = text_of(compared)
    assert "makes fewer errors; the difference is statistically significant" in text and "p < 0.001" in text
    assert text.count("matched-pairs test (MAPSSWE)") == 2
    assert "ids that come twice" in text and "the first counts" in text


def test_a_heat_map_leaves_the_diagonal_and_unconfused_labels_out_of_its_scale():
    matrix = Matrix("tone", ("1", "2", "3", ""), ((900, 9, 0, 1), (4, 50, 0, 0), (0, 0, 7, 0), (0, 0, 0, 0)))
    drawn = heat_map(matrix)
    assert drawn.labels == ("1", "2", "–") and drawn.never_confused == ("3",)
    label, total, cells = drawn.rows[0]
    assert (label, total) == ("1", 910)
    assert [(cell.text, cell.heat, cell.diagonal) for cell in cells] == [
        ("99", 0.0, True),
        ("9", 1.0, False),
        ("1", 0.33, False),
    ]
    assert drawn.pairs == (("1", "2", 9, 9 / 910), ("2", "1", 4, 4 / 54))
    assert not heat_map(Matrix("tone", ("1", ""), ((3, 0), (0, 0)))).pairs


def test_differences_are_marked():
    assert marked("今天好", "今天很好", HANZI) == [("今天", False), ("很", True), ("好", False)]
    assert marked("今天好", "今好", HANZI) == [("今", False), ("–", True), ("好", False)]
    assert marked("ni3 hao3", "ni3 gao3", SYLLABLES) == [("nǐ", False), ("gǎo", True)]
    assert (signed_text(-0.5), signed_text(3, 0)) == ("−0.50", "+3")


@pytest.mark.parametrize(
    ("p_value", "verdict"), [(0.06, "may be due to chance"), (0.04, "is statistically significant")]
)
def test_the_verdict_about_two_systems(p_value, verdict):
    results = two_systems(6)
    comparisons = [
        replace(each, difference=-0.1, matched_pairs=replace(each.matched_pairs, p_value=p_value))
        for each in results.comparisons
    ]
    assert report_page(replace(results, comparisons=comparisons)).count(verdict) == len(comparisons) > 0


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with open_chromium() as browser:
        yield browser


def settled(page: WatchedPage, address: Path) -> None:
    """The page has no errors, it has requested only itself, and its parts refer to each other."""
    assert page.errors == []
    assert page.requests == [address.as_uri()]
    names = page.run("[...document.querySelectorAll('[id]')].map(each => each.id)")
    assert len(names) == len(set(names))
    for attribute in ("aria-labelledby", "aria-controls", "data-shows", "data-filters"):
        found = (
            f"[...document.querySelectorAll('[{attribute}]')].map(each => each.getAttribute('{attribute}'))"
        )
        assert set(page.run(found)) <= set(names)


def ids(page: WatchedPage) -> list[str]:
    return page.run(
        "[...document.querySelectorAll('.system:not([hidden]) tr.row')].map(row => row.dataset.id)"
    )


def found(page: WatchedPage) -> int:
    text = page.run("document.querySelector('.system:not([hidden]) .found .count').textContent")
    return int(text.split(" of ")[0].replace(",", ""))


def choose(page: WatchedPage, name: str, value: str) -> None:
    field = page.page.locator(f".system:not([hidden]) .toolbar [name={name}]")
    if field.evaluate("element => element.tagName") == "SELECT":
        field.select_option(value)
    else:
        field.fill(value)


def test_the_page_in_a_browser(chromium, page, results, evidence):
    shown = open_page(chromium, page.as_uri())
    utterances = results.systems[0].utterances
    wrong = [utterance for utterance in utterances if utterance.syllable_errors or utterance.hanzi_errors]
    assert found(shown) == len(wrong)
    with_sound = [each.id for each in evidence.values()]
    assert ids(shown)[:2] == with_sound, "those with evidence come first"

    choose(shown, "errors", "")
    assert found(shown) == len(utterances)
    for name, at in (("attribution", 6), ("kind", 2)):
        value = next(token[at] for utterance in wrong for token in utterance.alignment if token[at])
        choose(shown, name, value)
        expected = sum(
            any(value in (token[2], token[5], token[6]) for token in utterance.alignment)
            for utterance in utterances
        )
        assert 0 < found(shown) == expected < len(utterances)
        choose(shown, name, "")
    choose(shown, "text", wrong[5].reference_hanzi)
    assert wrong[5].id in ids(shown)
    shown.run("document.querySelector('.toolbar [type=reset]').click()")
    assert found(shown) == len(utterances)

    # Sorting: by a click, and by the keyboard on the button in the head.
    shown.run("document.querySelector('[data-sort=hanzi_errors] button').click()")
    most = max(utterance.hanzi_errors for utterance in utterances)
    assert next(utterance for utterance in utterances if utterance.id == ids(shown)[0]).hanzi_errors == most
    assert (
        shown.run("document.querySelector('[data-sort=hanzi_errors]').getAttribute('aria-sort')")
        == "descending"
    )
    shown.run("document.querySelector('[data-sort=id] button').focus()")
    shown.page.keyboard.press("Enter")
    assert shown.run("document.querySelectorAll('.utterances [aria-sort]').length") == 1
    first = ids(shown)
    assert first[:2] != with_sound
    shown.page.keyboard.press("Enter")
    assert ids(shown) != first
    shown.run("document.querySelector('.pages [data-step=\"1\"]').click()")
    assert not set(ids(shown)) & set(first[:5])

    # The tables of confusions.
    rows = "[...document.querySelector('#s0-top-hanzi').tBodies[0].rows].filter(row => !row.hidden).length"
    before = shown.run(rows)
    confused = results.systems[0].top_confusions[HANZI][0][0]
    shown.page.locator("[data-filters=s0-top-hanzi]").fill(confused)
    assert 0 < shown.run(rows) < before
    shown.run("document.querySelector('#s0-top-hanzi .pick').click()")
    assert 0 < found(shown) < len(utterances)

    # Heat maps: the arrow keys move, the text below describes a cell.
    shown.run("document.querySelector('.heat td[tabindex]').focus()")
    shown.page.keyboard.press("ArrowRight")
    assert "recognised as" in shown.run("document.querySelector('.readout').textContent")
    settled(shown, page)
    shown.close()


@pytest.mark.parametrize("nth", [0, 1])
def test_an_utterance_opens_and_its_sound_plays(chromium, page, evidence, nth):
    shown = open_page(chromium, page.as_uri())
    shown.run(f"document.querySelectorAll('.open')[{nth}].click()")
    assert shown.run("location.hash").startswith("#utt-")
    text = shown.run("document.querySelector('.detail').textContent")
    assert "Reference above, output below" in text and "a tone" in text and NASTY in text
    wrong = shown.run("document.querySelectorAll('.place.wrong').length")
    assert 0 < wrong == shown.run("document.querySelectorAll('.place.wrong .why').length")
    ended = shown.run(
        """new Promise((resolve, reject) => {
        const audio = document.querySelector('audio');
        audio.addEventListener('ended', () => resolve(audio.currentTime));
        audio.addEventListener('error', () => reject(audio.error.message));
        audio.play();
    })"""
    )
    assert ended == pytest.approx(0.4, abs=0.1)
    assert shown.run("document.querySelector('img').naturalWidth") == 1
    assert shown.run("parseFloat(document.querySelector('.head').style.left)") > 90
    settled(shown, page)
    shown.close()


def test_pages_of_one_stage_in_a_browser(chromium, single):
    shown = open_page(chromium, single.as_uri())
    choose(shown, "errors", "")
    shown.run("document.querySelector('.open').click()")
    assert shown.run("document.querySelectorAll('.detail .place').length") > 0
    assert "undefined" not in shown.run("document.querySelector('.utterances').textContent")
    settled(shown, single)
    shown.close()


def test_a_link_opens_its_utterance(chromium, page):
    address = f"{page.as_uri()}#utt-%3C%2Fscript%3E%3Cb%20id%3D%22x%22%3E%26amp%3B'%22%3C!--2"
    shown = open_page(chromium, address)
    opened = shown.run("document.querySelector('.detail-row').previousElementSibling.dataset.id")
    assert opened == f"{NASTY}2"
    assert "&lt;" in shown.run("document.querySelector('.places').textContent")
    assert shown.errors == []
    shown.close()


@pytest.mark.parametrize("name", ["page", "compared"])
def test_the_page_fits_the_width_of_a_phone(chromium, name, request):
    address = request.getfixturevalue(name)
    shown = open_page(chromium, address.as_uri(), 390, 844)
    shown.run("document.querySelectorAll('details').forEach(one => one.open = true)")
    shown.run("document.querySelector('.open').click()")
    for width in (390, 768):
        shown.page.set_viewport_size({"width": width, "height": 844})
        assert shown.run("document.documentElement.scrollWidth") <= width
    settled(shown, address)
    shown.close()


def test_two_systems_in_tabs(chromium, compared):
    shown = open_page(chromium, compared.as_uri())
    count = found(shown)
    shown.run("document.querySelector('#s0-tab').focus()")
    shown.page.keyboard.press("ArrowRight")
    assert shown.run("document.activeElement.id") == "s1-tab"
    assert shown.run("[...document.querySelectorAll('.system')].map(one => one.hidden)") == [True, False]
    assert 0 < found(shown) < count
    head = "#comparison th:nth-child(2)"
    shown.run(f"document.querySelector('{head} button').click()")
    assert shown.run(f"document.querySelector('{head}').getAttribute('aria-sort')") == "descending"
    assert shown.run("document.querySelector('#comparison tbody th').textContent") == "a/text"
    shown.run("document.querySelector('.changes a').click()")
    linked = shown.run("decodeURIComponent(location.hash)")
    assert linked.startswith("#utt-")
    opened = "setTimeout(() => done(!!document.querySelector('.system:not([hidden]) .detail-row')), 50)"
    assert shown.run(f"new Promise(done => {opened})")
    settled(shown, compared)
    shown.close()


def test_the_page_in_chinese(chromium, tmp_path, results, evidence):
    page = write_report_page(tmp_path, results, evidence, "zh")
    shown = open_page(chromium, page.as_uri())
    assert shown.run("document.documentElement.lang") == "zh"
    titles = shown.run("[...document.querySelectorAll('h2')].map(title => title.textContent)")
    assert {"错误率", "错误类型", "哪些音被混淆"} <= set(titles)
    choose(shown, "kind", "deletion")
    shown.page.locator("tr.row .open").first.click()
    expect(shown.page.locator(".found .count")).to_have_text(re.compile(r"^\d+ / \d+ 条$"))
    expect(shown.page.locator(".detail h4").first).to_have_text("上为参考文本，下为输出")
    cell = shown.page.locator("table.heat tbody td").first
    cell.hover()
    expect(shown.page.locator(".readout").first).to_have_text(re.compile("^声母 .+次"))
    left = shown.run(
        """[...document.querySelectorAll('h2, h3, h4, p, th, option, dt, label, summary')]
            .filter(each => !each.closest('body [lang], .bars')).map(each => each.textContent.trim())
            .filter(text => /[a-z]{3,} [a-z]{3,}/.test(text))"""
    )
    assert left == []
    settled(shown, page)
    shown.close()


def test_the_chinese_phrases_have_the_places_of_the_english_ones():
    lines = (TEMPLATES / "report_chinese.tsv").read_text(encoding="utf-8").splitlines()
    pairs = [line.split("\t") for line in lines]
    assert len(dict(pairs)) == len(pairs), "each phrase once"
    for english, chinese in pairs:
        places = len(re.findall(r"#|\{\}", english))
        assert sorted(set(re.findall(r"\$(\d)", chinese))) == [str(n + 1) for n in range(places)], english
