from __future__ import annotations

from typing import Any

import pytest

from ripplevec.durability.session_model import build_metadata, create_model
from ripplevec.rules import background_anchor
from ripplevec.service.warmup import warm_up


@pytest.mark.parametrize("parameters", [{"dim": 8}, {"dim": 4, "rule": "paper", "directed": True}])
def test_the_model_itself_stays_as_it_is(parameters: dict[str, Any]) -> None:
    model = create_model(build_metadata(parameters, None), threads=1)
    before = model.digest()
    warm_up(model)
    assert (model.digest(), len(model)) == (before, 0)


def test_an_anchor_is_taken_over(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []
    prepare = background_anchor.BackgroundAnchor.prepare

    def noting(self: background_anchor.BackgroundAnchor, *arguments: Any) -> Any:
        taken.append(self.until)
        return prepare(self, *arguments)

    monkeypatch.setattr(background_anchor.BackgroundAnchor, "prepare", noting)
    warm_up(create_model(build_metadata({"dim": 8}, None), threads=1))
    assert taken
