"""Pictures of a study: its plots, drawn from its record as SVG.

A picture consists of panels, usually a legend and one panel per data set: side by side in the picture file, and
separately in the HTML report, where a phone shows them below each other.
"""

from __future__ import annotations

from ripplevec.lab.experiments.plots.drawing import draw_panels, draw_plot, save_plot
from ripplevec.lab.experiments.plots.style import RIPPLEVEC_PREFIX, render_svg

__all__ = ["RIPPLEVEC_PREFIX", "draw_panels", "draw_plot", "render_svg", "save_plot"]
