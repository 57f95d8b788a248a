"""Building blocks unrelated to graphs: threads, locks, growable arrays, checked directories, progress bars."""
