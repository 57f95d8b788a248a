from __future__ import annotations

from typing import Any

import pytest

from ripplevec.durability.session_model import kept_parameters, new_model
from ripplevec.rules import background_anchor
from ripplevec.service.warmup import warm_up


@pytest.mark.parametrize("parameters", [{"dim": 8}, {"dim": 4, "rule": "paper", "directed": True}])
def test_the_model_itself_stays_as_it_is(parameters: dict[str, Any]) -> None:
    model = new_model(kept_parameters(parameters, None), threads=1)
    before = model.digest()
    warm_up(model)
    assert (model.digest(), len(model)) == (before, 0)


def test_an_anchor_is_taken_over(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []
    prepare = background_anchor.Pending.prepare

    def noting(self: background_anchor.Pending, *arguments: Any) -> Any:
        taken.append(self.until)
        return prepare(self, *arguments)

    monkeypatch.setattr(background_anchor.Pending, "prepare", noting)
    warm_up(new_model(kept_parameters({"dim": 8}, None), threads=1))
    assert taken
