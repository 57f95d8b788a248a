"""Check of our static baselines on Cora: micro-F1 compared with public implementations.

    python benchmarks/baseline_check.py [--only netmf struc2vec] [--line PROGRAM] [--json results/independent.json]

The program of the authors (DeepWalk), PecanPy (node2vec), Karate Club (NetMF, GraphWave) and dgllge (struc2vec) are
installed from PyPI, in the versions they need, into a temporary virtual environment. The authors' program of LINE is
not on PyPI: `--line` names the program that `make` builds in the folder `linux` of github.com/tangjianpku/LINE (it
needs the GNU Scientific Library). Without `--line`, LINE is left out. Graph, settings and splits are the same; half of
the vertices are for training. struc2vec and GraphWave do not embed topics but roles, so they are also compared on
classes of the number of walks of two edges that a vertex begins. In the record, only the comparisons that were run are
replaced.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from _venv import create_venv, isolated_variables

from ripplevec.lab import datasets
from ripplevec.lab.baselines import LINE, Baseline, DeepWalk, GraphWave, NetMF, Node2Vec, Struc2Vec
from ripplevec.lab.evaluation import classify
from ripplevec.lab.experiments.record import describe_environment

DATASET, TRAIN_SHARE, SEEDS, TOLERANCE = "cora", 0.5, (0, 1, 2), 0.02


@dataclass(frozen=True, slots=True)
class Peer:
    """A public implementation: its packages, those of them to install without dependencies, and the code to run.

    The code reads the dense adjacency matrix `matrix`, the seed `seed` and, for a peer without packages, the path
    `program` of a compiled program, and assigns the result to `vectors`.
    """

    name: str
    requirements: tuple[str, ...]
    without_dependencies: tuple[str, ...]
    code: str
    remarks: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """One of our methods with its settings (except the seed), the public implementation, and the labels to predict."""

    method: type[Baseline]
    settings: dict[str, Any]
    peer: Peer
    labels: str = "published classes"
    other_design: bool = False  # scores are expected to differ, as docs/paper.md explains


SHARED_REQUIREMENTS = ("numpy==1.26.4", "scipy==1.12.0")
PECANPY = Peer(
    "pecanpy==2.0.9",
    (*SHARED_REQUIREMENTS, "numba==0.60.0", "gensim==4.3.3", "pecanpy==2.0.9"),
    (),
    """
from pecanpy.pecanpy import SparseOTF
graph = SparseOTF.from_mat(matrix, [str(v) for v in range(len(matrix))], p=0.5, q=2, workers=1, random_state=seed)
vectors = graph.embed(dim=90, num_walks=10, walk_length=39, window_size=7, epochs=1)
""",
    "its walk_length counts steps, our length vertices",
)
DEEPWALK = Peer(
    "deepwalk==1.0.3",
    (*SHARED_REQUIREMENTS, "gensim==4.3.3", "six"),
    ("deepwalk==1.0.3",),
    """
import collections, collections.abc, random
collections.Iterable = collections.abc.Iterable
from deepwalk import graph as walker
from gensim.models import Word2Vec
neighbors = [[v + 1, *(np.flatnonzero(matrix[v]) + 1)] for v in range(len(matrix))]
walks = walker.build_deepwalk_corpus(walker.from_adjlist(neighbors), 10, 40, alpha=0, rand=random.Random(seed))
trained = Word2Vec(walks, vector_size=90, window=7, min_count=0, sg=1, hs=1, workers=1, seed=seed)
vectors = trained.wv[[str(v + 1) for v in range(len(matrix))]]
""",
    "the walks of its authors' program, and its training by gensim, with five epochs and hierarchical softmax as well "
    "as negative samples; called from Python because its command needs an older gensim",
)
KARATE_CLUB_NAME = "karateclub==1.3.3"
KARATE_CLUB_REQUIREMENTS = (
    *(*SHARED_REQUIREMENTS, "networkx==2.8.8", "scikit-learn==1.5.2", "pandas==2.2.3", "gensim==4.3.3"),
    *("pygsp==0.5.1", "python-louvain==0.16", "python-Levenshtein==0.27.1", "tqdm", "six"),
)
SELF_LOOPS = "it adds a self-loop to every vertex"
OLD_VERSIONS = "installed without the old versions it requires"
NETMF = Peer(
    KARATE_CLUB_NAME,
    KARATE_CLUB_REQUIREMENTS,
    (KARATE_CLUB_NAME,),
    """
