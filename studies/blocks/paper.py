"""The paper's experiments beside its own words and numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence

from blocks.comparison import best, of_classification
from blocks.records import (
    MISSING,
    NAMES,
    OURS,
    PAPER,
    PAPER_BASELINES,
    SHARES,
    CellFormatter,
    all_measured,
    format_number,
    format_points,
    format_signed,
    list_item,
    load_results,
    mean,
    mean_paired_difference,
    read_record,
    table_by_dataset,
)
from ripplevec.lab import datasets

ARRIVAL, END = "on arrival", "at the end"
PROTOCOLS = {ARRIVAL: "arrival", END: "current"}
ROUNDING = 0.005  # of a number printed to two digits
RULES = {"paper": PAPER, "ripple": OURS}


def data_sets() -> str:
    """The paper's Table 2 beside what is in the files."""
    infos = datasets.available()
    rows: dict[str, Callable[[datasets.Info], int]] = {
        "vertices": lambda info: info.vertices,
        "classes": lambda info: info.classes,
        "edges in Table 2": lambda info: info.paper_edges,
        "distinct pairs, without self-loops": lambda info: info.edges,
        "self-loops": lambda info: info.self_loops,
    }

    def fill(count: Callable[[datasets.Info], int]) -> CellFormatter:
        return lambda name: f"{count(infos[name]):,}"

    return table_by_dataset({label: fill(count) for label, count in rows.items()})


def index_order() -> str:
    """How far the order by index follows the classes."""
    return _facts(
        "index",
        {
            "classes": ("classes", "{:.0f}"),
            "classes among the first half by index": ("classes_in_first_half", "{:.0f}"),
            "of the second half, in a class that the first has not": ("second_half_of_unseen_class", "{:.0%}"),
            "NMI of class and tenth of the index": ("nmi_of_tenth_and_class", "{:.1%}"),
            "the same with the classes shuffled": ("nmi_if_shuffled", "{:.1%}"),
        },
    )


def influence() -> str:
    """How many an arrival influences, and what is left of the vectors."""
    return _facts(
        "influence",
        {
            "influenced sets that are empty": ("nobody_influenced", "{:.0%}"),
            "influenced sets of one vertex": ("one_influenced", "{:.0%}"),
            "vertices with the zero vector at the end": ("zero_at_the_end", "{:.0%}"),
            "of these, never placed (in % of all vertices)": ("never_placed", "{:.0%}"),
        },
    )


def _facts(part: str, rows: dict[str, tuple[str, str]]) -> str:
    facts = read_record("streams.json")
    if facts is None:
        return MISSING

    def fill(key: str, form: str) -> CellFormatter:
        return lambda name: form.format(facts["datasets"][name][part][key]).replace("%", " %")

    return table_by_dataset({label: fill(*row) for label, row in rows.items()})


def readings() -> str:
    """Micro-F1 of every reading: on arrival / at the end."""
    found = load_results("readings")
    both = ["arrival_micro", "current_micro"]
    rows = {setting: found.means(both, setting, format_points) for setting in found.study.settings}
    usual = next(iter(rows))
    if (facts := read_record("streams.json")) is not None:
        late = {name: facts["datasets"][name]["never_late"] for name in found.study.datasets}
        rows["no neighbor yet: not placed later"] = lambda name: " / ".join(
            format_points(late[name][one]) for one in both
        )
    rows["final graph embedded anew, as in the first row"] = found.means(["exact_micro"], usual, format_points)
    return table_by_dataset(rows, found.study.datasets)


def epochs() -> str:
    """Micro-F1 on the vertices held back, DeepWalk with one epoch and with three."""
    found = load_results("grid")
    setting = "DeepWalk: length 10, window 10, epochs {}"
    return table_by_dataset({
        f"{word} of skip-gram": found.means(["validation_micro"], setting.format(number), format_points)
        for word, number in {"one epoch": 1, "three epochs": 3}.items()
    })  # fmt: skip


