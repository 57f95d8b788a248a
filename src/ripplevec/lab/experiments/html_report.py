"""All studies as one self-contained HTML page: pictures, tables, and the origin of the results.

The page also works on a phone: pictures split into panels, and tables scroll sideways under a fixed first column.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from statistics import fmean

from ripplevec.lab.experiments.plots import RIPPLEVEC_PREFIX, draw_panels, render_svg
from ripplevec.lab.experiments.record import Record
from ripplevec.lab.experiments.report import (
    Results,
    TableEntry,
    build_table,
    collect_results,
    describe_extent,
    describe_origin,
    format_values,
)
from ripplevec.lab.experiments.study import Study

MAX_OPEN_ROWS = 20  # longer tables are folded
SCORE_SUFFIXES = ("micro", "macro", "nmi", "completeness", "auc", "mrr")  # of metrics for which higher is better

CSS = """
:root { color-scheme: light dark; --ink: #1f2430; --soft: #5b6372; --paper: #f6f7f9; --card: #fff; --line: #dfe2e8;
  --ours: #eef3ff; --link: #1d5fbf }
@media (prefers-color-scheme: dark) { :root { --ink: #e7e9ee; --soft: #a2a9b8; --paper: #14161b; --card: #1d2027;
  --line: #343944; --ours: #232c3f; --link: #8ab4ff } }
* { box-sizing: border-box }
html { scroll-behavior: smooth; -webkit-text-size-adjust: 100% }
body { margin: 0 auto; padding: 1.25rem clamp(.75rem, 3vw, 2rem) 4rem; max-width: 76rem; background: var(--paper);
  color: var(--ink); font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif }
h1 { font-size: clamp(1.6rem, 5vw, 2.3rem); line-height: 1.2; margin: .5rem 0 1rem }
h2 { font-size: 1.45rem; line-height: 1.25; margin: 0 0 .5rem }
h3 { font-size: 1.05rem; margin: 1.75rem 0 .5rem }
p { max-width: 46rem; margin: .5rem 0 }
a { color: var(--link) }
code { font-size: .92em }
nav ol { padding-left: 1.4rem; columns: 20rem; margin: .5rem 0 }
section { margin-top: 3rem; padding-top: 1.5rem; border-top: 2px solid var(--line) }
.soft, small { color: var(--soft) }
.soft { font-size: .88rem }
.grid { display: grid; gap: .75rem; grid-template-columns: repeat(auto-fill, minmax(min(20rem, 100%), 1fr)) }
figure { margin: 1rem 0 .5rem }
.many { grid-column: 1 / -1 }
figcaption { font-weight: 650; margin-bottom: .5rem }
figure .grid > div { background: #fff; border: 1px solid var(--line); border-radius: .5rem; padding: .4rem }
svg { display: block; width: 100%; height: auto; max-width: 30rem; margin: auto }
svg text { font-family: system-ui, -apple-system, "Segoe UI", Roboto, sans-serif !important }
details { margin: .6rem 0; border: 1px solid var(--line); border-radius: .5rem; background: var(--card) }
summary { cursor: pointer; padding: .6rem .8rem; font-weight: 650 }
.wide { overflow-x: auto; border-top: 1px solid var(--line) }
table { border-collapse: collapse; font-size: .88rem; font-variant-numeric: tabular-nums; min-width: 100% }
th, td { padding: .35rem .6rem; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--line) }
tr:last-child > * { border-bottom: 0 }
th { font-weight: 600; background: var(--card) }
th:first-child { position: sticky; left: 0; min-width: 6.5rem; max-width: 13rem; padding-left: .8rem; text-align: left;
  white-space: normal; border-right: 1px solid var(--line); font-weight: 500 }
.ours > * { background: var(--ours) }
.ours > th { font-weight: 700 }
td small { display: block; font-size: .8em }
.note { max-width: none; padding: .4rem .8rem; margin: 0; border-top: 1px solid var(--line) }
ul { padding-left: 1.2rem; margin: .5rem 0; overflow-wrap: anywhere }
"""


def render_html(parts: Sequence[tuple[Study, Record]], heading: str, intro: str) -> str:
    """Return the page. `intro`, like the `about` of a study, may have paragraphs, *emphasis* and `code`."""
    contents = "".join(f'<li><a href="#{escape(study.name)}">{escape(study.title)}</a></li>' for study, _ in parts)
    sections = "\n".join(_render_section(study, record) for study, record in parts)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(heading)}</title>
<link rel="icon" href="data:,">
<style>{CSS}</style>
</head>
<body>
<header>
<h1>{escape(heading)}</h1>
{_render_prose(intro)}
<nav aria-label="Contents"><ol>{contents}</ol></nav>
</header>
<main>
{sections}
</main>
</body>
</html>
"""


def _render_section(study: Study, record: Record) -> str:
    results = collect_results(study, record)
    return "\n".join([
        f'<section id="{escape(study.name)}">',
        f"<h2>{escape(study.title)}</h2>",
        _render_prose(study.about),
        f'<p class="soft">{escape(describe_extent(study, record))}</p>',
        f'<div class="grid">{"".join(_render_picture(study, name, record) for name in study.plots)}</div>',
        *(_render_table(study, results, metric) for metric in study.figures),
        '<h3>Where this comes from</h3>',
        f'<ul class="soft">{"".join(f"<li>{escape(line)}</li>" for line in describe_origin(record))}</ul>',
        "</section>",
    ])  # fmt: skip


def _render_picture(study: Study, name: str, record: Record) -> str:
    title = escape(study.plots[name].title)
    panels = [
        f"<div>{render_svg(figure, f'{study.name}-{name}-{index}')}</div>"
        for index, figure in enumerate(draw_panels(study, name, record))
    ]
    attributes = ' class="many"' if len(panels) > 1 else ""
    return f'<figure{attributes}><figcaption>{title}</figcaption><div class="grid">{"".join(panels)}</div></figure>'


def _render_table(study: Study, results: Results, metric: str) -> str:
    """Return a collapsible table; it is open if it is short and no picture shows the same metric."""
    rows = build_table(study, results, metric)
    best = _best_means(metric, list(rows.values()))
    head = "".join(f'<th scope="col">{escape(dataset)}</th>' for dataset in study.datasets)
    body = "".join(_render_row(setting, entries, best) for setting, entries in rows.items())
    is_open = "" if len(rows) > MAX_OPEN_ROWS or _is_plotted(study, metric) else " open"
    note = '<p class="note soft">Bold: the highest mean of a column.</p>' if any(best) else ""
    return (
        f"<details{is_open}><summary>{escape(study.figures[metric])}</summary>"
        f'<div class="wide"><table><thead><tr><th></th>{head}</tr></thead><tbody>{body}</tbody></table></div>{note}'
        "</details>"
    )


def _render_row(setting: str, entries: list[TableEntry], best: list[str]) -> str:
    attributes = ' class="ours"' if setting.startswith(RIPPLEVEC_PREFIX) else ""
    fields = "".join(_render_entry(entry, best_mean) for entry, best_mean in zip(entries, best, strict=True))
    return f'<tr{attributes}><th scope="row">{escape(setting)}</th>{fields}</tr>'


def _render_entry(entry: TableEntry, best_mean: str) -> str:
    value, references = escape(format_values(entry.values)), escape(entry.references)
    emphasized = f"<b>{value}</b>" if best_mean and best_mean == _mean_text(entry) else value
    return f"<td>{emphasized}{f' <small>{references}</small>' if references else ''}</td>"


def _best_means(metric: str, rows: list[list[TableEntry]]) -> list[str]:
    """Return the highest mean of every column as text; empty texts unless higher values are known to be better."""
    columns = list(zip(*rows, strict=True))
    if metric.split("@")[0].rsplit("_")[-1] not in SCORE_SUFFIXES:
        return ["" for _ in columns]
    measured = [[entry for entry in column if entry.values] for column in columns]
    return [
        _mean_text(max(column, key=lambda entry: fmean(entry.values))) if len(column) > 1 else "" for column in measured
    ]


def _mean_text(entry: TableEntry) -> str:
    return format_values(entry.values).split(" ")[0]


def _is_plotted(study: Study, metric: str) -> bool:
    """Tell whether a picture shows a metric; a plot over the train shares shows it at each share."""
    plotted = {name for plot in study.plots.values() for name in (plot.figure, *plot.figures)}
    return metric in plotted or metric.partition("@")[0] in plotted


def _render_prose(text: str) -> str:
    """Convert paragraphs, *emphasis* and `code` to HTML; escape everything else."""
    inline = re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text.strip()))
    # A star after a letter belongs to a formula: f*.
    inline = re.sub(r"(?<!\w)\*([^*\s][^*]*)\*", r"<em>\1</em>", inline)
    return "\n".join(f"<p>{paragraph}</p>" for paragraph in re.split(r"\n\s*\n", inline) if paragraph)
