"""Building blocks without knowledge of graphs: threads, locks, growing arrays, checked directories, progress bars."""
