"""Studies and their records as one HTML page that needs nothing else: pictures, tables, and where they come from.

The page is read on a phone as well: pictures fall apart into panels, tables scroll sideways under a column that stays.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from statistics import fmean

from ripplevec.lab.experiments.plots import OURS, draw_apart, svg
from ripplevec.lab.experiments.record import Record
from ripplevec.lab.experiments.report import Cells, Entry, extent, measured, origin, shown, table
from ripplevec.lab.experiments.spec import Study

LONG = 20  # rows; a table that is longer is folded
SCORES = ("micro", "macro", "nmi", "completeness", "auc", "mrr")  # figures of which more is better, by how they end

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


def page(parts: Sequence[tuple[Study, Record]], heading: str, intro: str) -> str:
    """The whole page. `intro` may have paragraphs, *stress* and `code`, as what a study says about itself."""
    contents = "".join(f'<li><a href="#{escape(study.name)}">{escape(study.title)}</a></li>' for study, _ in parts)
    sections = "\n".join(_section(study, record) for study, record in parts)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(heading)}</title>
<style>{CSS}</style>
</head>
<body>
<header>
<h1>{escape(heading)}</h1>
{_prose(intro)}
<nav aria-label="Contents"><ol>{contents}</ol></nav>
</header>
<main>
{sections}
</main>
</body>
</html>
"""


def _section(study: Study, record: Record) -> str:
    cells = measured(study, record)
    return "\n".join([
        f'<section id="{escape(study.name)}">',
        f"<h2>{escape(study.title)}</h2>",
        _prose(study.about),
        f'<p class="soft">{escape(extent(study, record))}</p>',
        f'<div class="grid">{"".join(_picture(study, name, record) for name in study.plots)}</div>',
        *(_table(study, cells, figure) for figure in study.figures),
        '<h3>Where this comes from</h3>',
        f'<ul class="soft">{"".join(f"<li>{escape(line)}</li>" for line in origin(record))}</ul>',
        "</section>",
    ])  # fmt: skip


def _picture(study: Study, name: str, record: Record) -> str:
    title = escape(study.plots[name].title)
    panels = [
        f"<div>{svg(figure, f'{study.name}-{name}-{place}')}</div>"
        for place, figure in enumerate(draw_apart(study, name, record))
    ]
    kind = ' class="many"' if len(panels) > 1 else ""
    return f'<figure{kind}><figcaption>{title}</figcaption><div class="grid">{"".join(panels)}</div></figure>'


def _table(study: Study, cells: Cells, figure: str) -> str:
    """A table to unfold; unfolded from the start if no picture shows the same and it is not long."""
    rows = table(study, cells, figure)
    best = _best(figure, list(rows.values()))
    head = "".join(f'<th scope="col">{escape(dataset)}</th>' for dataset in study.datasets)
    body = "".join(_row(setting, entries, best) for setting, entries in rows.items())
    unfolded = "" if len(rows) > LONG or _drawn(study, figure) else " open"
    note = '<p class="note soft">Bold: the highest mean of a column.</p>' if any(best) else ""
    return (
        f"<details{unfolded}><summary>{escape(study.figures[figure])}</summary>"
        f'<div class="wide"><table><thead><tr><th></th>{head}</tr></thead><tbody>{body}</tbody></table></div>{note}'
        "</details>"
    )


def _row(setting: str, entries: list[Entry], best: list[str]) -> str:
    kind = ' class="ours"' if setting.startswith(OURS) else ""
    fields = "".join(_field(entry, of_column) for entry, of_column in zip(entries, best, strict=True))
    return f'<tr{kind}><th scope="row">{escape(setting)}</th>{fields}</tr>'


def _field(entry: Entry, best: str) -> str:
    value, beside = escape(shown(entry.values)), escape(entry.beside)
    stressed = f"<b>{value}</b>" if best and best == _mean(entry) else value
    return f"<td>{stressed}{f' <small>{beside}</small>' if beside else ''}</td>"


def _best(figure: str, rows: list[list[Entry]]) -> list[str]:
    """The highest mean of every column as it is shown; nothing unless it is known that more is better."""
    columns = list(zip(*rows, strict=True))
    if figure.split("@")[0].rsplit("_")[-1] not in SCORES:
        return ["" for _ in columns]
    some = [[entry for entry in column if entry.values] for column in columns]
    return [_mean(max(of, key=lambda entry: fmean(entry.values))) if len(of) > 1 else "" for of in some]


def _mean(entry: Entry) -> str:
    return shown(entry.values).split(" ")[0]


def _drawn(study: Study, figure: str) -> bool:
    """Whether a picture shows a figure; one of a figure over the train shares shows it at each of them."""
    drawn = {name for plot in study.plots.values() for name in (plot.figure, *plot.figures)}
    return figure in drawn or figure.partition("@")[0] in drawn


def _prose(text: str) -> str:
    """Paragraphs, *stress* and `code`; everything else as it is written."""
    inline = re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text.strip()))
    inline = re.sub(r"\*([^*\s][^*]*)\*", r"<em>\1</em>", inline)
    return "\n".join(f"<p>{paragraph}</p>" for paragraph in re.split(r"\n\s*\n", inline) if paragraph)
