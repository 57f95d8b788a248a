"""Studies: a YAML file says what to measure, a JSON record keeps what was measured, a Markdown report shows it."""

from __future__ import annotations
