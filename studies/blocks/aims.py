"""What was aimed at before anything was measured, and what came of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from blocks.comparison import SCORES, ahead
from blocks.records import NAMES, NOTHING, RETRAINED, STREAMING, TUNED, known, plain, results, signed

AT_THE_PAPERS, BEST_TUNED, ALL = "each retrained baseline at the paper's setting", "the best tuned one", len(NAMES)


@dataclass(frozen=True)
class Aim:
    """A number that is to be at least so much on `wanted` data sets."""

    text: str
    least: float
    values: dict[str, float]
    wanted: int = ALL
    show: Callable[[float], str] = signed

    def row(self) -> str:
        """The aim, whether it was met, on how many data sets, and where it was not or only just."""
        if not known(*self.values.values()):
            return f"| {self.text} | {NOTHING} | {NOTHING} |"
        short = [name for name, value in self.values.items() if value < self.least]
        reached = len(self.values) - len(short)
        told = short or [min(self.values, key=self.values.__getitem__)]
        where = ", ".join(f"{NAMES[name]} {self.show(self.values[name])}" for name in told)
        verdict = "met" if reached >= self.wanted else "**missed**"
        return (
            f"| {self.text} | {verdict}, {reached} of {len(self.values)} | {'short' if short else 'lowest'}: {where} |"
        )


def aims() -> str:
    """The table of all aims."""
    head = ["| aim (on all five data sets, unless it says otherwise) | | where |", "|---|---|---|"]
    return "\n".join([*head, *(aim.row() for aim in [*_of_scores(), *_of_clusters(), *_on_arrival(), *_of_time()])])


def _of_scores() -> list[Aim]:
    return [
        aim
        for score, of in SCORES.items()
        if score != "nmi"
        for aim in (
            Aim(f"{score}-F1 at least that of {AT_THE_PAPERS}", 0, ahead(RETRAINED, of)),
            Aim(f"{score}-F1 at most 1 point below {BEST_TUNED}", -1, ahead(TUNED, of)),
            Aim(f"{score}-F1 above {BEST_TUNED}, on three data sets", 0, ahead(TUNED, of), 3),
            Aim(f"{score}-F1 above every streaming baseline", 0, ahead(STREAMING, of)),
        )
    ]


def _of_clusters() -> list[Aim]:
    everyone = (*RETRAINED, *TUNED, *STREAMING)
    return [Aim("NMI at most 1.5 points below the best of all of them", -1.5, ahead(everyone, SCORES["nmi"]))]


def _on_arrival() -> list[Aim]:
    found = results("checkpoint")

    def difference(score: str, name: str) -> float:
        theirs = found.mean(f"checkpoint_{score}", "spectral, every 5 %", name)
        return found.mean(f"arrival_{score}", "ripplet, on arrival", name) - theirs

    return [
        Aim(
            f"on arrival, {score}-F1 at most 3 points below plain spectral retrained every 5 %",
            -3,
            {name: difference(score, name) for name in NAMES},
        )
        for score in ("micro", "macro")
    ]


def _of_time() -> list[Aim]:
    wanted = {
        "start and stream without anchors, 10 times faster than the fastest retraining by walks": ("no_anchor_", 10),
        "start and stream with anchors, 3 times faster": ("", 3),
        "an arrival without anchors, 10,000 times faster than that retraining": ("no_anchor_arrival_", 10_000),
        "an arrival with its share of the anchors, 500 times faster": ("arrival_", 500),
    }
    return [Aim(text, least, _faster(which), show=plain) for text, (which, least) in wanted.items()]


def _faster(which: str) -> dict[str, float]:
    return {name: results("time").mean(f"ripplet_{which}times_faster", "one thread", name) for name in NAMES}
