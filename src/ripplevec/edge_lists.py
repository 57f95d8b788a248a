"""Edge lists in the forms of Python, NumPy, SciPy, table and graph libraries, read as plain columns.

The columns are not checked: `Batch.from_any` does this for all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Number
from os import PathLike
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ripplevec.errors import InvalidValueError, shorten

EXPECTED_EDGES = "pairs (src, dst) or triples (src, dst, weight)"

MATRIX_HINT = "Pass an adjacency matrix as scipy.sparse.csr_array(matrix)"

POSITIONAL_COLUMNS = {
    "src": ("src", "source", "from"),
    "dst": ("dst", "target", "to", "destination"),
    "weight": ("weight",),
    "time": ("time", "timestamp"),
}
"""Columns in their order in a file without a header, each with the names recognized by default (in any case)."""

COLUMN_NAMES = {**POSITIONAL_COLUMNS, "op": ("op",)}
"""All columns with the names recognized by default; `op` is recognized by name only, never by position."""


class ArrowColumnLike(Protocol):
    """A PyArrow `Array` or `ChunkedArray`."""

    @property
    def null_count(self) -> int:
        """Number of missing values."""

    def to_pylist(self) -> list[Any]:
        """Return the values as Python objects."""


class SparseMatrixLike(Protocol):
    """A SciPy sparse matrix or sparse array."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of rows and columns."""

    def tocoo(self) -> Any:
        """Convert to coordinate format."""

    def tocsr(self) -> Any:
        """Convert to compressed row format."""


class TableLike(Protocol):
    """A pandas or polars `DataFrame`, or a PyArrow `Table` or `RecordBatch`."""

    @property
    def columns(self) -> Any:
        """The columns, or their names."""

    def __getitem__(self, name: str, /) -> Any:
        """Return one column."""


class NetworkXGraphLike(Protocol):
    """A NetworkX graph of any kind."""

    @property
    def adj(self) -> Any:
        """The adjacency view."""

    @property
    def nodes(self) -> Any:
        """The node view."""

    @property
    def edges(self) -> Any:
        """The edge view."""


class IGraphLike(Protocol):
    """A python-igraph `Graph`."""

    @property
    def vs(self) -> Any:
        """The vertex sequence."""

    @property
    def es(self) -> Any:
        """The edge sequence."""


class GeometricDataLike(Protocol):
    """A PyTorch Geometric `Data` object."""

    @property
    def edge_index(self) -> Any:
        """The edges, a tensor of shape (2, m)."""

    @property
    def num_nodes(self) -> Any:
        """Number of vertices."""


class EdgeColumns(NamedTuple):
    """Columns of an edge list, as the arguments of `Batch`, and the vertices of a graph that lists them."""

    src: Any
    dst: Any
    weight: Any = None
    op: Any = None
    time: Any = None
    vertices: Any = None


class TableColumns(NamedTuple):
    """Names of the columns of a table; None: the names recognized by default."""

    src: Any = None
    dst: Any = None
    weight: Any = None
    time: Any = None


DEFAULT_COLUMNS = TableColumns()


def match_column_names(names: Sequence[str], requested: Mapping[str, Any]) -> dict[str, int]:
    """Return the positions of src, dst, weight, time and op among the names.

    A column is found by its requested name, or by the first of its default names in any case. A column with the
    requested name "none", and one that does not exist, are left out.
    """
    lowered = [name.lower() for name in names]
    positions: dict[str, int] = {}
    for column, default_names in COLUMN_NAMES.items():
        name = requested.get(column)
        if name is None:
            match = next((name for name in default_names if name in lowered), None)
            if match is not None:
                positions[column] = lowered.index(match)
        elif name != "none" and name in names:
            positions[column] = names.index(name)
    return positions


