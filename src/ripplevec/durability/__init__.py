"""Durability: crash-safe sessions with a journal, snapshots and recovery."""