def order() -> str:
    """Micro-F1 at 50 %: on arrival / at the end; at the end only where vectors are retrained."""
    random, found = load_results("classification"), load_results("order")
    rows = {}
    for method in (OURS, PAPER, "DeepWalk"):
        figures = ["current_micro@50"] if method == "DeepWalk" else ["arrival_micro@50", "current_micro@50"]
        rows[f"{method}, random order"] = random.means(figures, method, format_points)
        rows |= {
            setting: found.means(figures, setting, format_points)
            for setting in found.study.settings
            if setting.startswith(f"{method}, ")
        }
    return table_by_dataset(rows)


def f1(score: str) -> str:
    """Micro- or macro-F1 at 50 %, beside the paper's four baselines."""
    found = load_results("classification")
    rows = {
        f"rule `{rule}`, {when}": found.mean_and_deviation(f"{protocol}_{score}@50", setting)
        for rule, setting in RULES.items()
        for when, protocol in PROTOCOLS.items()
    }
    return table_by_dataset(
        rows | {name: found.mean_and_deviation(f"current_{score}@50", name) for name in PAPER_BASELINES}
    )


def as_good() -> str:
    """The paper's claim about F1 at every point of its two figures."""
    lines = [_claim(score, rule, when) for score in ("micro", "macro") for rule in RULES for when in PROTOCOLS]
    return "\n".join(line for line in lines if line) or MISSING


def _claim(score: str, rule: str, when: str) -> str:
    gaps = _behind(score, RULES[rule], PROTOCOLS[when])
    if not all_measured(*gaps):
        return ""
    return list_item(
        f"{score}-F1, rule `{rule}` {when}: level with the best of the four or above it at {_at_least(gaps, 0)} of "
        f"{len(gaps)} points, at most one point below at {_at_least(gaps, -1)}; on average {format_signed(mean(gaps))} points."
    )


def _behind(score: str, setting: str, protocol: str) -> list[float]:
    """How far a setting is from the best of the paper's four baselines, at every share and data set."""
    found = load_results("classification")
    return [
        best(
            PAPER_BASELINES,
            name,
            of_classification(f"current_{score}@{share}"),
            found.by_seed(f"{protocol}_{score}@{share}", setting, name),
        ).ahead
        for share in SHARES
        for name in NAMES
    ]


def _at_least(values: Sequence[float], least: float) -> int:
    return sum(value >= least for value in values)


def verdicts() -> str:
    """The paper's claims about its rule, each with what was found: on how much of it, and in numbers."""
    rows = {
        "F1 “almost the same or even slightly better” than the best of the four": _same_f1(),
        "micro-F1 on CiteSeer, Cora and Wiki “outperforms almost all baseline methods … for most percentages”": (
            _outperforms()
        ),
        "F1 grows with the training share": _grows_with_share(),
        "clustering: “the best performance on Cora and Flickr”": _clusters_best(),
        "running time “much smaller” than a retraining by walks": _much_faster(),
    }
    lines = [f"| {claim} | {_word(*found)} |" for claim, found in rows.items()]
    return "\n".join(["| claim | reproduces? | here |", "|---|---|---|", *lines])


def _word(values: Sequence[float], least: float, told: str) -> str:
    """Yes, no or in part, by how many of the values are at least so much; and the words that tell of them."""
    if not all_measured(*values):
        return f"{MISSING} | {MISSING}"
    good = _at_least(values, least)
    word = "yes" if good == len(values) else "no" if good < len(values) / 10 else "in part"
    low, high = min(values), max(values)
    words = told.format(good=good, of=len(values), low=low, high=high, mean=mean(values))
    return f"{word} | {re.sub(r'-(?=[0-9])', '−', words)}"


def _same_f1() -> tuple[list[float], float, str]:
    gaps = [gap for score in ("micro", "macro") for gap in _behind(score, PAPER, "arrival")]
    return gaps, -1.0, "within one point at {good} of {of} points of the two figures; {mean:+.1f} points on average"


def _outperforms() -> tuple[list[float], float, str]:
    """Almost all of the four is three of them; most percentages are more than half of the nine."""
    often = [sum(_beats_three(name, share) for share in SHARES) for name in ("citeseer", "cora", "wiki")]
    return often, 5.0, "on {good} of {of} data sets; above three of the four at {low:.0f} to {high:.0f} of nine shares"


