from __future__ import annotations

import inspect

import pytest
import typer

from ripplevec import Embedder
from ripplevec.cli.embed import embed
from ripplevec.cli.options import Rule, given, settings
from ripplevec.parameters import RULES


def test_what_is_not_given_is_left_to_the_library():
    assert given(dim=None, seed=0, directed=False) == {"seed": 0, "directed": False}


def test_settings_are_json_or_text():
    assert settings(["depth=null", "on_empty=zero", "normalize=false", "a=b=c"]) == {
        "depth": None,
        "on_empty": "zero",
        "normalize": False,
        "a": "b=c",
    }
    assert settings(None) == {}


@pytest.mark.parametrize("pair", ["depth", "=1", "a b=1"])
def test_settings_without_name_or_value(pair):
    with pytest.raises(typer.BadParameter, match="NAME=VALUE"):
        settings([pair])


def test_the_options_of_the_model_are_options_of_the_model():
    named = ["dim", "rule", "depth", "seed", "anchor_growth", "threads", "directed", "duplicates", "max_reads"]
    assert set(named) <= set(inspect.signature(embed).parameters)
    assert set(named) <= set(inspect.signature(Embedder).parameters)


def test_every_rule_is_named_by_its_option():
    (option,) = Rule.__metadata__
    assert option.metavar == "|".join(RULES)
