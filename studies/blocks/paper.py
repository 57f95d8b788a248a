"""Tables of docs/paper.md: the experiments of the paper, compared with its claims and printed numbers."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Sequence
from functools import partial

from blocks.comparison import classification_score, find_strongest
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
    load_results,
    markdown_table,
    mean,
    mean_paired_difference,
    read_record,
    space_percent_signs,
    table_by_dataset,
)
from ripplevec.lab import datasets

ARRIVAL, END = "on arrival", "at the end"
PROTOCOLS = {ARRIVAL: "arrival", END: "current"}
ROUNDING = 0.005  # rounding error of numbers printed with two decimals
RULES = {"paper": PAPER, "ripple": OURS}
TIMED_BASELINES = {"deepwalk": "DeepWalk", "node2vec": "node2vec", "struc2vec": "struc2vec", "netmf": "NetMF"}


def data_sets() -> str:
    """Return Table 2 of the paper and the counts in the files."""
    infos = datasets.available()
    rows: dict[str, Callable[[datasets.DatasetInfo], int]] = {
        "vertices": lambda info: info.vertices,
        "classes": lambda info: info.classes,
        "edges in Table 2": lambda info: info.paper_edges,
        "distinct pairs, without self-loops": lambda info: info.edges,
        "self-loops": lambda info: info.self_loops,
    }

    def row(count: Callable[[datasets.DatasetInfo], int]) -> CellFormatter:
        return lambda name: f"{count(infos[name]):,}"

    return table_by_dataset({label: row(count) for label, count in rows.items()})


def index_order() -> str:
    """Return how strongly the order by index depends on the classes."""
    return _stream_facts(
        "index",
        {
            "classes": ("classes", "{:.0f}"),
            "classes in the first half by index": ("classes_in_first_half", "{:.0f}"),
            "vertices of the second half whose class is not in the first": ("second_half_of_unseen_class", "{:.0%}"),
            "NMI of class and decile of the index": ("nmi_of_tenth_and_class", "{:.1%}"),
            "the same with shuffled classes": ("nmi_if_shuffled", "{:.1%}"),
        },
    )


def influence() -> str:
    """Return the sizes of influenced sets and the number of zero vectors at the end."""
    return _stream_facts(
        "influence",
        {
            "empty influenced sets": ("nobody_influenced", "{:.0%}"),
            "influenced sets of one vertex": ("one_influenced", "{:.0%}"),
            "vertices with the zero vector at the end": ("zero_at_the_end", "{:.0%}"),
            "vertices that were never placed (included above)": ("never_placed", "{:.0%}"),
        },
    )


def components() -> str:
    """Return how connected the graphs and their starts are."""
    return _stream_facts(
        "components",
        {
            "components of the whole graph": ("components", "{:,}"),
            "components of the start": ("components_of_start", "{:,}"),
            "vertices of the start outside its largest component": ("start_outside_largest", "{:,}"),
        },
    )


def _stream_facts(part: str, rows: dict[str, tuple[str, str]]) -> str:
    """Return a table of one part of the record streams.json, with a key and a number format per row."""
    facts = read_record("streams.json")
    if facts is None:
        return MISSING

    def row(key: str, form: str) -> CellFormatter:
        return lambda name: space_percent_signs(form.format(facts["datasets"][name][part][key]))

    return table_by_dataset({label: row(*entry) for label, entry in rows.items()})


def readings() -> str:
    """Return micro-F1 of every reading of the paper: on arrival / at the end."""
    results = load_results("readings")
    both = ["arrival_micro", "current_micro"]
    rows = {setting: results.means(both, setting, format_points) for setting in results.study.settings}
    default = next(iter(rows))
    rows["final graph embedded from scratch, settings of the first row"] = results.means(
        ["exact_micro"], default, format_points
    )
    return table_by_dataset(rows, results.study.datasets)


READING_WORDS = {
    "depth 1": "one round",
    "depth 2": "two rounds",
    "on_empty neighbors": "empty set: neighbors",
    "on_empty zero": "empty set: zero",
    "on_empty resample": "empty set: drawn again",
    "late_placement True": "placed later",
    "late_placement False": "not placed later",
    "components together": "components together",
    "components separate": "components separate",
}
"""How the parameters in the setting names of study `readings_grid` are called in tables."""


def best_reading() -> str:
    """Return micro-F1 on arrival of the default and of the best combination of readings, next to the baselines."""
    results = load_results("readings_grid")
    default, rows = next(iter(results.study.settings)), {}

    def format_best(metric: str) -> CellFormatter:
        def format_cell(name: str) -> str:
            scores = {setting: results.mean(metric, setting, name) for setting in results.study.settings}
            if not all_measured(*scores.values()):
                return MISSING
            best = max(scores, key=scores.__getitem__)
            words = (READING_WORDS[part] for part in best.partition(": ")[2].split(", "))
            return f"{format_points(scores[best])} ({', '.join(words)})"

        return format_cell

    for share in (50, 90):
        metric = f"arrival_micro@{share}"
        rows[f"{share} % for training, default"] = results.means([metric], default, format_points)
        rows[f"{share} % for training, best"] = format_best(metric)
        rows[f"{share} % for training, best baseline of the paper"] = partial(_best_baseline, share)
    return table_by_dataset(rows, results.study.datasets)


def _best_baseline(share: int, name: str) -> str:
    """Return the highest micro-F1 of the four baselines of the paper, with the seed of the combined readings."""
    results, seed = load_results("classification"), load_results("readings_grid").study.seeds[0]
    scores = {
        other: results.by_seed(f"current_micro@{share}", other, name).get(seed, math.nan) for other in PAPER_BASELINES
    }
    if not all_measured(*scores.values()):
        return MISSING
    best = max(scores, key=scores.__getitem__)
    return f"{format_points(scores[best])} ({best})"


def epochs() -> str:
    """Return micro-F1 of DeepWalk with one epoch and with three, on the vertices held back."""
    results = load_results("grid")
    setting = "DeepWalk: length 10, window 10, epochs {}"
    return table_by_dataset({
        f"{word} of skip-gram": results.means(["validation_micro"], setting.format(number), format_points)
        for word, number in {"one epoch": 1, "three epochs": 3}.items()
    })  # fmt: skip


def order() -> str:
    """Return micro-F1 at 50 %: on arrival / at the end, or only at the end for retrained vectors."""
    random_order, by_index = load_results("classification"), load_results("order")
    rows = {}
    for method in (OURS, PAPER, "DeepWalk"):
        metrics = ["current_micro@50"] if method == "DeepWalk" else ["arrival_micro@50", "current_micro@50"]
        rows[f"{method}, random order"] = random_order.means(metrics, method, format_points)
        rows |= {
            setting: by_index.means(metrics, setting, format_points)
            for setting in by_index.study.settings
            if setting.startswith(f"{method}, ")
        }
    return table_by_dataset(rows)


def f1(score: str) -> str:
    """Return micro- or macro-F1 at 50 % of both rules and of the four baselines of the paper."""
    results = load_results("classification")
    rows = {
        f"rule `{rule}`, {when}": results.mean_and_deviation(f"{protocol}_{score}@50", setting)
        for rule, setting in RULES.items()
        for when, protocol in PROTOCOLS.items()
    }
    return table_by_dataset(
        rows | {name: results.mean_and_deviation(f"current_{score}@50", name) for name in PAPER_BASELINES}
    )


def as_good() -> str:
    """Return how F1 compares with the best of the four baselines over all points of the two figures of the paper."""
    head = ["equal or above", "no more than one point below", "mean difference"]
    cases = itertools.product(("micro", "macro"), RULES, PROTOCOLS)
    rows = {f"{score}-F1, rule `{rule}` {when}": _compare_points(score, rule, when) for score, rule, when in cases}
    return markdown_table(head, rows)


def _compare_points(score: str, rule: str, when: str) -> list[str]:
    gaps = _leads(score, RULES[rule], PROTOCOLS[when])
    if not all_measured(*gaps):
        return [MISSING] * 3
    counts = [f"{_count_at_least(gaps, least)} of {len(gaps)}" for least in (0, -1)]
    return [*counts, format_signed(mean(gaps))]


def _leads(score: str, setting: str, protocol: str) -> list[float]:
    """Return the lead of a setting over the best of the paper's four baselines, for every share and data set."""
    results = load_results("classification")
    return [
        find_strongest(
            PAPER_BASELINES,
            name,
            classification_score(f"current_{score}@{share}"),
            results.by_seed(f"{protocol}_{score}@{share}", setting, name),
        ).lead
        for share in SHARES
        for name in NAMES
    ]


