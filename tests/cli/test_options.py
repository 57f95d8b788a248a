from __future__ import annotations

import inspect
from typing import get_type_hints

import pytest
import typer

from ripplevec.cli.embed import embed
from ripplevec.cli.options import EMBEDDER_OPTIONS, collect_parameters, drop_unset, parse_settings
from ripplevec.cli.serve import serve
from ripplevec.parameter_docs import describe_parameters
from ripplevec.parameters import RULES


def test_drop_unset_removes_options_without_a_value():
    assert drop_unset(dim=None, seed=0, directed=False) == {"seed": 0, "directed": False}


def test_parse_settings_reads_json_or_text():
    assert parse_settings(["depth=null", "on_empty=zero", "normalize=false", "a=b=c"]) == {
        "depth": None,
        "on_empty": "zero",
        "normalize": False,
        "a": "b=c",
    }
    assert parse_settings(None) == {}


def test_collect_parameters_prefers_settings_and_omits_options_without_a_value():
    assert collect_parameters({"dim": 8, "seed": 1, "rule": None, "set": ["seed=2"]}) == {"dim": 8, "seed": 2}


@pytest.mark.parametrize("pair", ["depth", "=1", "a b=1"])
def test_parse_settings_without_name_or_value_raises(pair):
    with pytest.raises(typer.BadParameter, match="NAME=VALUE"):
        parse_settings([pair])


@pytest.mark.parametrize("command", [embed, serve])
def test_model_options_take_help_and_default_from_embedder_docstring(command):
    docs, hints = describe_parameters(), get_type_hints(command, include_extras=True)
    named = [name for name in hints if name in docs]
    assert set(named) >= {"dim", "rule", "depth", "seed", "anchor_growth", "threads", "directed", "max_reads"}
    for name in named:
        (option,) = hints[name].__metadata__
        assert option.help.startswith(docs[name].summary)
        default = "no" if docs[name].default is False else docs[name].default
        assert default is None or option.help == f"{docs[name].summary} Default: {default}."
        assert inspect.signature(command).parameters[name].default is None


def test_rule_option_names_every_rule():
    (option,) = EMBEDDER_OPTIONS["rule"].__metadata__
    assert option.metavar == "|".join(RULES)
