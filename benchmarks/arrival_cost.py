"""Processor time of an arrival with the streaming methods of study `systems`.

    python benchmarks/arrival_cost.py [--datasets cora wiki] [--seeds 1] [--json results/arrival_cost.json]

Every method starts with half of the vertices of a data set; the next 1,024 arrive one at a time, updates included.
Processor time of one thread, because it depends less on other load on the machine. The quality of the methods is in the
study.
"""

from __future__ import annotations

from pathlib import Path
from statistics import fmean
from time import process_time

from _report import run_parts
from threadpoolctl import threadpool_limits

from ripplevec.lab import datasets
from ripplevec.lab.baselines import BASELINES
from ripplevec.lab.datasets import Dataset
from ripplevec.lab.datasets.synthetic import planted_partition
from ripplevec.lab.evaluation.protocols import Arrivals, start_size
from ripplevec.lab.experiments.measurements import Configuration
from ripplevec.lab.experiments.measurements.method_scores import streaming_model_factory
from ripplevec.lab.experiments.study import load_study

STUDY = Path(__file__).resolve().parents[1] / "studies/systems.yaml"
START, ARRIVALS = 0.5, 1024  # as many arrivals as the longest interval between updates in the study


def read_methods() -> dict[str, Configuration]:
    """Return the streaming methods of the study with their parameters."""
    study = load_study(STUDY)
    methods = {name: {"dim": study.parameters["dim"], **setting} for name, setting in study.settings.items()}
    return {name: setting for name, setting in methods.items() if setting["method"] not in BASELINES}


def time_arrival(setting: Configuration, dataset: Dataset, seed: int) -> float:
    """Return the processor microseconds of an arrival."""
    parameters = {name: value for name, value in setting.items() if name != "method"}
    model = streaming_model_factory(setting["method"], {**parameters, "seed": seed})()
    arrivals, begin = Arrivals.from_dataset(dataset, seed), start_size(dataset, START)
    model.fit(arrivals.batch(0, begin))
    end = min(begin + ARRIVALS, dataset.vertices)
    began = process_time()
    for position in range(begin, end):
        model.add_vertex(int(arrivals.order[position]), arrivals.neighbors(position))
    return 1e6 * (process_time() - began) / (end - begin)


def measure(name: str, seeds: int) -> dict[str, float]:
    """Return the microseconds of every method on a data set, mean over the seeds."""
    methods, warm_up, dataset = read_methods(), planted_partition(communities=2, size=200), datasets.load(name)
    with threadpool_limits(limits=1):
        for setting in methods.values():
            time_arrival(setting, warm_up, 0)  # compiles
        return {
            f"{name}, {method}": fmean(time_arrival(setting, dataset, seed) for seed in range(seeds))
            for method, setting in methods.items()
        }


if __name__ == "__main__":
    run_parts(__doc__, measure, "datasets", [*datasets.available()], 1)
