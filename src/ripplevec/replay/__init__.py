"""Replay of edge files as live streams, at their original times or at a constant rate."""
