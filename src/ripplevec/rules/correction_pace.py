"""The pace of a gradual correction: what its stages cost, and the growth of the graph that pays for them."""

from __future__ import annotations

from ripplevec.rules._correction_kernels import SLICE_ROWS

SOLVE_SHARE = 0.2  # of the cost of all rows: what is paid while another thread solves a k×k problem, so that none waits
SOLVE_COST = 6.0  # times dim²: the most that is paid meanwhile; about ten times as long as a solve takes
MIN_CREDIT = 2 * SLICE_ROWS  # credit that is spent at once: a call for fewer rows would cost more than the rows

COST = {
    "copy": 0.25,
    "filter": 1.0,
    "rotate": 1.5,
    "transform": 1.0,
    "announce": 1.5,
}
"""Cost of one row in each stage, relative to one row of the filter."""

SAMPLE_COST = {"probe": 1.5, "project": 4.0, "transform": 1.5}
"""Further cost of one row of the sample of a stage."""

SAMPLE_ROWS = {"probe": 8_192, "project": 65_536, "transform": 16_384}
"""Rows of a sample at least; of a larger graph, every so many slices are read. The eigenvalues of columns are estimated
from the first sample, the k×k matrices of the Rayleigh–Ritz step are computed from the second, and the rotation and the
lengths of vectors from the third."""

QUEUED_ROWS = 3.0
"""Rows to catch up with, about, for every row by which the graph has grown."""


class CorrectionPace:
    """The credit of a correction: what the stream has paid for and the correction has not computed yet.

    Attributes
    ----------
    swapped
        Whether the new rows have replaced the old ones.
    """

    min_credit: float = MIN_CREDIT

    def __init__(self, degree: int, dim: int) -> None:
        self._degree, self._dim = degree, dim  # of the filter, and of vectors
        self.swapped = False
        self.pace = self.credit = self.paid_growth = self.solve_cost = 0.0

    def plan(self, rows: int, spread: float, since_growth: float) -> None:
        """Spread the cost over this growth of the graph; growth beyond `since_growth` earns credit."""
        once = ("copy", "probe", "project", "transform", "announce")
        per_row = self._degree * COST["filter"] + sum(cost_per_row(stage, rows) for stage in once)
        cost = rows * (1 + spread / 2) * per_row + spread * rows * QUEUED_ROWS  # the graph grows in the meantime
        self.solve_cost = min(SOLVE_SHARE * cost, SOLVE_COST * self._dim**2)
        self.pace = (cost + 2 * self.solve_cost) / spread
        self.credit, self.paid_growth = 0.0, since_growth

    def earn_credit(self, growth: float) -> float:
        """Earn credit for the growth of the graph since the last call; return what can be spent."""
        self.credit += self.pace * max(growth - self.paid_growth, 0.0)
        self.paid_growth = max(growth, self.paid_growth)
        return self.credit if self.credit >= self.min_credit else 0.0


def sample_step(stage: str, rows: int) -> int:
    """Return the distance between the first rows of two sampled slices of a graph with so many rows."""
    return SLICE_ROWS * max(1, rows // SAMPLE_ROWS[stage])


def cost_per_row(stage: str, rows: int) -> float:
    """Return the mean cost of a row in a stage that processes rows in order, of a graph with so many rows."""
    cost = COST.get(stage, 0.0)
    return cost + SAMPLE_COST[stage] * SLICE_ROWS / sample_step(stage, rows) if stage in SAMPLE_COST else cost
