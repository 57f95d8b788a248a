"""Input and output: edge files, live event sources, change sinks and vector files.

`readers` turn edge files into batches, `sources` read live streams and remember their position, `sinks` deliver the
changes of each batch. `registry` creates sources and sinks from paths and addresses.
"""

from ripplevec.io.readers.edge_files import EdgeReader, open_edges
from ripplevec.io.registry import dead_letters_to, sink_to, stream_from
from ripplevec.io.vector_files import ChangeLog, write_vectors

__all__ = ["ChangeLog", "EdgeReader", "dead_letters_to", "open_edges", "sink_to", "stream_from", "write_vectors"]
