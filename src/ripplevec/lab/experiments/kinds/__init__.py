"""What can be measured: one file per kind of cell, from its configuration to its figures."""

from __future__ import annotations

from ripplevec.lab.experiments.kinds import (
    checkpoint,
    growth,
    links,
    optimum,
    seconds,
    shares,
    spectrum_gap,
    stream,
    validation,
)
from ripplevec.lab.experiments.kinds.base import Kind

KINDS: dict[str, Kind] = {
    "checkpoint": checkpoint.KIND,
    "growth": growth.KIND,
    "links": links.KIND,
    "optimum": optimum.KIND,
    "ritz": spectrum_gap.KIND,
    "seconds": seconds.KIND,
    "shares": shares.KIND,
    "stream": stream.KIND,
    "validation": validation.KIND,
}