def _count_at_least(values: Sequence[float], least: float) -> int:
    return sum(value >= least for value in values)


def verdicts() -> str:
    """Return the claims of the paper about its rule, each with a verdict and the measurements."""
    rows = {
        "F1 “almost the same or even slightly better” than the best of the four": _same_f1(),
        "micro-F1 on CiteSeer, Cora and Wiki “outperforms almost all baseline methods … for most percentages”": (
            _outperforms()
        ),
        "F1 grows with the training share": _grows_with_share(),
        "clustering: “the best performance on Cora and Flickr”": _clusters_best(),
        "running time “much smaller” than a retraining with random walks": _much_faster(),
        "running time: “reasonably good stability to the training percentages”": _stable_time(),
        "“the increased running times … is not as large as other baseline methods when the network size increases”": (
            _grows_less()
        ),
        "an arrival takes O(β) for the mean degree β, with one round": _local_cost(),
    }
    lines = [f"| {claim} | {_verdict(*finding)} |" for claim, finding in rows.items()]
    return "\n".join(["| claim | reproduces? | measured |", "|---|---|---|", *lines])


def _verdict(values: Sequence[float], least: float, template: str) -> str:
    """Return yes, no or in part, by how many values are at least `least`, and the template filled with them."""
    if not all_measured(*values):
        return f"{MISSING} | {MISSING}"
    good = _count_at_least(values, least)
    word = "yes" if good == len(values) else "no" if good < len(values) / 10 else "in part"
    low, high = min(values), max(values)
    text = template.format(good=good, of=len(values), low=low, high=high, mean=mean(values))
    return f"{word} | {re.sub(r'-(?=[0-9])', '−', text)}"


