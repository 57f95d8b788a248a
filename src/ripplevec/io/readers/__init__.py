"""Edge files in every supported format, read in batches."""
