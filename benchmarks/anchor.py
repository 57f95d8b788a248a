"""One anchor at scale: seconds on one core and on two, memory beside the state, and what it finds.

    python benchmarks/anchor.py [--vertices 1000000] [--json FILE]

Ten edges per vertex, 128 columns, the two views of a dense graph. The first anchor corrects a graph that has grown a
hundredfold since its start, far more than any between anchors; what it finds is measured by the sum of the Ritz
values, over that after further anchors.
"""

from __future__ import annotations

from typing import Any

from _anchors import anchored, grow
from _memory import forget, memory
from _report import run

from ripplevec.views.base import Basis

MORE = 2  # anchors until nothing more is found


def found(bases: list[Basis]) -> float:
    """The sum of the Ritz values of all views."""
    return sum(float(basis.mu.sum()) for basis in bases)


def measure(vertices: int) -> dict[str, Any]:
    """Grow, correct, and correct the corrected once more on one core and on two."""
    anchored(grow(1_000, 2), 2)  # compiles
    grown = grow(vertices, 2)
    state = memory("VmRSS")
    forget()
    bases, first = anchored(grown, 2)
    sums, beside = [found(bases)], memory("VmHWM") - state
    grown = grown.after(bases)
    bases.clear()
    (bases, alone), (again, together) = anchored(grown, 1), anchored(grown, 2)
    same = all(a.rows.tobytes() == b.rows.tobytes() for a, b in zip(bases, again, strict=True))
    again.clear()
    for _ in range(MORE):
        sums.append(found(bases))
        grown = grown.after(bases)
        bases.clear()
        bases, _ = anchored(grown, 2)
    return {
        "vertices": vertices,
        "edges": grown.adjacency.edge_count,
        "first_seconds": first,
        "one_thread_seconds": alone,
        "two_threads_seconds": together,
        "two_over_one": alone / together,
        "same_bits": float(same),
        "state_mb": state,
        "beside_the_state_mb": beside,
        "found_by_the_first": sums[0] / found(bases),
        "found_by_the_second": sums[1] / found(bases),
    }


if __name__ == "__main__":
    run(__doc__, measure, "vertices", 1_000_000)
