"""Where shards go."""

from __future__ import annotations

import pytest

from ripplevec.cluster.ray_transport import spread


@pytest.mark.parametrize(
    ("size", "machines", "found"),
    [
        (4, {"a": 2.0, "b": 2.0}, "aabb"),
        (3, {"a": 8.0, "b": 4.0}, "aab"),
        (2, {"head": 0.0, "b": 4.0}, "bb"),
        (3, {"a": 1.0}, "aaa"),
    ],
)
def test_shards_are_spread_over_machines_by_their_processors(size: int, machines: dict[str, float], found: str) -> None:
    assert "".join(name[0] for name in spread(size, machines)) == found
