"""Studies: a YAML file states what to measure, a JSON record stores the results, and reports show them."""

from __future__ import annotations