def read_edge_list(edges: Any, *, adding: bool, directed: bool, columns: TableColumns = DEFAULT_COLUMNS) -> EdgeColumns:
    """Return the columns of an edge list in any form but a `Batch`.

    Unless the edges are added, the weights of rows and the vertices of a graph are left out. If `directed`, a symmetric
    matrix has an edge in each direction. `columns` names the columns of a table; its time may be a column itself, with
    one time per row.
    """
    edges, time = collect_lazy_frame(edges), None
    if hasattr(columns.time, "__len__") and not isinstance(columns.time, str | bytes | tuple):
        columns, time = columns._replace(time="none" if is_table(edges) else None), columns.time
    if is_table(edges):
        found = _read_table(edges, columns)
    elif columns != DEFAULT_COLUMNS:
        raise InvalidValueError.of("src, dst, weight, time", "names of columns with a table only", type(edges).__name__)
    else:
        found = _read_other(edges, adding, directed)
    if time is not None and found.vertices is not None:
        raise InvalidValueError.of(
            "time", "one time per row with a table, an array or a list of edges only", type(edges).__name__
        )
    return found if time is None else found._replace(time=time)


def collect_lazy_frame(data: Any) -> Any:
    """Return the table of a lazy frame of polars; other data unchanged."""
    return data.collect() if type(data).__name__ == "LazyFrame" else data


def is_table(data: Any) -> bool:
    """Return whether data is a pandas or polars frame, or a PyArrow table."""
    return isinstance(data, pa.Table | pa.RecordBatch) or (hasattr(data, "columns") and not hasattr(data, "tocoo"))


def _read_other(edges: Any, adding: bool, directed: bool) -> EdgeColumns:
    if hasattr(edges, "tocoo"):
        columns = _read_sparse(edges, directed)
    elif hasattr(edges, "adj") and hasattr(edges, "nodes"):
        columns = _read_networkx(edges)
    elif hasattr(edges, "vs") and hasattr(edges, "es"):
        columns = _read_igraph(edges)
    elif hasattr(edges, "edge_index") and hasattr(edges, "num_nodes"):
        columns = _read_sparse(_geometric_to_sparse(edges), directed)
    else:
        return _read_array(edges, adding) if isinstance(edges, np.ndarray) else _read_rows(edges, adding)
    return columns if adding else columns._replace(vertices=None)


def _read_rows(rows: Any, adding: bool) -> EdgeColumns:
    if isinstance(rows, str | bytes | dict) or not isinstance(rows, Iterable):
        hint = "; read a file with ripplevec.io.open_edges" if isinstance(rows, str | PathLike) else ""
        raise InvalidValueError(f"{InvalidValueError.of('edges', EXPECTED_EDGES, rows)}{hint}")
    rows = list(rows)
    for number, row in enumerate(rows):
        if isinstance(row, str | bytes) or not isinstance(row, Sequence | np.ndarray) or len(row) not in (2, 3):
            has_time = isinstance(row, list | tuple) and len(row) == 4
            hint = "; pass times with Batch.of(src, dst, weight, time=…)" if has_time else ""
            error = InvalidValueError.of("edges", EXPECTED_EDGES, f"{shorten(row)} in row {number}")
            raise InvalidValueError(f"{error}{hint}")
    weighted = adding and any(len(row) == 3 for row in rows)
    weights = [row[2] if len(row) == 3 else 1.0 for row in rows] if weighted else None
    return EdgeColumns([row[0] for row in rows], [row[1] for row in rows], weights)


def _read_array(edges: NDArray[Any], adding: bool) -> EdgeColumns:
    if edges.ndim != 2 or edges.shape[1] not in (2, 3):
        is_square = edges.ndim == 2 and edges.shape[0] == edges.shape[1]
        error = InvalidValueError.of("edges", "an array of shape (m, 2) or (m, 3)", f"shape {edges.shape}")
        raise InvalidValueError(f"{error}. {MATRIX_HINT}" if is_square else str(error))
    if _may_be_adjacency_matrix(edges):
        got = f"one of shape {edges.shape} that may be an adjacency matrix"
        error = InvalidValueError.of("edges", "an array that is a list of edges", got)
        columns = ", ".join(f"array[:, {column}]" for column in range(edges.shape[1]))
        raise InvalidValueError(f"{error}. {MATRIX_HINT}; edges as Batch.of({columns})")
    return EdgeColumns(edges[:, 0], edges[:, 1], edges[:, 2] if edges.shape[1] == 3 and adding else None)


