"""Where events come from and changes go: edges in from files and brokers, vectors and changes out."""

from ripplevec.io.readers.edge_files import EdgeReader, open_edges
from ripplevec.io.registry import dead_letters_to, sink_to, stream_from
from ripplevec.io.vector_files import ChangeLog, write_vectors

__all__ = ["ChangeLog", "EdgeReader", "dead_letters_to", "open_edges", "sink_to", "stream_from", "write_vectors"]