def _same_f1() -> tuple[list[float], float, str]:
    gaps = [gap for score in ("micro", "macro") for gap in _leads(score, PAPER, "arrival")]
    return (
        gaps,
        -1.0,
        "at most one point lower at {good} of {of} points of the two figures; {mean:+.1f} points on average",
    )


def _outperforms() -> tuple[list[float], float, str]:
    """Count the shares at which the rule beats “almost all” (three of the four); “most” of the nine is five."""
    counts = [sum(_beats_three(name, share) for share in SHARES) for name in ("citeseer", "cora", "wiki")]
    return counts, 5.0, "on {good} of {of} data sets; above three of the four at no more than {high:.0f} of nine shares"


def _beats_three(name: str, share: int) -> float:
    results = load_results("classification")
    ours = results.by_seed(f"arrival_micro@{share}", PAPER, name)
    leads = [
        mean_paired_difference(ours, results.by_seed(f"current_micro@{share}", other, name))
        for other in PAPER_BASELINES
    ]
    return float(sum(lead > 0 for lead in leads) >= 3) if all_measured(*leads) else math.nan


def _grows_with_share() -> tuple[list[float], float, str]:
    """Compare F1 at every training share with that at the share before, and name the data set that falls most."""
    results = load_results("classification")
    curves = {name: [results.mean(f"arrival_micro@{share}", PAPER, name) for share in SHARES] for name in NAMES}
    steps = [after - before for curve in curves.values() for before, after in itertools.pairwise(curve)]
    gains = [curve[-1] - curve[0] for curve in curves.values()]
    positive = sum(gain > 0 for gain in gains)
    text = (
        "micro-F1 is not lower than one share before at {good} of {of} steps; at 90 % it is higher than at 10 % on "
        f"{positive} of {len(gains)} data sets ({min(gains):+.1f} to {max(gains):+.1f} points)"
    )
    return steps, 0.0, f"{text}; {_describe_largest_fall(curves)}"


def _describe_largest_fall(curves: dict[str, list[float]]) -> str:
    """Return how far F1 falls from its maximum to the last share, on the data set where it falls most."""
    name = max(curves, key=lambda name: max(curves[name]) - curves[name][-1])
    highest, last = max(curves[name]), curves[name][-1]
    share = SHARES[curves[name].index(highest)]
    return f"{NAMES[name]} falls from {highest:.1f} at {share} % to {last:.1f} at {SHARES[-1]} %"


def _clusters_best() -> tuple[list[float], float, str]:
    results = load_results("classification")
    gaps = [
        find_strongest(
            PAPER_BASELINES, name, classification_score(score), results.by_seed(f"arrival_{score}", PAPER, name)
        ).lead
        for score in ("nmi", "completeness")
        for name in ("cora", "flickr")
    ]
    template = (
        "NMI and completeness: best in {good} of {of} cases; {low:+.1f} to {high:+.1f} points from the best of the four"
    )
    return gaps, 0.0, template


def _much_faster() -> tuple[list[float], float, str]:
    timed = load_results("time")
    times = [
        timed.mean("fastest_walker", "one thread", name) / timed.mean("paper", "one thread", name) for name in NAMES
    ]
    return times, 2.0, "{low:.1f} to {high:.1f} times faster than the fastest of DeepWalk, node2vec, struc2vec"


def clustering_metric(setting: str, score: str) -> str:
    """Return the metric that the paper reports: for its own rule, that of the vectors on arrival."""
    return f"arrival_{score}" if setting == PAPER else score


def printed_value(score: str, setting: str, name: str) -> float:
    """Return a number printed in Table 3 of the paper."""
    return load_results("classification").study.reference_values(clustering_metric(setting, score), setting, name)[
        "paper"
    ]


