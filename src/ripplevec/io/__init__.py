"""Where events come from and changes go: edges in from files and brokers, vectors and changes out."""

from ripplevec.io.connect import dead_letters_to, sink_to, stream_from
from ripplevec.io.edges import EdgeReader, open_edges
from ripplevec.io.write import ChangeLog, write_vectors

__all__ = ["ChangeLog", "EdgeReader", "dead_letters_to", "open_edges", "sink_to", "stream_from", "write_vectors"]
