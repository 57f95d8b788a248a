"""Reads of the model for HTTP endpoints: vertex lookups, coalesced reads and the fast path."""