def clustering(score: str) -> str:
    """Return NMI or completeness, with the numbers printed in the paper in brackets."""
    results = load_results("classification")

    def with_printed_value(setting: str) -> CellFormatter:
        metric = clustering_metric(setting, score)
        return lambda name: (
            f"{format_points(results.mean(metric, setting, name))} ({printed_value(score, setting, name):.2f})"
        )

    return table_by_dataset({
        "rule `paper`, vectors on arrival": with_printed_value(PAPER),
        "rule `paper`, vectors at the end": results.means([score], PAPER, format_points),
        **{name: with_printed_value(name) for name in PAPER_BASELINES},
        "rule `ripple`, vectors at the end": results.means([score], OURS, format_points),
    })  # fmt: skip


def most_nmi() -> str:
    """Return the NMI printed in the paper and the maximum that the printed completeness allows.

    NMI is the harmonic mean of completeness I/H(K) and homogeneity I/H(C), and H(K) is at most log K. With as many
    clusters as classes, NMI is at most completeness · 2 / (1 + H(C) / log K), for one clustering and for a mean.
    """
    facts = read_record("streams.json")
    if facts is None:
        return MISSING

    def row(setting: str) -> CellFormatter:
        def format_cell(name: str) -> str:
            nmi, completeness = (printed_value(score, setting, name) for score in ("nmi", "completeness"))
            room = 2 / (1 + facts["datasets"][name]["index"]["entropy_of_classes_over_most"])
            most = (completeness + ROUNDING) * room
            return f"**{nmi:.2f} > {most:.2f}**" if nmi - ROUNDING > most else f"{nmi:.2f} ≤ {most:.2f}"

        return format_cell

    return table_by_dataset({name: row(name) for name in (PAPER, *PAPER_BASELINES)})


def seconds() -> str:
    """Return seconds with one thread."""
    timed = load_results("time")
    labels = timed.study.plots["seconds"].figures | {"paper": PAPER}
    return table_by_dataset(
        {label: timed.means([metric], "one thread", format_number) for metric, label in labels.items()}
    )


def seconds_by_share() -> str:
    """Return the seconds of start and stream by rule `paper` for every training share, median over the seeds."""

    def row(share: int) -> CellFormatter:
        return lambda name: format_number(_share_seconds(name, share))

    rows = {f"rule `paper`, {share} %": row(share) for share in SHARES}
    return table_by_dataset(rows | {"largest / smallest": lambda name: format_number(_share_ratio(name))})


def _share_seconds(name: str, share: int) -> float:
    return load_results("time").median(f"paper@{share}", "one thread", name)


def _share_ratio(name: str) -> float:
    """Return the longest time of rule `paper` over the shortest, over the training shares."""
    seconds = [_share_seconds(name, share) for share in SHARES]
    return max(seconds) / min(seconds) if all_measured(*seconds) else math.nan


def _stable_time() -> tuple[list[float], float, str]:
    ratios = [-_share_ratio(name) for name in NAMES]
    text = "the longest time is at most twice the shortest on {good} of {of} data sets (medians over the seeds)"
    return ratios, -2.0, text


def _grows_less() -> tuple[list[float], float, str]:
    """Compare the growth of the running time from the smallest to the largest data set with that of each baseline."""
    timed = load_results("time")

    def growth(method: str) -> float:
        small, large = (timed.mean(method, "one thread", name) for name in ("wiki", "flickr"))
        return large / small

    differences = [growth(method) - growth("paper") for method in TIMED_BASELINES]
    others = ", ".join(f"{label} {growth(method):.1f}" for method, label in TIMED_BASELINES.items())
    own = growth("paper")
    return (
        differences,
        0.0,
        f"less than {{good}} of the {{of}}: from Wiki to Flickr {own:.1f} times the seconds; {others}",
    )


def _local_cost() -> tuple[list[float], float, str]:
    """Compare the cost of an arrival in small and large graphs (at most doubled), and with few and many neighbors."""
    results = load_results("local_action")

    def growth(metric: str, first: str, last: str) -> float:
        small, large = (results.mean(metric, setting, results.study.datasets[0]) for setting in (first, last))
        return large / small

    vertices = growth("arrival_us", "4,000 vertices", "300,000 vertices")
    cost, degree = (growth(metric, "2 edges per vertex", "100 edges per vertex") for metric in ("arrival_us", "degree"))
    text = f"75 times the vertices: {vertices:.1f} times the time; {degree:.0f} times the mean degree: {cost:.1f} times"
    return [2 / vertices, degree / cost], 1.0, text


def local_action() -> str:
    """Return the processor time of an arrival by rule `paper`, and the number of vertices it moves."""
    results = load_results("local_action")
    columns = {"arrival_us": "µs of an arrival", "influenced": "vertices moved besides it", "degree": "mean degree"}
    dataset = results.study.datasets[0]
    rows = {
        setting: [format_number(results.mean(metric, setting, dataset)) for metric in columns]
        for setting in results.study.settings
    }
    return markdown_table(list(columns.values()), rows)
