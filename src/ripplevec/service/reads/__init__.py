"""Reads for HTTP endpoints: ids in paths, model reads, coalesced reads and the fast path."""
