from __future__ import annotations

import inspect

import pytest

from ripplevec.rules.base import Rule
from ripplevec.rules.paper import PaperRule
from ripplevec.rules.ripple import RippleRule


@pytest.mark.parametrize("rule", [PaperRule, RippleRule])
def test_rules_implement_the_protocol(rule: type) -> None:
    for name, member in vars(Rule).items():
        if name.startswith("_") or not callable(member):
            continue
        implementation = getattr(rule, name)
        assert inspect.signature(implementation).parameters.keys() == inspect.signature(member).parameters.keys(), name
    for name in ("one_by_one", "precision", "ready", "scaling"):
        assert hasattr(rule, name), name
