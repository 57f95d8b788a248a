"""Settings of baselines in the benchmarks: grids of candidates, trials in parallel, and the best candidate."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import product
from multiprocessing import get_context
from typing import Any

from threadpoolctl import threadpool_limits

Settings = dict[str, Any]
Grid = dict[str, list[Any]]


def expand_grids(grids: Sequence[Grid]) -> list[Settings]:
    """Return every combination of the values of each grid, without repetitions."""
    candidates: list[Settings] = []
    for grid in grids:
        for values in product(*grid.values()):
            candidate = dict(zip(grid, values, strict=True))
            if candidate not in candidates:
                candidates.append(candidate)
    return candidates


def describe_settings(settings: Settings) -> str:
    """Return the settings as text, or `default`."""
    return ", ".join(f"{name} {value}" for name, value in settings.items()) or "default"


def select_best(candidates: Sequence[Settings], scores: Mapping[str, float]) -> Settings:
    """Return the candidate with the highest score, the first one of equals; scores have the texts of the settings."""
    missing = [text for text in map(describe_settings, candidates) if text not in scores]
    if missing:
        raise SystemExit(f"grid: expected a score of every candidate, got none of {missing[0]!r}. Run the grid first.")
    return max(candidates, key=lambda candidate: scores[describe_settings(candidate)])


def run_tasks(function: Callable[..., Any], tasks: Sequence[tuple[Any, ...]], jobs: int) -> Iterator[tuple[int, Any]]:
    """Yield the number and the result of each task when it is done; each runs with one thread of linear algebra."""
    if jobs == 1:
        for number, task in enumerate(tasks):
            yield number, _run_with_one_thread(function, task)
        return
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        futures = {pool.submit(_run_with_one_thread, function, task): number for number, task in enumerate(tasks)}
        for future in as_completed(futures):
            yield futures[future], future.result()


def _run_with_one_thread(function: Callable[..., Any], task: tuple[Any, ...]) -> Any:
    with threadpool_limits(limits=1):
        return function(*task)