import networkx
from karateclub.node_embedding.neighbourhood.netmf import NetMF
model = NetMF(dimensions=90, iteration=10, order=10, negative_samples=1, seed=seed)
model.fit(networkx.from_numpy_array(matrix))
vectors = model.get_embedding()
""",
    f"{SELF_LOOPS}, uses the number of edges as the volume, and does not take the square root of singular values; "
    f"{OLD_VERSIONS}",
)
GRAPHWAVE = Peer(
    KARATE_CLUB_NAME,
    KARATE_CLUB_REQUIREMENTS,
    (KARATE_CLUB_NAME,),
    """
import networkx, pygsp, scipy
from karateclub.node_embedding.structural.graphwave import GraphWave

class NormalizedGraph(pygsp.graphs.Graph):
    def __init__(self, matrix):
        super().__init__(matrix, lap_type="normalized")
    def estimate_lmax(self):
        self._lmax = 2.0

scipy.errstate = np.errstate
pygsp.graphs.Graph = NormalizedGraph
GraphWave._check_graph = lambda self, graph: graph
graph = networkx.from_numpy_array(matrix)
largest = graph.subgraph(max(networkx.connected_components(graph), key=len))
values = np.linalg.eigvalsh(networkx.normalized_laplacian_matrix(largest).toarray())
parts = []
for kept, points in ((0.95, 23), (0.85, 22)):
    scale = -np.log(kept) / np.sqrt(values[1] * values[-1])
    model = GraphWave(
        sample_number=points + 1, step_size=100 / points, heat_coefficient=2 * scale, approximation=30, seed=seed
    )
    model.fit(graph)
    parts += np.hsplit(np.delete(model.get_embedding(), [0, points + 1], axis=1), 2)
vectors = np.hstack(parts)
vectors = (vectors - vectors.mean(axis=0)) / vectors.std(axis=0)
""",
    "its wavelets and characteristic functions, for the normalized Laplacian and without the self-loops that it adds; "
    f"scales chosen from dense eigenvalues as in the paper, columns standardized; {OLD_VERSIONS}",
)
LINE_PROGRAM = Peer(
    "LINE, program of its authors",
    (),
    (),
    """
import subprocess
sources, targets = np.nonzero(matrix)
np.savetxt("edges.txt", np.column_stack([sources, targets, matrix[sources, targets]]), fmt="%d")
parts = []
for order in ("1", "2"):
    options = ["-size", "45", "-order", order, "-samples", "5", "-negative", "5", "-rho", "0.025"]
    command = [program, "-train", "edges.txt", "-output", "vectors.txt", *options]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    rows = np.loadtxt("vectors.txt", skiprows=1)
    part = np.zeros((len(matrix), 45))
    part[rows[:, 0].astype(int)] = rows[:, 1:] / np.linalg.norm(rows[:, 1:], axis=1, keepdims=True)
    parts.append(part)
vectors = np.hstack(parts)
""",
    "both orders, each with 5 million samples and rows of length one; its seed is fixed, so only the split differs",
)
DGLLGE_NAME = "dgllge==1.0.3"
DGLLGE_REQUIREMENTS = (
    *("numpy==1.26.4", "scipy==1.12.0", "networkx==2.8.8", "pandas==2.2.3", "scikit-learn==1.5.2"),
    *("gensim==4.3.3", "joblib==1.4.2", "matplotlib==3.9.4", "fastdtw==0.3.4"),
)
IMPORT_DGLLGE = """
import importlib.util, random, types
import networkx, pandas

class Numbers:
    def __init__(self, graph):
        self.classes_ = np.arange(len(graph))
    def transform(self, names):
        return np.asarray(names)
    inverse_transform = transform

sys.modules["torch"] = types.ModuleType("torch")
sys.path.insert(0, importlib.util.find_spec("ge").submodule_search_locations[0])
import struc2vec
struc2vec.RandomWalkEmbedding.encoder = lambda self, graph: Numbers(graph)
"""
SAME_PAIRS = """
degree = matrix.sum(axis=1)
walks = matrix @ degree
order = np.lexsort((np.random.default_rng(seed).random(len(matrix)), matrix @ walks, walks, degree))
position, reach = np.argsort(order), int(np.ceil(np.log2(len(matrix))))
struc2vec.get_vertices = lambda v, *rest: order[position[v] + 1 : position[v] + 1 + reach].tolist()
"""
TRAIN_DGLLGE = """
graph = networkx.from_numpy_array(matrix)
model = struc2vec.Struc2Vec(
    graph, 40, 90, 10, 5, 0.025, stay_prob=0.3, opt3_num_layers=3, temp_path="struc2vec/", reuse=True
)
names = ("layers_adj", "layers_accept", "layers_alias", "gamma")
parts = [pandas.read_pickle(f"struc2vec/{name}.pkl") for name in names]
random.seed(seed)
np.random.seed(seed)
model.sentences = []
for _ in range(10):
    for v in np.random.permutation(len(graph)):
        (walk,) = model.walker._simulate_walks(int(v), 40, 0.3, *parts)
        model.sentences.append([str(u) for u in walk])
