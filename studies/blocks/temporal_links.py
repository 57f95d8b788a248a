"""Blocks of docs/links.md: link prediction on timed streams, from the record of `benchmarks/temporal_links.py`."""

from __future__ import annotations

from textwrap import fill
from typing import Any

from blocks.records import MISSING, markdown_table, read_record

RECORD = "temporal_links.json"
EXPERIENCE = (0, 1, 2, 5, 10)  # earlier events of the source


def results(stream: str) -> str:
    """Return a row per method: MRR and Hits@10 for both kinds of updates, and processor time per event."""
    entry = _read(stream)
    if entry is None:
        return MISSING
    columns = ["MRR, by event", "Hits@10", "MRR, by batch", "Hits@10 ", "µs per event", "µs with all candidates"]
    rows = {}
    for name, updates in sorted(entry["methods"].items(), key=lambda item: -_best(item[1])):
        cells = []
        for update in ("event", "batch"):
            found = updates.get(update)
            cells += [MISSING] * 2 if found is None else [_format_mrr(found), f"{found['hits_at_10']:.3f}"]
        times = updates["batch"]
        rows[_label(name, times)] = [*cells, f"{times['us_per_event']:,.0f}", f"{times['us_per_scored_event']:,.0f}"]
    return markdown_table(columns, rows)


def experience(stream: str) -> str:
    """Return how good the predictions are for the first events of a source."""
    entry = _read(stream)
    if entry is None:
        return MISSING
    ranks = entry["methods"]["LinkScorer"]["event"]["by_experience"]
    parts = [f"{ranks[count]:.2f} after {count:,}" for count in EXPERIENCE if ranks[count] is not None]
    first, *others = parts
    text = f"The MRR of `LinkScorer` by the number of earlier events of a source: {first}, {', '.join(others)}."
    good = entry["methods"]["LinkScorer"]["event"].get("events_until_good")
    if good is not None:
        text += f" It reaches 90 % of the overall MRR after {good:,} event{'' if good == 1 else 's'}."
    return fill(text, 120)


def setting() -> str:
    """Return the number of seeds and the machine."""
    record = read_record(RECORD)
    if record is None:
        return MISSING
    seeds = {updates["batch"]["seeds"] for entry in record["test"].values() for updates in entry["methods"].values()}
    count = max(seeds)
    machine = record["environment"]["machine"]
    return fill(
        f"{'One seed' if count == 1 else f'Mean of {count} seeds (one for methods without random draws)'}; one thread "
        f"on {machine['cpu']}, processor time on a machine that was busy with other work.",
        120,
    )


def _label(name: str, found: dict[str, Any]) -> str:
    """Return the name of a method, with the number of epochs if it was trained for several passes."""
    epochs = found.get("epochs")
    return name if epochs is None else f"{name}, {epochs} epoch{'' if epochs == 1 else 's'}"


def _read(stream: str) -> dict[str, Any] | None:
    record = read_record(RECORD)
    return None if record is None else record["test"].get(stream)


def _format_mrr(found: dict[str, Any]) -> str:
    """Return the mean over the seeds, with the standard deviation if there are several."""
    return f"{found['mrr']:.3f}" + (f" ± {found['mrr_deviation']:.3f}" if found["seeds"] > 1 else "")


def _best(updates: dict[str, Any]) -> float:
    return float(max(found["mrr"] for found in updates.values()))
