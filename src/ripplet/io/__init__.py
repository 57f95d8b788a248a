"""Where events come from and changes go: edges in from files and brokers, vectors and changes out."""

from ripplet.io.connect import dead_letters_to, sink_to, stream_from
from ripplet.io.edges import EdgeReader, open_edges
from ripplet.io.write import ChangeLog, write_vectors

__all__ = ["ChangeLog", "EdgeReader", "dead_letters_to", "open_edges", "sink_to", "stream_from", "write_vectors"]
