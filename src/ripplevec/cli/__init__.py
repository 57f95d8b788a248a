"""Command line interface: one file per command; commands import heavy modules only when they run."""
