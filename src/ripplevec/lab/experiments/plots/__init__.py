"""The pictures of a study: what its plots ask for, drawn from its record, as SVG; one file per kind of plot.

A picture is made of panels, mostly the legend and one per data set: side by side in the file of the picture, each by
itself in the report, where a phone shows one below the other. What has not been measured is left out.
"""

from __future__ import annotations

from ripplevec.lab.experiments.plots.drawing import draw, draw_apart, save
from ripplevec.lab.experiments.plots.figure import svg
from ripplevec.lab.experiments.plots.style import OURS

__all__ = ["OURS", "draw", "draw_apart", "save", "svg"]
