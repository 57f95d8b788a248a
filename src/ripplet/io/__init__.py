"""Where events come from and changes go: edges in from files, vectors and the log of changes out."""

from ripplet.io.edges import EdgeReader, open_edges
from ripplet.io.write import ChangeLog, write_vectors

__all__ = ["ChangeLog", "EdgeReader", "open_edges", "write_vectors"]
