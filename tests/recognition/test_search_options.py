"""Tests of recognition/options.py: the search that a command line asks for."""

import argparse
from pathlib import Path

import pytest

from recognition.command_line.search import add_joint_options, add_search_options
from recognition.options import BEAM, SearchOptions, given_settings
from utils.errors import ConfigError


def search(*arguments: str, joint: bool = False) -> SearchOptions:
    parser = argparse.ArgumentParser()
    add_search_options(parser)
    if joint:
        add_joint_options(parser)
    return SearchOptions(n_best=3, **given_settings(vars(parser.parse_args(arguments))))


def test_what_a_command_line_does_not_give_has_its_default():
    assert search() == SearchOptions(n_best=3)
    assert search("--rescoring-weight", "0", joint=True) == SearchOptions(n_best=3, rescoring_weight=0.0)
    found = search("--beam", "4", "--joint", "--words", "names.txt", joint=True)
    assert (found.beam_width, found.joint, found.words) == (4, True, Path("names.txt"))
    assert [search().beam_width, search("--syllables", "run").beam_width] == [1, BEAM]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"syllables": Path("run"), "beam": 1}, "--syllables needs a beam search"),
        ({"fusion_weight": -1.0}, "--fusion-weight -1.0 is below 0"),
        ({"beam": 99999}, "--beam 99999 would need too much memory, at most 1000"),
        ({"words": ["名字"]}, "--words is a list, not the path of a file or folder, give a path"),
        ({"language_weight": -0.5}, "--language-weight -0.5 is below 0"),
    ],
)
def test_settings_that_can_not_be_are_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        SearchOptions(**settings)


def test_results_record_the_search():
    assert SearchOptions().recorded() == {"beam": 1}
    joint = SearchOptions(joint=True, joint_bonus=2.0, syllables=Path("run"))
    assert joint.recorded() == {
        "beam": BEAM,
        "syllables_run": "run",
        "fusion_weight": joint.fusion_weight,
        "insertion_bonus": joint.insertion_bonus,
        "joint": True,
        "language_weight": None,
        "joint_bonus": 2.0,
        "rescoring_weight": None,
        "language_model": None,
    }
