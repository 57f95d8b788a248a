"""Temporal behavior of a graph: decay of weights with event time, and expiry of edges not seen for long."""
