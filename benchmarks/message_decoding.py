"""Benchmark of JSON decoding: a body of 1,000 edges with the msgspec structs of the package and with Pydantic models.

    python benchmarks/message_decoding.py [--edges 1000] [--json FILE]

Both declare the same forms and check the same values. Times are in microseconds, the shortest of many. "batch" is the
time until the checked batch exists, which is what a request waits for. A ratio above 1 means that msgspec is faster.
"""

from __future__ import annotations

import json
from typing import Annotated, Any

import msgspec
from _report import best_seconds, run_benchmark
from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr, StringConstraints

from ripplevec.batch import MAX_TIME, MAX_WEIGHT, MIN_WEIGHT
from ripplevec.io.message_schema import MAX_ID_BYTES, MAX_KEY_LENGTH, Document
from ripplevec.io.messages import decode_json

REPEATS = 200

VertexId = StrictInt | Annotated[StrictStr, StringConstraints(min_length=1, max_length=MAX_ID_BYTES)]
Weight = Annotated[float, Field(strict=True, ge=MIN_WEIGHT, le=MAX_WEIGHT)] | None
Time = Annotated[float, Field(strict=True, ge=-MAX_TIME, le=MAX_TIME)] | StrictStr | None
Edge = tuple[VertexId, VertexId] | tuple[VertexId, VertexId, Weight] | tuple[VertexId, VertexId, Weight, Time]


class PydanticArrival(BaseModel):
    """An arrival, as `Arrival` declares it."""

    model_config = ConfigDict(extra="forbid")
    id: VertexId
    neighbors: list[VertexId] = []
    weights: list[Weight] | None = None
    time: Time = None


class PydanticDocument(BaseModel):
    """A document, as `Document` declares it."""

    model_config = ConfigDict(extra="forbid")
    key: Annotated[StrictStr, StringConstraints(min_length=1, max_length=MAX_KEY_LENGTH)] | None = None
    arrivals: list[PydanticArrival] = []
    edges: list[Edge | dict[str, Any]] = []
    remove_edges: list[tuple[VertexId, VertexId]] = []
    remove_vertices: list[VertexId] = []


def make_bodies(edges: int) -> dict[str, bytes]:
    """Return bodies with text ids, with text ids and weights, and with integer ids."""
    pairs = [(number, number * 7 % edges) for number in range(edges)]
    rows: dict[str, list[Any]] = {
        "text": [[f"v{src}", f"v{dst}"] for src, dst in pairs],
        "weighted": [[f"v{src}", f"v{dst}", 1.5] for src, dst in pairs],
        "int": [list(pair) for pair in pairs],
    }
    return {name: json.dumps({"edges": value}).encode() for name, value in rows.items()}


def measure(edges: int) -> dict[str, Any]:
    """Measure both libraries on each body, alternating."""
    decoder, figures = msgspec.json.Decoder(Document), dict[str, Any](edges=edges)
    for name, body in make_bodies(edges).items():
        decoded, other = decoder.decode(body), PydanticDocument.model_validate_json(body)
        if len(decoded.edges) != len(other.edges):  # type: ignore[arg-type]
            raise SystemExit(f"{name}: expected equal lists, got {len(other.edges):,} edges from Pydantic")
        seconds = [
            (
                best_seconds(lambda body=body: decoder.decode(body), REPEATS),  # type: ignore[misc]
                best_seconds(lambda body=body: PydanticDocument.model_validate_json(body), REPEATS // 4),  # type: ignore[misc]
                best_seconds(lambda body=body: decode_json(body), REPEATS),  # type: ignore[misc]
            )
            for _ in range(3)
        ]
        structs, models, batch = (1e6 * min(times) for times in zip(*seconds, strict=True))
        figures |= {
            f"{name}_msgspec_microseconds": structs,
            f"{name}_pydantic_microseconds": models,
            f"{name}_batch_microseconds": batch,
            f"{name}_msgspec_over_pydantic": models / structs,
        }
    return figures


if __name__ == "__main__":
    run_benchmark(__doc__, measure, "edges", 1_000)
