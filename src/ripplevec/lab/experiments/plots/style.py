"""How the lines and bars of a picture are told apart: colors and markers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

OURS, TUNED = "ripplevec", ", tuned"
BLACK = "#000000"
# Of Okabe and Ito, and of Tol: told apart with any kind of color vision. Black is ours.
COLORS = (
    "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#882255", "#999933", "#777777", "#332288",
    "#117733", "#c9a26b", "#aa4499",
)  # fmt: skip
MARKERS = "osD^vP<X>ph"  # fewer than colors, and no common divisor: no two families have both in common


class Look(NamedTuple):
    """How a setting is told from the others: a family of settings shares color and marker."""

    color: str
    dashes: str
    marker: str
    ours: bool

    def line(self) -> dict[str, Any]:
        """Ours are bold and in front."""
        width, size, layer = (2.6, 5.0, 4) if self.ours else (1.2, 3.5, 3)
        shape = {"color": self.color, "linestyle": self.dashes, "marker": self.marker}
        return shape | {"linewidth": width, "markersize": size, "zorder": layer}


def looks_of(names: Iterable[str]) -> dict[str, Look]:
    """The looks of all settings, so that a method has one color in all pictures of a study."""
    families: dict[str, list[str]] = {}
    for setting in names:
        family = OURS if setting.startswith(OURS) else setting.removesuffix(TUNED)
        families.setdefault(family, []).append(setting)
    looks = {}
    others = 0
    for family, settings in families.items():
        ours = family == OURS
        color, marker = (BLACK, "o") if ours else (COLORS[others % len(COLORS)], MARKERS[others % len(MARKERS)])
        others += not ours
        plain = iter(["-", ":", "-."] + ["-"] * len(settings))
        for setting in settings:
            looks[setting] = Look(color, "--" if setting.endswith(TUNED) else next(plain), marker, ours)
    return looks


def plain_look(place: int) -> dict[str, Any]:
    """The look of a line that stands for no setting, by its place among the others."""
    color, marker = COLORS[place % len(COLORS)], MARKERS[place % len(MARKERS)]
    return {"color": color, "marker": marker, "linewidth": 1.8, "markersize": 4.5, "zorder": 3}
