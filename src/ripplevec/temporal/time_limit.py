"""Limit of the step by which one event may advance the time of a model."""

from __future__ import annotations

import numpy as np

from ripplevec.errors import InvalidValueError
from ripplevec.temporal.clock import Times

LASTING_PERIODS = 100
"""Default limit in half-lives or times of expiry: after 2⁻¹⁰⁰, an edge of weight 1 is below the smallest weight."""


class TimeLimit:
    """Checks the times of successive batches before they are applied, as if the accepted ones had been applied.

    One wrong time, such as milliseconds instead of seconds, would let all edges decay or expire at once, and cannot be
    taken back: the time of a model never goes back.
    """

    def __init__(self, latest: float, max_jump: float) -> None:
        self._latest, self._max_jump = latest, max_jump

    def find_jumps(self, time: Times | None) -> dict[int, InvalidValueError]:
        """Accept the times of a batch that advance by no more than the limit; return the error of every other row."""
        if time is None or np.isnan(time).all():
            return {}
        if np.isnan(self._latest):
            self._latest = float(time[np.flatnonzero(~np.isnan(time))[0]])
        latest = np.fmax.accumulate(np.concatenate([[self._latest], time]))
        if (np.diff(latest) <= self._max_jump).all():
            self._latest = float(latest[-1])
            return {}
        return self._find_jumps_row_by_row(time)

    def check(self, time: Times | None) -> None:
        """Raise if a time of a batch advances by more than the limit; accept none."""
        for error in TimeLimit(self._latest, self._max_jump).find_jumps(time).values():
            raise error

    def _find_jumps_row_by_row(self, time: Times) -> dict[int, InvalidValueError]:
        errors = {}
        for row, moment in enumerate(time.tolist()):
            if moment - self._latest > self._max_jump:
                errors[row] = InvalidValueError(
                    f"time: expected at most {self._max_jump:g} after the latest time {self._latest:.15g}, "
                    f"got {moment:.15g} in row {row}. Check the unit of the times; if this one is right, raise "
                    "max_time_jump"
                )
            elif moment > self._latest:
                self._latest = moment
        return errors
