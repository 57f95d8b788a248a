"""Whether shards are sound: each by itself, any two of them where edges go from one to the other, and all together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ripplevec.errors import RipplevecError

if TYPE_CHECKING:
    from ripplevec.cluster.driver_reads import Reads


def check_shards(engine: Reads) -> None:
    """Raise where a shard contradicts itself or another, or what is known of all of them."""
    crew = engine.crew
    faults = crew.get(crew.call("faults"))
    ends = crew.call("ends", parts=crew.size)
    pairs = crew.get(crew.call("one_sided", *ends))
    sizes = engine.sizes()
    numbers = np.concatenate([numbers for _, numbers in crew.get(crew.call("in_order"))])
    found = {
        **{f"shard {shard}: {fault}": bool(fault) for shard, fault in enumerate(faults)},
        **{
            f"shards {shard} and {other}: an edge is known to one end only, or differs": True
            for shard, others in enumerate(pairs)
            for other in others
        },
        "the number of edges is off": sizes["ends"] != sizes["edges"] * (1 if engine.parameters.directed else 2),
        "the driver knows another number of edges": sizes["edges"] != engine.edges,
        "the driver knows another number of vertices": numbers.size != len(engine),
        "an arrival number stands twice": np.unique(numbers).size < numbers.size,
        "an arrival number has not been given out": bool((numbers >= engine.next_arrival).any()),
    }
    for fault, there in found.items():
        if there:
            raise RipplevecError(f"the cluster is damaged: {fault}")