def _may_be_adjacency_matrix(edges: NDArray[Any]) -> bool:
    """Return whether an array of two or three rows may be the adjacency matrix of as many vertices.

    Of two rows, only a matrix that is symmetric without self-loops, or has zeros and ones only: other arrays are common
    in streams whose edges come two at a time, such as a path, [[0, 1], [1, 2]], and both directions, [[5, 7], [7, 5]].
    """
    if edges.shape[0] != edges.shape[1] or not all(isinstance(value, Number) for value in edges.flat):
        return False
    is_symmetric, has_loops = (edges == edges.T).all(), edges.diagonal().any()
    may_be = (is_symmetric and not has_loops) if len(edges) == 2 else (is_symmetric or not has_loops)
    return bool(may_be or np.isin(edges, (0, 1)).all())


def _read_table(frame: Any, columns: TableColumns) -> EdgeColumns:
    table = frame.to_arrow() if hasattr(frame, "to_arrow") else frame
    labels = list(table.column_names if isinstance(table, pa.Table | pa.RecordBatch) else table.columns)
    # A label may be any object, such as the numbers of a frame without names: compare texts, read by label.
    requested = {name: str(label) for name, label in columns._asdict().items() if label is not None}
    positions = match_column_names([str(label) for label in labels], requested)
    missing = [column for column in ("src", "dst", *requested) if column not in positions]
    if any(requested.get(column) != "none" for column in missing):
        expected = ", ".join(dict.fromkeys(requested.get(column, column) for column in ("src", "dst", *requested)))
        error = InvalidValueError.of("edges", f"columns {expected}", f"columns {labels}")
        raise InvalidValueError(f"{error}. Name them: src=…, dst=…, weight=…, time=…")
    return EdgeColumns(**{column: _table_column(table[labels[position]]) for column, position in positions.items()})


def _table_column(column: Any) -> Any:
    """Convert a pandas column to an array, which may hold int and str ids; return an Arrow column unchanged."""
    return column if isinstance(column, pa.Array | pa.ChunkedArray) else column.to_numpy()


def _read_sparse(matrix: Any, directed: bool) -> EdgeColumns:
    if len(matrix.shape) != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InvalidValueError.of("edges", "a square sparse matrix", f"shape {matrix.shape}")
    matrix = matrix.tocsr().copy()
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    if not directed and (matrix != matrix.T).nnz == 0:  # a symmetric matrix has each undirected edge twice
        matrix = _upper_triangle(matrix)
    entries = matrix.tocoo()
    weights = None if (entries.data == 1).all() else entries.data
    return EdgeColumns(entries.row, entries.col, weights, vertices=np.arange(matrix.shape[0]))


def _upper_triangle(matrix: Any) -> Any:
    from scipy.sparse import triu

    return triu(matrix, format="csr")


def _read_networkx(graph: Any) -> EdgeColumns:
    rows = list(graph.edges(data="weight", default=1.0))
    src, dst, weights = ([row[part] for row in rows] for part in range(3))
    return EdgeColumns(src, dst, weights, vertices=list(graph.nodes))


def _read_igraph(graph: Any) -> EdgeColumns:
    names = list(graph.vs["name"] if "name" in graph.vs.attributes() else range(graph.vcount()))
    pairs = [(names[source], names[target]) for source, target in graph.get_edgelist()]
    weights = list(graph.es["weight"]) if "weight" in graph.es.attributes() else None
    return EdgeColumns([u for u, _ in pairs], [v for _, v in pairs], weights, vertices=names)


def _geometric_to_sparse(data: Any) -> Any:
    """Convert PyTorch Geometric data, which has an undirected edge in both directions, to a sparse matrix."""
    from scipy.sparse import coo_array

    source, target = data.edge_index.cpu().numpy()
    weight = getattr(data, "edge_weight", None)
    weights = np.ones(len(source)) if weight is None else weight.detach().cpu().numpy().astype(np.float64)
    return coo_array((weights, (source, target)), shape=(data.num_nodes, data.num_nodes))