trained = model.train(window_size=5, workers=1, epochs=1)
vectors = trained.wv[[str(v) for v in range(len(graph))]]
"""
DGLLGE_REMARKS = (
    "its context graph (with approximate dynamic time warping), its walks, and its training by gensim (with "
    "hierarchical softmax); vertex numbers replace its label encoder, and its other trainer, which needs PyTorch, is "
    "not used"
)
DGLLGE = Peer(DGLLGE_NAME, DGLLGE_REQUIREMENTS, (DGLLGE_NAME,), IMPORT_DGLLGE + TRAIN_DGLLGE, DGLLGE_REMARKS)
DGLLGE_SAME_PAIRS = Peer(
    f"{DGLLGE_NAME}, same pairs",
    DGLLGE_REQUIREMENTS,
    (DGLLGE_NAME,),
    IMPORT_DGLLGE + SAME_PAIRS + TRAIN_DGLLGE,
    f"{DGLLGE_REMARKS}; it compares the pairs of vertices that ours compares, which breaks ties of the degree by the "
    "number of walks instead of the vertex number",
)
ROLES = "walks of two edges"
STRUC2VEC_SETTINGS = {"dim": 90, "walks": 10, "length": 40, "window": 5, "layers": 4}
COMPARISONS = (
    Comparison(Node2Vec, {"dim": 90, "walks": 10, "length": 40, "window": 7, "p": 0.5, "q": 2.0}, PECANPY),
    Comparison(DeepWalk, {"dim": 90, "walks": 10, "length": 40, "window": 7, "epochs": 5}, DEEPWALK),
    Comparison(NetMF, {"dim": 90, "window": 10, "approximate": False}, NETMF),
    Comparison(NetMF, {"dim": 90, "window": 10, "approximate": True}, NETMF),
    Comparison(LINE, {"dim": 90, "samples": 1_846}, LINE_PROGRAM),  # 2,708 vertices: 5 million samples
    Comparison(Struc2Vec, STRUC2VEC_SETTINGS, DGLLGE, other_design=True),
    Comparison(Struc2Vec, STRUC2VEC_SETTINGS, DGLLGE, labels=ROLES, other_design=True),
    Comparison(Struc2Vec, STRUC2VEC_SETTINGS, DGLLGE_SAME_PAIRS),
    Comparison(Struc2Vec, STRUC2VEC_SETTINGS, DGLLGE_SAME_PAIRS, labels=ROLES),
    Comparison(GraphWave, {"dim": 90, "scales": 2}, GRAPHWAVE),
    Comparison(GraphWave, {"dim": 90, "scales": 2}, GRAPHWAVE, labels=ROLES),
)
REPRODUCIBLE = {"PYTHONHASHSEED": "0", "NUMBA_NUM_THREADS": "1"}  # otherwise PecanPy's vectors differ between runs
SCRIPT = """
import sys
import numpy as np
matrix, seed, program = np.load(sys.argv[1]), int(sys.argv[2]), sys.argv[4]
{code}
np.save(sys.argv[3], vectors)
"""


def count_two_edge_walks(dataset: datasets.Dataset) -> np.ndarray:
    """Return, for every vertex, in which quarter the number of walks of two edges that it begins is."""
    graph = dataset.adjacency()
    walks = graph @ np.diff(graph.indptr).astype(np.float64)
    return np.searchsorted(np.quantile(walks, [0.25, 0.5, 0.75]), walks)


LABELS: dict[str, Callable[[datasets.Dataset], np.ndarray]] = {
    "published classes": lambda dataset: dataset.labels,
    ROLES: count_two_edge_walks,
}


def run_peer(peer: Peer, dataset: datasets.Dataset, program: Path | None) -> list[np.ndarray]:
    """Install a public implementation unless it is a program, and run it; return its vectors for each seed."""
    found = []
    with tempfile.TemporaryDirectory() as folder_name:
        folder = Path(folder_name)
        packages = (peer.requirements, peer.without_dependencies)
        python = create_venv(folder / "venv", *packages) if any(packages) else Path(sys.executable)
        graph, vectors = folder / "graph.npy", folder / "vectors.npy"
        variables = isolated_variables(**REPRODUCIBLE)
        np.save(graph, dataset.adjacency().toarray())
        for seed in SEEDS:
            paths = [str(graph), str(seed), str(vectors), str(program or "")]
            command = [str(python), "-c", SCRIPT.format(code=peer.code), *paths]
            subprocess.run(command, check=True, capture_output=True, text=True, cwd=folder, env=variables)
            found.append(np.load(vectors))
    return found


def score_vectors(vectors: np.ndarray, labels: np.ndarray, seed: int) -> float:
    """Return micro-F1 on the half that the classifier was not trained on."""
    order, cut = np.random.default_rng(seed).permutation(len(labels)), int(TRAIN_SHARE * len(labels))
    return classify(vectors, labels, order[:cut], order[cut:]).micro


def compare(
    comparison: Comparison, dataset: datasets.Dataset, peer_vectors: dict[Peer, list[np.ndarray]], program: Path | None
) -> dict[str, Any]:
    """Compare the scores; the result has an error (`failed`) if the public implementation cannot be installed or run.

    `peer_vectors` caches the vectors of public implementations that have already been run.
    """
    methods = [comparison.method(**comparison.settings, seed=seed) for seed in SEEDS]
    labels, peer = LABELS[comparison.labels](dataset), comparison.peer

    def score(vectors: list[np.ndarray]) -> list[float]:
        return [score_vectors(rows, labels, seed) for rows, seed in zip(vectors, SEEDS, strict=True)]

    ours = score([method.embed(dataset.adjacency()) for method in methods])
    result: dict[str, Any] = {
        "method": comparison.method.__name__,
        "settings": asdict(methods[0]) | {"seed": list(SEEDS)},  # type: ignore[call-overload]
        "labels": comparison.labels,
        "other_design": comparison.other_design,
        "peer": peer.name,
        "installed": [*peer.requirements, *peer.without_dependencies],
        "remarks": peer.remarks,
        "ours": ours,
    }
    try:
        if peer not in peer_vectors:
            peer_vectors[peer] = run_peer(peer, dataset, program)
    except subprocess.CalledProcessError as error:
        return result | {"failed": error.stderr.strip().splitlines()[-1:]}
    theirs = score(peer_vectors[peer])
    difference = float(np.mean(ours) - np.mean(theirs))
    return result | {"theirs": theirs, "difference": difference, "agree": abs(difference) <= TOLERANCE}


def main() -> int:
    """Compare, print, and write a record if requested.

    Returns 1 if a peer could not be run, or if scores differ that should not.
    """
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = sorted({comparison.method.__name__.lower() for comparison in COMPARISONS})
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="METHOD")
    parser.add_argument("--line", type=Path, metavar="PROGRAM", help="the authors' compiled program of LINE")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    program = options.line and options.line.resolve(strict=True)
    dataset, rows = datasets.load(DATASET), []
    peer_vectors: dict[Peer, list[np.ndarray]] = {}
    for comparison in COMPARISONS:
        if comparison.method.__name__.lower() not in options.only or (comparison.peer is LINE_PROGRAM and not program):
            continue
        row = compare(comparison, dataset, peer_vectors, program) | {"environment": describe_environment()}
        rows.append(row)
        ours, theirs = (f"{np.mean(row[side]):.4f}" if side in row else "-" for side in ("ours", "theirs"))
        verdict = row.get("failed") or ("agree" if row["agree"] else f"differ by more than {TOLERANCE}")
        print(f"{row['method']:10} {ours}   {row['peer']:27} {theirs}   {verdict}", flush=True)
    if options.json:
        write_record(options.json, rows)
    return 0 if all(row.get("agree") or (row["other_design"] and "theirs" in row) for row in rows) else 1


def write_record(path: Path, rows: list[dict[str, Any]]) -> None:
    """Write the comparisons; those of other methods in an existing file are kept."""
    kept = json.loads(path.read_text(encoding="utf-8"))["comparisons"] if path.exists() else []
    replaced = {row["method"] for row in rows}
    rows = [row for row in kept if row["method"] not in replaced] + rows
    record = {"dataset": DATASET, "train_share": TRAIN_SHARE, "score": "micro-F1", "within": TOLERANCE}
    text = json.dumps(record | {"comparisons": rows}, indent=1, ensure_ascii=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
