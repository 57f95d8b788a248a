from __future__ import annotations

import inspect

import pytest

from ripplevec.rules.base import Rule
from ripplevec.rules.paper import PaperRule
from ripplevec.rules.ripple import RippleRule


@pytest.mark.parametrize("rule", [PaperRule, RippleRule])
def test_every_rule_has_what_the_protocol_asks_for(rule: type) -> None:
    for name, member in vars(Rule).items():
        if name.startswith("_") or not callable(member):
            continue
        own = getattr(rule, name)
        assert inspect.signature(own).parameters.keys() == inspect.signature(member).parameters.keys(), name
    for name in ("one_by_one", "precision", "ready", "scaling"):
        assert hasattr(rule, name), name
