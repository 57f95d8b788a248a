"""Whether our node2vec and NetMF are what others make of them: micro-F1 on Cora beside public implementations.

    python benchmarks/independent.py [--json results/independent.json]

The others (PecanPy for node2vec, Karate Club for NetMF) come from PyPI into an environment of their own, thrown away
afterwards, with the versions they need. Same graph, same settings, same splits, half of the vertices to train on.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from _environment import install, own_variables

from ripplevec.lab import datasets
from ripplevec.lab.baselines import Baseline, NetMF, Node2Vec
from ripplevec.lab.evaluation import classify
from ripplevec.lab.experiments.record import describe_environment

DATASET, SHARE, SEEDS, WITHIN = "cora", 0.5, (0, 1, 2), 0.02


@dataclass(frozen=True, slots=True)
class Peer:
    """A public implementation: what to install, what to install without what it asks for, and how to call it.

    The code finds the dense matrix of the graph as `matrix`, a seed as `seed`, and leaves its vectors as `vectors`.
    """

    name: str
    requirements: tuple[str, ...]
    bare: tuple[str, ...]
    code: str
    remarks: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """One of our methods (all settings but the seed) and who else has it."""

    ours: type[Baseline]
    settings: dict[str, Any]
    peer: Peer


COMMON = ("numpy==1.26.4", "scipy==1.12.0")
PECANPY = Peer(
    "pecanpy==2.0.9",
    (*COMMON, "numba==0.60.0", "gensim==4.3.3", "pecanpy==2.0.9"),
    (),
    """
from pecanpy.pecanpy import SparseOTF
graph = SparseOTF.from_mat(matrix, [str(v) for v in range(len(matrix))], p=0.5, q=2, workers=1, random_state=seed)
vectors = graph.embed(dim=90, num_walks=10, walk_length=39, window_size=7, epochs=1)
""",
    "its walk_length counts steps, our length vertices",
)
KARATE_CLUB = Peer(
    "karateclub==1.3.3",
    (
        *(*COMMON, "networkx==2.8.8", "scikit-learn==1.5.2", "pandas==2.2.3", "gensim==4.3.3"),
        *("pygsp==0.5.1", "python-louvain==0.16", "python-Levenshtein==0.27.1", "tqdm", "six"),
    ),
    ("karateclub==1.3.3",),
    """
import networkx
from karateclub.node_embedding.neighborhood.netmf import NetMF
model = NetMF(dimensions=90, iteration=10, order=10, negative_samples=1, seed=seed)
model.fit(networkx.from_numpy_array(matrix))
vectors = model.get_embedding()
""",
    "it adds a self-loop to every vertex, takes the number of edges for the volume, and leaves singular values whole; "
    "installed without the old versions it asks for",
)
COMPARISONS = (
    Comparison(Node2Vec, {"dim": 90, "walks": 10, "length": 40, "window": 7, "p": 0.5, "q": 2.0}, PECANPY),
    Comparison(NetMF, {"dim": 90, "window": 10, "approximate": False}, KARATE_CLUB),
    Comparison(NetMF, {"dim": 90, "window": 10, "approximate": True}, KARATE_CLUB),
)
STEADY = {"PYTHONHASHSEED": "0", "NUMBA_NUM_THREADS": "1"}  # else PecanPy's vectors differ from run to run
FRAME = """
import sys
import numpy as np
matrix, seed = np.load(sys.argv[1]), int(sys.argv[2])
{code}
np.save(sys.argv[3], vectors)
"""


def theirs(peer: Peer, dataset: datasets.Dataset) -> list[float]:
    """Micro-F1 of the peer, per seed."""
    scores = []
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        python = install(place / "venv", peer.requirements, peer.bare)
        graph, vectors = place / "graph.npy", place / "vectors.npy"
        own = own_variables(**STEADY)
        np.save(graph, dataset.adjacency().toarray())
        for seed in SEEDS:
            command = [str(python), "-c", FRAME.format(code=peer.code), str(graph), str(seed), str(vectors)]
            subprocess.run(command, check=True, capture_output=True, text=True, cwd=place, env=own)
            scores.append(score(np.load(vectors), dataset, seed))
    return scores


def score(vectors: np.ndarray, dataset: datasets.Dataset, seed: int) -> float:
    """Micro-F1 on the half that the classifier was not trained on."""
    order, cut = np.random.default_rng(seed).permutation(dataset.vertices), int(SHARE * dataset.vertices)
    return classify(vectors, dataset.labels, order[:cut], order[cut:]).micro


def compare(comparison: Comparison, dataset: datasets.Dataset, known: dict[str, Any]) -> dict[str, Any]:
    """Both sides' scores and whether they agree; why not, where the peer cannot be installed or run."""
    methods = [comparison.ours(**comparison.settings, seed=seed) for seed in SEEDS]
    ours = [
        score(method.embed(dataset.adjacency()), dataset, seed) for method, seed in zip(methods, SEEDS, strict=True)
    ]
    peer = comparison.peer
    found: dict[str, Any] = {
        "method": comparison.ours.__name__,
        "settings": asdict(methods[0]) | {"seed": list(SEEDS)},  # type: ignore[call-overload]
        "peer": peer.name,
        "installed": [*peer.requirements, *peer.bare],
        "remarks": peer.remarks,
        "ours": ours,
    }
    try:
        if peer.name not in known:
            known[peer.name] = theirs(peer, dataset)
    except subprocess.CalledProcessError as error:
        return found | {"failed": error.stderr.strip().splitlines()[-1:]}
    difference = float(np.mean(ours) - np.mean(known[peer.name]))
    return found | {"theirs": known[peer.name], "difference": difference, "agree": abs(difference) <= WITHIN}


def main() -> int:
    """Compare, print, and write a record if asked; 1 where a comparison was made and the two do not agree."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    where, dataset, known, rows = describe_environment(), datasets.load(DATASET), {}, []
    for comparison in COMPARISONS:
        rows.append(row := compare(comparison, dataset, known))
        own, other = (f"{np.mean(row[side]):.4f}" if side in row else "-" for side in ("ours", "theirs"))
        verdict = row.get("failed") or ("agree" if row["agree"] else f"differ by more than {WITHIN}")
        print(f"{row['method']:10} {own}   {row['peer']:18} {other}   {verdict}", flush=True)
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        record = {"dataset": DATASET, "train_share": SHARE, "score": "micro-F1", "within": WITHIN}
        text = json.dumps(record | {"environment": where, "comparisons": rows}, indent=1, ensure_ascii=False)
        options.json.write_text(text + "\n", encoding="utf-8")
    return 0 if all(row.get("agree", True) for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