def _beats_three(name: str, share: int) -> float:
    found = load_results("classification")
    ours = found.by_seed(f"arrival_micro@{share}", PAPER, name)
    leads = [
        mean_paired_difference(ours, found.by_seed(f"current_micro@{share}", other, name)) for other in PAPER_BASELINES
    ]
    return float(sum(lead > 0 for lead in leads) >= 3) if all_measured(*leads) else math.nan


def _grows_with_share() -> tuple[list[float], float, str]:
    found = load_results("classification")
    first, last = (f"arrival_micro@{share}" for share in (SHARES[0], SHARES[-1]))
    gains = [found.mean(last, PAPER, name) - found.mean(first, PAPER, name) for name in NAMES]
    return gains, 0.0, "on {good} of {of} data sets; {low:+.1f} to {high:+.1f} points of micro-F1 from 10 % to 90 %"


def _clusters_best() -> tuple[list[float], float, str]:
    found = load_results("classification")
    gaps = [
        best(PAPER_BASELINES, name, of_classification(figure), found.by_seed(f"arrival_{figure}", PAPER, name)).ahead
        for figure in ("nmi", "completeness")
        for name in ("cora", "flickr")
    ]
    told = "NMI and completeness: {good} of {of}; {low:+.1f} to {high:+.1f} points from the best of the four"
    return gaps, 0.0, told


def _much_faster() -> tuple[list[float], float, str]:
    timed = load_results("time")
    times = [
        timed.mean("fastest_walker", "one thread", name) / timed.mean("paper", "one thread", name) for name in NAMES
    ]
    return times, 2.0, "{low:.1f} to {high:.1f} times faster than the fastest of DeepWalk, node2vec, struc2vec"


def judged(setting: str, figure: str) -> str:
    """A figure of clustering as the paper means it: its own rule is judged by the vectors given on arrival."""
    return f"arrival_{figure}" if setting == PAPER else figure


def printed(figure: str, setting: str, name: str) -> float:
    """What its Table 3 says."""
    return load_results("classification").study.reference_values(judged(setting, figure), setting, name)["paper"]


def clustering(figure: str) -> str:
    """NMI or completeness, the paper's own in brackets."""
    found = load_results("classification")

    def beside(setting: str) -> CellFormatter:
        own = judged(setting, figure)
        return lambda name: f"{format_points(found.mean(own, setting, name))} ({printed(figure, setting, name):.2f})"

    return table_by_dataset({
        "rule `paper`, vectors on arrival": beside(PAPER),
        "rule `paper`, vectors at the end": found.means([figure], PAPER, format_points),
        **{name: beside(name) for name in PAPER_BASELINES},
        "rule `ripple`, vectors at the end": found.means([figure], OURS, format_points),
    })  # fmt: skip


def most_nmi() -> str:
    """The highest NMI that the completeness printed in the paper leaves room for, and the NMI it prints.

    NMI is the harmonic mean of completeness I/H(K) and homogeneity I/H(C), and H(K) is at most log K; so with as many
    clusters as classes NMI is at most completeness · 2 / (1 + H(C) / log K), in a single clustering as in a mean.
    """
    facts = read_record("streams.json")
    if facts is None:
        return MISSING

    def fill(setting: str) -> CellFormatter:
        def one(name: str) -> str:
            nmi, completeness = (printed(figure, setting, name) for figure in ("nmi", "completeness"))
            room = 2 / (1 + facts["datasets"][name]["index"]["entropy_of_classes_over_most"])
            most = (completeness + ROUNDING) * room
            return f"**{nmi:.2f} > {most:.2f}**" if nmi - ROUNDING > most else f"{nmi:.2f} ≤ {most:.2f}"

        return one

    return table_by_dataset({name: fill(name) for name in (PAPER, *PAPER_BASELINES)})


def seconds() -> str:
    """Seconds with one thread."""
    timed = load_results("time")
    labels = timed.study.plots["seconds"].figures | {"paper": PAPER}
    return table_by_dataset(
        {label: timed.means([figure], "one thread", format_number) for figure, label in labels.items()}
    )
